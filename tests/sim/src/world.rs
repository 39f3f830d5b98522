//! The scheduler: one queue of events in virtual time, and what each of them does.

use crate::api::{Api, Schema};
use crate::chance::keyed;
use crate::checker::Checker;
use crate::faults::{Allowed, CallFault, Rates, SECOND, Trouble};
use crate::folder::Pile;
use crate::history::{Sender, Violation};
use crate::host::{Host, Now, true_time};
use crate::identity::identity;
use crate::manager::Manager;
use crate::plan::Plan;
pub(crate) use crate::queue::Event;
use crate::queue::Timed;
use crate::replica::Replica;
use crate::script::Script;
use crate::seasons::Season;
use crate::stats::Stats;
use crate::streams::Open;
use crate::thread::Peer;
use crate::trace::Trace;
use crate::workload::Item;
use navin_cluster_agent::http::Request;
use navin_cluster_agent::identity::Identity;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

/// Most events of one run: more is a loop that makes no progress.
const MOST_EVENTS: u64 = 3_000_000;

/// A call on its way.
pub(crate) struct Flight {
    pub(crate) slot: usize,
    pub(crate) process: u64,
    pub(crate) thread: usize,
    pub(crate) serial: u64,
    pub(crate) peer: Peer,
    pub(crate) request: Request,
    pub(crate) number: u64,
    pub(crate) fault: Option<CallFault>,
    pub(crate) sender: Sender,
    pub(crate) back: u64,
    /// It has had its answer: what lands now is a double.
    pub(crate) answered: bool,
    /// Until when a poll may wait.
    pub(crate) until: Option<u64>,
}

/// What lasts for a while.
#[derive(Default)]
pub(crate) struct Conditions {
    pub(crate) gateway_away: u64,
    pub(crate) gateway_answers: (u16, u64),
    pub(crate) api_away: u64,
    pub(crate) api_answers: (u16, u64),
    pub(crate) cut_off: Vec<u64>,
}

/// A run's parameters beside its seed.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which faults and items may happen.
    pub allowed: Allowed,
    /// Keep the trace in words.
    pub speak: bool,
    /// What happens, in place of what the seed says.
    pub script: Option<Script>,
}

/// How a run ended.
pub struct Outcome {
    /// What was broken, if anything.
    pub violation: Option<Violation>,
    /// What was counted.
    pub stats: Stats,
    /// A number for everything that happened.
    pub hash: u64,
    /// The words of it.
    pub text: String,
    /// The numbers of the faults and items that happened.
    pub happened: Vec<u64>,
}

/// One slot for a replica.
pub(crate) struct Slot {
    pub(crate) host: Arc<Host>,
    pub(crate) replica: Option<Replica>,
    /// The number of its process; unique in the run.
    pub(crate) process: u64,
    pub(crate) paused_until: u64,
    pub(crate) pod: u64,
    /// The inbox of its pod.
    pub(crate) pile: Arc<Pile>,
    /// Until when something may still be in the way of its calls to the API server.
    pub(crate) disturbed: u64,
    /// Calls of each of its threads so far.
    pub(crate) calls: [u64; 8],
}

/// The world of one run.
pub struct World {
    pub(crate) seed: u64,
    pub(crate) options: Options,
    pub(crate) now: Now,
    queue: BinaryHeap<Reverse<Timed>>,
    order: u64,
    pub(crate) api: Api,
    pub(crate) manager: Manager,
    pub(crate) identity: Arc<Identity>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) flights: BTreeMap<u64, Flight>,
    pub(crate) streams: BTreeMap<u64, Open>,
    pub(crate) last_flight: u64,
    pub(crate) processes: u64,
    pub(crate) rates: Rates,
    pub(crate) season: Season,
    pub(crate) script: Option<Script>,
    /// Changes of the inbox are hinted.
    pub(crate) hinted: bool,
    /// The command that was signed for each file.
    pub(crate) filed: BTreeMap<String, usize>,
    pub(crate) conditions: Conditions,
    pub(crate) troubles: Vec<(u64, u64, Trouble)>,
    pub(crate) items: Vec<(u64, u64, Item)>,
    pub(crate) healed: Option<u64>,
    pub(crate) settled_since: Option<u64>,
    pub(crate) checker: Checker,
    pub(crate) stats: Stats,
    pub(crate) trace: Trace,
    pub(crate) happened: Vec<u64>,
    /// The latest moment at which something that was delayed lands.
    pub(crate) last_landing: u64,
    pub(crate) done: bool,
}

/// Runs one seed.
#[must_use]
pub fn run(seed: u64, options: Options) -> Outcome {
    World::new(seed, options).run()
}

