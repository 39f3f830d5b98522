//! Where tests keep files: the target directory, and one folder per started thing below it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, io, process, thread};

use crate::reaper;

/// Speaks to whoever runs the tests, past the test harness, which would show it only on failure.
pub fn say(what: &str) {
    // A closed standard error is no reason to fail a test.
    writeln!(io::stderr(), "navin-test-support: {what}").unwrap_or_default();
}

/// The root of the workspace.
pub fn workspace_dir() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).expect("tests/support is two folders below the root").to_owned()
}

/// Cargo's target directory: the one that the running test was built into, else what Cargo would take.
pub fn target_dir() -> PathBuf {
    let exe = env::current_exe().expect("the path of this process");
    // Cargo puts this tag into every target directory that it makes.
    if let Some(tagged) = exe.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file()) {
        return tagged.to_owned();
    }
    let named = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    workspace_dir().join(named)
}

/// A folder of its own for one cluster or one scenario: logs, keys, databases.
///
/// Removed when it is dropped, and kept when the test that drops it is failing: the logs of a failed
/// test are what one wants next.
#[derive(Debug)]
pub struct RunFolder(PathBuf);

impl RunFolder {
    /// Makes `target/test-run/<pid>/<number>-<name>`.
    pub fn new(name: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = process_folder().join(format!("{number}-{name}"));
        fs::create_dir_all(&folder).expect("a folder for this test");
        Self(folder)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if thread::panicking() || kept() {
            reaper::keep_folder();
            say(&format!("logs are in {}", self.0.display()));
        } else if let Err(error) = fs::remove_dir_all(&self.0) {
            say(&format!("{} stays: {error}", self.0.display()));
        }
    }
}

/// All that this process writes; the reaper removes it in the end.
pub(crate) fn process_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = target_dir().join("test-run").join(process::id().to_string());
        // An earlier process of the same number may have kept its logs.
        if folder.exists() {
            fs::remove_dir_all(&folder).expect("the folder of an earlier process");
        }
        fs::create_dir_all(&folder).expect("a folder for this process");
        folder
    })
}

/// Whether the one who runs the tests wants to keep every file of theirs.
pub(crate) fn kept() -> bool {
    env::var_os("NAVIN_TEST_KEEP").is_some()
}
