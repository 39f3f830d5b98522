//! A thread of a replica as one stackful coroutine: it runs until it asks something of the world, and goes
//! on when the scheduler lets it.

use crate::host::Life;
use generator::{Generator, Gn, co_yield_with};
use jiff::Timestamp;
use navin_cluster_agent::clock::Clock;
use navin_cluster_agent::http::{Http, HttpError, Request, Response};
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Stack of a coroutine, in words of eight bytes: 256 KiB, of which only what is touched takes memory.
const STACK_WORDS: usize = 32 * 1024;

/// Calls and pauses with which a thread of a process that has ended must have come to its own end.
const ENDS_WITHIN: u64 = 10_000;

/// Whom a call goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// The API server.
    Kube,
    /// The manager's gateway.
    Gateway,
}

/// What a coroutine asks for when it suspends itself.
#[derive(Debug)]
pub enum Ask {
    /// One exchange; the answer is put into the port.
    Call(Peer, Request),
    /// To go on at this time of the process's monotonic clock.
    Sleep(Duration),
    /// The same, or earlier when something in the process has changed or a stream has something to read.
    Wait(Duration),
}

/// An answer, or why there is none.
pub type Answer = Result<Response, HttpError>;

#[derive(Default)]
struct Slots {
    ask: Option<Ask>,
    answer: Option<Answer>,
}

/// Where a coroutine and the scheduler meet.
pub struct Port {
    life: Arc<Life>,
    slots: Mutex<Slots>,
    random: AtomicU64,
    /// How often the thread asked for something after the end of its process.
    asked: AtomicU64,
}

impl Port {
    /// A port of a thread of `life`; its chance begins at `seed`.
    #[must_use]
    pub fn new(life: Arc<Life>, seed: u64) -> Arc<Self> {
        Arc::new(Self {
            life,
            slots: Mutex::default(),
            random: AtomicU64::new(seed),
            asked: AtomicU64::default(),
        })
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn suspend(&self, ask: Ask) {
        *self.slots() = Slots { ask: Some(ask), answer: None };
        co_yield_with(());
    }

    /// Whether the process has ended.
    ///
    /// # Panics
    ///
    /// When a thread asks again and again and does not end: the real one would not end at SIGTERM.
    #[must_use]
    pub fn dead(&self) -> bool {
        let dead = self.life.dead();
        if dead {
            let asked = self.asked.fetch_add(1, Relaxed);
            assert!(
                asked < ENDS_WITHIN,
                "a thread goes on without the permission, and would not end at SIGTERM"
            );
        }
        dead
    }

    /// The process's monotonic clock.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.life.monotonic()
    }

    /// Waits until `ready`, at most `limit`; a process that has ended does not wait.
    pub fn wait(&self, limit: Duration, mut ready: impl FnMut() -> bool) {
        let until = self.now().saturating_add(limit);
        while !self.dead() && !ready() && self.now() < until {
            self.suspend(Ask::Wait(until));
        }
    }

    /// What the coroutine asked for when it last suspended itself.
    pub fn take_ask(&self) -> Option<Ask> {
        self.slots().ask.take()
    }

    /// Answers its call.
    pub fn answer(&self, answer: Answer) {
        self.slots().answer = Some(answer);
    }
}

impl Clock for Port {
    fn wall(&self) -> Timestamp {
        self.life.host.wall()
    }

    fn monotonic(&self) -> Duration {
        self.now()
    }

    fn sleep(&self, pause: Duration) {
        let until = self.now().saturating_add(pause);
        while !self.dead() && self.now() < until {
            self.suspend(Ask::Sleep(until));
        }
    }

    fn random(&self) -> u64 {
        crate::chance::mix(self.random.fetch_add(1, Relaxed), 0x72)
    }
}

/// What has arrived of a streamed body.
#[derive(Default)]
pub struct Arrived {
    /// Not read yet.
    pub bytes: Vec<u8>,
    /// Nothing more comes: in order, or because the connection broke.
    pub end: Option<Result<(), ()>>,
}

/// A body that is read as it comes; a read suspends the coroutine until something is there.
pub struct Stream {
    /// Whose it is.
    pub port: Arc<Port>,
    /// When the client gives it up, on the process's monotonic clock.
    pub until: Duration,
    /// What has arrived.
    pub arrived: Arc<Mutex<Arrived>>,
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let broken = |what: &str| Err(io::Error::new(io::ErrorKind::UnexpectedEof, what.to_owned()));
        loop {
            {
                let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
                let count = buffer.len().min(arrived.bytes.len());
                if count > 0 {
                    buffer[..count].copy_from_slice(&arrived.bytes[..count]);
                    arrived.bytes.drain(..count);
                    return Ok(count);
                }
                match arrived.end {
                    Some(Ok(())) => return Ok(0),
                    Some(Err(())) => return broken("the connection was closed"),
                    None => {}
                }
            }
            if self.port.dead() || self.port.now() >= self.until {
                return broken("the time is over");
            }
            self.port.suspend(Ask::Wait(self.until));
        }
    }
}

/// The seam to the network: every call suspends the coroutine.
pub struct Line {
    /// Whose calls these are.
    pub port: Arc<Port>,
    /// Whom they go to.
    pub peer: Peer,
}

impl Http for Line {
    fn send(&self, request: &Request) -> Result<Response, HttpError> {
        if !self.port.dead() {
            self.port.suspend(Ask::Call(self.peer, request.clone()));
            if let Some(answer) = self.port.slots().answer.take() {
                return answer;
            }
        }
        Err(HttpError::Unsent("the process has ended".to_owned()))
    }
}

/// A coroutine and where it stands.
pub struct Thread {
    /// Where it and the scheduler meet.
    pub port: Arc<Port>,
    coroutine: Generator<'static, (), ()>,
    /// What it waits for now; a timer or an answer for an older number is stale.
    pub serial: u64,
    /// It waits, and goes on when something in the process changes.
    pub waits: Option<Duration>,
}

impl Thread {
    /// A coroutine that has not begun.
    #[must_use]
    pub fn new(port: Arc<Port>, body: impl FnOnce() + Send + 'static) -> Self {
        let mut coroutine = Gn::<()>::new_opt(STACK_WORDS, body);
        // The mark by which `co_yield_with` knows a coroutine; nobody ever reads what it points to.
        coroutine.set_local_data(std::ptr::dangling_mut());
        Self { port, coroutine, serial: 0, waits: None }
    }

    /// Runs it until it asks for something; None when it has ended.
    pub fn run(&mut self) -> Option<Ask> {
        if self.coroutine.is_done() {
            return None;
        }
        let _ended_or_suspended = self.coroutine.resume();
        self.port.take_ask()
    }

    /// Whether it has ended.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.coroutine.is_done()
    }
}
