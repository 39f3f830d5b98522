//! The commands that the documentation tells an operator to type.

use navin_test_support::workspace_dir;
use std::fs;

/// The lines of the first block of a section of `docs/MANAGER.md`.
pub(crate) fn commands(section: &str) -> Vec<String> {
    let text = fs::read_to_string(workspace_dir().join("docs/MANAGER.md")).expect("docs/MANAGER.md");
    let (_, after) = text.split_once(&format!("\n## {section}\n")).expect("the section");
    let (_, block) = after.split_once("```sh\n").expect("a block of commands");
    let (block, _) = block.split_once("\n```").expect("its end");
    block.lines().map(str::to_owned).collect()
}
