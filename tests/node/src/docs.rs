//! The commands that the documentation tells an operator to type.

use navin_test_support::workspace_dir;
use std::fs;

/// The lines of the `block`th block of commands, from 0, in the README's "Install it on a cluster".
pub(crate) fn commands(block: usize) -> Vec<String> {
    let text = fs::read_to_string(workspace_dir().join("README.md")).expect("README.md");
    let (_, section) = text.split_once("\n## Install it on a cluster\n").expect("the section");
    let (section, _) = section.split_once("\n## ").expect("another section after it");
    let block = section.split("```sh\n").nth(block + 1).expect("a block of commands");
    let (block, _) = block.split_once("```").expect("its end");
    block.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}
