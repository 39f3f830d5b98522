//! What a running process takes, as the kernel says.

use std::fs;

/// One reading of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Memory in use, in KiB (`VmRSS`).
    pub rss_kib: u64,
    /// The most that it was, since the start or since [`Reading::reset_peak`] (`VmHWM`).
    pub peak_kib: u64,
    /// Memory in use with each shared page counted in parts, in KiB (`Pss`).
    pub pss_kib: u64,
    /// Threads.
    pub threads: u64,
    /// Open files, sockets among them.
    pub files: u64,
}

impl Reading {
    /// Reads it now; all zero where the process is gone.
    pub fn of(pid: u32) -> Self {
        let file = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let (status, rollup) = (file("status"), file("smaps_rollup"));
        let files = fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        Self {
            rss_kib: member(&status, "VmRSS:"),
            peak_kib: member(&status, "VmHWM:"),
            pss_kib: member(&rollup, "Pss:"),
            threads: member(&status, "Threads:"),
            files: files.try_into().unwrap_or(u64::MAX),
        }
    }

    /// Lets the peak begin anew, where the kernel allows it.
    pub fn reset_peak(pid: u32) {
        // Without it the peak is that of the process's whole life.
        fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap_or_default();
    }
}

/// The number after `name` at the beginning of a line; 0 where there is none.
fn member(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_threads_and_files() {
        let own = Reading::of(std::process::id());
        assert!(own.rss_kib > 0 && own.pss_kib > 0 && own.peak_kib >= own.rss_kib, "{own:?}");
        assert!(own.threads > 0 && own.files > 0, "{own:?}");
        assert_eq!(Reading::of(u32::MAX), Reading::default());
    }
}
