//! That the rooms of the agent know each other in one direction, as docs/ARCHITECTURE.md says.

use std::fs;
use std::path::{Path, PathBuf};

const HEAD: &str = "Imports run downwards only";

/// The rooms in the order of the document, the lowest first.
fn order() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ARCHITECTURE.md");
    let text = fs::read_to_string(path).unwrap();
    let paragraph = text.split("\n\n").find(|paragraph| paragraph.starts_with(HEAD)).expect(HEAD);
    paragraph.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The files of the product in `folder`.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "tests" {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs")
            && !matches!(name, "tests.rs" | "vectors.rs")
        {
            found.push(path);
        }
    }
}

#[test]
fn no_room_knows_one_above_it() {
    let (order, src) = (order(), Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let place = |room: &str| order.iter().position(|known| known == room);
    let mut files = Vec::new();
    sources(&src, &mut files);
    let mut imports = 0;
    for file in files {
        let inside = file.strip_prefix(&src).unwrap().to_str().unwrap();
        let room = inside.split('/').next().unwrap().trim_end_matches(".rs");
        let Some(own) = place(room) else {
            assert!(matches!(room, "lib" | "main"), "{HEAD}: {room} is not named");
            continue;
        };
        let text = fs::read_to_string(&file).unwrap();
        let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for line in product.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for import in line.split("crate::").skip(1) {
                let known = import.split(|c: char| !c.is_ascii_lowercase() && c != '_').next().unwrap();
                let known_at = place(known).unwrap_or_else(|| panic!("{HEAD}: {known} is not named"));
                assert!(known_at <= own, "{inside} knows {known}: {line}");
                imports += 1;
            }
        }
    }
    assert!(imports > 300, "{imports} were looked at");
}
