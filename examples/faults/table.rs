//! The table.

use crate::cell::Cell;
use crate::check::{PEAK_KIB, RSS_KIB};
use crate::rows::Row;
use navin_test_support::Server;
use std::time::Duration;

pub(crate) fn peer(peer: Server) -> &'static str {
    match peer {
        Server::Api => "API    ",
        Server::Gateway => "gateway",
    }
}

pub(crate) fn head() {
    println!(
        "{:<30} {:<7} {:>9} {:>9} {:>4} {:>7} {:>9} {:>6} {:>6} {:>7} {:>5}",
        "fault",
        "peer",
        "recovered",
        "calls/min",
        "lost",
        "doubled",
        "Lease",
        "RSS",
        "peak",
        "threads",
        "files"
    );
}

/// Prints one cell as soon as it is there.
pub(crate) fn line(row: &Row, cell: &Cell) {
    let recovered = match cell.recovered {
        Some(time) => format!("{:.1} s", time.as_secs_f64()),
        None if cell.during => "all along".to_owned(),
        None if cell.wrong.is_empty() => "-".to_owned(),
        None => "too late".to_owned(),
    };
    let lease = if cell.takes == 0 { "kept".to_owned() } else { format!("taken {}", cell.takes) };
    let mib = |kib: u64| format!("{:.1}", f64::from(u32::try_from(kib).unwrap_or(u32::MAX)) / 1024.0);
    let worst = &cell.worst;
    println!(
        "{:<30} {} {recovered:>9} {:>9} {:>4} {:>7} {lease:>9} {:>6} {:>6} {:>7} {:>5}{}",
        row.name,
        peer(row.peer),
        cell.calls_per_minute,
        cell.lost,
        cell.doubled,
        mib(worst.rss_kib),
        mib(worst.peak_kib),
        worst.threads,
        worst.files,
        if cell.wrong.is_empty() { "" } else { "  BROKEN" }
    );
    for wrong in &cell.wrong {
        println!("    {wrong}");
    }
}

/// The sum; whether every row holds.
pub(crate) fn end(cells: &[(Row, Cell)], took: Duration) -> bool {
    let broken = cells.iter().filter(|(_, cell)| !cell.wrong.is_empty()).count();
    println!(
        "{} rows in {} s, {broken} broken; bounds: RSS {} MiB, peak {} MiB",
        cells.len(),
        took.as_secs(),
        RSS_KIB / 1024,
        PEAK_KIB / 1024
    );
    broken == 0
}
