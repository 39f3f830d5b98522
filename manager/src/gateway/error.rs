//! The gateway's errors, as agents read them: `{"error": "code", "message": "…"}`.

use crate::http::{self, BodyError};
use crate::store::StoreError;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Why an agent's call is refused.
#[derive(Debug)]
pub(crate) enum GatewayError {
    /// No such path.
    NotFound,
    /// No such method there.
    MethodNotAllowed,
    /// Of another form than the contract's.
    Malformed(&'static str),
    /// Above the limit.
    TooLarge,
    /// The identity has too many requests open.
    TooMany,
    /// The body did not come in time.
    TooSlow,
    /// The certificate is unknown or revoked.
    IdentityRevoked,
    /// It speaks for another cluster.
    OtherCluster,
    /// There is no such command.
    UnknownCommand,
    /// The database failed: nothing was stored.
    Unavailable,
}

impl From<StoreError> for GatewayError {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "a request failed");
        Self::Unavailable
    }
}

impl From<BodyError> for GatewayError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge => Self::TooLarge,
            BodyError::Broken => Self::Malformed("the body could not be read"),
        }
    }
}

impl IntoResponse for GatewayError {
    fn into_response(self) -> Response {
        let (status, code, message) = match self {
            Self::NotFound => (StatusCode::NOT_FOUND, "not_found", "no such path"),
            Self::MethodNotAllowed => {
                (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "no such method here")
            }
            Self::Malformed(message) => (StatusCode::BAD_REQUEST, "malformed", message),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too_large", "the body is above the limit"),
            Self::TooMany => {
                (StatusCode::TOO_MANY_REQUESTS, "too_many_requests", "too many requests are open")
            }
            Self::TooSlow => (StatusCode::REQUEST_TIMEOUT, "too_slow", "the request took too long"),
            Self::IdentityRevoked => {
                (StatusCode::FORBIDDEN, "identity_revoked", "this certificate is not a good identity")
            }
            Self::OtherCluster => {
                (StatusCode::FORBIDDEN, "other_cluster", "this identity is of another cluster")
            }
            Self::UnknownCommand => (StatusCode::NOT_FOUND, "unknown_command", "there is no such command"),
            Self::Unavailable => {
                (StatusCode::SERVICE_UNAVAILABLE, "unavailable", "the database does not answer")
            }
        };
        let text = json!({ "error": code, "message": message }).to_string();
        let mut response = http::json(status, text, "application/json");
        if matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        response
    }
}
