//! One connection of HTTP/1.1 over TLS, as agents and operators have it.

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use navin_test_support::client_config;
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The longest that an exchange may take: a poll of 30 s, and what is around it.
const LIMIT: Duration = Duration::from_secs(50);
/// The longest that a connection may take, its handshake included.
const CONNECT_LIMIT: Duration = Duration::from_secs(15);

/// Any failure below HTTP.
pub(crate) type Broken = Box<dyn std::error::Error + Send + Sync>;

/// What was answered.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) retry_after_s: Option<u64>,
    pub(crate) body: Bytes,
}

/// An open connection.
pub(crate) struct Wire(SendRequest<Full<Bytes>>);

impl Wire {
    /// Opens one.
    pub(crate) async fn open(address: SocketAddr, tls: &Arc<ClientConfig>) -> Result<Self, Broken> {
        let opened = async {
            let tcp = TcpStream::connect(address).await?;
            tcp.set_nodelay(true)?;
            let name = ServerName::from(address.ip());
            let stream = TlsConnector::from(Arc::clone(tls)).connect(name, tcp).await?;
            let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            Ok(Self(sender))
        };
        tokio::time::timeout(CONNECT_LIMIT, opened).await?
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn send(
        &mut self,
        method: Method,
        path: &str,
        token: Option<&str>,
        body: String,
    ) -> Result<Answer, Broken> {
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Full::from(body))?;
        let exchange = async {
            self.0.ready().await?;
            let response = self.0.send_request(request).await?;
            let status = response.status().as_u16();
            let retry_after = response.headers().get("retry-after").and_then(|value| value.to_str().ok());
            let retry_after_s = retry_after.and_then(|text| text.parse().ok());
            Ok(Answer { status, retry_after_s, body: response.into_body().collect().await?.to_bytes() })
        };
        tokio::time::timeout(LIMIT, exchange).await?
    }
}

/// What a client trusts, and who it is: PEM of the authority, of a certificate and of its key.
pub(crate) fn tls(ca: &str, identity: Option<(&str, &str)>) -> Arc<ClientConfig> {
    let mut config = client_config(ca, identity);
    config.resumption = Resumption::disabled();
    Arc::new(config)
}
