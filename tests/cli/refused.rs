//! Identities that are refused at start: exit code 78 and one line that names the file and the member.

use crate::agent::Run;
use crate::identity::{Content, Identity, NAMESPACE, authority, pem, public_pem, signing_key};
use navin_test_support::RunFolder;
use rcgen::KeyPair;
use serde_json::{Map, Value, json};
use std::fs;

/// The five files.
const FILES: [&str; 5] = ["config.json", "manager.pem", "tls.crt", "tls.key", "ca.crt"];
/// The members of a configuration, and whether one has a default.
const MEMBERS: [(&str, bool); 12] = [
    ("type", false),
    ("tenant_id", false),
    ("cluster_id", false),
    ("identity_id", false),
    ("gateway_url", false),
    ("namespace", false),
    ("lease_duration_s", true),
    ("offline_after_s", true),
    ("poll_wait_s", true),
    ("report_interval_s", true),
    ("max_validity_s", true),
    ("issued_at", false),
];

/// A folder with an API server's CA and a token, for many starts.
struct Bench {
    folder: RunFolder,
    starts: u32,
}

impl Bench {
    fn new(name: &str) -> Self {
        let folder = RunFolder::new(name);
        fs::write(folder.path().join("token"), "token").unwrap();
        fs::write(folder.path().join("kube-ca.crt"), authority().1).unwrap();
        Self { folder, starts: 0 }
    }

    /// That `run` refuses the identity with one line that begins with the file and goes on with `problem`.
    #[track_caller]
    fn refuses(&mut self, what: &str, identity: &Identity, file: &str, problem: &str) {
        self.refuses_in(NAMESPACE, what, identity, file, problem);
    }

    #[track_caller]
    fn refuses_in(&mut self, namespace: &str, what: &str, identity: &Identity, file: &str, problem: &str) {
        self.starts += 1;
        let name = format!("{}", self.starts);
        let dir = self.folder.path().join(format!("identity-{name}"));
        identity.write(&dir);
        let mut run = Run::new(&name, self.folder.path(), &dir);
        run.env("POD_NAMESPACE", namespace);
        let (code, line) = run.refused();
        let wanted = format!("navin-cluster-agent: {}: {problem}", dir.join(file).display());
        assert!(line.starts_with(&wanted), "{what}:\n  wanted {wanted}\n  found  {line}");
        assert_eq!(code, Some(78), "{what}: {line}");
    }
}

/// An issued identity after a change.
fn changed(change: impl FnOnce(&mut Identity)) -> Identity {
    let mut identity = Identity::issue();
    change(&mut identity);
    identity
}

/// An identity with another configuration, properly signed.
fn configured(change: impl FnOnce(&mut Map<String, Value>)) -> Identity {
    changed(|identity| identity.configure(change))
}

/// A configuration with one member set.
fn with(name: &str, value: Value) -> Identity {
    configured(|payload| {
        payload.insert(name.to_owned(), value);
    })
}

#[test]
fn a_file_that_is_missing_or_no_file() {
    let mut bench = Bench::new("refused-missing");
    for file in FILES {
        let not_readable = "not readable: ";
        bench.refuses("missing", &changed(|identity| identity.remove(file)), file, not_readable);
        for content in [Content::Folder, Content::Fifo] {
            let identity = changed(|identity| identity.place(file, content));
            bench.refuses("no file", &identity, file, "not readable: expected a regular file");
        }
        let large = changed(|identity| identity.put(file, vec![b'\n'; 1024 * 1024 + 1]));
        bench.refuses("too large", &large, file, "not readable: larger than 1048576 bytes");
    }
}

#[test]
fn a_folder_that_is_missing() {
    let bench = Bench::new("refused-folder");
    let dir = bench.folder.path().join("absent");
    let (code, line) = Run::new("absent", bench.folder.path(), &dir).refused();
    assert!(line.contains(dir.to_str().unwrap()) && line.contains("not readable"), "{line}");
    assert_eq!(code, Some(78));
}

#[test]
fn a_file_that_is_empty_or_garbage() {
    let mut bench = Bench::new("refused-garbage");
    for file in FILES {
        for garbage in [
            &b""[..],
            b"\n",
            b"garbage",
            b"\xff\xfe\x00\x01",
            b"-----BEGIN X-----",
            b"-----BEGIN CERTIFICATE-----\nAAAA\n",
            b"-----BEGIN PRIVATE KEY-----\n????\n-----END PRIVATE KEY-----\n",
        ] {
            let identity = changed(|identity| identity.put(file, garbage));
            bench.refuses(&format!("{garbage:02x?}"), &identity, file, "");
        }
        for half in [2, 3] {
            let cut = changed(|identity| {
                let bytes = identity.bytes(file).to_vec();
                identity.put(file, &bytes[..bytes.len() / half]);
            });
            bench.refuses("cut short", &cut, file, "");
        }
    }
}

