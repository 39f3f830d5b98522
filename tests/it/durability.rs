//! What the state must not lose or mix up: across deaths, lost answers, and its own size. Each scenario is a
//! public report about another program, named with it.

use crate::gateway::Scripted;
use crate::lab::{
    BOUND, POD, add_finalizer, let_go, live, outcome, queue, record, state, succeeded, until_accepted,
    until_event,
};
use crate::wired::{COMPONENTS, RECEIPTS, STATE, Wired, writes_component};
use navin_test_support::{Agent, Exchange, Fate, Gate, Proxy, Wire, World, until};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A leader whose calls to the API server go over a wire that the scenario holds. The agent ends before the proxy.
fn leading_over_a_proxy(world: &World) -> (Wire, Proxy, Agent) {
    let wire = Wire::new();
    let proxy = Proxy::of_api_server(world.cluster, POD, &wire);
    let mut options = world.agent_options(POD);
    options.kube_api = Some(proxy.url());
    let agent = world.agent_with(options);
    agent.wait_leads(&world.namespace, BOUND);
    (wire, proxy, agent)
}

/// solankiharsh2837/wolverine-db#1: nonces only in memory, and an approval was good again after a restart.
#[test]
fn a_command_that_is_delivered_again_after_a_death_is_not_executed_again() {
    let scripted = Scripted::start("replay", &json!({ "lease_duration_s": 3 }));
    let world = &scripted.world;
    let (wire, _proxy, agent) = leading_over_a_proxy(world);

    // Killed before the write, and after it.
    for (number, after) in [(1, false), (2, true)] {
        let name = format!("c{number}");
        let payload = scripted.signer.apply(&name, number, &json!({ "n": number }));
        let envelope = scripted.signer.sign(&payload);
        let gate = Gate::new();
        let held = gate.clone();
        wire.rule(move |call, reply| {
            let here = call.is("POST", COMPONENTS) && reply.is_some() == after;
            if here { Fate::Hold(held.clone()) } else { Fate::Pass }
        });
        scripted.gateway.deliver(&[&envelope]);
        gate.wait_reached(BOUND);
        agent.process().kill9();
        gate.cut();
        wire.pass_all();
        agent.process().start_again();
        let command_id = payload["command_id"].as_str().expect("a command_id");
        let first = until("its receipt", BOUND, || scripted.gateway.receipts_of(command_id).pop());
        assert_eq!(first["status"], "succeeded", "{first}");
        let again = scripted.answer_to(&envelope);
        assert_eq!(again["reason"], "nonce_replayed", "{again}");
        assert_eq!(again["original"], first);
        assert_eq!(live(world, &name)["metadata"]["generation"], 1);
    }

    // Killed after the receipt, and followed by another replica.
    let payload = scripted.signer.apply("c3", 3, &json!({ "n": 3 }));
    let first = scripted.answer(&payload);
    agent.process().kill9();
    let (other, polls) = (world.agent("agent-b"), scripted.gateway.polls());
    other.wait_leads(&world.namespace, BOUND);
    scripted.gateway.wait_poll(polls);
    let again = scripted.answer(&payload);
    let command_id = payload["command_id"].as_str().expect("a command_id");
    let mut sent = scripted.gateway.receipts_of(command_id);
    sent.retain(|receipt| receipt["recorded"] == true);
    assert!(sent.iter().all(|receipt| *receipt == first), "one outcome: {sent:?}");
    let replayed = until("the refusal", BOUND, || {
        let sent = scripted.gateway.receipts_of(command_id);
        sent.into_iter().find(|receipt| receipt["reason"] == "nonce_replayed")
    });
    assert_eq!(replayed["original"], first, "{again}");
    assert_eq!(live(world, "c3")["metadata"]["generation"], 1);
}

