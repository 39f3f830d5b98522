//! Watches that are open: what the server sends, and how they end.

use crate::api::{Kind, Opened, Reply};
use crate::chance::{keyed, mix};
use crate::faults::{CallFault, SECOND};
use crate::host::true_time;
use crate::replica::ROLES;
use crate::thread::{Arrived, Stream};
use crate::world::{Event, World};
use navin_cluster_agent::http::{HttpError, Response};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A watch, as the server and the network between see it.
pub(crate) struct Open {
    slot: usize,
    thread: usize,
    process: u64,
    kind: Kind,
    bookmarks: bool,
    arrived: Arc<Mutex<Arrived>>,
    /// Up to which version everything was sent.
    version: u64,
    /// When the server ends it.
    until: u64,
    /// When the last line arrives: lines keep their order.
    last: u64,
    /// When it breaks, or from when on it is silent.
    breaks: Option<u64>,
    silent: Option<u64>,
    rng: fastrand::Rng,
}

impl World {
    /// Opens a watch that has landed; its head is on the way.
    pub(crate) fn open_stream(&mut self, call: u64, kind: Kind, query: &str) {
        let part = |name: &str| {
            query.split('&').find_map(|part| part.strip_prefix(name)).and_then(|v| v.parse().ok())
        };
        let (version, seconds) =
            (part("resourceVersion=").unwrap_or(0), part("timeoutSeconds=").unwrap_or(60));
        let now = self.now.get();
        let Some(flight) = self.flights.get(&call) else { return };
        let mut rng = keyed(self.seed, mix(0x7_0000, flight.number));
        let faulty =
            self.healed.is_none() && self.options.allowed.has(flight.number ^ 1) && rng.u32(0..4) == 0;
        let breaks = faulty.then(|| now + rng.u64(0..seconds * SECOND));
        let (breaks, silent) = if rng.bool() { (breaks, None) } else { (None, breaks) };
        if faulty {
            self.happened.push(flight.number ^ 1);
            *self.stats.troubles.entry("watch breaks or falls silent").or_default() += 1;
        }
        let mut open = Open {
            slot: flight.slot,
            thread: flight.thread,
            process: flight.process,
            kind,
            bookmarks: query.contains("allowWatchBookmarks=true"),
            arrived: Arc::default(),
            version,
            until: now + seconds * SECOND,
            last: now,
            breaks,
            silent,
            rng,
        };
        if let Opened::Expired(line) = self.api.watch(kind, version) {
            open.until = now;
            self.after(flight.back + 1, Event::Lines(call, line, false));
        }
        let until = open.until;
        self.streams.insert(call, open);
        self.send_lines();
        self.push(until, Event::StreamTick(call));
        self.after(30 * SECOND, Event::StreamTick(call));
        if let Some(breaks) = breaks {
            self.push(breaks, Event::StreamTick(call));
        }
    }

    /// Sends what has happened to all that watch.
    pub(crate) fn send_lines(&mut self) {
        let now = self.now.get();
        let mut events = Vec::new();
        for (call, open) in &mut self.streams {
            if open.silent.is_some_and(|silent| silent <= now) {
                continue;
            }
            let mut lines = String::new();
            for (version, line) in self.api.since(open.kind, open.version) {
                lines.push_str(line);
                open.version = version;
            }
            if !lines.is_empty() {
                open.last = (now + open.rng.u64(21_000..60_000)).max(open.last + 1);
                events.push((open.last, Event::Lines(*call, lines, false)));
            }
        }
        for (at, event) in events {
            self.push(at, event);
        }
    }

    /// A bookmark, the end, or a break.
    pub(crate) fn stream_tick(&mut self, call: u64) {
        let now = self.now.get();
        let bookmark = self.api.bookmark();
        let Some(open) = self.streams.get_mut(&call) else { return };
        let away = self.conditions.api_away.max(self.conditions.cut_off[open.slot]) > now;
        if open.silent.is_some_and(|silent| silent <= now) {
            return;
        }
        if away {
            open.silent = Some(now);
        } else if now >= open.until || open.breaks.is_some_and(|breaks| breaks <= now) {
            let at = (now + 30_000).max(open.last + 1);
            self.push(at, Event::Lines(call, String::new(), true));
        } else {
            let at = (now + 30_000).max(open.last + 1);
            if open.bookmarks {
                open.last = at;
                self.push(at, Event::Lines(call, bookmark, false));
            }
            self.after(30 * SECOND, Event::StreamTick(call));
        }
    }

    /// Lines arrive, or the end of the stream.
    pub(crate) fn lines(&mut self, call: u64, lines: &str, end: bool) {
        let now = self.now.get();
        let Some(open) = self.streams.get(&call) else { return };
        let place = &self.slots[open.slot];
        if place.paused_until > now {
            self.push(place.paused_until, Event::Lines(call, lines.to_owned(), end));
            return;
        }
        let (slot, thread, process) = (open.slot, open.thread, open.process);
        {
            let mut arrived = lock(&open.arrived);
            arrived.bytes.extend_from_slice(lines.as_bytes());
            if end {
                arrived.end =
                    Some(if open.breaks.is_some_and(|breaks| breaks <= now) { Err(()) } else { Ok(()) });
            }
        }
        self.trace.note(now, &[12, slot as u64, lines.len() as u64], "", || {
            let kinds = lines.lines().map(|line| line.get(..90).unwrap_or(line)).collect::<Vec<_>>();
            format!("r{slot} {:<8} stream {kinds:?} end={end}", ROLES[thread])
        });
        if end {
            self.streams.remove(&call);
        }
        let waits = place.process == process
            && place.replica.as_ref().is_some_and(|replica| replica.threads[thread].waits.is_some());
        if waits {
            self.resume(slot, thread, None);
        }
    }

    /// The head of a watch's answer, with the body that is still to come.
    pub(crate) fn stream_head(&self, call: u64) -> Result<Response, HttpError> {
        let gone = || HttpError::Unanswered("the connection was closed".to_owned());
        let (open, flight) =
            (self.streams.get(&call).ok_or_else(gone)?, self.flights.get(&call).ok_or_else(gone)?);
        let replica = self.slots[flight.slot].replica.as_ref().ok_or_else(gone)?;
        let body = Stream {
            port: Arc::clone(&replica.threads[flight.thread].port),
            until: flight.sender.sent.saturating_add(flight.request.timeout),
            arrived: Arc::clone(&open.arrived),
        };
        let date = true_time(self.now.get()).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        Ok(Response { status: 200, retry_after: None, date: Some(date), body: Box::new(body) })
    }

    /// Whether this call is a watch that has been opened; its reply is a head alone.
    pub(crate) fn streams_for(&self, call: u64) -> bool {
        self.streams.contains_key(&call)
    }

    /// The answer to the opening of a watch.
    pub(crate) fn head() -> Reply {
        Reply { status: 200, body: Vec::new(), retry_after: None }
    }

    /// Forgets the watches of a process that has ended.
    pub(crate) fn close_streams(&mut self, process: u64) {
        self.streams.retain(|_, open| open.process != process);
    }
}

/// Whether a fault leaves a watch as it is: the ones of a stream are its own.
pub(crate) fn harmless(fault: Option<CallFault>) -> Option<CallFault> {
    fault.filter(|fault| !matches!(fault, CallFault::BodyCut | CallFault::RequestDoubled(_)))
}

fn lock(arrived: &Mutex<Arrived>) -> MutexGuard<'_, Arrived> {
    arrived.lock().unwrap_or_else(PoisonError::into_inner)
}
