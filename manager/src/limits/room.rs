//! What agents send: read as it comes, within what all of them may take in memory, and within what one of
//! them may. Nothing is set aside for what is only announced.

use super::callers::{Busy, Limits, Place};
use axum::body::Body;
use http_body_util::BodyExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

/// How long a piece of a body waits for room.
const ROOM_LIMIT: Duration = Duration::from_secs(2);

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyError {
    /// More bytes than allowed.
    TooLarge,
    /// The client went away, or broke the protocol.
    Broken,
    /// Too much is being read already.
    NoRoom,
    /// Too much of this sender is.
    Busy(Busy),
    /// It came too slowly.
    TooSlow,
}

/// How fast a body must come: a stalled one holds what it brought, and its place.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    /// How long it may take in any case.
    pub(crate) grace: Duration,
    /// Bytes a second, once this is over.
    pub(crate) bytes_a_second: u32,
    /// How long it may take at most.
    pub(crate) most: Duration,
}

impl Pace {
    /// The time that a body has of which so much is there.
    fn allows(&self, received: usize) -> Duration {
        let received = u32::try_from(received).unwrap_or(u32::MAX);
        let earned = Duration::from_secs(1) * received / self.bytes_a_second.max(1);
        self.most.min(self.grace + earned)
    }
}

/// Room for one kind of body.
pub(crate) struct Room {
    /// A permit is one KiB.
    kib: Arc<Semaphore>,
    of_one: Arc<Limits>,
    pace: Pace,
}

/// A body that is in memory: until this is dropped, nobody else has its room.
pub(crate) struct Held {
    _place: Place,
    _room: OwnedSemaphorePermit,
}

impl Room {
    /// Room for so many KiB, and for so many bodies of one sender at a time.
    pub(crate) fn new(kib: usize, of_one: usize, pace: Pace) -> Self {
        Self { kib: Arc::new(Semaphore::new(kib)), of_one: Limits::new(of_one), pace }
    }

    /// Reads a body of at most `limit` bytes.
    pub(crate) async fn read(
        &self,
        sender: &Arc<str>,
        mut body: Body,
        limit: usize,
    ) -> Result<(Vec<u8>, Held), BodyError> {
        let place = self.of_one.enter(sender).map_err(BodyError::Busy)?;
        let mut room = self.more(0).await?;
        let (mut bytes, mut kib, mut began) = (Vec::new(), 0, Instant::now());
        loop {
            let by = began + self.pace.allows(bytes.len());
            let frame = timeout_at(by, body.frame()).await.map_err(|_| BodyError::TooSlow)?;
            let Some(frame) = frame else { break };
            let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
            let length = bytes.len().saturating_add(data.len());
            if length > limit {
                return Err(BodyError::TooLarge);
            }
            let (waits, more) = (Instant::now(), length.div_ceil(1024).saturating_sub(kib));
            room.merge(self.more(more).await?);
            kib = kib.saturating_add(more);
            // To wait for us is not to be slow.
            began += waits.elapsed();
            bytes.extend_from_slice(&data);
        }
        Ok((bytes, Held { _place: place, _room: room }))
    }

    /// So many KiB more.
    async fn more(&self, kib: usize) -> Result<OwnedSemaphorePermit, BodyError> {
        let room = Arc::clone(&self.kib).acquire_many_owned(u32::try_from(kib).unwrap_or(u32::MAX));
        timeout(ROOM_LIMIT, room).await.ok().and_then(Result::ok).ok_or(BodyError::NoRoom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::{Bytes, HttpBody};
    use hyper::body::Frame;
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use tokio::sync::mpsc;

    const QUICK: Pace =
        Pace { grace: Duration::from_millis(50), bytes_a_second: 10_000, most: Duration::from_millis(400) };

    fn of(bytes: usize) -> Body {
        Body::from("x".repeat(bytes))
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_for_which_there_is_no_room_is_not_read() {
        let (room, a) = (Room::new(4, 9, QUICK), "a".into());
        let (_, held) = room.read(&a, of(3000), 8192).await.expect("three of four");
        assert_eq!(room.read(&a, of(1025), 8192).await.err(), Some(BodyError::NoRoom));
        assert!(room.read(&a, of(1024), 8192).await.is_ok());
        drop(held);
        assert!(room.read(&a, of(4096), 8192).await.is_ok());
        assert_eq!(room.read(&a, of(8193), 8192).await.err(), Some(BodyError::TooLarge));
    }

    #[tokio::test(start_paused = true)]
    async fn one_sender_has_so_many_at_a_time_and_others_have_their_own() {
        let room = Room::new(100, 2, QUICK);
        let [a, b]: [Arc<str>; 2] = ["a".into(), "b".into()];
        let held = [room.read(&a, of(1), 9).await, room.read(&a, of(1), 9).await];
        assert_eq!(room.read(&a, of(1), 9).await.err(), Some(BodyError::Busy(Busy::Open)));
        assert!(room.read(&b, of(1), 9).await.is_ok());
        drop(held);
        assert!(room.read(&a, of(1), 9).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_comes_too_slowly_is_given_up_and_gives_its_room_back() {
        let (room, a) = (Room::new(4, 1, QUICK), "a".into());
        // A hundred bytes earn ten milliseconds, and come in twenty.
        let pieces = endless(100, Duration::from_millis(20));
        let started = Instant::now();
        assert_eq!(room.read(&a, pieces, 1_000_000).await.err(), Some(BodyError::TooSlow));
        assert!(started.elapsed() >= Duration::from_millis(90), "{:?}", started.elapsed());
        // Fast enough, but without an end.
        let pieces = endless(1000, Duration::from_millis(20));
        assert_eq!(room.read(&a, pieces, 1_000_000).await.err(), Some(BodyError::NoRoom));
        assert!(room.read(&a, of(4096), 8192).await.is_ok());
        let large = Room::new(10_000, 1, QUICK);
        let pieces = endless(1000, Duration::from_millis(20));
        assert_eq!(large.read(&a, pieces, 1_000_000).await.err(), Some(BodyError::TooSlow));
    }

    /// A body without an end, in pieces.
    struct Endless(mpsc::Receiver<Bytes>);

    impl HttpBody for Endless {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0.poll_recv(context).map(|piece| Some(Ok(Frame::data(piece?))))
        }
    }

    fn endless(bytes: usize, every: Duration) -> Body {
        let (sender, pieces) = mpsc::channel(1);
        tokio::spawn(async move {
            while sender.send(Bytes::from("x".repeat(bytes))).await.is_ok() {
                tokio::time::sleep(every).await;
            }
        });
        Body::new(Endless(pieces))
    }
}
