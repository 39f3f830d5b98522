//! What goes wrong on the wire, one thing at a time, and what the agent makes of it: a table.
//!
//! `cargo run --release --example faults [-- --short] [--only NAME]... [--hold SECONDS] [--lanes NUMBER] [--list]`.
//! Two replicas, a real API server and a real manager, with proxies between them; each row is tried at either
//! peer. Before a fault a command is brought to the point where its answer is about to come; in it another is
//! queued and a component changed by hand. Exit 0 only where every row holds. It needs root (a resolver that
//! never answers has port 53) and `unshare`.

mod answers;
mod audit;
mod cell;
mod certs;
mod check;
mod inject;
mod lane;
mod list;
mod rows;
mod table;

use cell::Cell;
use lane::Lane;
use navin_test_support::{Cluster, Server};
use rows::Row;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: cargo run --release --example faults [-- --short] [--only NAME]... \
    [--peer api|gateway] [--hold SECONDS] [--lanes NUMBER] [--list]";

struct Options {
    short: bool,
    list: bool,
    only: Vec<String>,
    peer: Option<Server>,
    hold: Duration,
    lanes: usize,
}

fn main() -> ExitCode {
    let Some(options) = options() else {
        eprintln!("{USAGE}");
        return ExitCode::from(64);
    };
    let rows: Vec<Row> = list::all().into_iter().filter(|row| options.wants(row)).collect();
    if options.list {
        for row in rows {
            println!("{}  {}", table::peer(row.peer), row.name);
        }
        return ExitCode::SUCCESS;
    }
    let started = Instant::now();
    let (own, shared): (VecDeque<Row>, VecDeque<Row>) = rows.into_iter().partition(Row::needs_own_cluster);
    let cells: Mutex<Vec<(Row, Cell)>> = Mutex::default();
    table::head();
    let lanes = options.lanes.min(shared.len());
    let (queue, own) = (Mutex::new(shared), Mutex::new(own));
    thread::scope(|scope| {
        let (queue, own, cells, options) = (&queue, &own, &cells, &options);
        let work: Vec<_> = (0..lanes)
            .map(|_| scope.spawn(|| go_through(Cluster::shared, queue, options, cells)))
            .chain(
                [scope.spawn(|| go_through(|| Box::leak(Box::new(Cluster::start())), own, options, cells))],
            )
            .collect();
        for lane in work {
            lane.join().expect("a lane that ends");
        }
    });
    let cells = cells.into_inner().unwrap_or_else(PoisonError::into_inner);
    let held = table::end(&cells, started.elapsed());
    if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Tries what is in the queue, one row after another, in a lane of its own.
fn go_through(
    cluster: impl FnOnce() -> &'static Cluster,
    queue: &Mutex<VecDeque<Row>>,
    options: &Options,
    cells: &Mutex<Vec<(Row, Cell)>>,
) {
    let lock = || queue.lock().unwrap_or_else(PoisonError::into_inner);
    if lock().is_empty() {
        return;
    }
    let cluster = cluster();
    let mut lane = None;
    loop {
        let Some(row) = lock().pop_front() else { return };
        let tried = catch_unwind(AssertUnwindSafe(|| {
            lane.get_or_insert_with(|| Lane::start(cluster)).run(&row, options.hold)
        }));
        let cell = tried.unwrap_or_else(|panic| {
            // What became of the world is not known.
            lane = None;
            Cell::failed(&panic)
        });
        table::line(&row, &cell);
        cells.lock().unwrap_or_else(PoisonError::into_inner).push((row, cell));
    }
}

impl Options {
    fn wants(&self, row: &Row) -> bool {
        let named = self.only.is_empty() || self.only.iter().any(|name| row.name.contains(name.as_str()));
        named && (list::is_short(row) || !self.short) && self.peer.is_none_or(|peer| peer == row.peer)
    }
}

fn options() -> Option<Options> {
    let mut options = Options {
        short: false,
        list: false,
        only: vec![],
        peer: None,
        hold: Duration::from_secs(8),
        lanes: 6,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--short" => options.short = true,
            "--list" => options.list = true,
            "--only" => options.only.push(arguments.next()?),
            "--peer" => {
                options.peer = Some(match arguments.next()?.as_str() {
                    "api" => Server::Api,
                    "gateway" => Server::Gateway,
                    _ => return None,
                });
            }
            "--hold" => options.hold = Duration::from_secs(arguments.next()?.parse().ok()?),
            "--lanes" => {
                options.lanes = arguments.next()?.parse().ok().filter(|lanes| (1..=16).contains(lanes))?;
            }
            _ => return None,
        }
    }
    Some(options)
}
