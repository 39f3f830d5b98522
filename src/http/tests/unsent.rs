//! Which failures say that nothing was sent.

use super::super::*;
use super::ask;
use rustls::{CertificateError, PeerIncompatible};

/// A client that trusts nobody but a certificate of its own making.
fn client(limits: Limits, base: &str) -> HttpsClient {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap().cert.pem();
    let tls = TlsFiles { ca: own.as_bytes(), client: None };
    HttpsClient::within(limits, base, &tls, None).unwrap()
}

fn send(base: &str) -> HttpError {
    let request = Request {
        method: Method::Get,
        path: "/".to_owned(),
        body: None,
        timeout: Duration::from_secs(10),
        limit: 1,
    };
    client(LIMITS, base).send(&request).err().unwrap()
}

#[test]
fn without_an_address_or_a_listener_nothing_was_sent() {
    for base in ["https://name.invalid", "https://127.0.0.1:1"] {
        let error = send(base);
        assert!(matches!(error, HttpError::Unsent(_)), "{base}: {error}");
    }
}

#[test]
fn a_name_whose_look_up_takes_longer_than_a_connection_may_is_given_up_before_the_exchange_is() {
    let client = client(Limits { connect: Duration::from_nanos(1), ..LIMITS }, "https://name.invalid");
    // A look-up that is quicker than the scheduler is no failure.
    let ends = (0..20).map(|_| ask(&client).unwrap_err());
    let slow = |error: &HttpError| matches!(error, HttpError::Unsent(why) if why.contains("resolve"));
    assert!(ends.into_iter().any(|error| slow(&error)));
}

#[test]
fn a_server_that_is_not_the_one_wanted_is_sent_nothing_and_what_comes_later_may_be_an_answer() {
    let tls = |error: rustls::Error| ureq::Error::Io(io::Error::new(io::ErrorKind::InvalidData, error));
    for (error, unsent) in [
        (tls(rustls::Error::InvalidCertificate(CertificateError::Expired)), true),
        (tls(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)), true),
        (tls(rustls::Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13)), true),
        // The refusal of our certificate comes after the request with TLS 1.3.
        (tls(rustls::Error::AlertReceived(rustls::AlertDescription::CertificateExpired)), false),
        (ureq::Error::Io(io::ErrorKind::ConnectionReset.into()), false),
        (ureq::Error::Io(io::ErrorKind::UnexpectedEof.into()), false),
    ] {
        assert_eq!(matches!(sort_error(&error), HttpError::Unsent(_)), unsent, "{error}");
    }
}