/// estafette/estafette-vulnerability-scanner#3: the state outgrew its object, and nothing could be saved.
#[test]
fn a_state_near_its_limit_leaves_to_the_gateway_what_does_not_fit_and_loses_nothing() {
    let scripted = Scripted::start("near-full", &json!({}));
    let agent = scripted.agent();
    let (world, signer) = (&scripted.world, &scripted.signer);
    let spec = |text: &str| json!({ "text": text.repeat(190 * 1024 / text.len()) });
    let first = [1, 2, 3].map(|sequence| signer.apply(&format!("big-{sequence}"), sequence, &spec("x")));
    for payload in &first {
        let receipt = scripted.answer(payload);
        assert_eq!(receipt["status"], "succeeded", "{receipt}");
    }
    // Two of them wait to be replaced: the envelopes come on top of what is desired.
    for name in ["big-1", "big-2"] {
        add_finalizer(world, name);
        world.cluster.admin().delete(&world.namespace.component_path(name));
    }
    let fits = signer.apply("big-1", 4, &spec("ü"));
    scripted.gateway.deliver(&[&signer.sign(&fits)]);
    until_accepted(world, fits["command_id"].as_str().expect("a command_id"));
    let too_much = signer.apply("big-2", 5, &spec("€"));
    let too_much_id = too_much["command_id"].as_str().expect("a command_id");
    let (envelope, inventory) = (signer.sign(&too_much), signer.inventory(6));
    let reports = scripted.gateway.reports().len();
    scripted.gateway.deliver(&[&envelope, &signer.sign(&inventory)]);
    let report = until("a report that says so", BOUND, || {
        let sent = scripted.gateway.reports();
        sent.into_iter().skip(reports).find(|report| report["state"]["full"] == true)
    });
    let bytes = report["state"]["bytes"].as_u64().expect("a size");
    assert!((700 * 1024..900 * 1024).contains(&bytes), "{bytes}");
    // It is said once, however often the manager delivers what does not fit, and other things with it.
    for payload in &first {
        scripted.gateway.deliver(&[&envelope]);
        assert_eq!(scripted.answer(payload)["reason"], "nonce_replayed");
    }
    assert_eq!(agent.count_log("state full"), 1, "{}", agent.process().stderr_tail());
    until_event(world, "StateFull", 1);
    // What makes room, or needs none, is taken.
    assert_eq!(scripted.answer(&signer.delete("small", 7))["status"], "succeeded");
    assert!(scripted.gateway.receipts_of(too_much_id).is_empty(), "it is left where it is");
    assert_eq!(record(&state(world), too_much_id), None);

    let_go(world, "big-1");
    let_go(world, "big-2");
    let fits_id = fits["command_id"].as_str().expect("a command_id");
    let receipt = until("the receipt of what fitted", BOUND, || scripted.gateway.receipts_of(fits_id).pop());
    assert_eq!(receipt["status"], "succeeded", "{receipt}");
    let receipt = scripted.answer_to(&envelope);
    assert_eq!(receipt["status"], "succeeded", "delivered again, it fits: {receipt}");
    assert_eq!(live(world, "big-2")["spec"], spec("€"));
    assert_eq!(state(world)["commands"].as_object().expect("records").len(), 7, "nothing was dropped");
}

