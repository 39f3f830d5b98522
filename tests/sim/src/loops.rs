//! The loop of each thread around its `step`, as in the agent; where that waits, the coroutine is suspended.

use crate::thread::Port;
use navin_cluster_agent::board::Board;
use navin_cluster_agent::clock::Clock;
use navin_cluster_agent::elector::Elector;
use navin_cluster_agent::event::Event;
use navin_cluster_agent::gateway::Contact;
use navin_cluster_agent::inbox::{Desk, Inbox};
use navin_cluster_agent::leader::Leader;
use navin_cluster_agent::leadership::Permit;
use navin_cluster_agent::notices::{Crier, Notices};
use navin_cluster_agent::outbox::{Outbox, Queue};
use navin_cluster_agent::poll::{Polled, Poller};
use navin_cluster_agent::reporter::Reporter;
use navin_cluster_agent::watch::Watcher;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::Duration;

/// How long the release waits for the leader thread to end.
const RELEASE_WAIT: Duration = Duration::from_secs(4);
/// Least pause after a poll that failed.
const LEAST: Duration = Duration::from_secs(1);
/// Longest sleep of what waits for an event.
const IDLE: Duration = Duration::from_hours(1);

/// What every loop has.
pub(crate) type Shared = (Arc<Port>, Arc<Permit>);

pub(crate) fn elect(mut elector: Elector, (port, permit): Shared) -> impl FnOnce() + Send {
    move || {
        while !port.dead() && !permit.closing() {
            let pause = elector.step();
            port.wait(pause, || permit.roused());
        }
        let stopped = || permit.await_leader_stopped(Duration::ZERO);
        port.wait(RELEASE_WAIT, stopped);
        if !port.dead() {
            elector.end(stopped());
        }
    }
}

pub(crate) fn lead_on(
    mut leader: Leader,
    events: Receiver<Event>,
    (port, permit): Shared,
) -> impl FnOnce() + Send {
    move || {
        let mut pause = Duration::ZERO;
        while !port.dead() && !permit.closing() {
            let mut first = None;
            port.wait(pause, || {
                first = events.try_recv().ok();
                first.is_some() || permit.closing()
            });
            for event in first.into_iter().chain(events.try_iter()) {
                leader.handle(event);
            }
            if port.dead() {
                return;
            }
            pause = leader.work();
        }
        drop(events);
        permit.leader_has_stopped();
    }
}

pub(crate) fn poll_on(
    mut poller: Poller,
    contact: Arc<Contact>,
    (port, permit): Shared,
) -> impl FnOnce() + Send {
    move || {
        while !port.dead() && !permit.closing() {
            if permit.tenure(port.now()).is_none() {
                port.wait(IDLE, || permit.closing() || permit.tenure(port.now()).is_some());
                continue;
            }
            let sent = port.now();
            match poller.step() {
                Polled::Pause(pause) if poller.backoff.failures() > 0 => {
                    port.sleep(LEAST.min(pause));
                    port.wait(pause.saturating_sub(LEAST), || contact.answered() > Some(sent));
                }
                Polled::Pause(pause) => port.sleep(pause),
                Polled::Commands(envelopes) => {
                    let (taken, wait) = sync_channel(0);
                    let event = Event::Delivered { envelopes, taken };
                    if poller.leader.send(event).is_ok() {
                        port.wait(IDLE, || wait.try_recv() == Err(TryRecvError::Disconnected));
                    }
                }
            }
        }
    }
}

pub(crate) fn send_on(mut outbox: Outbox, queue: Arc<Queue>, (port, _): Shared) -> impl FnOnce() + Send {
    move || {
        while !port.dead() {
            let pause = outbox.step();
            port.wait(pause, || queue.news());
        }
    }
}

pub(crate) fn report_on(
    mut reporter: Reporter,
    board: Arc<Board>,
    (port, _): Shared,
) -> impl FnOnce() + Send {
    move || {
        while !port.dead() {
            let pause = reporter.step();
            port.wait(pause, || board.shown.news());
        }
    }
}

pub(crate) fn watch_on(mut watcher: Watcher, board: Arc<Board>, (port, _): Shared) -> impl FnOnce() + Send {
    move || {
        let leads = || board.shown.lock().reign.is_some();
        while !port.dead() {
            let (led, pause) = (leads(), watcher.step());
            port.wait(pause, || leads() != led);
        }
    }
}

pub(crate) fn cry_on(mut crier: Crier, notices: Arc<Notices>, (port, _): Shared) -> impl FnOnce() + Send {
    move || {
        while !port.dead() {
            let pause = crier.step();
            port.wait(pause, || notices.news());
        }
    }
}

pub(crate) fn file_on(mut inbox: Inbox, desk: Arc<Desk>, (port, _): Shared) -> impl FnOnce() + Send {
    move || {
        while !port.dead() {
            let pause = inbox.step();
            port.wait(pause, || desk.news());
        }
    }
}
