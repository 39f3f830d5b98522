//! What goes on beside the calls, for ever: each part is begun anew when it ends, so that none is missing
//! without a word. A panic is no such end: a release ends with it (`panic = "abort"` in Cargo.toml), and whoever runs the
//! manager starts it again.

use std::time::Duration;

/// Between an end and the next begin.
const PAUSE: Duration = Duration::from_secs(1);

/// Runs what is not to end, as a task; an end is told, and it begins anew. So it does after a panic where that unwinds, as in
/// tests.
pub(crate) fn forever<F>(name: &'static str, mut part: impl FnMut() -> F + Send + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    tokio::spawn(async move {
        loop {
            match tokio::spawn(part()).await {
                Ok(()) => tracing::error!(part = name, "a part of the manager ended, and begins anew"),
                Err(error) => {
                    tracing::error!(part = name, %error, "a part of the manager failed, and begins anew");
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    #[tokio::test]
    async fn a_part_that_panics_or_ends_begins_anew() {
        let (sender, mut begun) = mpsc::unbounded_channel();
        let mut times = 0;
        forever("of a test", move || {
            times += 1;
            sender.send(times).expect("the test listens");
            let times = times;
            async move { assert!(times > 1, "at first") }
        });
        for expected in 1..=3 {
            assert_eq!(begun.recv().await, Some(expected));
        }
    }
}
