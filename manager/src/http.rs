//! Bodies: bounded on the way in, JSON on the way out.

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body_util::LengthLimitError;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyError {
    /// More bytes than allowed.
    TooLarge,
    /// The client went away, or broke the protocol.
    Broken,
    /// Too much is being read already.
    NoRoom,
}

/// How long a body waits for room.
const ROOM_LIMIT: Duration = Duration::from_secs(2);

/// What bodies may take in memory, all together. A permit is one KiB.
pub(crate) struct Room(Arc<Semaphore>);

impl Room {
    /// Room for so many KiB.
    pub(crate) fn new(kib: usize) -> Self {
        Self(Arc::new(Semaphore::new(kib)))
    }

    /// Reads a body of at most `limit` bytes once there is room for what it says it has. The room is
    /// given back with what is returned.
    pub(crate) async fn read(
        &self,
        body: Body,
        limit: usize,
    ) -> Result<(Bytes, OwnedSemaphorePermit), BodyError> {
        let said = body.size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
        let kib = said.unwrap_or(limit).min(limit).div_ceil(1024);
        let room = Arc::clone(&self.0).acquire_many_owned(u32::try_from(kib).unwrap_or(u32::MAX));
        let room = tokio::time::timeout(ROOM_LIMIT, room).await;
        let room = room.ok().and_then(Result::ok).ok_or(BodyError::NoRoom)?;
        Ok((read(body, limit).await?, room))
    }
}

/// Reads a body of at most `limit` bytes.
pub(crate) async fn read(body: Body, limit: usize) -> Result<Bytes, BodyError> {
    to_bytes(body, limit).await.map_err(|error| {
        let too_large = error.source().is_some_and(<dyn Error>::is::<LengthLimitError>);
        if too_large { BodyError::TooLarge } else { BodyError::Broken }
    })
}

/// An answer of JSON.
pub(crate) fn json(status: StatusCode, text: String, kind: &'static str) -> Response {
    self::text(status, text, kind)
}

/// An answer of text.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_for_which_there_is_no_room_is_not_read() {
        let room = Room::new(4);
        let body = |bytes: usize| Body::from("x".repeat(bytes));
        let (_, held) = room.read(body(3000), 8192).await.expect("three of four");
        assert_eq!(room.read(body(1025), 8192).await.err(), Some(BodyError::NoRoom));
        assert!(room.read(body(1024), 8192).await.is_ok());
        drop(held);
        assert!(room.read(body(4096), 8192).await.is_ok());
    }
}
