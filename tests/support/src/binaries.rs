//! The workspace's own programs, built by Cargo when a test first asks for one.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Instant;
use std::{env, fs};

use serde_json::Value;

use crate::folder::{say, target_dir, workspace_dir};

/// The path of `navin-cluster-agent` or `navin-manager`, built from the sources as they are now; or
/// [`other_agent`] instead of the agent.
pub fn cargo_binary(name: &str) -> PathBuf {
    static BUILT: OnceLock<BTreeMap<String, PathBuf>> = OnceLock::new();
    if let Some(other) = other_agent().filter(|_| name == "navin-cluster-agent") {
        return other;
    }
    let built = BUILT.get_or_init(build);
    built.get(name).unwrap_or_else(|| panic!("no binary {name} among {:?}", built.keys())).clone()
}

/// The agent that `NAVIN_TEST_AGENT` names, such as the static binary: from wherever it is started.
pub fn other_agent() -> Option<PathBuf> {
    let other = env::var_os("NAVIN_TEST_AGENT")?;
    Some(fs::canonicalize(other).expect("the agent that NAVIN_TEST_AGENT names"))
}

/// Takes from what runs Cargo what Cargo tells this process about its package, and what the agent's build script
/// adds: build scripts that look at it (ring's, the agent's) would run again at each change between the two.
pub fn without_cargo(command: &mut Command) -> &mut Command {
    let told = [
        "CARGO_PKG_",
        "CARGO_MANIFEST_",
        "CARGO_BIN_",
        "CARGO_CRATE_",
        "CARGO_PRIMARY_",
        "OUT_DIR",
        "NAVIN_COMMIT",
        "NAVIN_CRATES",
    ];
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(|name| told.iter().any(|prefix| name.starts_with(prefix))) {
            command.env_remove(name);
        }
    }
    command
}

fn build() -> BTreeMap<String, PathBuf> {
    let target = target_dir();
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    without_cargo(&mut command)
        .current_dir(workspace_dir())
        .args(["build", "--workspace", "--bins", "--message-format=json-render-diagnostics"])
        .arg("--target-dir")
        .arg(&target)
        .stderr(Stdio::inherit());
    // A benchmark measures what is shipped.
    let own = env::current_exe().expect("the path of this process");
    if own.components().any(|part| part.as_os_str() == OsStr::new("release")) {
        command.arg("--release");
    }
    say("building the workspace's programs (cargo build --workspace --bins)");
    let started = Instant::now();
    let output = command.output().expect("cargo, which built this test");
    assert!(output.status.success(), "cargo build failed: {}", output.status);
    say(&format!("built them in {:.1} s", started.elapsed().as_secs_f32()));
    executables(&String::from_utf8_lossy(&output.stdout))
}

/// From Cargo's messages, one JSON object a line: the executables by name.
fn executables(messages: &str) -> BTreeMap<String, PathBuf> {
    let artifact = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        let path = message["executable"].as_str()?;
        Some((message["target"]["name"].as_str()?.to_owned(), PathBuf::from(path)))
    };
    messages.lines().filter_map(artifact).collect()
}
