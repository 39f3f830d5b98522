//! Bodies: bounded on the way in, JSON on the way out.

use crate::limits::room::BodyError;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body_util::LengthLimitError;
use std::error::Error;

/// Reads a body of at most `limit` bytes.
pub(crate) async fn read(body: Body, limit: usize) -> Result<Bytes, BodyError> {
    to_bytes(body, limit).await.map_err(|error| {
        let too_large = error.source().is_some_and(<dyn Error>::is::<LengthLimitError>);
        if too_large { BodyError::TooLarge } else { BodyError::Broken }
    })
}

/// An answer of text, of a kind of text.
pub(crate) fn text(status: StatusCode, text: String, kind: &'static str) -> Response {
    let mut response = (status, text).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    // Answers hold keys, once, and states that change.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The connection ends with this answer.
pub(crate) fn close(response: &mut Response) {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
}
