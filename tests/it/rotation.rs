//! A re-issued identity is taken from the mounted files without a restart; what does not verify is not.

use crate::inbox_lab::{self, answer, id, signed};
use crate::lab::{BOUND, POD, applied, outcome, patch, queue, succeeded, until_spec};
use crate::mount::Mount;
use crate::signer::Signer;
use jiff::Timestamp;
use navin_test_support::{Agent, Identity, World, until};
use serde_json::{Value, json};
use std::fs;

fn mount(world: &World) -> Mount {
    let names = ["manager.pem", "config.json", "ca.crt", "tls.crt", "tls.key"];
    let read =
        |name| (name, fs::read_to_string(world.identity_dir.join(name)).expect("a file of the identity"));
    Mount::new(world.folder().join("mounted"), &names.map(read))
}

fn agent(world: &World, mount: &Mount) -> Agent {
    let mut options = world.agent_options(POD);
    options.identity_dir.clone_from(&mount.folder);
    world.agent_with(options)
}

fn reissue(world: &World, overrides: &Value) -> Identity {
    world.manager.issue_identity(world.cluster_id(), overrides)
}

#[test]
fn a_re_issued_identity_is_taken_without_a_restart_and_what_waited_goes_on() {
    let world = World::start("rotation", &json!({}));
    let mut mount = mount(&world);
    let agent = agent(&world, &mount);
    applied(&world, "before", &json!({}));
    let pid = agent.process().pid();
    // The former is revoked by this: its open poll is cut, and its next calls are refused.
    let issued = reissue(&world, &json!({}));
    mount.swap(|version| issued.write(version));
    let identity = issued.config()["identity_id"].as_str().expect("an identity_id").to_owned();
    agent.wait_log(&format!("identity taken identity={identity}"), BOUND);
    applied(&world, "after", &json!({}));
    assert_eq!(agent.process().pid(), pid);
    assert!(agent.process().is_running());
}

#[test]
fn what_may_not_take_the_place_of_the_running_identity_is_reported_and_the_running_one_kept() {
    let world = World::start("rotation-odd", &json!({}));
    let signer = Signer::of_manager(&world);
    let mut mount = mount(&world);
    let agent = agent(&world, &mount);
    applied(&world, "before", &json!({}));
    let resigned = |text: &str, change: &dyn Fn(&mut Value)| {
        let mut document: Value = serde_json::from_str(text).expect("JSON");
        change(&mut document["payload"]);
        signer.sign(&document["payload"]).to_string()
    };
    let other = rcgen::KeyPair::generate().expect("a key").serialize_pem();
    mount.swap_one("tls.key", |_| other);
    agent.wait_log("tls.key: expected the key of the certificate in tls.crt, found another", BOUND);
    mount.swap_one("config.json", |text| text.replace("\"lease_duration_s\":", "\"lease_duration_s\": 1"));
    agent.wait_log("identity rejected", BOUND);
    let own = fs::read_to_string(world.identity_dir.join("tls.key")).expect("the key");
    let config = fs::read_to_string(world.identity_dir.join("config.json")).expect("config.json");
    mount.swap_one("tls.key", |_| own);
    for (member, value, wanted) in [
        ("cluster_id", "another", "payload.cluster_id: expected"),
        ("tenant_id", "another", "payload.tenant_id: expected"),
        ("namespace", "another", "payload.namespace: expected"),
        ("issued_at", "2020-01-01T00:00:00Z", "payload.issued_at: expected not before"),
    ] {
        mount.swap_one("config.json", |_| resigned(&config, &|payload| payload[member] = json!(value)));
        agent.wait_log(wanted, BOUND);
    }
    // The running one does its work all the while.
    applied(&world, "after", &json!({}));
    until("an Event that says so", BOUND, || {
        world.namespace.events().into_iter().find(|event| event["reason"] == "IdentityRejected")
    });
}

/// Of a value that is half taken, the terms of two replicas would differ from what each writes.
#[test]
fn the_lease_duration_of_a_re_issued_identity_counts_from_the_next_start() {
    let world = World::start("rotation-lease", &json!({ "lease_duration_s": 9 }));
    let mut mount = mount(&world);
    let agent = agent(&world, &mount);
    agent.wait_leads(&world.namespace, BOUND);
    let lease = || world.namespace.lease().expect("a Lease")["spec"].clone();
    let issued = reissue(&world, &json!({ "lease_duration_s": 60 }));
    mount.swap(|version| issued.write(version));
    agent.wait_log("lease_duration_s counts from the next start", BOUND);
    agent.wait_log("identity taken", BOUND);
    let taken = lease();
    let renewed = until("two renewals", BOUND, || {
        let now = lease();
        assert_eq!(now["leaseDurationSeconds"], 9, "{now}");
        let seconds = |lease: &Value| lease["renewTime"].as_str()?.parse::<Timestamp>().ok();
        let since = seconds(&now)?.duration_since(seconds(&taken)?);
        // One each 3 s; of a minute, one each 20 s.
        (since.as_secs() >= 5).then_some(since)
    });
    assert!(renewed.as_secs() < 15, "{renewed:?}");
    assert_eq!(lease()["leaseTransitions"], taken["leaseTransitions"]);
    agent.process().kill9();
    agent.process().start_again();
    until("the next start's duration", BOUND, || (lease()["leaseDurationSeconds"] == 60).then_some(()));
    applied(&world, "after", &json!({}));
}