#[test]
fn keys_of_the_manager_that_are_none() {
    let mut bench = Bench::new("refused-manager");
    let good = public_pem(&signing_key(1));
    let foreign = KeyPair::generate().unwrap();
    let secret = pem("PRIVATE KEY", &[0; 32]);
    for (text, problem) in [
        (foreign.public_key_pem(), "a PUBLIC KEY is not an Ed25519 key"),
        (pem("PUBLIC KEY", &[0; 44]), "a PUBLIC KEY is not an Ed25519 key"),
        (secret.clone(), "expected PUBLIC KEY blocks only, found \"PRIVATE KEY\""),
        // One bad block spoils all: nobody shall think that its key is trusted.
        (format!("{good}{secret}"), "expected PUBLIC KEY blocks only, found \"PRIVATE KEY\""),
        (good.replace("-----END PUBLIC KEY-----\n", ""), "a PEM block is cut short or not base64"),
        ("just words".to_owned(), "expected a PUBLIC KEY block, found none"),
    ] {
        let identity = changed(|identity| identity.put("manager.pem", text));
        bench.refuses(problem, &identity, "manager.pem", problem);
    }
}

#[test]
fn a_configuration_that_was_modified_or_signed_by_another() {
    let mut bench = Bench::new("refused-signature");
    let does_not_verify = "signature: does not verify";
    for (member, value) in [
        ("tenant_id", json!("other")),
        ("namespace", json!("default")),
        ("gateway_url", json!("https://evil.example")),
        ("max_validity_s", json!(604_801)),
        ("issued_at", json!("2036-11-30T11:59:00Z")),
    ] {
        let identity = changed(|identity| identity.tamper(|envelope| envelope["payload"][member] = value));
        bench.refuses(member, &identity, "config.json", does_not_verify);
    }
    // What has a default is signed as well.
    let without = changed(|identity| {
        identity.tamper(|envelope| {
            envelope["payload"].as_object_mut().unwrap().remove("lease_duration_s");
        });
    });
    bench.refuses("a default left out", &without, "config.json", does_not_verify);

    let stranger = changed(Identity::sign_as_stranger);
    bench.refuses("a stranger", &stranger, "config.json", "key_id: not a trusted key of the manager");
    let posing = changed(|identity| {
        let trusted: Value = serde_json::from_slice(identity.bytes("config.json")).unwrap();
        identity.sign_as_stranger();
        identity.tamper(|envelope| envelope["key_id"] = trusted["key_id"].clone());
    });
    bench.refuses("a stranger by a trusted name", &posing, "config.json", does_not_verify);
    let others = changed(|identity| identity.put("manager.pem", public_pem(&signing_key(3))));
    bench.refuses("another manager", &others, "config.json", "key_id: not a trusted key of the manager");
}

#[test]
fn an_envelope_of_another_form() {
    let mut bench = Bench::new("refused-envelope");
    for member in ["payload", "key_id", "signature"] {
        let identity = changed(|identity| {
            identity.tamper(|envelope| drop(envelope.as_object_mut().unwrap().remove(member)));
        });
        bench.refuses(member, &identity, "config.json", &format!("{member}: missing"));
        let identity = changed(|identity| identity.tamper(|envelope| envelope[member] = Value::Null));
        bench.refuses(member, &identity, "config.json", &format!("{member}: expected "));
    }
    let more = changed(|identity| identity.tamper(|envelope| envelope["more"] = json!(1)));
    bench.refuses("unknown member", &more, "config.json", "envelope: unknown member");
    for (what, change) in [
        ("a byte order mark", &(|text: &str| format!("\u{feff}{text}")) as &dyn Fn(&str) -> String),
        ("something after it", &|text| format!("{text}{{}}")),
        ("a comment", &|text| format!("// configuration\n{text}")),
        ("more than 256 KiB", &|text| text.to_owned() + &" ".repeat(256 * 1024)),
        ("a member twice", &|text| text.replacen('{', "{\"key_id\":\"\",", 1)),
    ] {
        let identity = changed(|identity| identity.put("config.json", change(&identity.text("config.json"))));
        bench.refuses(what, &identity, "config.json", "not strict JSON: ");
    }
    let command = with("type", json!("navin.command/v1"));
    bench.refuses("a command", &command, "config.json", "payload.type: expected navin.agent-config/v1");
}

#[test]
fn a_member_that_is_missing_unknown_or_of_another_type() {
    let mut bench = Bench::new("refused-members");
    let issued = Identity::issue();
    let names: Vec<&String> = issued.payload().as_object().unwrap().keys().collect();
    assert_eq!(names.len(), MEMBERS.len());
    for (name, has_default) in MEMBERS {
        assert!(issued.payload().get(name).is_some(), "{name}");
        if !has_default {
            let without = configured(|payload| drop(payload.remove(name)));
            bench.refuses("missing", &without, "config.json", &format!("payload.{name}: missing"));
        }
        let wrong = if has_default {
            vec![json!(null), json!("15"), json!(15.5), json!(true), json!([15]), json!({})]
        } else {
            vec![json!(null), json!(1), json!(true), json!(["a"]), json!({})]
        };
        for value in wrong {
            let problem = format!("payload.{name}: expected ");
            bench.refuses(&value.to_string(), &with(name, value.clone()), "config.json", &problem);
        }
    }
    bench.refuses("unknown", &with("proxy", json!("x")), "config.json", "payload: unknown member");
}

