//! What the kernel lets the agent's process do, read from outside of its container.

use crate::site::{NAMESPACE, Site, name};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// No capability, no new privileges, system calls filtered, not root, and nothing to write but the inbox and the run folder.
pub(crate) fn process(site: &Site) -> String {
    for pod in site.two_ready() {
        let process = process_of(&pod);
        let status = fs::read_to_string(process.join("status")).expect("the status of a process");
        let status: BTreeMap<&str, &str> = status.lines().filter_map(|line| line.split_once(':')).collect();
        for (field, expected) in [
            ("CapInh", "0000000000000000"),
            ("CapPrm", "0000000000000000"),
            ("CapEff", "0000000000000000"),
            ("CapBnd", "0000000000000000"),
            ("CapAmb", "0000000000000000"),
            ("NoNewPrivs", "1"),
            ("Seccomp", "2"),
            ("Uid", "65532 65532 65532 65532"),
            ("Gid", "65532 65532 65532 65532"),
        ] {
            let found: Vec<&str> = status[field].split_whitespace().collect();
            assert_eq!(found.join(" "), expected, "{field} of {}", name(&pod));
        }
        let mounts = fs::read_to_string(process.join("mounts")).expect("the mounts of a process");
        let mut writable = vec![];
        for mount in mounts.lines() {
            let fields: Vec<&str> = mount.split(' ').collect();
            let of_kernel = fields[1].starts_with("/proc") || fields[1].starts_with("/dev");
            let written = fields[3].split(',').any(|option| option == "rw");
            if written && !of_kernel && may_write(&process.join("root").join(&fields[1][1..])) {
                writable.push(fields[1].to_owned());
            }
        }
        writable.sort_unstable();
        assert_eq!(writable, ["/var/lib/navin/inbox", "/var/lib/navin/run"], "writable in {}", name(&pod));
        // Even root is told so.
        for path in ["root/new", "root/navin-cluster-agent"] {
            let refused =
                fs::OpenOptions::new().write(true).create(true).truncate(false).open(process.join(path));
            let why = refused.expect_err("a root that cannot be written").kind();
            assert!(
                matches!(why, ErrorKind::ReadOnlyFilesystem | ErrorKind::ExecutableFileBusy),
                "{path}: {why}"
            );
        }
    }
    "capabilities 0, NoNewPrivs 1, Seccomp 2, uid 65532, only the inbox and the run folder are writable"
        .to_owned()
}

/// Whether the agent's user may, by the modes of a file (`/etc/hosts` is mounted to be written by root).
fn may_write(path: &Path) -> bool {
    const AGENT: u32 = 65532;
    let file = fs::metadata(path).expect("a mounted file");
    let mode = file.mode();
    (file.uid() == AGENT && mode & 0o200 != 0)
        || (file.gid() == AGENT && mode & 0o020 != 0)
        || mode & 0o002 != 0
}

/// No socket listens, and none of UDP is open.
pub(crate) fn network(site: &Site) -> String {
    /// `TCP_LISTEN` of the kernel, as `/proc/net/tcp` shows it.
    const LISTEN: &str = "0A";
    let mut connections = 0;
    for pod in site.two_ready() {
        let net = process_of(&pod).join("net");
        for (file, listening) in
            [("tcp", Some(LISTEN)), ("tcp6", Some(LISTEN)), ("udp", None), ("udp6", None)]
        {
            let table = fs::read_to_string(net.join(file)).expect("a table of sockets");
            for socket in table.lines().skip(1) {
                let state = socket.split_whitespace().nth(3);
                assert!(listening.is_some() && state != listening, "{file} of {}: {socket}", name(&pod));
                connections += 1;
            }
        }
    }
    assert!(connections > 0, "the agents' own connections are not seen: not the right namespace");
    format!("{connections} connections, all to others")
}

/// The namespace refuses what is not restricted, as `deploy/namespace.yaml` asks.
pub(crate) fn restricted_namespace(site: &Site) -> String {
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "unrestricted" },
        "spec": { "containers": [{ "name": "c", "image": site.image("navin-cluster-agent") }] } });
    let (status, answer) = site.api.post(&format!("/api/v1/namespaces/{NAMESPACE}/pods"), &pod);
    assert_eq!(status, 403, "{answer}");
    assert!(answer["message"].as_str().is_some_and(|why| why.contains("restricted")), "{answer}");
    String::new()
}

/// Where the agent's process of a pod is in `/proc`: its cgroup's name has the pod's uid.
fn process_of(pod: &Value) -> PathBuf {
    let uid = pod["metadata"]["uid"].as_str().expect("a uid");
    let processes = fs::read_dir("/proc").expect("/proc").filter_map(|entry| Some(entry.ok()?.path()));
    let found = processes.into_iter().find(|process| {
        let read = |file| fs::read_to_string(process.join(file)).unwrap_or_default();
        read("comm").starts_with("navin-cluster") && read("cgroup").contains(uid)
    });
    found.unwrap_or_else(|| panic!("no process of {}", name(pod)))
}
