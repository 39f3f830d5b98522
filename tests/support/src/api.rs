//! A blocking JSON client with a bearer token: the cluster's admin, a service account, or an operator.

use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring::default_provider;
use serde_json::Value;
use ureq::http::{Request, header};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// HTTP status and body; a body that is not JSON comes as a string, none as `null`.
pub type Answer = (u16, Value);

/// One server, as one user.
#[derive(Clone, Debug)]
pub struct Api {
    base: String,
    bearer: Option<String>,
    agent: ureq::Agent,
}

impl Api {
    /// `base` is `https://host:port`; `ca_pem` is the one issuer that is trusted.
    pub fn new(base: &str, ca_pem: &str, bearer: Option<&str>) -> Self {
        let issuers: Vec<Certificate<'static>> = parse_pem(ca_pem.as_bytes())
            .filter_map(|item| match item.expect("a PEM file") {
                PemItem::Certificate(certificate) => Some(certificate),
                _ => None,
            })
            .collect();
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::Specific(Arc::new(issuers)))
            .unversioned_rustls_crypto_provider(Arc::new(default_provider()))
            .build();
        let agent = ureq::Agent::config_builder()
            .tls_config(tls)
            .https_only(true)
            .proxy(None)
            .max_redirects(0)
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(5)))
            .timeout_global(Some(Duration::from_mins(1)))
            .build()
            .new_agent();
        Self { base: base.to_owned(), bearer: bearer.map(str::to_owned), agent }
    }

    /// The same server as another user.
    #[must_use]
    pub fn with_bearer(&self, bearer: Option<&str>) -> Self {
        Self { bearer: bearer.map(str::to_owned), ..self.clone() }
    }

    /// GET.
    #[track_caller]
    pub fn get(&self, path: &str) -> Answer {
        self.must("GET", path, None)
    }

    /// GET of a Kubernetes list: its items. Anything but 200 is a panic.
    #[track_caller]
    pub fn list(&self, path: &str) -> Vec<Value> {
        let (status, mut body) = self.get(path);
        assert_eq!(status, 200, "GET {path}: {body}");
        match body["items"].take() {
            Value::Array(items) => items,
            other => panic!("GET {path}: items is {other}"),
        }
    }

    /// POST.
    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.must("POST", path, Some(body))
    }

    /// PUT.
    #[track_caller]
    pub fn put(&self, path: &str, body: &Value) -> Answer {
        self.must("PUT", path, Some(body))
    }

    /// PATCH, as a JSON merge patch.
    #[track_caller]
    pub fn patch(&self, path: &str, body: &Value) -> Answer {
        self.must("PATCH", path, Some(body))
    }

    /// DELETE.
    #[track_caller]
    pub fn delete(&self, path: &str) -> Answer {
        self.must("DELETE", path, None)
    }

    /// Creates or changes the Kubernetes object to be as given (server-side apply).
    #[track_caller]
    pub fn apply(&self, object: &Value) -> Value {
        let path = format!("{}?fieldManager=navin-test&force=true", object_path(object));
        let (status, answer) = self
            .call_as("PATCH", &path, "application/apply-patch+yaml", Some(object))
            .unwrap_or_else(|error| panic!("PATCH {path}: {error}"));
        assert!(status == 200 || status == 201, "PATCH {path}: {status} {answer}");
        answer
    }

    /// Applies every document of a YAML text; returns them as they were given.
    #[track_caller]
    pub fn apply_yaml(&self, text: &str) -> Vec<Value> {
        let objects = yaml_documents(text);
        for object in &objects {
            self.apply(object);
        }
        objects
    }

    /// Any request, where no answer at all is an answer that the test is prepared for.
    ///
    /// # Errors
    ///
    /// No answer: no connection, a broken one, or none in time.
    pub fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Answer, ureq::Error> {
        let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        self.call_as(method, path, media, body)
    }

    #[track_caller]
    fn must(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        self.call(method, path, body).unwrap_or_else(|error| panic!("{method} {}{path}: {error}", self.base))
    }

    fn call_as(
        &self,
        method: &str,
        path: &str,
        media: &str,
        body: Option<&Value>,
    ) -> Result<Answer, ureq::Error> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        if let Some(bearer) = &self.bearer {
            request = request.header(header::AUTHORIZATION, format!("Bearer {bearer}"));
        }
        let response = match body {
            None => self.agent.run(request.body(())?),
            Some(body) => self.agent.run(request.header(header::CONTENT_TYPE, media).body(body.to_string())?),
        }?;
        let status = response.status().as_u16();
        let bytes = response.into_body().into_with_config().limit(64 << 20).read_to_vec()?;
        let value = match serde_json::from_slice(&bytes) {
            Ok(value) => value,
            Err(_) if bytes.is_empty() => Value::Null,
            Err(_) => Value::String(String::from_utf8_lossy(&bytes).into_owned()),
        };
        Ok((status, value))
    }
}

/// The documents of a YAML text, empty ones left out.
pub(crate) fn yaml_documents(text: &str) -> Vec<Value> {
    use serde::Deserialize as _;
    serde_yaml_ng::Deserializer::from_str(text)
        .map(|document| Value::deserialize(document).expect("YAML that is JSON as well"))
        .filter(|document| !document.is_null())
        .collect()
}

/// Where the API server keeps an object. The plural of every kind in use follows English spelling.
fn object_path(object: &Value) -> String {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let version = text(&object["apiVersion"]).expect("an apiVersion");
    let name = text(&object["metadata"]["name"]).expect("a name");
    let kind = text(&object["kind"]).expect("a kind").to_lowercase();
    let plural = kind.strip_suffix('y').map_or_else(|| format!("{kind}s"), |stem| format!("{stem}ies"));
    let root = if version == "v1" { "/api/v1".to_owned() } else { format!("/apis/{version}") };
    match text(&object["metadata"]["namespace"]) {
        Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}/{name}"),
        None => format!("{root}/{plural}/{name}"),
    }
}
