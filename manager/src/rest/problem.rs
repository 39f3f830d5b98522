//! The REST API's errors: RFC 9457 problem details.

use super::import::Refused;
use crate::app::http;
use crate::keys::issue::{IssueError, NO_CLUSTER};
use crate::keys::signing::Unsignable;
use crate::limits::callers::Busy;
use crate::limits::room::BodyError;
use crate::store::StoreError;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// When to come again, where nothing more is known.
const RETRY_AFTER_S: u64 = 5;

/// Why a call is refused.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    findings: Vec<String>,
    retry_after_s: Option<u64>,
}

impl Problem {
    /// A refusal.
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: &str) -> Self {
        Self { status, code, detail: detail.to_owned(), findings: Vec::new(), retry_after_s: None }
    }

    /// The kubeconfig does not give what an import needs, or gives more.
    pub(crate) fn kubeconfig(refused: Refused) -> Self {
        let (code, detail, findings) = match refused {
            Refused::Kubeconfig(why) => ("kubeconfig_invalid", format!("kubeconfig: {why}"), Vec::new()),
            Refused::Unreachable(why) => ("kubeconfig_unreachable", why, Vec::new()),
            Refused::Rights(findings) => {
                let detail =
                    "the kubeconfig's user cannot do what the import needs, or can do more: see findings";
                ("kubeconfig_rights", detail.to_owned(), findings)
            }
        };
        Self { findings, ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, &detail) }
    }

    /// What was sent is not what is taken.
    pub(crate) fn bad_request(detail: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", detail)
    }

    /// It is not there, or not this tenant's.
    pub(crate) fn not_found(detail: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", detail)
    }

    /// The tenant has no such cluster; another's is not to be told from none.
    pub(crate) fn no_cluster() -> Self {
        Self::not_found(NO_CLUSTER)
    }

    /// No token, or none that is known.
    pub(crate) fn unauthorized() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "a bearer token is needed, and one that is known and not revoked",
        )
    }

    /// It did not come, or was not done, in time.
    pub(crate) fn too_slow() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the request took too long")
    }

    /// There are as many connections as there may be.
    pub(crate) fn overloaded() -> Self {
        let problem =
            Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", "there are too many connections");
        Self { retry_after_s: Some(RETRY_AFTER_S), ..problem }
    }

    /// There are as many checks of kubeconfigs as there may be, of this tenant or in all.
    pub(crate) fn checks() -> Self {
        let detail = "too many kubeconfigs are being looked at: of this tenant, or in all";
        Self { detail: detail.to_owned(), ..Self::overloaded() }
    }

    /// The database does not answer in time: nothing is acknowledged, though what was on its way may have been done.
    pub(crate) fn unavailable() -> Self {
        let detail = "the database does not answer";
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail);
        Self { retry_after_s: Some(RETRY_AFTER_S), ..problem }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "an operator's request failed");
        Self::unavailable()
    }
}

impl From<Busy> for Problem {
    fn from(busy: Busy) -> Self {
        let (detail, seconds) = match busy {
            Busy::Open => ("too many requests of this token are open", RETRY_AFTER_S),
            Busy::Rate(wait) => {
                ("too many requests of this token a minute", wait.as_secs().saturating_add(1))
            }
        };
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", detail);
        Self { retry_after_s: Some(seconds), ..problem }
    }
}

impl From<BodyError> for Problem {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", "the body is above 1 MiB")
            }
            BodyError::NoRoom => Self::unavailable(),
            BodyError::Busy(busy) => Self::from(busy),
            BodyError::TooSlow => Self::too_slow(),
            BodyError::Broken => Self::bad_request("the body could not be read"),
        }
    }
}

impl From<IssueError> for Problem {
    fn from(error: IssueError) -> Self {
        match error {
            IssueError::NoCluster(_) => Self::no_cluster(),
            IssueError::Unsignable(Unsignable::TooLarge) => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", "the envelope would be above 256 KiB")
            }
            IssueError::Unsignable(Unsignable::Refused(reason)) => Self::bad_request(&reason),
            IssueError::ValidFor { .. } => Self::bad_request(&error.to_string()),
            IssueError::Store(error) => Self::from(error),
            IssueError::System(reason) => {
                tracing::error!(reason, "an operator's request failed");
                let detail = "the manager's system gives it no random bytes, or no certificate: see its log";
                Self { detail: detail.to_owned(), ..Self::unavailable() }
            }
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut document = json!({
            "type": format!("urn:navin:problem:{}", self.code),
            "title": self.status.canonical_reason(),
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
        });
        if let Some(members) = document.as_object_mut().filter(|_| !self.findings.is_empty()) {
            members.insert("findings".to_owned(), json!(self.findings));
        }
        let mut response = http::text(self.status, document.to_string(), "application/problem+json");
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_the_databases_fault_is_not_laid_at_its_door() {
        let problem = Problem::from(IssueError::System("no random bytes".to_owned()));
        assert_eq!(problem.status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(!problem.detail.contains("database"), "{problem:?}");
    }
}
