//! The gateway's errors, as agents read them: `{"error": "code", "message": "…"}`.

use crate::app::http;
use crate::limits::callers::Busy;
use crate::limits::room::BodyError;
use crate::store::StoreError;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// When to come again, where nothing more is known.
const RETRY_AFTER_S: u64 = 5;

/// Why an agent's call is refused.
#[derive(Debug)]
pub(crate) enum GatewayError {
    /// No such path.
    NotFound,
    /// Another method than the one that is there.
    MethodNotAllowed(Method),
    /// Of another form than the contract's.
    Malformed(&'static str),
    /// Above the limit.
    TooLarge,
    /// The certificate has too many requests open.
    TooMany,
    /// The certificate calls too often: again after so many seconds.
    TooOften(u64),
    /// The body did not come in time.
    TooSlow,
    /// The certificate is unknown or revoked.
    IdentityRevoked,
    /// It speaks for another cluster.
    OtherCluster,
    /// There is no such command.
    UnknownCommand,
    /// The database failed: nothing was acknowledged.
    Unavailable,
    /// Too much is being read already.
    Overloaded,
}

impl From<StoreError> for GatewayError {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "an agent's request failed");
        Self::Unavailable
    }
}

impl From<Busy> for GatewayError {
    fn from(busy: Busy) -> Self {
        match busy {
            Busy::Open => Self::TooMany,
            Busy::Rate(wait) => Self::TooOften(wait.as_secs().saturating_add(1)),
        }
    }
}

impl From<BodyError> for GatewayError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge => Self::TooLarge,
            BodyError::NoRoom => Self::Overloaded,
            BodyError::Busy(busy) => Self::from(busy),
            BodyError::TooSlow => Self::TooSlow,
            BodyError::Broken => Self::Malformed("the body could not be read"),
        }
    }
}

impl IntoResponse for GatewayError {
    fn into_response(self) -> Response {
        let retry_after_s = match &self {
            Self::TooOften(seconds) => Some(*seconds),
            Self::TooMany | Self::Unavailable | Self::Overloaded => Some(RETRY_AFTER_S),
            _ => None,
        };
        let allow = match &self {
            Self::MethodNotAllowed(method) => HeaderValue::from_str(method.as_str()).ok(),
            _ => None,
        };
        // A revoked identity keeps no connection.
        let closes = matches!(self, Self::IdentityRevoked);
        let (status, code, message) = match self {
            Self::NotFound => (StatusCode::NOT_FOUND, "not_found", "no such path"),
            Self::MethodNotAllowed(_) => {
                (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "no such method here")
            }
            Self::Malformed(message) => (StatusCode::BAD_REQUEST, "malformed", message),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too_large", "the body is above the limit"),
            Self::TooMany => {
                (StatusCode::TOO_MANY_REQUESTS, "too_many_requests", "too many requests are open")
            }
            Self::TooOften(_) => {
                (StatusCode::TOO_MANY_REQUESTS, "too_many_requests", "too many requests a minute")
            }
            Self::TooSlow => (StatusCode::REQUEST_TIMEOUT, "too_slow", "the request took too long"),
            Self::IdentityRevoked => (
                StatusCode::FORBIDDEN,
                "identity_revoked",
                "the identity is not known, or was revoked by a newer one",
            ),
            Self::OtherCluster => {
                (StatusCode::FORBIDDEN, "other_cluster", "this identity is of another cluster")
            }
            Self::UnknownCommand => (StatusCode::NOT_FOUND, "unknown_command", "there is no such command"),
            Self::Unavailable => {
                (StatusCode::SERVICE_UNAVAILABLE, "unavailable", "the database does not answer")
            }
            Self::Overloaded => (StatusCode::SERVICE_UNAVAILABLE, "overloaded", "too much is being received"),
        };
        let text = json!({ "error": code, "message": message }).to_string();
        let mut response = http::text(status, text, "application/json");
        if let Some(method) = allow {
            response.headers_mut().insert(header::ALLOW, method);
        }
        if closes {
            http::close(&mut response);
        }
        if let Some(seconds) = retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}
