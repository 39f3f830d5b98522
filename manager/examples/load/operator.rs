//! Operators: many calls of the REST API, over a few connections.

use crate::wire::{Answer, Broken, Wire, tls};
use hyper::Method;
use rustls::ClientConfig;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Pause before a call that was not answered, or was put off, is made again.
const AGAIN: Duration = Duration::from_millis(500);
/// The longest that a call may have to be made again.
const LIMIT: Duration = Duration::from_mins(2);

/// One call.
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: String,
}

/// What a call came to.
pub(crate) struct Done {
    /// When it was first made.
    pub(crate) began: Instant,
    pub(crate) answer: Value,
}

/// Operators of one tenant.
#[derive(Clone)]
pub(crate) struct Operators {
    rest: SocketAddr,
    tls: Arc<ClientConfig>,
    token: Arc<str>,
}

impl Operators {
    pub(crate) fn new(rest: SocketAddr, ca: &str, token: &str) -> Self {
        Self { rest, tls: tls(ca, None), token: token.into() }
    }

    /// Makes all calls, so many at once, each until it is answered with success; in their order.
    pub(crate) async fn all(&self, calls: Vec<Call>, at_once: usize) -> Vec<Done> {
        let (calls, next) = (Arc::new(calls), Arc::new(AtomicUsize::new(0)));
        let workers: Vec<_> = (0..at_once)
            .map(|_| {
                let (this, calls, next) = (self.clone(), Arc::clone(&calls), Arc::clone(&next));
                tokio::spawn(async move {
                    let (mut wire, mut done) = (None, Vec::new());
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(call) = calls.get(index) else { return done };
                        done.push((index, this.until_done(&mut wire, call).await));
                    }
                })
            })
            .collect();
        let mut done = Vec::new();
        for worker in workers {
            done.extend(worker.await.expect("an operator"));
        }
        done.sort_by_key(|(index, _)| *index);
        done.into_iter().map(|(_, done)| done).collect()
    }

    async fn until_done(&self, wire: &mut Option<Wire>, call: &Call) -> Done {
        let began = Instant::now();
        loop {
            match self.once(wire, call).await {
                Ok(answer) if (200..300).contains(&answer.status) => {
                    let answer = serde_json::from_slice(&answer.body).expect("JSON of the manager");
                    return Done { began, answer };
                }
                Ok(answer) => assert!(
                    matches!(answer.status, 429 | 503),
                    "{} {}: {} {}",
                    call.method,
                    call.path,
                    answer.status,
                    String::from_utf8_lossy(&answer.body)
                ),
                Err(_) => *wire = None,
            }
            assert!(began.elapsed() < LIMIT, "in vain: {} {}", call.method, call.path);
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn once(&self, wire: &mut Option<Wire>, call: &Call) -> Result<Answer, Broken> {
        let open = match wire {
            Some(open) => open,
            None => wire.insert(Wire::open(self.rest, &self.tls).await?),
        };
        open.send(call.method.clone(), &call.path, Some(&self.token), call.body.clone()).await
    }
}