/// open-cluster-management-io/argocd-pull-integration#222, scitix/siclaw#540: dark after each rotation.
#[test]
fn of_a_pair_of_which_one_half_is_new_the_old_one_is_kept_and_what_waited_goes_over_the_new_one() {
    let world = World::start("rotation-half", &json!({}));
    let mut mount = mount(&world);
    let mut options = inbox_lab::options(&world, POD);
    options.identity_dir.clone_from(&mount.folder);
    let agent = world.agent_with(options);
    agent.wait_log("link=online", BOUND);
    let issued = reissue(&world, &json!({}));
    let old_key = fs::read_to_string(mount.folder.join("tls.key")).expect("the key");
    mount.swap(|version| {
        issued.write(version);
        fs::write(version.join("tls.key"), old_key).expect("the old key");
    });
    agent.wait_log("tls.key: expected the key of the certificate in tls.crt, found another", BOUND);
    // The old identity is revoked: a receipt waits, and so does a command.
    let filed = signed(&world, "inventory.report", &json!({}));
    assert_eq!(answer(&agent, "filed", &filed)["status"], "succeeded");
    let queued = queue(&world, "managedcomponent.apply", &json!({ "name": "c", "spec": {} }));
    agent.wait_log("poll failed error=\"the gateway answered 403 \\\"identity_revoked\\\"\"", BOUND);
    let shown = world.manager.command_status(world.cluster_id(), id(&filed));
    assert!(shown["receipt"].is_null(), "{shown}");
    let (pid, transitions) = (agent.process().pid(), transitions(&world));
    mount.swap(|version| issued.write(version));
    agent.wait_log("identity taken", BOUND);
    succeeded(&outcome(&world, &queued));
    assert_eq!(succeeded(&outcome(&world, id(&filed)))["source"], "inbox");
    assert_eq!((agent.process().pid(), self::transitions(&world)), (pid, transitions));
    assert!(agent.process().is_running());
}

fn transitions(world: &World) -> Value {
    world.namespace.lease().expect("a Lease")["spec"]["leaseTransitions"].clone()
}

/// A key in the form that `openssl genpkey` gives it, and its public half in that of `openssl pkey -pubout`: the example
/// of RFC 8410 section 10.
const NEW_KEY: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
-----END PRIVATE KEY-----
";
const NEW_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=
-----END PUBLIC KEY-----
";

/// docs/MANAGER.md, "When a key is lost".
#[test]
fn a_signing_key_that_is_changed_step_by_step_costs_no_command_and_nothing_that_was_approved() {
    let world = World::start("rotation-key", &json!({}));
    let mut mount = mount(&world);
    let agent = agent(&world, &mount);
    let tls = world.manager.data().join("tls");
    let put = |name: &str, text: &str| {
        fs::write(tls.join(name), text).expect("a file of the manager");
        world.manager.restart();
    };
    let mut take = || {
        let issued = reissue(&world, &json!({}));
        mount.swap(|version| issued.write(version));
        let identity = issued.config()["identity_id"].as_str().expect("an identity_id").to_owned();
        agent.wait_log(&format!("identity taken identity={identity}"), BOUND);
    };
    applied(&world, "approved", &json!({ "by": "the former" }));

    let former = fs::read_to_string(tls.join("manager.pem")).expect("manager.pem");
    put("manager.pem", &(former + NEW_PUBLIC));
    take();
    put("signing.key", NEW_KEY);
    applied(&world, "new", &json!({ "by": "the new" }));
    patch(&world, "approved", &json!({ "spec": { "by": "hand" } }));
    until_spec(&world, "approved", &json!({ "by": "the former" }));

    applied(&world, "approved", &json!({ "by": "the new" }));
    put("manager.pem", NEW_PUBLIC);
    take();
    for name in ["approved", "new"] {
        patch(&world, name, &json!({ "spec": { "by": "hand" } }));
        until_spec(&world, name, &json!({ "by": "the new" }));
    }
    applied(&world, "after", &json!({}));
}
