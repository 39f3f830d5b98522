//! Tells the binary its commit and the versions of the crates that trust rests on, for `version`.

use std::path::Path;
use std::process::Command;

/// The TLS and signature crates, as `Cargo.lock` names them.
const CRATES: [&str; 4] = ["rustls", "ring", "rustls-webpki", "ed25519-compact"];

fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    // Of a work tree or a tarball they are elsewhere, or nowhere; what is not there counts as changed each time.
    for name in ["HEAD", "refs/heads", "packed-refs"] {
        let path = git(&["rev-parse", "--git-path", name]);
        if let Some(path) = path.filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    println!("cargo::rerun-if-env-changed=NAVIN_COMMIT");
    let commit = std::env::var("NAVIN_COMMIT").ok().or_else(commit).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=NAVIN_COMMIT={commit}");
    let lock = std::fs::read_to_string("Cargo.lock").unwrap_or_default();
    let crates = CRATES.map(|name| format!("{name}={}", locked(&lock, name))).join(" ");
    println!("cargo::rustc-env=NAVIN_CRATES={crates}");
}

fn commit() -> Option<String> {
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The version that `Cargo.lock` names for a crate.
fn locked<'a>(lock: &'a str, name: &str) -> &'a str {
    let heading = format!("name = \"{name}\"\nversion = \"");
    lock.split_once(&heading).and_then(|(_, rest)| rest.split('"').next()).unwrap_or("unknown")
}
