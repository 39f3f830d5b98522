//! HTTP/1.1 over TLS: with the files of `http/`, the only one that names ureq or rustls.
//!
//! Every option is written out: https only, no redirect, no proxy, a status is not an error, only the given
//! roots, TLS 1.2 or 1.3 with ring, and a limit on every phase and every body. No request is ever repeated
//! here: what an unanswered one means is the caller's decision.

mod addresses;
mod limited;
mod pem;
#[cfg(test)]
mod tests;
mod together;

pub use pem::{check_issued, check_issuers, check_key_pair, not_after};

use crate::threads::Slot;
use crate::token::TokenFile;
use addresses::Addresses;
use limited::Limited;
use pem::{certificates, client_certificate};
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use together::Together;
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};
use ureq::unversioned::transport::{Connector, DefaultConnector};

/// How long sending a request may take (its body: at most 8 MiB).
const SEND_LIMIT: Duration = Duration::from_secs(30);
/// How long a name's look-up may take; then, the connection to one of its addresses, the handshake included.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Idle connections are closed at this age, before a firewall may forget them.
const IDLE_LIMIT: Duration = Duration::from_secs(15);
/// The limits on connections that everybody has.
const LIMITS: Limits = Limits { connect: CONNECT_LIMIT, idle: IDLE_LIMIT };
/// Most idle connections of one client: one thread uses it, for one call at a time, but for a watch beside it.
const IDLE_MOST: usize = 2;
/// Largest head of an answer, in bytes.
const HEAD_LIMIT: usize = 64 * 1024;
/// Buffer per connection and direction, in bytes.
const BUFFER: usize = 16 * 1024;

/// A request method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Creates, or hands over.
    Post,
    /// Replaces.
    Put,
    /// Changes some members (JSON Merge Patch).
    Patch,
    /// Deletes; may carry a body (Kubernetes DeleteOptions).
    Delete,
}

/// One request. The server is the one that the [`Http`] was made for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// Path and query, beginning with `/`.
    pub path: String,
    /// JSON body.
    pub body: Option<Vec<u8>>,
    /// Limit on the whole exchange, the reading of the body included.
    pub timeout: Duration,
    /// Largest body of the answer, in bytes.
    pub limit: usize,
}

/// The answer's status, the headers that matter, and its body, still to be read.
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// `Retry-After`, as sent (RFC 9110 section 10.2.3).
    pub retry_after: Option<String>,
    /// `Date`, as sent (RFC 9110 section 6.6.1).
    pub date: Option<String>,
    /// The body; a read beyond the request's limit is an error.
    pub body: Box<dyn Read + Send>,
}

impl Response {
    /// Reads the whole body.
    ///
    /// # Errors
    ///
    /// [`HttpError::Unanswered`] when it is cut short, too slow or too large.
    pub fn bytes(mut self) -> Result<Vec<u8>, HttpError> {
        let mut bytes = Vec::new();
        self.body.read_to_end(&mut bytes).map_err(|e| HttpError::Unanswered(e.to_string()))?;
        Ok(bytes)
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpError {
    /// No connection came about: the request was surely not acted on.
    Unsent(String),
    /// The request may have been acted on.
    Unanswered(String),
}

impl std::fmt::Display for HttpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unsent(why) => write!(f, "no connection: {why}"),
            Self::Unanswered(why) => write!(f, "no answer: {why}"),
        }
    }
}

/// The seam to the network: one request, one answer.
pub trait Http: Send + Sync {
    /// Sends `request` and waits for the head of the answer.
    ///
    /// # Errors
    ///
    /// See [`HttpError`]; any status is an answer.
    fn send(&self, request: &Request) -> Result<Response, HttpError>;
}

/// A client that another can take the place of, while calls of the former go on to their end.
pub type Switch = Slot<dyn Http>;

impl Http for Switch {
    fn send(&self, request: &Request) -> Result<Response, HttpError> {
        self.get().send(request)
    }
}

/// Whom to trust and who we are.
pub struct TlsFiles<'a> {
    /// PEM with the only issuers that are trusted.
    pub ca: &'a [u8],
    /// PEM of our certificate chain and of our key.
    pub client: Option<(&'a [u8], &'a [u8])>,
}

/// The limits on connections.
#[derive(Clone, Copy)]
struct Limits {
    /// See [`CONNECT_LIMIT`].
    connect: Duration,
    /// See [`IDLE_LIMIT`].
    idle: Duration,
}

/// A client of one server, with connections of its own.
pub struct HttpsClient {
    agent: ureq::Agent,
    base: String,
    token: Option<TokenFile>,
}

