//! Identities that are refused at start: exit code 78 and one line that names the file and the member.

mod configuration;

use crate::agent::{self, Run};
use crate::identity::{Content, Identity, NAMESPACE, pem, public_pem};
use navin_test_support::RunFolder;
use rcgen::KeyPair;

/// The five files.
const FILES: [&str; 5] = ["config.json", "manager.pem", "tls.crt", "tls.key", "ca.crt"];

/// A folder with an API server's CA and a token, for many starts.
struct Bench {
    folder: RunFolder,
    starts: u32,
}

impl Bench {
    fn new(name: &str) -> Self {
        Self { folder: agent::folder(name), starts: 0 }
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

#[test]
fn a_file_that_is_missing_or_no_file_is_refused_and_named() {
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
fn a_folder_that_is_missing_is_refused_and_named() {
    let bench = Bench::new("refused-folder");
    let dir = bench.folder.path().join("absent");
    let (code, line) = Run::new("absent", bench.folder.path(), &dir).refused();
    assert!(line.contains(dir.to_str().unwrap()) && line.contains("not readable"), "{line}");
    assert_eq!(code, Some(78));
}

#[test]
fn a_file_that_is_empty_or_garbage_is_refused_and_named() {
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
fn keys_of_the_manager_that_are_none_are_refused() {
    let mut bench = Bench::new("refused-manager");
    let good = public_pem(1);
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
fn a_client_certificate_or_key_that_is_none_is_refused() {
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
fn issuers_that_are_none_are_refused() {
    let mut bench = Bench::new("refused-issuers");
    let none = "expected at least one PEM certificate, found none";
    for text in [Identity::issue().text("tls.key"), public_pem(1), "words".to_owned()] {
        let identity = changed(|identity| identity.put("ca.crt", text));
        bench.refuses("no certificate", &identity, "ca.crt", none);
    }
    for good in [String::new(), Identity::issue().text("ca.crt")] {
        let odd = good + &pem("CERTIFICATE", b"no certificate at all");
        let identity = changed(|identity| identity.put("ca.crt", odd));
        bench.refuses("no X.509", &identity, "ca.crt", "expected an X.509 certificate");
    }
}
