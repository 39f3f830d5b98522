//! `doctor` and `health` without a cluster: what they say of an identity's files and of a heartbeat, and how they
//! end.

use crate::agent::{CLOSED, only_line, output, parts, program, write_access};
use crate::identity::{Identity, NAMESPACE, authority};
use navin_test_support::RunFolder;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// The findings on an identity, in a pod of this namespace, by name.
fn findings(folder: &Path, identity: &Identity, namespace: &str) -> Vec<Value> {
    let dir = folder.join("identity");
    drop(fs::remove_dir_all(&dir));
    identity.write(&dir);
    let [token, ca] = ["token", "kube-ca.crt"].map(|name| folder.join(name));
    write_access(folder, authority().1);
    let mut command = Command::new(program());
    command.args(["doctor", "-o", "json", "--kube-api", CLOSED, "--identity-dir"]).arg(dir);
    command.arg("--kube-token-file").arg(token).arg("--kube-ca-file").arg(ca);
    let output = command.arg("--run-dir").arg(folder).env("POD_NAMESPACE", namespace).output().unwrap();
    let (code, stdout, stderr) = parts(&output);
    assert_eq!((code, stderr.as_str()), (Some(1), ""), "no API server answers");
    serde_json::from_str::<Value>(&stdout).unwrap()["findings"].as_array().unwrap().clone()
}

/// Status and message of one of them.
fn about(findings: &[Value], name: &str) -> (String, String) {
    let finding = findings.iter().find(|finding| finding["name"] == name).unwrap();
    let text = |member: &str| finding[member].as_str().unwrap().to_owned();
    assert_eq!(finding["advice"].is_string(), ["wrong", "warning"].contains(&text("status").as_str()));
    (text("status"), text("message"))
}

/// A certificate of the identity's authority that ends on this day.
fn ends(identity: &mut Identity, year: i32) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(year, 1, 1);
    let certificate = identity.certify_as(&params);
    identity.put("tls.crt", certificate);
}

#[test]
fn each_thing_that_is_wrong_with_an_identity_is_found_by_its_name() {
    let folder = RunFolder::new("doctor-identity");
    let check = |change: fn(&mut Identity), name: &str, status: &str, said: &str| {
        let mut identity = Identity::issue();
        change(&mut identity);
        let findings = findings(folder.path(), &identity, NAMESPACE);
        let (found, message) = about(&findings, name);
        assert!(found == status && message.contains(said), "{name}: {found} {message}");
        findings
    };
    let good =
        check(|_| (), "certificate", "ok", "it fits its key and ca.crt, and ends 4096-01-01T00:00:00Z, in ");
    assert_eq!(about(&good, "identity files").0, "ok");
    assert_eq!(about(&good, "configuration").0, "ok");
    check(|identity| identity.remove("tls.key"), "identity files", "wrong", "tls.key (No such file");
    check(|identity| identity.remove("tls.key"), "certificate", "unknown", "not all readable");
    check(|identity| identity.put("tls.key", "garbage"), "certificate", "wrong", "tls.key: expected a PEM");
    let other_key = |identity: &mut Identity| {
        let key = KeyPair::generate().unwrap();
        identity.put("tls.key", key.serialize_pem());
    };
    check(other_key, "certificate", "wrong", "the key of the certificate in tls.crt, found another");
    check(|identity| identity.put("ca.crt", ""), "certificate", "wrong", "ca.crt: expected");
    let other_ca = |identity: &mut Identity| identity.put("ca.crt", authority().1);
    check(other_ca, "certificate", "wrong", "not given by an issuer in ca.crt");
    check(|identity| ends(identity, 2021), "certificate", "wrong", "it ended 2021-01-01T00:00:00Z");
    let stranger = check(Identity::sign_as_stranger, "configuration", "wrong", "config.json: ");
    assert_eq!(about(&stranger, "gateway"), ("unknown".to_owned(), "the identity is not usable".to_owned()));
    let revoked = check(|_| (), "gateway", "wrong", "127.0.0.1:1: no connection");
    assert_eq!(about(&revoked, "clock").0, "unknown");

    let elsewhere = findings(folder.path(), &Identity::issue(), "elsewhere");
    let (status, message) = about(&elsewhere, "configuration");
    assert!(status == "wrong" && message.contains("\"elsewhere\""), "{message}");
    // A cluster that is registered keeps its namespace.
    let advice =
        elsewhere.iter().find(|finding| finding["name"] == "configuration").unwrap()["advice"].clone();
    assert!(advice.as_str().unwrap().contains("another cluster name"), "{advice}");
}

