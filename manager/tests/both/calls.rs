//! Calls of either port, as operators and agents make them.

use crate::support::{LIMIT, Manager};
use serde_json::{Value, json};
use std::sync::Arc;
use ureq::Agent as Client;
use ureq::http::Request;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

/// The REST API, as it outlives the manager.
#[derive(Clone)]
pub(crate) struct Rest {
    pub(crate) url: String,
    pub(crate) client: Client,
}

impl Rest {
    pub(crate) fn send(
        &self,
        method: &str,
        token: &str,
        path: &str,
        body: Vec<u8>,
    ) -> Result<Answer, ureq::Error> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.url));
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        run(&self.client, request.body(body).unwrap())
    }

    /// Queues the least command that there is.
    pub(crate) fn queue(&self, token: &str, cluster_id: &str) -> Result<Answer, ureq::Error> {
        let path = format!("/api/v1/clusters/{cluster_id}/kubernetes/commands");
        let body = json!({ "operation": "inventory.report", "arguments": {} });
        self.send("POST", token, &path, body.to_string().into_bytes())
    }
}

/// What an agent has: its identity.
#[derive(Clone)]
pub(crate) struct Agent {
    client: Client,
    gateway: String,
    pub(crate) config: Value,
    issued: Arc<Value>,
}

impl Agent {
    pub(crate) fn new(issued: &Value, gateway: &str) -> Self {
        let text = |name: &str| issued[name].as_str().unwrap();
        let client = client(text("ca_crt"), Some((text("tls_crt"), text("tls_key"))));
        let config = issued["config"].clone();
        Self { client, gateway: gateway.to_owned(), config, issued: Arc::new(issued.clone()) }
    }

    /// The same agent in a process of its own: with other connections, which end when it is dropped.
    pub(crate) fn replica(&self) -> Self {
        Self::new(&self.issued, &self.gateway)
    }

    /// The same agent at another gateway.
    pub(crate) fn at(&self, manager: &Manager) -> Self {
        Self { gateway: manager.gateway.clone(), ..self.clone() }
    }

    pub(crate) fn poll(&self, wait_s: u64) -> Answer {
        self.try_poll(wait_s).unwrap()
    }

    pub(crate) fn try_poll(&self, wait_s: u64) -> Result<Answer, ureq::Error> {
        let uri = format!("{}/v1/cluster-agent/commands?wait_s={wait_s}", self.gateway);
        run(&self.client, Request::builder().uri(uri).body(Vec::new()).unwrap())
    }

    /// The identifiers of the commands that a poll brings.
    pub(crate) fn polled(&self, wait_s: u64) -> Vec<String> {
        let answer = self.poll(wait_s).expect(200);
        let id = |envelope: &Value| envelope["payload"]["command_id"].as_str().unwrap().to_owned();
        answer["commands"].as_array().unwrap().iter().map(id).collect()
    }

    pub(crate) fn receipt(&self, receipt: &Value) -> Answer {
        self.send("POST", "receipts", receipt.to_string().into_bytes())
    }

    pub(crate) fn report(&self, report: &Value) -> Answer {
        self.send("POST", "report", report.to_string().into_bytes())
    }

    pub(crate) fn send(&self, method: &str, path: &str, body: Vec<u8>) -> Answer {
        let uri = format!("{}/v1/cluster-agent/{path}", self.gateway);
        let request = Request::builder().method(method).uri(uri).body(body).unwrap();
        run(&self.client, request).unwrap()
    }
}

/// An answer of either port.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) date: Option<String>,
    pub(crate) retry_after: Option<String>,
    pub(crate) connection: Option<String>,
    pub(crate) body: Value,
}

impl Answer {
    /// The body, where the status is this one.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        self.body
    }

    /// It is put off, with this status and for so many seconds.
    #[track_caller]
    pub(crate) fn expect_put_off(&self, status: u16, seconds: u64) {
        let expected = (status, Some(seconds.to_string()));
        assert_eq!((self.status, self.retry_after.clone()), expected, "{self:?}");
    }
}

/// Sends a request with no certificate of its own.
pub(crate) fn without_certificate(ca: &str, url: &str) -> Result<Answer, ureq::Error> {
    run(&client(ca, None), Request::builder().uri(url).body(Vec::new()).unwrap())
}

fn run(client: &Client, request: Request<Vec<u8>>) -> Result<Answer, ureq::Error> {
    let mut response = client.run(request)?;
    let header = |name: &str| Some(response.headers().get(name)?.to_str().unwrap().to_owned());
    let content_type = header("content-type").unwrap_or_default();
    let [date, retry_after, connection] = ["date", "retry-after", "connection"].map(header);
    let text = response.body_mut().read_to_string()?;
    let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    Ok(Answer { status: response.status().as_u16(), content_type, date, retry_after, connection, body })
}

pub(crate) fn client(ca: &str, identity: Option<(&str, &str)>) -> Client {
    let roots = RootCerts::new_with_certs(&[Certificate::from_pem(ca.as_bytes()).unwrap()]);
    let certificate = identity.map(|(certificate, key)| {
        let certificate = Certificate::from_pem(certificate.as_bytes()).unwrap();
        ClientCert::new_with_certs(&[certificate], PrivateKey::from_pem(key.as_bytes()).unwrap())
    });
    let tls = TlsConfig::builder()
        .root_certs(roots)
        .client_cert(certificate)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    Client::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        .proxy(None)
        .timeout_global(Some(LIMIT))
        .build()
        .new_agent()
}
