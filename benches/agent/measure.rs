//! What a process has used, as the kernel says.

use std::fs;

/// Processor time of all live threads, in milliseconds (`schedstat`, which counts in nanoseconds).
pub(crate) fn cpu_ms(pid: u32) -> f64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let nanoseconds = |task: fs::DirEntry| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    };
    tasks.filter_map(nanoseconds).sum::<f64>() / 1e6
}