#[test]
fn a_certificate_that_ends_within_thirty_days_is_a_warning() {
    let folder = RunFolder::new("doctor-expiring");
    let mut identity = Identity::issue();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    let soon = std::time::SystemTime::now() + std::time::Duration::from_hours(29 * 24 + 1);
    params.not_after = soon.into();
    let certificate = identity.certify_as(&params);
    identity.put("tls.crt", certificate);
    let (status, message) = about(&findings(folder.path(), &identity, NAMESPACE), "certificate");
    assert!(status == "warning" && message.contains("in 29 days"), "{status} {message}");
}

#[test]
fn outside_a_pod_the_doctor_says_that_it_does_not_know_where_the_api_server_is() {
    let command = Command::new(program()).arg("doctor").env_clear().output().unwrap();
    let (code, stdout, _) = parts(&command);
    assert_eq!(code, Some(1));
    assert!(stdout.contains("WRONG   API server: KUBERNETES_SERVICE_HOST: not set"), "{stdout}");
}

/// `health` of a folder: exit code and its one line.
fn health(dir: &Path) -> (Option<i32>, String) {
    let (code, stdout, stderr) = parts(&output(&["health", "--run-dir", dir.to_str().unwrap()]));
    assert!(stdout.is_empty() || stderr.is_empty());
    (code, only_line(&(stdout + &stderr)))
}

#[test]
fn the_manifests_keep_the_heartbeat_where_health_and_doctor_look_and_apart_from_the_inbox() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = fs::read_to_string(root.join("deploy/deployment.yaml")).unwrap();
    let (_, volumes) = manifest.split_once("volumeMounts:").unwrap();
    let folder = |mount: &str| {
        let (_, rest) = volumes.split_once(&format!("- name: {mount}\n              mountPath: ")).unwrap();
        rest.lines().next().unwrap().to_owned()
    };
    let (inbox, run) = (folder("inbox"), folder("run"));
    assert!(!run.starts_with(&inbox) && !inbox.starts_with(&run), "{inbox} {run}");
    let args = format!("args: [run, --inbox, {inbox}, --run-dir, {run}]\n");
    let probe = format!("command: [/navin-cluster-agent, health, --run-dir, {run}]\n");
    assert!(manifest.contains(&args) && manifest.contains(&probe), "{args}{probe}");
    for task in ["health", "doctor"] {
        let (_, help, _) = parts(&output(&[task, "--help"]));
        assert!(help.contains(&format!("[default: {run}]")), "{help}");
    }
}

#[test]
fn a_heartbeat_is_judged_by_its_age_since_the_machine_started_and_by_each_thread() {
    let folder = RunFolder::new("health");
    let path = folder.path().join(".health.json");
    let (code, line) = health(folder.path());
    assert!(code == Some(1) && line.contains("is the agent running"), "{line}");

    let uptime = fs::read_to_string("/proc/uptime").unwrap();
    let now: u64 = uptime.split('.').next().unwrap().parse().unwrap();
    let write = |age: i64, silent: u64| {
        let written = i64::try_from(now).unwrap().saturating_sub(age).max(0) * 1_000;
        let threads = json!([{ "name": "lease", "silent_ms": silent, "limit_ms": 91_000, "excused": false }]);
        fs::write(&path, json!({ "written_at_ms": written, "threads": threads }).to_string()).unwrap();
    };
    write(0, 91_000);
    let (code, line) = health(folder.path());
    assert!(code == Some(0) && line.starts_with("alive: 1 threads go round"), "{line}");
    for (age, silent, said) in [
        (0, 95_000, "thread lease: silent for 95 s, its limit is 91 s"),
        (45, 0, "no heartbeat for 4"),
        (-3_600, 0, "written before this machine started"),
    ] {
        write(age, silent);
        let (code, line) = health(folder.path());
        assert!(code == Some(1) && line.contains(said), "{line}");
    }
    fs::write(&path, vec![b' '; 5_000]).unwrap();
    assert!(health(folder.path()).1.contains("larger than 4096 bytes"));
    fs::remove_file(&path).unwrap();
    symlink("/dev/zero", &path).unwrap();
    assert_eq!(health(folder.path()).0, Some(1), "endless, and no file");
}