/// argoproj-labs/argocd-agent#715: what was queued was lost with the connection.
#[test]
fn receipts_that_wait_survive_broken_connections_and_a_death_and_arrive_once_each() {
    const COUNT: usize = 20;
    let wired = Wired::start("receipts", &json!({ "lease_duration_s": 3 }));
    let replica = wired.replica(POD);
    wired.wait_effect(0, BOUND, POD, "PUT", STATE);
    wired.wire.rule(|call, reply| match reply {
        None if call.is("POST", RECEIPTS) => Fate::answer(503, "overload"),
        _ => Fate::Pass,
    });
    let commands: Vec<String> = (0..COUNT)
        .map(|n| {
            let arguments = json!({ "name": format!("c{n}"), "spec": { "n": n } });
            queue(&wired.world, "managedcomponent.apply", &arguments)
        })
        .collect();
    let waiting = until("twenty receipts that wait", BOUND, || {
        let records = state(&wired.world)["commands"].as_object().cloned().unwrap_or_default();
        let done: BTreeMap<String, Value> = records
            .values()
            .filter(|record| record["phase"]["done"]["acknowledged"] == false)
            .filter_map(|record| {
                let receipt = record["phase"]["done"]["receipt"].clone();
                Some((receipt["command_id"].as_str()?.to_owned(), receipt))
            })
            .collect();
        (done.len() == COUNT).then_some(done)
    });

    // Broken before the third reaches the manager, after the ninth did, and with a death at the fifteenth.
    let (gate, from) = (Gate::new(), wired.wire.len());
    let (held, mut count) = (gate.clone(), 0);
    wired.wire.rule(move |call, reply| {
        if !call.is("POST", RECEIPTS) {
            return Fate::Pass;
        }
        count += usize::from(reply.is_none());
        match (count, reply) {
            (3, None) | (9, Some(_)) => Fate::Cut,
            (15, Some(_)) => Fate::Hold(held.clone()),
            _ => Fate::Pass,
        }
    });
    gate.wait_reached(BOUND);
    replica.agent.process().kill9();
    gate.cut();
    replica.agent.process().start_again();

    for command_id in &commands {
        assert_eq!(succeeded(&outcome(&wired.world, command_id)), waiting[command_id]);
    }
    until("all to be acknowledged", BOUND, || {
        let records = state(&wired.world)["commands"].as_object().cloned().unwrap_or_default();
        let all = records.values().all(|record| record["phase"]["done"]["acknowledged"] == true);
        (records.len() == COUNT && all).then_some(())
    });
    let sent = wired.wire.since(from).into_iter().filter(|exchange| exchange.call.is("POST", RECEIPTS));
    let taken: Vec<Exchange> = sent.filter(Exchange::took_effect).collect();
    let mut arrived = BTreeSet::new();
    for exchange in &taken {
        let receipt = exchange.call.json();
        let command_id = receipt["command_id"].as_str().expect("a command_id").to_owned();
        // What was delivered on a connection that broke is delivered again at once, and answered so.
        let replayed = receipt["reason"] == "nonce_replayed";
        let recorded = if replayed { &receipt["original"] } else { &receipt };
        assert_eq!(*recorded, waiting[&command_id], "sent again, it is the same");
        arrived.insert(command_id);
    }
    assert_eq!(arrived.len(), COUNT);
    let written = wired.wire.since(0).into_iter();
    let written = written.filter(|exchange| writes_component(exchange) && exchange.took_effect()).count();
    assert_eq!(written, COUNT, "each component was written once");
}

/// What `term` guards: a container that starts again in its pod has the same holder identity, so that without a
/// term that rises its takeover would write the state as it was, which changes no resourceVersion, and a write of
/// the former process that is still on its way would land after it.
#[test]
fn a_state_write_of_the_former_process_does_not_land_after_a_restart_in_the_same_pod() {
    let scripted = Scripted::start("term", &json!({ "lease_duration_s": 3 }));
    let world = &scripted.world;
    let (wire, _proxy, agent) = leading_over_a_proxy(world);
    let holder = agent.holder();

    // The former process finds that the command failed, and is killed with the record of it on the wire.
    let outcome_held = Gate::new();
    let held = outcome_held.clone();
    wire.rule(move |call, reply| match reply {
        None if call.is("POST", COMPONENTS) => Fate::answer(422, "Invalid"),
        None if call.is("PUT", STATE) && call.json().to_string().contains("kubernetes_refused") => {
            Fate::Hold(held.clone())
        }
        _ => Fate::Pass,
    });
    let payload = scripted.signer.apply("ingress", 1, &json!({ "replicas": 2 }));
    scripted.gateway.deliver(&[&scripted.signer.sign(&payload)]);
    outcome_held.wait_reached(BOUND);
    agent.process().kill9();

    // The next one has taken over, and is about to do what the former found to fail.
    let from = wire.len();
    let create_held = Gate::new();
    let held = create_held.clone();
    wire.rule(move |call, reply| {
        if reply.is_none() && call.is("POST", COMPONENTS) { Fate::Hold(held.clone()) } else { Fate::Pass }
    });
    agent.process().start_again();
    create_held.wait_reached(BOUND);
    assert_eq!(agent.holder(), holder);
    assert_eq!(state(world)["holder"], holder);
    outcome_held.pass();
    let late = wire.wait("the former's write to be answered", 0, BOUND, |exchange| {
        exchange.call.number < from
            && exchange.call.json().to_string().contains("kubernetes_refused")
            && exchange.reply.is_some()
    });
    assert_eq!(late.reply.expect("an answer").status, 409, "it does not land");

    create_held.pass();
    let command_id = payload["command_id"].as_str().expect("a command_id");
    let receipt = until("its receipt", BOUND, || scripted.gateway.receipts_of(command_id).pop());
    assert_eq!(receipt["status"], "succeeded", "{receipt}");
    assert_eq!(live(world, "ingress")["spec"], json!({ "replicas": 2 }));
}
