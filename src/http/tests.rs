//! What the client does on the wire, against servers that are as they should be and others that are not. The
//! public reports that these come from are named.

mod server;
mod unsent;

use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::KeyPair;
use server::{Authority, Server, dns, ip};
use std::net::TcpListener;
use std::thread;
use std::time::Instant;

fn request() -> Request {
    Request {
        method: Method::Get,
        path: "/".to_owned(),
        body: None,
        timeout: Duration::from_secs(30),
        limit: 1_000,
    }
}

/// A client that shows no certificate.
fn client(base: &str, ca: &str) -> HttpsClient {
    HttpsClient::new(base, &TlsFiles { ca: ca.as_bytes(), client: None }, None).unwrap()
}

/// One request and the whole answer, or why there is none.
fn ask(client: &HttpsClient) -> Result<Vec<u8>, HttpError> {
    client.send(&request())?.bytes()
}

/// How a request over TLS to a server with these names ends; `host` is how it is called.
fn reach(address: &str, host: &str, names: &[rcgen::SanType]) -> Result<String, String> {
    let authority = Authority::new();
    let server = Server::start(address, authority.server(names));
    let answer = ask(&client(&format!("https://{host}:{}", server.port), &authority.pem));
    answer.map(|_| server.next().head.replace(&server.port.to_string(), "PORT")).map_err(|e| e.to_string())
}

/// algesten/ureq#772: a firewall forgot the idle connection without a word, and the next request hung.
#[test]
fn an_idle_connection_is_used_again_for_a_while_and_not_for_longer_than_firewalls_remember() {
    const _: () = assert!(LIMITS.idle.as_secs() <= 20);
    let authority = Authority::new();
    let server = Server::start("127.0.0.1:0", authority.server(&[ip("127.0.0.1")]));
    let limits = Limits { idle: Duration::from_millis(600), ..LIMITS };
    let tls = TlsFiles { ca: authority.pem.as_bytes(), client: None };
    let client = HttpsClient::within(limits, &server.url(), &tls, None).unwrap();
    for _ in 0..3 {
        ask(&client).unwrap();
        assert_eq!(server.next().connection, 0);
    }
    // Time that passes is what it is about.
    thread::sleep(Duration::from_millis(700));
    ask(&client).unwrap();
    assert_eq!(server.next().connection, 1);
}

