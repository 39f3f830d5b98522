//! The wish that the process ends: SIGTERM or SIGINT.

use super::failure::Failure;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Whether the process is to end, as each task holds it.
#[derive(Clone)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Listens for the signals.
    pub(crate) fn on_signal() -> Result<Self, Failure> {
        let failed = |error| Failure::System(format!("cannot wait for signals: {error}"));
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let (sender, receiver) = watch::channel(false);
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::info!("stopping");
            sender.send_replace(true);
            // The sender stays, for those who ask later.
            sender.closed().await;
        });
        Ok(Self(receiver))
    }

    /// Whether it is time.
    pub(crate) fn is_asked_for(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when it is time.
    pub(crate) async fn wait(&self) {
        let mut receiver = self.0.clone();
        // An error means that the sender is gone, which is the end too.
        drop(receiver.wait_for(|stop| *stop).await);
    }
}