impl World {
    fn new(seed: u64, options: Options) -> Self {
        let mut rng = keyed(seed, 0x1_0000);
        let now = Now::default();
        let plan = Plan::of(seed, &mut rng, &options);
        let Plan { replicas, end, .. } = plan;
        let rates = plan.clocks;
        let settings = if options.script.is_some() { 0 } else { [0, 0, 0, 1, 1, 2][rng.usize(0..6)] };
        let schema = Schema { default: rng.u32(0..4) == 0, admission: rng.u32(0..6) == 0 };
        let page = if rng.bool() { 500 } else { 2 };
        let hinted = rng.u32(0..4) != 0;
        let slot = |rate: &f64| Slot {
            host: Arc::new(Host::new(now.clone(), *rate)),
            replica: None,
            process: 0,
            paused_until: 0,
            pod: 0,
            pile: Pile::new(now.clone()),
            disturbed: 0,
            calls: [0; 8],
        };
        let equal_rates = rates.iter().all(|rate| (*rate - 1.0).abs() < f64::EPSILON);
        let mut world = Self {
            seed,
            now: now.clone(),
            queue: BinaryHeap::new(),
            order: 0,
            api: Api::new(schema, page),
            manager: Manager::default(),
            identity: identity(settings),
            slots: rates.iter().map(slot).collect(),
            flights: BTreeMap::new(),
            streams: BTreeMap::new(),
            last_flight: 0,
            processes: 0,
            rates: plan.rates,
            season: plan.season,
            script: options.script.clone(),
            hinted,
            filed: BTreeMap::new(),
            conditions: Conditions { cut_off: vec![0; replicas], ..Conditions::default() },
            troubles: plan.troubles,
            items: plan.items,
            healed: None,
            settled_since: None,
            checker: Checker::new(schema, equal_rates, settings, hinted),
            stats: Stats::default(),
            trace: Trace::new(options.speak),
            happened: Vec::new(),
            last_landing: 0,
            done: false,
            options,
        };
        for slot in 0..replicas {
            let at = if world.script.is_some() { slot as u64 * SECOND } else { rng.u64(0..5 * SECOND) };
            world.push(at, Event::Start(slot));
        }
        for index in 0..world.troubles.len() {
            world.push(world.troubles[index].1, Event::Trouble(index));
        }
        for index in 0..world.items.len() {
            world.push(world.items[index].1, Event::Item(index));
        }
        world.push(end + SECOND, Event::Heal);
        world.push(SECOND, Event::Sample);
        world
    }

    pub(crate) fn push(&mut self, at: u64, event: Event) {
        self.order += 1;
        self.queue.push(Reverse(Timed { at, order: self.order, event }));
    }

    pub(crate) fn after(&mut self, pause: u64, event: Event) {
        self.push(self.now.get().saturating_add(pause), event);
    }

    fn run(mut self) -> Outcome {
        while let Some(Reverse(Timed { at, event, .. })) = self.queue.pop() {
            self.now.set(at);
            self.checker.now = true_time(at);
            self.stats.steps += 1;
            self.dispatch(event);
            self.answers();
            self.check_beliefs();
            if self.stats.steps > MOST_EVENTS {
                self.checker.broken("progress", "the run does not come to an end".to_owned());
            }
            if self.done || self.checker.violation.is_some() {
                break;
            }
        }
        self.stats.apart = u64::from(self.checker.lossy());
        self.stats.virtual_seconds = self.now.get() / SECOND;
        let violation = self.checker.violation.take();
        for slot in 0..self.slots.len() {
            self.kill(slot, None);
        }
        Outcome {
            violation,
            hash: self.trace.hash(),
            text: self.trace.text().to_owned(),
            stats: self.stats,
            happened: self.happened,
        }
    }

    fn dispatch(&mut self, event: Event) {
        match event {
            Event::Start(slot) => self.start(slot),
            Event::Overdue(slot, process) => {
                if self.slots[slot].process == process {
                    self.kill(slot, Some("its ending took too long"));
                }
            }
            Event::Timer { slot, process, thread, serial } => self.timer(slot, process, thread, serial),
            Event::Land(call) => self.land(call),
            Event::Look(call) => self.look(call),
            Event::Answer(call, reply) => self.answer(call, reply),
            Event::Lines(call, lines, end) => self.lines(call, &lines, end),
            Event::StreamTick(call) => self.stream_tick(call),
            Event::Trouble(index) => self.trouble(index),
            Event::Item(index) => self.item(index),
            Event::Heal => self.heal(),
            Event::Sample => self.sample(),
            Event::Settled => self.look_whether_settled(),
        }
    }

    /// No two replicas believe at once that they may act.
    fn check_beliefs(&mut self) {
        let mut count = 0;
        for slot in &self.slots {
            let Some(replica) = &slot.replica else { continue };
            if let Some(tenure) = replica.tenure() {
                count += 1;
                self.checker.leads(slot.process, tenure.since, replica.life.monotonic());
            }
        }
        self.checker.beliefs(count);
    }
}
