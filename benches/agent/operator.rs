//! The manager's REST API over one kept connection, for commands that are timed.

use crate::lab::BOUND;
use crate::raw::Raw;
use navin_test_support::World;
use serde_json::{Value, json};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// An operator of the world's tenant.
pub(crate) struct Operator {
    rest: Raw,
    commands: String,
}

impl Operator {
    pub(crate) fn of(world: &World) -> Self {
        let manager = &world.manager;
        let token = manager.run(&["token", "--data", "data", "--tenant", world.tenant_id()]);
        let ca = fs::read_to_string(manager.data().join("tls/ca.crt")).expect("the manager's CA");
        let rest = Raw::connect_to(manager.rest_url(), &ca, token.trim());
        Self { rest, commands: format!("/api/v1/clusters/{}/kubernetes/commands", world.cluster_id()) }
    }

    /// Queues an apply; its identifier.
    pub(crate) fn apply(&mut self, name: &str, spec: &Value) -> String {
        let request = json!({ "operation": "managedcomponent.apply",
            "arguments": { "name": name, "spec": spec } });
        let (status, answer) = self.call("POST", None, request.to_string().as_bytes());
        assert!(status == 200 || status == 201, "{status} {answer}");
        answer["command_id"].as_str().expect("a command_id").to_owned()
    }

    /// Asks again and again until the command has its receipt, which must be of a success.
    pub(crate) fn wait(&mut self, command_id: &str, pause: Duration) {
        let began = Instant::now();
        loop {
            let (status, answer) = self.call("GET", Some(command_id), b"");
            assert_eq!(status, 200, "{answer}");
            if !answer["receipt"].is_null() {
                assert_eq!(answer["status"], "succeeded", "{answer}");
                return;
            }
            assert!(began.elapsed() < BOUND, "no receipt: {answer}");
            thread::sleep(pause);
        }
    }

    /// One call about all commands, or about one. A token that has asked too often in its minute waits: only what is not
    /// timed asks that often.
    fn call(&mut self, method: &str, command_id: Option<&str>, body: &[u8]) -> (u16, Value) {
        let path = command_id.map_or(self.commands.clone(), |id| format!("{}/{id}", self.commands));
        loop {
            let (status, answer) = self.rest.call(method, &path, "application/json", body);
            if status != 429 {
                return (status, serde_json::from_slice(&answer).expect("JSON of the manager"));
            }
            thread::sleep(Duration::from_secs(1));
        }
    }
}