impl HttpsClient {
    /// A client of the server at `base` (`https://host[:port]`).
    ///
    /// # Errors
    ///
    /// What is wrong with a PEM file: of `ca`, without its name; of `client`, with that of the identity's file.
    pub fn new(base: &str, tls: &TlsFiles<'_>, token: Option<PathBuf>) -> Result<Self, String> {
        Self::within(LIMITS, base, tls, token)
    }

    fn within(
        limits: Limits,
        base: &str,
        tls: &TlsFiles<'_>,
        token: Option<PathBuf>,
    ) -> Result<Self, String> {
        let roots = certificates(tls.ca)?;
        let client = match tls.client {
            Some((chain, key)) => Some(client_certificate(chain, key)?),
            None => None,
        };
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .root_certs(RootCerts::new_with_certs(&roots))
            .client_cert(client)
            .use_sni(true)
            .disable_verification(false)
            .build();
        let config = ureq::Agent::config_builder()
            .tls_config(tls)
            .https_only(true)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .no_delay(true)
            .user_agent(concat!("navin-cluster-agent/", env!("CARGO_PKG_VERSION")))
            .accept("application/json")
            .accept_encoding("")
            .timeout_resolve(Some(limits.connect))
            .timeout_connect(Some(limits.connect))
            .timeout_send_request(Some(SEND_LIMIT))
            .timeout_send_body(Some(SEND_LIMIT))
            .max_idle_connections(IDLE_MOST)
            .max_idle_connections_per_host(IDLE_MOST)
            .max_idle_age(limits.idle)
            .max_response_header_size(HEAD_LIMIT)
            .input_buffer_size(BUFFER)
            .output_buffer_size(BUFFER)
            .build();
        let connector = DefaultConnector::default().chain(Together);
        let agent = ureq::Agent::with_parts(config, connector, Addresses::default());
        Ok(Self { agent, base: base.to_owned(), token: token.map(TokenFile::new) })
    }

    fn run(&self, request: &Request) -> Result<ureq::http::Response<ureq::Body>, ureq::Error> {
        let method = match request.method {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        };
        let mut builder =
            ureq::http::Request::builder().method(method).uri(format!("{}{}", self.base, request.path));
        if request.body.is_some() {
            let merge = request.method == Method::Patch;
            let kind = if merge { "application/merge-patch+json" } else { "application/json" };
            builder = builder.header("content-type", kind);
        }
        if let Some(token) = self.token.as_ref().and_then(TokenFile::read) {
            builder = builder.header("authorization", format!("Bearer {token}"));
        }
        let timeout = Some(request.timeout);
        if let Some(body) = &request.body {
            let request = builder.body(body.as_slice())?;
            let request = self.agent.configure_request(request).timeout_global(timeout);
            self.agent.run(request.build())
        } else {
            let request = self.agent.configure_request(builder.body(())?).timeout_global(timeout);
            self.agent.run(request.build())
        }
    }
}

impl Http for HttpsClient {
    fn send(&self, request: &Request) -> Result<Response, HttpError> {
        let answer = self.run(request).map_err(|e| sort_error(&e))?;
        let header =
            |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Ok(Response {
            status: answer.status().as_u16(),
            retry_after: header("retry-after"),
            date: header("date"),
            body: Box::new(Limited::new(answer.into_body().into_reader(), request)),
        })
    }
}

/// Sorts ureq's errors by whether the request can have reached the server.
fn sort_error(error: &ureq::Error) -> HttpError {
    let text = error.to_string();
    let unsent = matches!(
        error,
        ureq::Error::HostNotFound
            | ureq::Error::ConnectionFailed
            | ureq::Error::Tls(_)
            | ureq::Error::BadUri(_)
            | ureq::Error::Http(_)
            | ureq::Error::Timeout(ureq::Timeout::Resolve | ureq::Timeout::Connect)
    );
    // Whatever else ureq may have by then may come after the sending.
    if unsent || matches!(error, ureq::Error::Io(e) if is_before_sending(e)) {
        HttpError::Unsent(text)
    } else {
        HttpError::Unanswered(text)
    }
}

/// Whether there was no address, no listener, or a server that is not the one wanted: nothing is sent before both are there.
fn is_before_sending(error: &io::Error) -> bool {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::PeerIncompatible(_)) => true,
        Some(_) => false,
        // std has no kind for it.
        None => {
            error.kind() == io::ErrorKind::ConnectionRefused
                || error.to_string().starts_with("failed to lookup address information")
        }
    }
}
