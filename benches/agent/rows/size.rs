//! What is shipped: bytes and crates.

use crate::Plan;
use crate::lab::Lab;
use crate::table::{Goal, Row, Sample};
use crate::units::{figure, megabytes};
use navin_test_support::workspace_dir;
use std::fs;
use std::path::Path;
use std::process::Command;

pub(crate) fn rows(lab: &Lab, _: &Plan) -> Vec<Row> {
    let [go, kube_rs] = &lab.peers;
    vec![
        Row {
            what: "binary, static and stripped: MB".into(),
            ours: shipped(&lab.agent),
            peers: vec![(go.name, shipped(&go.binary)), (kube_rs.name, shipped(&kube_rs.binary))],
            goals: vec![Goal::AtMost(megabytes(limit("size_limit")))],
            published: "kured 48.9, Sveltos 56.7, Karmada 65.5, Fleet 73.6, argocd-agent 85.5, OCM work 90.7, \
                OCM registration 95.2",
            ..Row::default()
        },
        Row {
            what: "crates (Go: modules) in the binary".into(),
            ours: counted("scripts/list-crates", &[]),
            peers: vec![
                (go.name, counted("go", &["version", "-m", &go.binary.to_string_lossy()])),
                (kube_rs.name, counted("cargo", &TREE)),
            ],
            goals: vec![Goal::AtMost(limit("crate_limit"))],
            published: "kured 79, Sveltos 108, Karmada 114, Fleet 152, argocd-agent 170, OCM 176 modules",
            ..Row::default()
        },
    ]
}

const TREE: [&str; 9] = [
    "tree",
    "--locked",
    "--edges=normal",
    "--prefix=none",
    "--no-dedupe",
    "--format={p}",
    "--target=x86_64-unknown-linux-musl",
    "--manifest-path",
    "benches/peers/kube-rs/Cargo.toml",
];

/// What `scripts/build-static` holds it to.
fn limit(name: &str) -> f64 {
    let script = fs::read_to_string(workspace_dir().join("scripts/build-static")).expect("the script");
    let value = script.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')?.split(' ').next());
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in scripts/build-static"))
}

fn shipped(file: &Path) -> Sample {
    let bytes = fs::metadata(file).expect("a program that was built").len();
    Sample::one(megabytes(figure(bytes)))
}

/// Different packages that a tool lists, one a line; the program itself is not counted.
fn counted(program: &str, arguments: &[&str]) -> Sample {
    let output = Command::new(program).args(arguments).current_dir(workspace_dir()).output().expect(program);
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let package = |line: &&str| match program {
        "go" => line.trim_start().starts_with("dep\t"),
        "cargo" => !line.starts_with("baseline-kube-rs "),
        _ => true,
    };
    let mut lines: Vec<&str> = text.lines().filter(package).collect();
    lines.sort_unstable();
    lines.dedup();
    Sample::one(figure(lines.len()))
}
