//! What goes wrong meanwhile.

use crate::commands::{BOUND, NAMES};
use crate::{Soak, identity};
use navin_test_support::until;
use serde_json::json;
use std::fs;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

/// Between two changes by hand: fewer than five of one component in ten minutes, on average.
const DRIFTS: Duration = Duration::from_secs(4);
/// Between two troubles, at most; in a short run as many fit in.
const TROUBLES: Duration = Duration::from_secs(45);
/// How long the manager is away: less than what makes the agent offline.
const AWAY: Duration = Duration::from_secs(25);
/// How long a replica is stopped: longer than the Lease.
const STOPPED: Duration = Duration::from_secs(18);

impl Soak {
    /// Changes and deletes components by hand, until the quiet before the end.
    pub(crate) fn drift(&self) {
        let admin = self.world.cluster.admin();
        // A prime step goes through all names, and meets each in another state every time.
        for number in (0_u64..).step_by(7) {
            if self.left() < self.quiet() {
                return;
            }
            let path = self.world.namespace.component_path(&format!("c{:02}", number % NAMES));
            // One that does not exist stays so.
            if number % 3 == 0 {
                admin.delete(&path);
            } else {
                admin.patch(&path, &json!({ "spec": { "by": "hand", "number": number } }));
            }
            self.drifts.fetch_add(1, Ordering::Relaxed);
            thread::sleep(DRIFTS);
        }
    }

    /// One trouble after another, until the quiet before the end.
    pub(crate) fn make_trouble(&self) {
        let [lasting, other] = &self.agents;
        let pause = TROUBLES.min(self.length / 20);
        let start = || {
            other.process().start_again();
            self.starts.fetch_add(1, Ordering::Relaxed);
        };
        for number in 0_u32.. {
            thread::sleep(pause);
            if self.left() < self.quiet() + pause {
                return;
            }
            self.rotate_tokens();
            match number % 6 {
                0 => {
                    other.process().kill9();
                    start();
                }
                1 => {
                    lasting.process().pause();
                    thread::sleep(STOPPED);
                    lasting.process().resume();
                }
                2 => self.take_the_manager_away(),
                3 => {
                    let _manager = self.manager.lock().unwrap_or_else(PoisonError::into_inner);
                    self.world.reissue_identity(&identity());
                }
                4 => {
                    other.process().terminate();
                    other.process().wait_exit(BOUND);
                    start();
                }
                // Dead until the other leads.
                _ => {
                    other.process().kill9();
                    until("the other to lead", BOUND, || lasting.leads(&self.world.namespace).then_some(()));
                    start();
                }
            }
            self.troubles.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn take_the_manager_away(&self) {
        let _manager = self.manager.lock().unwrap_or_else(PoisonError::into_inner);
        self.world.manager.process().kill9();
        thread::sleep(AWAY);
        self.world.manager.restart();
    }

    fn rotate_tokens(&self) {
        for agent in &self.agents {
            let namespace = &self.world.namespace.name;
            let token = self.world.cluster.service_account_token(namespace, "navin-cluster-agent");
            let temporary = agent.token_file().with_extension("new");
            fs::write(&temporary, token).expect("a token");
            fs::rename(&temporary, agent.token_file()).expect("a token");
        }
    }
}
