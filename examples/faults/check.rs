//! What must be so when a fault is over and all is done.

use crate::audit::Audit;
use crate::cell::{Cell, Work};
use crate::lane::{FIRST, Lane, SECOND};
use crate::rows::{Asked, Row};
use navin_test_support::{Reading, Server};
use serde_json::Value;
use std::thread;
use std::time::{Duration, Instant};

/// Most memory at rest.
pub(crate) const RSS_KIB: u64 = 16 * 1024;
/// Most memory ever: half of what the Deployment allows.
pub(crate) const PEAK_KIB: u64 = 64 * 1024;
/// How many threads and open files there may be more than before, when all is over.
const MORE_THREADS: u64 = 2;
const MORE_FILES: u64 = 8;
/// Until idle connections are closed, and look-ups of names have ended.
const SETTLED: Duration = Duration::from_secs(30);

impl Lane {
    pub(crate) fn check_outcomes(&self, work: &Work, cell: &mut Cell) {
        let state = self.world.namespace.state().unwrap_or_default();
        let commands = [(FIRST, Some(&work.first)), (SECOND, work.second.as_ref())];
        for ((name, command), before) in commands.into_iter().zip(work.generations) {
            let Some(command) = command else { continue };
            let shown = self.shown(command);
            if shown["status"] != "succeeded" {
                cell.lost += 1;
                cell.wrong.push(format!("{name}: {} {}", shown["status"], shown["receipt"]));
            }
            let receipts = shown["receipts"].as_array().into_iter().flatten().map(|kept| &kept["receipt"]);
            if receipts.filter(|receipt| receipt["recorded"] == true).any(|other| *other != shown["receipt"])
            {
                cell.doubled += 1;
                cell.wrong.push(format!("{name}: two outcomes"));
            }
            let live = self.world.namespace.component(name).unwrap_or_default();
            let sequence = shown["sequence"].to_string();
            let written = &live["metadata"]["annotations"]["platform.navin.ai/sequence"];
            let recorded = state["components"][name]["succeeded"].to_string();
            if live["spec"] != work.spec || *written != sequence || recorded != sequence {
                let spec = &live["spec"];
                cell.wrong
                    .push(format!("{name}: {spec} of {written}, the state says {recorded}, not {sequence}"));
            }
            let writes = self.generation(name) - before;
            if writes != 1 {
                cell.doubled += u32::from(writes > 1);
                cell.wrong.push(format!("{name}: its spec was changed {writes} times"));
            }
        }
    }

    pub(crate) fn check_leadership(&self, row: &Row, mark: usize, lease: &Value, cell: &mut Cell) {
        let audit = Audit::of(&self.wire.since(mark), lease);
        cell.takes = audit.takes;
        let kept = row.peer == Server::Gateway || row.asked == Asked::Undisturbed;
        if kept && audit.takes > 0 {
            cell.wrong.push(format!("the Lease was taken {} times", audit.takes));
        }
        cell.wrong.extend(audit.wrong);
    }

    pub(crate) fn check_readings(&self, before: &[Reading; 2], pids: [u32; 2], cell: &mut Cell) {
        if self.pids() != pids || self.replicas.iter().any(|replica| !replica.agent.process().is_running()) {
            cell.wrong.push("a replica did not live through it".to_owned());
        }
        let settled = |now: &[Reading; 2]| {
            now.iter().zip(before).all(|(now, before)| {
                now.threads <= before.threads + MORE_THREADS && now.files <= before.files + MORE_FILES
            })
        };
        let began = Instant::now();
        let mut now = self.readings();
        while !settled(&now) && began.elapsed() < SETTLED {
            thread::sleep(Duration::from_millis(500));
            now = self.readings();
        }
        if !settled(&now) {
            cell.wrong.push(format!("threads or files: {now:?}, and before {before:?}"));
        }
        cell.worst = Reading {
            rss_kib: now.iter().map(|one| one.rss_kib).max().unwrap_or(0),
            peak_kib: now.iter().map(|one| one.peak_kib).max().unwrap_or(0),
            pss_kib: now.iter().map(|one| one.pss_kib).max().unwrap_or(0),
            threads: now.iter().map(|one| one.threads).max().unwrap_or(0),
            files: now.iter().map(|one| one.files).max().unwrap_or(0),
        };
        if cell.worst.rss_kib > RSS_KIB || cell.worst.peak_kib > PEAK_KIB {
            cell.wrong.push(format!("memory: {:?}", cell.worst));
        }
    }
}
