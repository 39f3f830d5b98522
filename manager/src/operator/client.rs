//! Calls of the REST API.

use super::cli::Server;
use super::trouble::Trouble;
use crate::process::files;
use jiff::Timestamp;
use navin_cluster_agent::rules::backoff::retry_after;
use serde_json::Value;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use ureq::http::Request;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider};

/// How long a connection may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// How long a call may take: the server's own limit, and the way there.
const CALL_LIMIT: Duration = Duration::from_secs(40);

/// Largest answer that is read, in bytes: a report and what is around it.
const MAX_ANSWER_BYTES: u64 = 64 * 1024 * 1024;

/// The API of one server.
pub(super) struct Client {
    agent: ureq::Agent,
    base: String,
    token: String,
}

impl Client {
    /// A client of the server that the command line names.
    pub(super) fn new(server: &Server) -> Result<Self, Trouble> {
        let base = server.url.trim_end_matches('/');
        if !base.starts_with("https://") {
            return Err(Trouble::Usage("--server: expected https://host[:port]".to_owned()));
        }
        let expected = || Trouble::Usage("expected --ca or NAVIN_CA: the manager's tls/ca.crt".to_owned());
        let path = server.ca.as_deref().ok_or_else(expected)?;
        let ca = read(path, "--ca")?;
        let roots: Vec<Certificate<'static>> = ureq::tls::parse_pem(ca.as_bytes())
            .filter_map(|item| match item {
                Ok(PemItem::Certificate(certificate)) => Some(certificate),
                Ok(_) | Err(_) => None,
            })
            .collect();
        if roots.is_empty() {
            return Err(Trouble::Usage(format!("--ca {}: expected a certificate in PEM", path.display())));
        }
        let token = match &server.token_file {
            Some(path) => read(path, "--token-file")?,
            None => std::env::var("NAVIN_TOKEN")
                .map_err(|_| Trouble::Usage("expected --token-file or NAVIN_TOKEN".to_owned()))?,
        };
        let token = token.trim().to_owned();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Trouble::Usage(
                "--token-file or NAVIN_TOKEN: expected the token, one word".to_owned(),
            ));
        }
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .root_certs(RootCerts::new_with_certs(&roots))
            .build();
        let config = ureq::Agent::config_builder()
            .tls_config(tls)
            .https_only(true)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .user_agent(concat!("navin-manager/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(CONNECT_LIMIT))
            .timeout_global(Some(CALL_LIMIT))
            .build();
        Ok(Self { agent: config.new_agent(), base: base.to_owned(), token })
    }

    /// Reads a document.
    pub(super) fn get(&self, path: &str) -> Result<Value, Trouble> {
        self.document(&self.text("GET", path, None)?)
    }

    /// Reads a text.
    pub(super) fn get_text(&self, path: &str) -> Result<String, Trouble> {
        self.text("GET", path, None)
    }

    /// Has something done, and reads what came of it.
    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Value, Trouble> {
        self.document(&self.text("POST", path, Some(body))?)
    }

    fn document(&self, text: &str) -> Result<Value, Trouble> {
        let other = |_| Trouble::Unreachable(format!("{}: what answers is not the manager", self.base));
        serde_json::from_str(text).map_err(other)
    }

    fn text(&self, method: &str, path: &str, body: Option<&Value>) -> Result<String, Trouble> {
        let unanswered = |error: &dyn Display| {
            let doubt = if body.is_some() { " (it may have been done all the same)" } else { "" };
            let help = "--server is to be the manager's REST address, --ca the ca.crt of its authority";
            Trouble::Unreachable(format!("{}: no answer{doubt}: {error}: {help}", self.base))
        };
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .body(body.map_or(Vec::new(), |body| body.to_string().into_bytes()))
            .map_err(|error| Trouble::Usage(format!("--server: {error}")))?;
        let mut response = self.agent.run(request).map_err(|error| unanswered(&error))?;
        let status = response.status().as_u16();
        let told = response.headers().get("retry-after").and_then(|value| value.to_str().ok());
        let again_in = retry_after(told, Timestamp::now()).filter(|_| matches!(status, 429 | 503));
        let text = response
            .body_mut()
            .with_config()
            .limit(MAX_ANSWER_BYTES)
            .read_to_string()
            .map_err(|error| unanswered(&error))?;
        if (200..300).contains(&status) { Ok(text) } else { Err(refused(status, again_in, &text)) }
    }
}

/// The problem in the answer, its findings one a line.
fn refused(status: u16, again_in: Option<Duration>, text: &str) -> Trouble {
    let problem: Value = serde_json::from_str(text).unwrap_or(Value::Null);
    let mut detail = problem["detail"].as_str().unwrap_or("no reason was given").to_owned();
    for finding in problem["findings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        detail.extend(["\n  ", finding]);
    }
    Trouble::Refused { status, detail, again_in }
}

fn read(path: &std::path::Path, option: &str) -> Result<String, Trouble> {
    match files::read_text(path) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(Trouble::Usage(format!("{option}: {}: no such file", path.display()))),
        Err(failure) => Err(Trouble::Usage(format!("{option}: {failure}"))),
    }
}
