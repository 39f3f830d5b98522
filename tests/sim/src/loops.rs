//! The loop of each thread around its `step`, as in the agent's `run`; where that waits, the coroutine is suspended.
//! Of the agent's waiting nothing is left out but what it waits by. The threads of the identity, the heartbeat and the signals
//! are not in the simulation: no seed has seen a change of `Event::Trust`.

use crate::thread::Port;
use navin_cluster_agent::board::Board;
use navin_cluster_agent::clock::Clock;
use navin_cluster_agent::elector::{Elector, RELEASE_WAIT};
use navin_cluster_agent::event::Event;
use navin_cluster_agent::gateway::Contact;
use navin_cluster_agent::inbox::{Desk, Inbox};
use navin_cluster_agent::leader::Leader;
use navin_cluster_agent::leadership::Permit;
use navin_cluster_agent::notices::{Crier, Notices};
use navin_cluster_agent::outbox::{Outbox, Queue};
use navin_cluster_agent::poll::{Polled, Poller};
use navin_cluster_agent::reporter::Reporter;
use navin_cluster_agent::threads::LONGEST_WAIT;
use navin_cluster_agent::watch::Watcher;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::Duration;

/// Longer than anything waits that waits without a limit.
const FOR_EVER: Duration = Duration::from_hours(1);

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
                port.wait(LONGEST_WAIT, || permit.closing() || permit.tenure(port.now()).is_some());
                continue;
            }
            let sent = port.now();
            match poller.step() {
                Polled::Failed(least, more) => {
                    port.sleep(least);
                    port.wait(more.min(LONGEST_WAIT), || contact.answered() > Some(sent));
                }
                Polled::Pause(pause) => port.sleep(pause),
                Polled::Commands(envelopes) => {
                    let (taken, wait) = sync_channel(0);
                    let event = Event::Delivered { envelopes, taken };
                    if poller.leader.send(event).is_ok() {
                        port.wait(FOR_EVER, || wait.try_recv() == Err(TryRecvError::Disconnected));
                    }
                }
            }
        }
    }
}

pub(crate) fn send_on(mut outbox: Outbox, queue: Arc<Queue>, (port, _): Shared) -> impl FnOnce() + Send {
    move || until_ended(&port, || outbox.step(), || queue.news())
}

pub(crate) fn report_on(
    mut reporter: Reporter,
    board: Arc<Board>,
    (port, _): Shared,
) -> impl FnOnce() + Send {
    move || until_ended(&port, || reporter.step(), || board.shown.news())
}

pub(crate) fn cry_on(mut crier: Crier, notices: Arc<Notices>, (port, _): Shared) -> impl FnOnce() + Send {
    move || until_ended(&port, || crier.step(), || notices.news())
}

pub(crate) fn file_on(mut inbox: Inbox, desk: Arc<Desk>, (port, _): Shared) -> impl FnOnce() + Send {
    move || until_ended(&port, || inbox.step(), || desk.news())
}

/// Of what waits for news and ends with the process.
fn until_ended(port: &Port, mut step: impl FnMut() -> Duration, news: impl Fn() -> bool) {
    while !port.dead() {
        let pause = step();
        port.wait(pause.min(LONGEST_WAIT), &news);
    }
}

pub(crate) fn watch_on(mut watcher: Watcher, board: Arc<Board>, (port, _): Shared) -> impl FnOnce() + Send {
    move || {
        let reign = || board.shown.lock().reign;
        while !port.dead() {
            let (before, pause) = (reign(), watcher.step());
            port.wait(pause.min(LONGEST_WAIT), || reign() != before);
        }
    }
}
