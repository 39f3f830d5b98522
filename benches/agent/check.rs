//! What does not depend on the machine, held: `benches/check`.

use crate::big_cluster::BigCluster;
use crate::lab::Lab;
use crate::rows::{inventory, rest, verify};
use std::process::{Command, ExitCode};

/// Instructions for judging one envelope of 2 kB: those of 2026-11-30, and a tenth more.
const VERIFY_INSTRUCTIONS: f64 = 1_932_000.0;

/// How often the envelope is judged in the shorter of two runs.
const TIMES: u32 = 200;

/// Measures each, and says what exceeds its bound.
pub(crate) fn run() -> ExitCode {
    let mut held = Held(true);
    held.at_most("instructions to verify an envelope of 2 kB", instructions(), VERIFY_INSTRUCTIONS, "");
    let lab = Lab::start_alone();
    let big = BigCluster::start(inventory::NODES);
    let what = format!("MiB at the peak of an inventory of {} nodes", inventory::NODES);
    held.at_most(&what, inventory::ours(&lab, &big).peak_mib, inventory::MOST_MIB, "");
    drop(big);
    let roles = ["leader", "standby"].into_iter().zip(rest::MOST_CALLS);
    for ((role, most), (calls, kinds)) in roles.zip(rest::calls_of_ours(&lab)) {
        held.at_most(&format!("API calls of a {role} at rest, a minute"), calls, most, &kinds);
    }
    if held.0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether everything so far was within its bound.
struct Held(bool);

impl Held {
    fn at_most(&mut self, what: &str, figure: f64, most: f64, about: &str) {
        let met = figure <= most;
        self.0 &= met;
        println!("{} {what}: {figure:.1} (at most {most}) {about}", if met { "ok     " } else { "TOO MUCH" });
    }
}

/// Of one more envelope: what is done once, to start and to sign it, is in both runs.
fn instructions() -> f64 {
    let run = |times: u32| {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(std::env::current_exe().expect("this program"))
            .args([verify::INNER, &times.to_string()])
            .output()
            .expect("valgrind (Debian's package of that name)");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}");
        let count =
            text.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse::<f64>().ok());
        count.unwrap_or_else(|| panic!("no count of instructions: {text}"))
    };
    (run(2 * TIMES) - run(TIMES)) / f64::from(TIMES)
}
