//! The mutants keep up with the code that they change: `tests/sim/mutants/run` finds each one's violation.

use std::path::Path;
use std::process::Command;

#[test]
fn every_mutant_applies_to_the_code_of_now() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = root.join("tests/sim/mutants");
    let files = std::fs::read_dir(&folder).expect("the mutants").map(|file| file.expect("a file").path());
    let patches: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "patch")).collect();
    assert!(patches.len() > 30, "{}", patches.len());
    for patch in patches {
        let checked = Command::new("git").args(["apply", "--check"]).arg(&patch).current_dir(&root).output();
        let checked = checked.expect("git");
        assert!(checked.status.success(), "{patch:?}: {}", String::from_utf8_lossy(&checked.stderr));
    }
}
