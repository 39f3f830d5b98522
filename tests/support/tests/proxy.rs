//! The proxy, between a client like the agent and a real API server.

use std::time::{Duration, Instant};

use navin_test_support::{Api, Cluster, Door, Fate, Gate, Proxy, Raw, Wire, until};
use serde_json::json;

const BOUND: Duration = Duration::from_secs(10);

/// A namespace's ConfigMaps, over the proxy.
struct Client {
    wire: Wire,
    proxy: Proxy,
    api: Api,
    configmaps: String,
}

fn client(name: &str) -> Client {
    let cluster = Cluster::shared();
    let namespace = cluster.namespace(name);
    let wire = Wire::new();
    let proxy = Proxy::of_api_server(cluster, "client", &wire);
    let token = cluster.service_account_token(&namespace.name, "navin-cluster-agent");
    let api = Api::new(&proxy.url(), cluster.ca_pem(), Some(&token));
    Client { wire, proxy, api, configmaps: format!("/api/v1/namespaces/{}/configmaps", namespace.name) }
}

impl Client {
    fn state(&self) -> String {
        format!("{}/navin-cluster-agent-state", self.configmaps)
    }

    fn create(&self) -> Option<u16> {
        let object = json!({ "metadata": { "name": "navin-cluster-agent-state" }, "data": { "a": "b" } });
        self.api.call("POST", &self.configmaps, Some(&object)).ok().map(|(status, _)| status)
    }

    fn get(&self) -> Option<u16> {
        self.api.call("GET", &self.state(), None).ok().map(|(status, _)| status)
    }
}

#[test]
fn calls_pass_unchanged_and_are_recorded() {
    let client = client("proxy-pass");
    assert_eq!(client.create(), Some(201));
    let (status, object) = client.api.get(&client.state());
    assert_eq!((status, &object["data"]), (200, &json!({ "a": "b" })));
    // Large enough for an answer in chunks.
    let (status, roles) = client.api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
    assert_eq!(status, 200, "{roles}");
    let record = client.wire.since(0);
    assert_eq!(record.len(), 3);
    assert!(record[0].call.is("POST", "/configmaps") && record[0].took_effect() && record[0].given);
    assert_eq!(record[0].call.json()["data"], json!({ "a": "b" }));
    assert_eq!(record[1].reply.as_ref().map(navin_test_support::Reply::json), Some(object));
}

#[test]
fn a_call_that_is_cut_before_is_never_seen_and_one_that_is_cut_after_took_effect() {
    let client = client("proxy-cut");
    client.wire.rule(|_, _| Fate::Cut);
    assert_eq!(client.create(), None);
    client.wire.pass_all();
    assert_eq!(client.get(), Some(404));
    client.wire.rule(|_, reply| if reply.is_some() { Fate::Cut } else { Fate::Pass });
    assert_eq!(client.create(), None);
    client.wire.pass_all();
    assert_eq!(client.get(), Some(200));
    let record = client.wire.since(0);
    assert!(record[0].forwarded.is_none() && !record[0].given);
    assert!(record[2].took_effect() && !record[2].given);
}

#[test]
fn a_call_that_is_held_lands_when_it_is_let_go_also_without_the_one_who_sent_it() {
    let client = client("proxy-hold");
    let gate = Gate::new();
    let held = gate.clone();
    client.wire.rule(move |call, reply| match reply {
        None if call.method == "POST" => Fate::Hold(held.clone()),
        _ => Fate::Pass,
    });
    std::thread::scope(|scope| {
        let create = scope.spawn(|| client.create());
        gate.wait_reached(BOUND);
        assert_eq!(client.get(), Some(404));
        gate.pass();
        assert_eq!(create.join().expect("the request"), Some(201));
    });
}

#[test]
fn an_answer_can_be_the_proxys_own_and_can_come_late() {
    let client = client("proxy-answer");
    client.wire.rule(|_, _| Fate::answer(503, "overload"));
    assert_eq!(client.create(), Some(503));
    assert!(client.wire.since(0).iter().all(|exchange| exchange.call.bearer.is_some()), "whose call it is");
    let page = || Fate::Page { status: 502, kind: "text/html", retry_after: None, body: "<p>".to_owned() };
    client.wire.rule(move |_, _| page());
    assert_eq!(client.create(), Some(502));
    let pause = Duration::from_millis(300);
    client.wire.rule(move |_, reply| if reply.is_none() { Fate::Delay(pause) } else { Fate::Pass });
    let started = Instant::now();
    assert_eq!(client.get(), Some(404));
    assert!(started.elapsed() >= pause);
}

