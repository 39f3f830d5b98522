//! What the documents name is there: tests, files, and for each promise what shows it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The folders whose files a document may name by their path.
const FOLDERS: [&str; 10] =
    [".ci/", "benches/", "deploy/", "docs/", "examples/", "fuzz/", "manager/", "scripts/", "src/", "tests/"];

#[test]
fn a_document_names_tests_and_files_that_exist() {
    let tests = tests_of_the_repository();
    assert!(tests.len() > 300, "only {} tests found: the search is broken", tests.len());
    let mut missing = Vec::new();
    for (name, text) in documents() {
        for code in codes(&text) {
            let there = if is_a_tests_name(code) {
                tests.contains(code)
            } else if is_a_path(code) {
                Path::new(ROOT).join(code).exists()
            } else {
                true
            };
            if !there {
                missing.push(format!("{name}: {code}"));
            }
        }
    }
    assert!(missing.is_empty(), "named and not there:\n{}", missing.join("\n"));
}

#[test]
fn each_promise_of_a_document_names_what_shows_it_or_says_that_nothing_does() {
    for (name, least) in [
        ("README.md", 12),
        ("CONTRACT.md", 50),
        ("docs/MANAGER.md", 15),
        ("docs/OPERATIONS.md", 15),
        ("docs/SECURITY.md", 70),
    ] {
        let text = fs::read_to_string(Path::new(ROOT).join(name)).expect(name);
        let rows: Vec<&str> = rows_shown_by(&text).collect();
        assert!(rows.len() >= least, "{name}: only {} rows found", rows.len());
        for row in rows {
            let shown_by = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default().trim();
            let named = codes(shown_by).any(|code| is_a_tests_name(code) || is_a_path(code));
            let elsewhere = shown_by.contains("CONTRACT section") || shown_by == "the same";
            assert!(
                named || elsewhere || shown_by.starts_with("not shown"),
                "{name}: nothing shows this: {row}"
            );
        }
    }
}

#[test]
fn each_section_of_the_contract_has_rows_of_what_shows_it() {
    let text = fs::read_to_string(Path::new(ROOT).join("CONTRACT.md")).expect("CONTRACT.md");
    let number = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next().map(str::to_owned);
    let sections: BTreeSet<_> = text.lines().filter_map(|line| number(line.strip_prefix("## ")?)).collect();
    let shown: BTreeSet<_> = rows_shown_by(&text).filter_map(|row| number(row.strip_prefix("| ")?)).collect();
    let numbered: BTreeSet<_> = sections.into_iter().filter(|number| !number.is_empty()).collect();
    assert_eq!(shown, numbered);
}

/// The rows of the tables whose last column says what shows the rest.
fn rows_shown_by(text: &str) -> impl Iterator<Item = &str> {
    let is_head = |line: &str| line.ends_with("| shown by |");
    let mut in_table = false;
    text.lines().filter(move |line| {
        in_table = line.starts_with('|') && (in_table || is_head(line));
        in_table && !is_head(line) && !line.starts_with("| --- |")
    })
}

/// As far as their words stand where they are said.
#[test]
fn every_warning_and_error_that_the_agent_logs_is_told_in_operations() {
    let text = fs::read_to_string(Path::new(ROOT).join("docs/OPERATIONS.md")).expect("docs/OPERATIONS.md");
    let (mut found, mut missing) = (0, Vec::new());
    for path in files(&Path::new(ROOT).join("src"), true) {
        let source = fs::read_to_string(&path).expect("a source file");
        let mut said = Vec::new();
        for call in ["log::warn!(", "log::error!(", ".warn(", ".trouble("] {
            let statements = source.split(call).skip(1).filter_map(|rest| rest.split_once(';'));
            said.extend(statements.filter_map(|(statement, _)| statement.split('"').nth(1)));
        }
        // What is said once a minute is put together just before.
        for (call, _) in source.match_indices(" say(&mut ") {
            let line = source[..call].rsplit_once("format!(").and_then(|(_, rest)| rest.split('"').nth(1));
            said.extend(line);
        }
        for said in said {
            let words = said.split(['{', ':']).next().unwrap_or_default();
            // What stands before `=` is a key.
            let words = words
                .split_once('=')
                .map_or(words, |(words, _)| words.rsplit_once(' ').unwrap_or_default().0);
            found += usize::from(!words.is_empty());
            if !text.contains(words.trim()) {
                missing.push(format!("{}: {words}", path.display()));
            }
        }
    }
    assert!(found > 25, "only {found} found: the search is broken");
    assert!(missing.is_empty(), "not in docs/OPERATIONS.md:\n{}", missing.join("\n"));
}

#[test]
fn the_images_build_is_given_every_package_of_the_workspace() {
    let read = |name: &str| fs::read_to_string(Path::new(ROOT).join(name)).expect(name);
    let (manifest, ignored) = (read("Cargo.toml"), read(".dockerignore"));
    let (_, members) = manifest.split_once("members = [").expect("members");
    let (members, _) = members.split_once(']').expect("their end");
    for member in members.split(',').map(|member| member.trim().trim_matches('"')) {
        let let_in = member == "." || ignored.lines().any(|line| line.strip_prefix('!') == Some(member));
        assert!(let_in, ".dockerignore leaves out {member}");
    }
}

