//! What each poll asks when it begins: is its identity revoked, is a command due? Asked of the database for
//! all that begin within a moment at once, for a statement of each its own is most of what a fleet at rest
//! costs.

use crate::store::{Store, StoreError, bounded};
use std::mem;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until};

/// How long after one statement the next one is made; the first is made at once.
const GATHERED: Duration = Duration::from_millis(20);

/// What was asked and is not answered: one question at most of each open poll.
#[derive(Default)]
pub(crate) struct Questions {
    asked: Mutex<Vec<Question>>,
    some: Notify,
}

struct Question {
    identity_id: String,
    /// Whether nothing is due for a good identity. Dropped where the database did not say.
    answer: oneshot::Sender<bool>,
}

impl Questions {
    /// Whether the identity is good and nothing is due for it.
    pub(crate) async fn is_at_rest(&self, identity_id: &str) -> Result<bool, StoreError> {
        let (answer, answered) = oneshot::channel();
        let question = Question { identity_id: identity_id.to_owned(), answer };
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(question);
        self.some.notify_one();
        bounded(async { answered.await.map_err(|_| StoreError::unanswered()) }).await
    }

    fn take(&self) -> Vec<Question> {
        mem::take(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Answers, for ever.
    pub(crate) async fn answer(&self, store: &Store) {
        let mut next = Instant::now();
        loop {
            self.some.notified().await;
            sleep_until(next).await;
            next = Instant::now() + GATHERED;
            let asked = self.take();
            let identity_ids: Vec<&str> =
                asked.iter().map(|question| question.identity_id.as_str()).collect();
            match bounded(store.at_rest(&identity_ids)).await {
                Ok(at_rest) => {
                    for Question { identity_id, answer } in asked {
                        // Who is gone need not know.
                        answer.send(at_rest.contains(&identity_id)).unwrap_or_default();
                    }
                }
                Err(error) => tracing::error!(%error, "polls were not answered"),
            }
        }
    }
}
