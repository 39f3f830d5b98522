//! What a process has used, as the kernel says.

use crate::units::milliseconds_of;
use std::fs;

/// Processor time of all live threads, in milliseconds (`schedstat`, which counts in nanoseconds).
pub(crate) fn cpu_ms(pid: u32) -> f64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let nanoseconds = |task: fs::DirEntry| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    };
    milliseconds_of(tasks.filter_map(nanoseconds).sum())
}

/// Processor time of the calling thread, in milliseconds. It may be late by a clock tick: measure many of them.
pub(crate) fn thread_cpu_ms() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("schedstat");
    let nanoseconds: f64 = text.split(' ').next().and_then(|field| field.parse().ok()).expect("nanoseconds");
    milliseconds_of(nanoseconds)
}

/// Processor time of all children that have ended and were waited for, in milliseconds, in steps of ten.
pub(crate) fn children_cpu_ms() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
    // cutime and cstime (proc(5): fields 16 and 17; the third is the first here), in hundredths of a second.
    after.split(' ').skip(13).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() * 10.0
}
