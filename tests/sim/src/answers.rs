//! What a model says as an HTTP answer.

use crate::api::Reply;
use crate::host::true_time;
use crate::manager::error;
use crate::thread::Peer;
use navin_cluster_agent::http::{Method, Response};
use std::io::{self, Cursor, Read};

pub(crate) fn name(method: Method) -> &'static str {
    match method {
        Method::Get => "GET",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Delete => "DELETE",
        Method::Patch => "PATCH",
    }
}

pub(crate) fn refusal(status: u16, peer: Peer) -> Reply {
    let mut reply = match (peer, status) {
        (Peer::Gateway, 403) => error(403, "identity_revoked"),
        (Peer::Gateway, _) => error(status, "trouble"),
        (Peer::Kube, 403) => Reply::status(403, "Forbidden", "is forbidden: RBAC"),
        (Peer::Kube, 422) => Reply::status(422, "Invalid", "is invalid"),
        (Peer::Kube, 409) => Reply::status(409, "Conflict", "Operation cannot be fulfilled"),
        (Peer::Kube, _) => Reply::status(status, "InternalError", "trouble"),
    };
    if status == 429 {
        reply.retry_after = Some("1".to_owned());
    }
    reply
}

pub(crate) fn response(reply: Reply, cut: bool, now: u64) -> Response {
    let date = true_time(now).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let mut body = reply.body;
    let body: Box<dyn Read + Send> = if cut {
        body.truncate(body.len() / 2);
        Box::new(Cursor::new(body).chain(Broken))
    } else {
        Box::new(Cursor::new(body))
    };
    Response { status: reply.status, retry_after: reply.retry_after, date: Some(date), body }
}

/// A body that ends with an error.
struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed"))
    }
}
