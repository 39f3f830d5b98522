//! How many files this process may have open: one a connection.

use super::serve::files_of;
use crate::process::failure::Failure;
use rustix::process::{Resource, getrlimit, setrlimit};

/// Files that are open besides connections: the database, keys, standard streams.
const OTHER_FILES: usize = 100;

/// Agents' connections at once, where no number is asked for.
const MAX_AGENTS: usize = 16_384;

/// Raises the limit as far as the system allows, and says how many agents' connections fit beside so many
/// files of other ports: what was asked for, or fewer, which is logged.
pub(crate) fn fit(asked: Option<usize>, others: usize) -> Result<usize, Failure> {
    let max_agents = asked.unwrap_or(MAX_AGENTS);
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
    // None is no limit.
    let files = getrlimit(Resource::Nofile).current;
    let files = files.and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX);
    let others = others.saturating_add(OTHER_FILES);
    let fits = most(max_agents, files.saturating_sub(others));
    if fits == 0 {
        let least = others.saturating_add(files_of(1));
        return Err(Failure::Argument(format!("{files} files may be open (ulimit -n): expected {least}")));
    }
    let help = "for more, raise the limit of open files (ulimit -n)";
    if fits < max_agents && asked.is_some() {
        tracing::warn!(files, max_agents = fits, "fewer agents are let in than --max-agents: {help}");
    } else if fits < max_agents {
        tracing::info!(
            files,
            max_agents = fits,
            "fewer agents are let in than the usual {MAX_AGENTS}: {help}"
        );
    }
    Ok(fits)
}

/// As many connections as asked for, or as there are files for.
fn most(asked: usize, files: usize) -> usize {
    let (mut fits, mut above) = (0, asked.saturating_add(1));
    while above.saturating_sub(fits) > 1 {
        let middle = fits.midpoint(above);
        if files_of(middle) <= files { fits = middle } else { above = middle }
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_agents_are_let_in_as_there_are_files_for() {
        assert_eq!([most(100, 200), most(100, 199), most(16_384, 1_000_000)], [100, 99, 16_384]);
        assert_eq!([most(16_384, 0), most(16_384, 64), most(16_384, 65)], [0, 0, 1]);
        assert_eq!([most(16_384, 10_000), most(1_000_000, 10_000)], [5904, 5904]);
    }
}