#[test]
fn a_watch_goes_on_while_it_lasts() {
    let client = client("proxy-watch");
    assert_eq!(client.create(), Some(201));
    let components = client.configmaps.replace("/api/v1/", "/apis/platform.navin.ai/v1/");
    let components = components.replace("configmaps", "managedcomponents");
    let object = json!({ "apiVersion": "platform.navin.ai/v1", "kind": "ManagedComponent",
        "metadata": { "name": "a" }, "spec": {} });
    assert_eq!(client.api.post(&components, &object).0, 201);
    let (api, from) = (client.api.clone(), client.wire.len());
    let watch = format!("{components}?watch=1&timeoutSeconds=2");
    let watching = std::thread::spawn(move || api.get(&watch));
    client.wire.wait("the beginning of the answer", from, BOUND, |exchange| exchange.reply.is_some());
    let change = Cluster::shared().admin().patch(&format!("{components}/a"), &json!({ "spec": { "n": 1 } }));
    assert_eq!(change.0, 200);
    assert!(!watching.is_finished(), "it ends when the server ends it");
    let (status, events) = watching.join().expect("the request");
    let events = events.as_str().expect("several lines");
    assert_eq!(status, 200, "{events}");
    assert!(events.contains("ADDED") && events.contains("MODIFIED"), "{events}");
}

#[test]
fn a_proxy_that_ends_breaks_what_is_under_way() {
    let client = client("proxy-end");
    let gate = Gate::new();
    let held = gate.clone();
    client.wire.rule(move |_, _| Fate::Hold(held.clone()));
    let Client { wire, proxy, api, .. } = client;
    let request = std::thread::spawn(move || api.call("GET", "/version", None).is_err());
    gate.wait_reached(BOUND);
    drop(proxy);
    assert!(request.join().expect("the request"), "no answer");
    assert_eq!(wire.len(), 1);
}

#[test]
fn a_door_that_is_closed_or_resets_lets_nobody_in_until_it_is_open_again() {
    let client = client("proxy-door");
    for door in [Door::Closed, Door::Reset, Door::Says(b"HTTP/1.1 400 Bad Request".into(), Duration::ZERO)] {
        client.proxy.door(door.clone());
        assert_eq!(client.get(), None, "{door:?}");
    }
    assert!(client.wire.is_empty(), "no call came so far");
    client.proxy.door(Door::Open);
    assert_eq!(client.get(), Some(404));
}

#[test]
fn what_fell_silent_stays_so_and_a_new_connection_works() {
    let client = client("proxy-silent");
    let gate = Gate::new();
    let held = gate.clone();
    client.wire.rule(move |_, reply| if reply.is_some() { Fate::Hold(held.clone()) } else { Fate::Pass });
    let (api, state) = (client.api.clone(), client.state());
    let waiting = std::thread::spawn(move || api.call("GET", &state, None).is_err());
    gate.wait_reached(BOUND);
    client.proxy.fall_silent();
    client.wire.pass_all();
    gate.pass();
    assert_eq!(client.get(), Some(404), "over a connection of its own");
    assert!(!waiting.is_finished(), "over the connection of before nothing comes");
    client.proxy.reset();
    assert!(waiting.join().expect("the request"), "no answer");
}

#[test]
fn what_is_sent_over_a_connection_that_was_forgotten_is_not_heard() {
    let client = client("proxy-forgets");
    client.proxy.forget_after(Some(Duration::ZERO));
    let (api, state) = (client.api.clone(), client.state());
    let waiting = std::thread::spawn(move || api.call("GET", &state, None).is_err());
    until("its end", BOUND, || {
        client.proxy.reset();
        waiting.is_finished().then_some(())
    });
    assert!(waiting.join().expect("the request"), "no answer");
    assert!(client.wire.is_empty());
    client.proxy.forget_after(None);
    assert_eq!(client.get(), Some(404));
}

#[test]
fn an_answer_can_be_bent_and_a_call_answered_with_any_bytes() {
    let client = client("proxy-bent");
    // Kept, since a client that has a whole answer may send the next request before it sees the end.
    let whole = || Raw { bytes: b"HTTP/1.1 204 \r\n\r\n".into(), keep: true, ..Raw::default() };
    client.wire.rule(move |_, _| Fate::Raw(whole()));
    assert_eq!(client.create(), Some(204));
    client.wire.rule(|_, _| Fate::Bent(|answer| Raw { bytes: answer[..20].to_vec(), ..Raw::default() }));
    assert_eq!(client.create(), None);
    client.wire.pass_all();
    assert_eq!(client.get(), Some(200), "the second took effect");
    let bearer = client.wire.since(0)[0].call.bearer.clone();
    assert!(bearer.is_some_and(|token| token.starts_with("ey")));
}
