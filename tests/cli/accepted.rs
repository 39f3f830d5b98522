//! Identities that are taken, in every form that the files may have: the agent starts, and ends in order.

use crate::agent::{self, Run, SOON};
use crate::identity::{Identity, authority, pem, public_pem};
use navin_test_support::{Process, RunFolder, until};
use rcgen::KeyPair;
use serde_json::json;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long SIGTERM may take. CONTRACT section 6: the Lease is released, then it ends.
const ORDERLY: Duration = Duration::from_secs(5);

struct Started {
    name: String,
    process: Process,
}

struct Bench {
    folder: RunFolder,
    started: Vec<Started>,
}

impl Bench {
    fn new(name: &str) -> Self {
        Self { folder: agent::folder(name), started: Vec::new() }
    }

    fn start(&mut self, name: &str, change: impl FnOnce(&mut Identity)) {
        let mut identity = Identity::issue();
        change(&mut identity);
        let dir = self.folder.path().join(format!("identity {name}"));
        identity.write(&dir);
        self.start_with(name, &dir);
    }

    fn start_with(&mut self, name: &str, dir: &Path) {
        let process = Run::new(name, self.folder.path(), dir).start();
        self.started.push(Started { name: name.to_owned(), process });
    }

    /// That each of them says that it starts, and ends in order when it is told to.
    fn all_start_and_end(&self) {
        for Started { name, process } in &self.started {
            until(&format!("{name} to start"), SOON, || {
                assert!(process.is_running(), "{name} ended: {}", process.stderr_tail());
                process.stderr_text().contains(" starting ").then_some(())
            });
        }
        for Started { name, process } in &self.started {
            process.terminate();
            assert_eq!(process.wait_exit(ORDERLY), Some(0), "{name}: {}", process.stderr_tail());
            let text = process.stderr_text();
            let first = text.lines().next().unwrap();
            assert!(first.contains(" INFO ") && first.contains(" starting "), "{name}: {first}");
            for told in ["tenant=acme", "cluster=prod-eu-1", "holder=agent-0_2c9a1b6e"] {
                assert!(first.contains(told), "{name}: {first}");
            }
        }
    }
}

#[test]
fn a_private_key_may_be_pkcs8_sec1_or_pkcs1() {
    let mut bench = Bench::new("accepted-keys");
    bench.start("pkcs8", |identity| {
        assert!(identity.text("tls.key").starts_with("-----BEGIN PRIVATE KEY-----"));
    });
    bench.start("sec1", |identity| identity.put("tls.key", pem("EC PRIVATE KEY", &sec1(identity.key()))));
    // As `openssl ecparam -genkey` writes it.
    bench.start("sec1-with-parameters", |identity| {
        let curve = pem("EC PARAMETERS", &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07]);
        identity.put("tls.key", curve + &pem("EC PRIVATE KEY", &sec1(identity.key())));
    });
    let rsa = || KeyPair::from_pem(include_str!("keys/rsa.pem")).unwrap();
    bench.start("rsa-pkcs8", |identity| {
        identity.put("tls.crt", identity.certify(&rsa()));
        identity.put("tls.key", rsa().serialize_pem());
    });
    bench.start("rsa-pkcs1", |identity| {
        identity.put("tls.crt", identity.certify(&rsa()));
        identity.put("tls.key", pem("RSA PRIVATE KEY", &rsa().serialized_der()[26..]));
    });
    bench.start("p384", |identity| {
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
        identity.put("tls.crt", identity.certify(&key));
        identity.put("tls.key", key.serialize_pem());
    });
    bench.all_start_and_end();
}

/// What is inside a PKCS#8 key of the curve P-256: RFC 5915's `ECPrivateKey`, its last 109 bytes.
fn sec1(key: &KeyPair) -> Vec<u8> {
    let der = key.serialized_der();
    let (head, inner) = der.split_at(der.len() - 109);
    assert!(head.ends_with(&[0x04, 0x6d]) && inner.starts_with(&[0x30, 0x6b]), "not the expected PKCS#8");
    inner.to_vec()
}

#[test]
fn pem_files_may_have_crlf_comments_and_several_blocks() {
    let mut bench = Bench::new("accepted-pem");
    let pem_files = ["manager.pem", "tls.crt", "tls.key", "ca.crt"];
    bench.start("crlf", |identity| {
        for name in pem_files {
            identity.put(name, identity.text(name).replace('\n', "\r\n"));
        }
    });
    bench.start("comments", |identity| {
        for name in pem_files {
            let text = identity.text(name);
            identity.put(name, format!("# {name}\nsubject=CN = x\n\n{text}\nissued by hand\n"));
        }
    });
    bench.start("no-last-newline", |identity| {
        for name in pem_files {
            identity.put(name, identity.text(name).trim_end());
        }
    });
    bench.start("several-issuers", |identity| {
        identity.put("ca.crt", authority().1 + &identity.text("ca.crt") + &authority().1);
    });
    bench.start("a-chain", |identity| {
        identity.put("tls.crt", identity.text("tls.crt") + &identity.text("ca.crt"));
    });
    bench.start("several-managers", |identity| {
        let keys = [3, 1, 2].map(public_pem);
        identity.put("manager.pem", keys.concat());
    });
    bench.all_start_and_end();
}

#[test]
fn a_configuration_may_leave_out_what_has_a_default_and_be_formatted() {
    let mut bench = Bench::new("accepted-config");
    bench.start("defaults", |identity| {
        identity.configure(|payload| {
            for name in
                ["lease_duration_s", "offline_after_s", "poll_wait_s", "report_interval_s", "max_validity_s"]
            {
                payload.remove(name).expect("a member with a default");
            }
        });
    });
    for (name, index) in [("lowest", 0), ("highest", 1)] {
        bench.start(name, |identity| {
            identity.configure(|payload| {
                for (name, ends) in [
                    ("lease_duration_s", [3, 300]),
                    ("offline_after_s", [5, 86_400]),
                    ("poll_wait_s", [1, 30]),
                    ("report_interval_s", [10, 86_400]),
                    ("max_validity_s", [1, 9_007_199_254_740_991_i64]),
                ] {
                    payload.insert(name.to_owned(), json!(ends[index]));
                }
            });
        });
    }
    // Only the canonical form is signed: another writing of the same is the same.
    bench.start("formatted", |identity| {
        let envelope: serde_json::Value = serde_json::from_slice(identity.bytes("config.json")).unwrap();
        let text = serde_json::to_string_pretty(&envelope).unwrap().replace("604800", "6.048E5");
        assert!(text.contains("6.048E5"));
        identity.put("config.json", format!("\r\n{text}\r\n"));
    });
    bench.start("ipv6", |identity| {
        identity.configure(|payload| drop(payload.insert("gateway_url".into(), json!("https://[::1]:1"))));
    });
    bench.all_start_and_end();
}

#[test]
fn a_secrets_mount_is_links_to_links() {
    let mut bench = Bench::new("accepted-mount");
    let mount = bench.folder.path().join("mount");
    let version = PathBuf::from("..2026_11_30");
    Identity::issue().write(&mount.join(&version));
    symlink(&version, mount.join("..data")).unwrap();
    for name in ["config.json", "manager.pem", "tls.crt", "tls.key", "ca.crt"] {
        symlink(PathBuf::from("..data").join(name), mount.join(name)).unwrap();
    }
    bench.start_with("mount", &mount);
    bench.all_start_and_end();
}