#[test]
fn a_number_out_of_its_range() {
    let mut bench = Bench::new("refused-ranges");
    for (name, min, max) in [
        ("lease_duration_s", 3, 300),
        ("offline_after_s", 5, 86_400),
        ("poll_wait_s", 1, 30),
        ("report_interval_s", 10, 86_400),
    ] {
        for number in [min - 1, max + 1, 0, -1, 9_007_199_254_740_991_i64] {
            let problem = format!("payload.{name}: expected {min} to {max}, found {number}");
            bench.refuses(name, &with(name, json!(number)), "config.json", &problem);
        }
    }
    let problem = "payload.max_validity_s: expected 1 to 9007199254740991, found 0";
    bench.refuses("max_validity_s", &with("max_validity_s", json!(0)), "config.json", problem);
    // No JSON of the contract holds a number beyond that, whatever its name.
    let beyond = with("max_validity_s", json!(9_007_199_254_740_992_i64));
    bench.refuses("max_validity_s", &beyond, "config.json", "not strict JSON: number above 2^53-1");
}

#[test]
fn a_text_of_another_form() {
    let mut bench = Bench::new("refused-forms");
    for (name, texts) in [
        ("tenant_id", &["", "Acme", "a_b", "-a", "a.b"][..]),
        ("cluster_id", &["", "PROD", "a/b", "a-"]),
        ("namespace", &["", "kube_system", "../default"]),
        ("identity_id", &["", "86b31929", "86b31929be9d481e81ae46c379187c17"]),
        ("issued_at", &["", "yesterday", "2026-11-30", "2026-11-30T11:59:00+00:00"]),
        (
            "gateway_url",
            &[
                "",
                "http://manager.example:8462",
                "manager.example:8462",
                "https://",
                "https://manager.example/",
                "https://manager.example:8462/v1",
                "https://user@manager.example",
                "https://user:secret@manager.example",
                "https://manager.example?tenant=acme",
                "https://manager.example#x",
                "https://manager.example:0",
                "https://manager.example:65536",
                "https://manager example",
            ],
        ),
    ] {
        for text in texts {
            let problem = format!("payload.{name}: expected ");
            bench.refuses(text, &with(name, json!(text)), "config.json", &problem);
        }
    }
}

#[test]
fn another_namespace_than_the_pods_own() {
    let mut bench = Bench::new("refused-namespace");
    let problem = "payload.namespace: expected the pod's own namespace \"default\", found \"navin-platform\"";
    bench.refuses_in("default", "namespace", &Identity::issue(), "config.json", problem);
}

#[test]
fn a_client_certificate_or_key_that_is_none() {
    let mut bench = Bench::new("refused-client");
    let other = KeyPair::generate().unwrap();
    let another = "expected the key of the certificate in tls.crt, found another";
    let swapped = changed(|identity| identity.put("tls.key", other.serialize_pem()));
    bench.refuses("a new key with the old certificate", &swapped, "tls.key", another);
    let swapped = changed(|identity| identity.put("tls.crt", identity.certify(&other)));
    bench.refuses("a new certificate with the old key", &swapped, "tls.key", another);

    let unusable = "expected a PEM private key";
    for (what, text) in [
        ("encrypted PKCS#8", include_str!("keys/encrypted-pkcs8.pem").to_owned()),
        ("a public key", other.public_key_pem()),
        ("a certificate", Identity::issue().text("tls.crt")),
    ] {
        let identity = changed(|identity| identity.put("tls.key", text));
        bench.refuses(what, &identity, "tls.key", unusable);
    }
    let encrypted = changed(|identity| identity.put("tls.key", include_str!("keys/encrypted-sec1.pem")));
    bench.refuses("encrypted SEC1", &encrypted, "tls.key", "expected a");
    for label in ["PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY"] {
        let identity = changed(|identity| identity.put("tls.key", pem(label, b"no key at all")));
        bench.refuses(label, &identity, "tls.key", "expected a usable private key");
    }

    let key_only = changed(|identity| identity.put("tls.crt", identity.text("tls.key")));
    let none = "expected at least one PEM certificate, found none";
    bench.refuses("a key in place of the certificate", &key_only, "tls.crt", none);
    let odd = changed(|identity| identity.put("tls.crt", pem("CERTIFICATE", b"no certificate at all")));
    bench.refuses("no X.509", &odd, "tls.crt", "expected an X.509 certificate");
}

#[test]
fn issuers_that_are_none() {
    let mut bench = Bench::new("refused-issuers");
    let none = "expected at least one PEM certificate, found none";
    for text in [Identity::issue().text("tls.key"), public_pem(&signing_key(1)), "words".to_owned()] {
        let identity = changed(|identity| identity.put("ca.crt", text));
        bench.refuses("no certificate", &identity, "ca.crt", none);
    }
    for good in [String::new(), Identity::issue().text("ca.crt")] {
        let odd = good + &pem("CERTIFICATE", b"no certificate at all");
        let identity = changed(|identity| identity.put("ca.crt", odd));
        bench.refuses("no X.509", &identity, "ca.crt", "expected an X.509 certificate");
    }
}
