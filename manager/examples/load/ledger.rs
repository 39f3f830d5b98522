//! What was delivered and answered, and what must be true of it.

use crate::site::Gateway;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A command is not delivered again before this. CONTRACT section 4.
const AGAIN_AFTER: Duration = Duration::from_secs(15);
/// How much later than it was written down a delivery may arrive, on a machine with more work than cores.
const TRANSIT: Duration = Duration::from_secs(2);

/// A delivery: when it arrived, and which life of which gateway made it.
#[derive(Clone, Copy)]
pub(crate) struct Delivery {
    pub(crate) at: Instant,
    pub(crate) gateway: usize,
    pub(crate) life: usize,
}

#[derive(Default)]
struct Command {
    deliveries: Vec<Delivery>,
    /// How often a receipt was answered `recorded: true`.
    recorded: usize,
    /// When a receipt was first answered.
    acknowledged: Option<Instant>,
}

/// All commands that agents have seen, by their identifier.
#[derive(Default)]
pub(crate) struct Ledger(Mutex<HashMap<String, Command>>);

impl Ledger {
    fn commands(&self) -> MutexGuard<'_, HashMap<String, Command>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A command arrived: how often it has.
    pub(crate) fn delivered(&self, command_id: &str, delivery: Delivery) -> usize {
        let mut commands = self.commands();
        let command = commands.entry(command_id.to_owned()).or_default();
        command.deliveries.push(delivery);
        command.deliveries.len()
    }

    /// A receipt was answered.
    pub(crate) fn acknowledged(&self, command_id: &str, recorded: bool) {
        let mut commands = self.commands();
        let command = commands.entry(command_id.to_owned()).or_default();
        command.recorded += usize::from(recorded);
        command.acknowledged.get_or_insert_with(Instant::now);
    }

    /// How many of these commands are acknowledged.
    pub(crate) fn count_acknowledged<'i>(&self, ids: impl Iterator<Item = &'i str>) -> usize {
        let commands = self.commands();
        ids.filter(|id| commands.get(*id).is_some_and(|command| command.acknowledged.is_some())).count()
    }

    /// How many commands arrived and are not acknowledged.
    pub(crate) fn count_open(&self) -> usize {
        self.commands().values().filter(|command| command.acknowledged.is_none()).count()
    }

    /// When a command first arrived.
    pub(crate) fn arrival(&self, command_id: &str) -> Option<Instant> {
        self.commands().get(command_id)?.deliveries.first().map(|delivery| delivery.at)
    }

    /// How many commands arrived more than once.
    pub(crate) fn delivered_again(&self) -> usize {
        self.commands().values().filter(|command| command.deliveries.len() > 1).count()
    }

    /// What is not as it must be.
    pub(crate) fn violations(&self, gateways: &[Gateway]) -> Vec<String> {
        let mut found = Vec::new();
        for (id, command) in self.commands().iter() {
            if command.recorded > 1 {
                found.push(format!("{id}: {} receipts were answered as the first", command.recorded));
            }
            for pair in command.deliveries.windows(2) {
                let [first, second] = pair else { continue };
                let apart = second.at.saturating_duration_since(first.at);
                let stands = !gateways[first.gateway].had_ended(first.life, second.at);
                if stands && apart + TRANSIT < AGAIN_AFTER {
                    found.push(format!("{id}: delivered twice within {apart:?}"));
                }
            }
            let last = command.deliveries.last().map(|delivery| delivery.at);
            if let (Some(last), Some(acknowledged)) = (last, command.acknowledged)
                && last > acknowledged + TRANSIT
            {
                found.push(format!("{id}: delivered after its receipt was answered"));
            }
        }
        found
    }
}