#[test]
fn the_document_of_limits_is_what_the_sources_say() {
    let run = std::process::Command::new(Path::new(ROOT).join("scripts/list-limits"))
        .arg("--check")
        .output()
        .expect("scripts/list-limits");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&[run.stdout, run.stderr].concat()));
    let text = fs::read_to_string(Path::new(ROOT).join("docs/LIMITS.md")).expect("docs/LIMITS.md");
    for limit in ["`src/http.rs` | CONNECT_LIMIT", "`src/rules/json.rs` | MAX_ENVELOPE_BYTES"] {
        assert!(text.contains(limit), "of a file whose tests are named at its top: {limit}");
    }
}

#[test]
fn the_lines_of_code_that_the_documents_state_are_those_of_the_sources() {
    let read = |name: &str| fs::read_to_string(Path::new(ROOT).join(name)).expect(name);
    let (all, with_comments) = lines(&[]);
    for name in ["README.md", "docs/ARCHITECTURE.md"] {
        assert!(read(name).contains(&format!("{all} lines of code")), "{name}: there are {all} now");
    }
    let stated = format!("{with_comments} with comments and blank lines");
    assert!(read("README.md").contains(&stated), "README.md: there are {stated} now");
    let text = read("docs/ARCHITECTURE.md");
    let (before, modules) = text.split_once(" of these: `rules/{").expect("what is reviewed");
    let stated = before.rsplit(' ').next().expect("its lines");
    let (rules, _) = modules.split_once("}` and\n`http`").expect("their end");
    let rules = rules.split(',').map(|module| format!("src/rules/{module}"));
    let (counted, _) = lines(&rules.chain(["src/http".to_owned()]).collect::<Vec<_>>());
    assert_eq!(stated, counted, "lines of code of what is reviewed");
}

/// As `scripts/count-lines` counts them in these modules, or in all, with a comma after the thousands: those of code,
/// and all with comments and blank lines.
fn lines(modules: &[String]) -> (String, String) {
    let script = Path::new(ROOT).join("scripts/count-lines");
    let run = std::process::Command::new(script).args(modules).output().expect("a script");
    assert!(run.status.success(), "{run:?}");
    let counted = String::from_utf8(run.stdout).expect("text");
    let (code, rest) = counted.split_once(" (").expect("lines of code");
    let (all, _) = rest.split_once(' ').expect("all lines");
    let comma = |number: &str| {
        let (thousands, rest) = number.split_at(number.len().saturating_sub(3));
        format!("{thousands},{rest}")
    };
    (comma(code), comma(all))
}

/// The Markdown files of the root, of docs/ and of folders that explain themselves.
fn documents() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in ["", "docs", "scripts/smoke", "tests/node", "tests/sim/mutants"] {
        for path in files(&Path::new(ROOT).join(folder), false) {
            if path.extension().is_some_and(|extension| extension == "md") {
                let name = path.strip_prefix(ROOT).unwrap_or(&path).display().to_string();
                found.push((name, fs::read_to_string(&path).expect("a document")));
            }
        }
    }
    assert!(found.len() >= 6, "only {} documents found", found.len());
    found
}

/// What stands between backticks on one line.
fn codes(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// Tests are named by sentences of five words or more; metrics, which could look like it, begin with the product's name.
fn is_a_tests_name(code: &str) -> bool {
    code.split('_').count() >= 5
        && !code.starts_with("navin_")
        && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

fn is_a_path(code: &str) -> bool {
    FOLDERS.iter().any(|folder| code.starts_with(folder))
        && !code.contains(|c: char| c.is_whitespace() || "*<>…{}".contains(c))
}

fn tests_of_the_repository() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for folder in ["src", "manager", "tests", "fuzz"] {
        for path in files(&Path::new(ROOT).join(folder), true) {
            if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source file");
                let mut is_test = false;
                for line in text.lines().map(str::trim) {
                    if line == "#[test]" || line.starts_with("#[tokio::test") {
                        is_test = true;
                    } else if let Some((name, _)) = line.split_once(" of \"") {
                        // One of those that a macro makes, of a name and what it is about.
                        found.insert(name.to_owned());
                    } else if let Some(rest) =
                        line.trim_start_matches("async ").strip_prefix("fn ").filter(|_| is_test)
                    {
                        is_test = false;
                        found.insert(rest.split('(').next().unwrap_or_default().to_owned());
                    }
                }
            }
        }
    }
    found
}

/// The files of a folder, and of those below it if asked; not of build folders.
fn files(folder: &Path, below: bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else {
        return found;
    };
    for path in entries.map(|entry| entry.expect("an entry of a folder").path()) {
        if path.is_file() {
            found.push(path);
        } else if below && path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            found.extend(files(&path, true));
        }
    }
    found
}