/// algesten/ureq#1193: the handshake was not under the limit of the connection.
#[test]
fn a_handshake_that_stalls_ends_with_the_limit_of_the_connection_and_a_slow_one_succeeds() {
    let limits = Limits { connect: Duration::from_secs(1), ..LIMITS };
    assert_eq!(LIMITS.connect, Duration::from_secs(5));
    let authority = Authority::new();
    let config = || authority.server(&[ip("127.0.0.1")]);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let dripping = Server::after("127.0.0.1:0", config(), |socket, _| {
        // The head of a record of a server's handshake, and then its bytes, one at a time.
        for byte in [22, 3, 3, 0x10, 0].into_iter().chain(std::iter::repeat_n(2, 200)) {
            if io::Write::write_all(socket, &[byte]).is_err() {
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
    });
    let late = Server::after("127.0.0.1:0", config(), |_, _| thread::sleep(Duration::from_millis(600)));
    let silent_url = format!("https://127.0.0.1:{}", silent.local_addr().unwrap().port());
    let attempt = |url: &str| {
        let tls = TlsFiles { ca: authority.pem.as_bytes(), client: None };
        let client = HttpsClient::within(limits, url, &tls, None).unwrap();
        let began = Instant::now();
        (ask(&client), began.elapsed())
    };
    for url in [silent_url, dripping.url()] {
        let (answer, took) = attempt(&url);
        assert!(matches!(answer, Err(HttpError::Unsent(_))), "{answer:?}");
        assert!((1_000..2_000).contains(&took.as_millis()), "{took:?}");
    }
    assert_eq!(attempt(&late.url()).0, Ok(b"{}".to_vec()));
}

/// kube-rs/kube#874: host and port joined without brackets.
#[test]
fn an_ipv6_address_stands_in_brackets_in_the_url_and_in_the_host_header() {
    let head = reach("[::1]:0", "[::1]", &[ip("::1")]).unwrap();
    assert!(head.contains("\r\nhost: [::1]:PORT\r\n"), "{head}");
}

/// kube-rs/kube#153: no names but those of the DNS. briansmith/webpki#257: an address as a name of the DNS.
#[test]
fn a_server_that_is_called_by_its_address_has_that_address_in_its_certificate() {
    let v4 = "127.0.0.1:0";
    assert!(reach(v4, "127.0.0.1", &[ip("127.0.0.1")]).is_ok());
    assert!(reach(v4, "127.0.0.1", &[dns("127.0.0.1"), ip("127.0.0.1")]).is_ok());
    assert!(reach(v4, "localhost", &[dns("localhost")]).is_ok());
    for (address, host, names) in [
        (v4, "127.0.0.1", vec![dns("localhost")]),
        (v4, "127.0.0.1", vec![dns("127.0.0.1")]),
        (v4, "127.0.0.1", vec![ip("127.0.0.2"), ip("::1")]),
        ("[::1]:0", "[::1]", vec![ip("127.0.0.1"), dns("localhost")]),
        (v4, "localhost", vec![ip("127.0.0.1")]),
    ] {
        let refused = reach(address, host, &names).unwrap_err();
        assert!(refused.starts_with("no connection: "), "{refused}");
        let bare = host.trim_matches(['[', ']']);
        assert!(refused.contains("not valid for name") && refused.contains(bare), "{refused}");
    }
}

#[test]
fn a_server_of_another_issuer_is_refused_also_where_the_issuer_has_the_same_name() {
    let server = Server::start("127.0.0.1:0", Authority::new().server(&[ip("127.0.0.1")]));
    let refused = ask(&client(&server.url(), &Authority::new().pem)).unwrap_err().to_string();
    assert!(refused.starts_with("no connection: "), "{refused}");
    assert!(refused.contains("UnknownIssuer") || refused.contains("BadSignature"), "{refused}");
}

/// One PEM block in lines of 64 characters.
fn pem(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let lines: Vec<&str> =
        body.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

/// blackbeam/mysql_async#394: only one kind of PEM block was looked for.
#[test]
fn a_client_is_known_by_its_certificate_whatever_the_form_of_its_key() {
    type Write<'w> = &'w dyn Fn(&KeyPair) -> String;
    let (authority, clients) = (Authority::new(), Authority::new());
    let server = Server::start("127.0.0.1:0", authority.server_for(&clients));
    let generate = |algorithm| KeyPair::generate_for(algorithm).unwrap();
    let rsa = || KeyPair::from_pem(include_str!("../../tests/cli/keys/rsa.pem")).unwrap();
    let p256 = || generate(&rcgen::PKCS_ECDSA_P256_SHA256);
    // RFC 5915's key is the last 109 bytes of PKCS#8, RFC 8017's what follows the first 26.
    let sec1 =
        |key: &KeyPair| pem("EC PRIVATE KEY", &key.serialized_der()[key.serialized_der().len() - 109..]);
    let curve = pem("EC PARAMETERS", &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07]);
    let plain = |key: &KeyPair| key.serialize_pem();
    let forms: [(&str, KeyPair, Write<'_>); 8] = [
        ("PKCS#8 P-256", p256(), &plain),
        ("PKCS#8 P-384", generate(&rcgen::PKCS_ECDSA_P384_SHA384), &plain),
        ("PKCS#8 Ed25519", generate(&rcgen::PKCS_ED25519), &plain),
        ("PKCS#8 RSA", rsa(), &plain),
        ("PKCS#1 RSA", rsa(), &|key| pem("RSA PRIVATE KEY", &key.serialized_der()[26..])),
        ("SEC1 P-256", p256(), &sec1),
        ("SEC1 P-256 behind its parameters", p256(), &|key| curve.clone() + &sec1(key)),
        ("behind its certificate", p256(), &|key| clients.certify(key, &[]) + &key.serialize_pem()),
    ];
    // Another issuer, words and the ends of lines of elsewhere are no hindrance in ca.crt.
    let ca =
        format!("# issuers\n{}\nthe second:\n{}", Authority::new().pem, authority.pem).replace('\n', "\r\n");
    for (form, key, write) in forms {
        let (chain, text) = (clients.certify(&key, &[]), write(&key));
        check_key_pair(chain.as_bytes(), text.as_bytes()).unwrap_or_else(|e| panic!("{form}: {e:?}"));
        let tls = TlsFiles { ca: ca.as_bytes(), client: Some((chain.as_bytes(), text.as_bytes())) };
        let client = HttpsClient::new(&server.url(), &tls, None).unwrap_or_else(|e| panic!("{form}: {e}"));
        ask(&client).unwrap_or_else(|e| panic!("{form}: {e}"));
        assert_eq!(
            server.next().certificate.as_deref(),
            Some(certificates(chain.as_bytes()).unwrap()[0].der()),
            "{form}"
        );
    }
}

/// rustls/rustls#1707: in TLS 1.3 the refusal comes after the handshake, and showed as a reset.
#[test]
fn a_client_certificate_that_is_refused_is_refused_by_name() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let server = Server::start("127.0.0.1:0", authority.server_for(&clients));
    let key = KeyPair::generate().unwrap();
    let ended = clients.certify_until(&key, (2021, 1, 1));
    let foreign = Authority::new().certify(&key, &[]);
    for (chain, alert) in [
        (Some(&ended), "CertificateExpired"),
        (Some(&foreign), "alert: UnknownCA | alert: DecryptError"),
        (None, "CertificateRequired"),
    ] {
        let key = key.serialize_pem();
        let client = chain.map(|chain| (chain.as_bytes(), key.as_bytes()));
        let tls = TlsFiles { ca: authority.pem.as_bytes(), client };
        let client = HttpsClient::new(&server.url(), &tls, None).unwrap();
        for _ in 0..20 {
            let refused = ask(&client).unwrap_err().to_string();
            assert!(alert.split(" | ").any(|alert| refused.contains(alert)), "{alert}: {refused}");
        }
    }
}

#[test]
fn a_certificate_says_when_it_ends_whoever_gave_it_and_however_long_ago() {
    let (clients, others) = (Authority::new(), Authority::new());
    let key = KeyPair::generate().unwrap();
    for (year, month, day, end) in [
        (2021, 1, 1, Some("2021-01-01T00:00:00Z")),
        (2049, 12, 31, Some("2049-12-31T00:00:00Z")),
        (2050, 1, 1, Some("2050-01-01T00:00:00Z")),
        (9999, 1, 1, Some("9999-01-01T00:00:00Z")),
        (9999, 12, 31, None),
    ] {
        let chain = clients.certify_until(&key, (year, month, day));
        let end = end.map(|end| end.parse().unwrap());
        for ca in [&clients.pem, &others.pem] {
            assert_eq!(not_after(chain.as_bytes(), ca.as_bytes()), end, "{year}");
        }
        for cut in [0, chain.len() / 2] {
            assert_eq!(not_after(&chain.as_bytes()[..cut], clients.pem.as_bytes()), None);
        }
    }
    let garbage = pem("CERTIFICATE", &[0x30; 64]);
    assert_eq!(not_after(garbage.as_bytes(), clients.pem.as_bytes()), None);
    assert_eq!(not_after(clients.pem.as_bytes(), garbage.as_bytes()), None);
}
