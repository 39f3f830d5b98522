//! Processes and their threads: started, gone on with, ended.

use crate::chance::{keyed, mix};
use crate::faults::SECOND;
use crate::folder::Pile;
use crate::replica::{Place, ROLES, Replica, pod_uid};
use crate::thread::{Answer, Ask};
use crate::world::{Event, World};
use navin_cluster_agent::http::HttpError;

impl World {
    pub(crate) fn start(&mut self, slot: usize) {
        if self.slots[slot].replica.is_some() {
            return;
        }
        self.processes += 1;
        let process = self.processes;
        let seed = mix(self.seed, 0x5_0000 + process);
        let place = &mut self.slots[slot];
        place.process = process;
        place.paused_until = 0;
        let pod = format!("agent-{slot}-{}", place.pod);
        let uid = pod_uid(slot as u64 * 1_000 + place.pod);
        let at = Place { host: &place.host, pile: &place.pile, hinted: self.hinted };
        let replica = Replica::start(&at, &self.identity, &pod, &uid, seed);
        self.checker.known.entry(process).or_default().disturbed = place.disturbed > self.now.get();
        let threads = replica.threads.len();
        place.replica = Some(replica);
        self.trace
            .note(self.now.get(), &[1, slot as u64, process], "", || format!("r{slot} starts as {pod}"));
        for thread in 0..threads {
            self.resume(slot, thread, None);
        }
    }

    /// Lets a thread go on, with the answer of its call, until it asks for something.
    pub(crate) fn resume(&mut self, slot: usize, thread: usize, answer: Option<Answer>) {
        self.go_on(slot, thread, answer);
        self.wake_others(slot, thread);
        self.end_if_stopped(slot);
    }

    /// True where the thread did something new.
    fn go_on(&mut self, slot: usize, thread: usize, answer: Option<Answer>) -> bool {
        crate::speech::set(self.now.get(), slot, ROLES[thread], self.trace.speaks());
        let place = &mut self.slots[slot];
        let Some(replica) = &mut place.replica else { return false };
        let life = std::sync::Arc::clone(&replica.life);
        let it = &mut replica.threads[thread];
        if it.ended() {
            return false;
        }
        if let Some(answer) = answer {
            it.port.answer(answer);
        }
        let ask = it.run();
        for line in crate::speech::take() {
            self.trace.note(self.now.get(), &[], "", || line);
        }
        let process = place.process;
        match ask {
            None => true,
            Some(Ask::Wait(until)) if it.waits == Some(until) => false,
            Some(ask @ (Ask::Wait(until) | Ask::Sleep(until))) => {
                it.serial += 1;
                it.waits = matches!(ask, Ask::Wait(_)).then_some(until);
                let serial = it.serial;
                let at = (life.born + life.host.true_length(until)).max(self.now.get() + 1);
                self.push(at, Event::Timer { slot, process, thread, serial });
                true
            }
            Some(Ask::Call(peer, request)) => {
                it.serial += 1;
                it.waits = None;
                let serial = it.serial;
                let limit = life.host.true_length(request.timeout);
                self.after(limit, Event::Timer { slot, process, thread, serial });
                self.call(slot, thread, serial, peer, request);
                true
            }
        }
    }

    /// What one thread did may be what others of its process wait for.
    fn wake_others(&mut self, slot: usize, ran: usize) {
        let mut last = ran;
        let mut thread = (ran + 1) % ROLES.len();
        while thread != last {
            let waits = |world: &Self| {
                let replica = world.slots[slot].replica.as_ref();
                replica.is_some_and(|replica| replica.threads.get(thread).is_some_and(|t| t.waits.is_some()))
            };
            if waits(self) && self.go_on(slot, thread, None) {
                last = thread;
            }
            thread = (thread + 1) % ROLES.len();
        }
    }

    /// A process whose lease thread has ended in order has ended.
    fn end_if_stopped(&mut self, slot: usize) {
        let replica = self.slots[slot].replica.as_ref();
        if replica.is_some_and(|replica| replica.permit.closing() && replica.threads[0].ended()) {
            self.kill(slot, Some("ends in order"));
        }
    }

    pub(crate) fn timer(&mut self, slot: usize, process: u64, thread: usize, serial: u64) {
        let now = self.now.get();
        let place = &mut self.slots[slot];
        let paused = place.paused_until;
        let Some(replica) = place.replica.as_mut().filter(|_| place.process == process) else { return };
        let it = &mut replica.threads[thread];
        if it.serial != serial {
            return;
        }
        if paused > now {
            self.push(paused, Event::Timer { slot, process, thread, serial });
            return;
        }
        it.waits = None;
        // For a call this is its time limit; a thread that sleeps takes no answer.
        let answer = Err(HttpError::Unanswered("the time is over".to_owned()));
        self.resume(slot, thread, Some(answer));
    }

    /// Ends a process, whatever it does; it comes back while the run goes on.
    pub(crate) fn kill(&mut self, slot: usize, why: Option<&str>) {
        let Some(mut replica) = self.slots[slot].replica.take() else { return };
        replica.life.end();
        replica.permit.close();
        crate::speech::set(0, 0, "", false);
        for thread in &mut replica.threads {
            let _ends = thread.run();
            assert!(thread.ended(), "a thread of a process that has ended goes on");
        }
        self.close_streams(self.slots[slot].process);
        let Some(why) = why else { return };
        let now = self.now.get();
        self.trace.note(now, &[7, slot as u64], "", || format!("r{slot} {why}"));
        self.stats.crashes += u64::from(why.starts_with("crash") || why.starts_with("killed"));
        let mut rng = keyed(self.seed, mix(0x6_0000, self.slots[slot].process));
        if rng.bool() {
            self.slots[slot].pod += 1;
            self.slots[slot].pile = Pile::new(self.now.clone());
        }
        let most = [1, 5, 30][rng.usize(0..3)];
        self.after(rng.u64(SECOND / 5..most * SECOND), Event::Start(slot));
    }
}
