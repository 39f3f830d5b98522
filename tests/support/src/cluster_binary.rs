//! etcd and kube-apiserver: those of `KUBEBUILDER_ASSETS`, or built from `tests/cluster` and cached.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Instant;
use std::{env, io};

use crate::credentials::short_hash;
use crate::folder::{say, target_dir, workspace_dir};

const HELP: &str = "the tests need etcd and kube-apiserver. Either install Go (1.26 or later), and they are \
    built from source once, in about four minutes; or set KUBEBUILDER_ASSETS to a folder that holds both \
    programs, such as `setup-envtest use -p path` prints";

/// A program, and what comes before its flags.
pub(crate) struct Server {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
}

/// The two servers, built where that is needed: the first call of a machine takes minutes.
pub(crate) fn servers() -> [Server; 2] {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    let names = ["etcd", "kube-apiserver"];
    if let Some(assets) = env::var_os("KUBEBUILDER_ASSETS") {
        return names.map(|name| {
            let program = Path::new(&assets).join(name);
            assert!(program.is_file(), "KUBEBUILDER_ASSETS is set, but there is no {}", program.display());
            Server { program, args: vec![] }
        });
    }
    let program = BINARY.get_or_init(built);
    names.map(|name| Server { program: program.clone(), args: vec![name.into()] })
}

/// The cached binary of exactly these sources and this Go; the file lock lets one process build it.
fn built() -> PathBuf {
    let source = workspace_dir().join("tests/cluster");
    let go = go_version();
    let folder = target_dir().join("cluster").join(source_hash(&source, &go));
    let binary = folder.join("navin-test-cluster");
    if binary.is_file() {
        return binary;
    }
    fs::create_dir_all(&folder).expect("a folder for the cluster's binary");
    let lock = File::create(folder.join("lock")).expect("a lock file");
    if lock.try_lock().is_err() {
        say("waiting for another process that builds etcd and kube-apiserver");
        lock.lock().expect("a file lock");
    }
    if !binary.is_file() {
        build(&source, &go, &binary);
    }
    binary
}

fn build(source: &Path, go: &str, binary: &Path) {
    let version = kubernetes_version(source);
    say(&format!(
        "building etcd and kube-apiserver {version} with {go}: about four minutes on two cores, once; \
         kept as {}",
        binary.display()
    ));
    let started = Instant::now();
    // Under another name until it is whole: a build that was interrupted must not count.
    let unfinished = binary.with_extension("unfinished");
    let status = Command::new("go")
        .current_dir(source)
        .env("CGO_ENABLED", "0")
        .args(["build", "-mod=readonly", "-trimpath", "-buildvcs=false"])
        .args(["-ldflags", &linker_flags(&version)])
        .arg("-o")
        .arg(&unfinished)
        .arg(".")
        .status()
        .expect("go ran a moment ago");
    assert!(status.success(), "go build in {} failed: {status}; {HELP}", source.display());
    fs::rename(&unfinished, binary).expect("the built binary");
    say(&format!("built etcd and kube-apiserver in {} s", started.elapsed().as_secs()));
}

/// Without these the server calls itself v0.0.0-master.
fn linker_flags(version: &str) -> String {
    let mut numbers = version.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let package = "k8s.io/component-base/version";
    format!(
        "-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    )
}

fn kubernetes_version(source: &Path) -> String {
    let module = fs::read_to_string(source.join("go.mod")).expect("tests/cluster/go.mod");
    let version = module.lines().find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes "));
    version.expect("go.mod requires k8s.io/kubernetes").to_owned()
}

fn go_version() -> String {
    match Command::new("go").arg("version").output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().trim_start_matches("go version ").to_owned()
        }
        Ok(output) => panic!("`go version` failed: {}; {HELP}", String::from_utf8_lossy(&output.stderr)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => panic!("there is no Go here; {HELP}"),
        Err(error) => panic!("`go version` failed: {error}; {HELP}"),
    }
}

fn source_hash(source: &Path, go: &str) -> String {
    let mut files: Vec<PathBuf> = fs::read_dir(source)
        .expect("tests/cluster")
        .map(|entry| entry.expect("tests/cluster").path())
        .filter(|path| path.extension().is_some_and(|end| ["go", "mod", "sum"].iter().any(|own| end == *own)))
        .collect();
    files.sort();
    let mut bytes = go.as_bytes().to_vec();
    for file in files {
        bytes.extend(file.file_name().unwrap_or_default().as_encoded_bytes());
        bytes.extend(fs::read(file).expect("a source file of tests/cluster"));
    }
    short_hash(&bytes)
}
