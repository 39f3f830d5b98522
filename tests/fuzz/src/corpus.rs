//! The kept corpus: `fuzz/corpus/<target>`, a file for each text.

use std::fs;
use std::path::{Path, PathBuf};

/// Largest file that is kept, in bytes.
pub const MAX_FILE: usize = 4096;
/// Most files that are kept for one target.
pub const MAX_FILES: usize = 200;
/// Most bytes that are kept in all.
pub const MAX_TOTAL: usize = 1024 * 1024;

/// The folder of a target.
#[must_use]
pub fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

/// The texts that are kept for a target, in the order of their names.
#[must_use]
pub fn kept(target: &str) -> Vec<Vec<u8>> {
    let folder = folder(target);
    let found = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = found.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("a file of the corpus")).collect()
}

/// One of them, by its name.
#[must_use]
pub fn read(target: &str, name: &str) -> Vec<u8> {
    let path = folder(target).join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
