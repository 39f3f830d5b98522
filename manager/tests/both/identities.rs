//! Identities: issued once, revoked by the next.

use crate::support::{Agent, Folder, id, receipt, served, until, without_certificate};
use serde_json::json;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn a_new_identity_revokes_the_former_and_cuts_its_open_poll() {
    let (_folder, token, manager) = served("revoked");
    let (former, other) = (manager.cluster(&token, "prod"), manager.cluster(&token, "test"));
    let waiting = former.clone();
    let poll = thread::spawn(move || waiting.poll(30));
    manager.until_online(&token, "prod");
    // On another connection, which stays, and on which who calls is known.
    former.poll(0).expect(200);
    let heard = |cluster: &str| {
        manager.get(&token, &format!("/api/v1/clusters/{cluster}")).expect(200)["agent"]["last_contact_at"]
            .clone()
    };
    // What was heard until now is written together: when the other's is, so is ours.
    let all_is_written = || {
        let before = heard("test");
        until("what was heard is written", || {
            other.poll(0).expect(200);
            (heard("test") != before).then_some(())
        });
    };
    let started = Instant::now();
    let agent = manager.identity(&token, "prod");
    assert_eq!(poll.join().unwrap().expect(403)["error"], "identity_revoked");
    assert!(started.elapsed() < Duration::from_secs(10));
    let queued = manager.queue(&token, "prod");
    all_is_written();
    let last_heard = heard("prod");
    let refused = former.poll(0);
    assert_eq!((refused.status, refused.connection.as_deref()), (403, Some("close")), "{refused:?}");
    assert_eq!(refused.body["error"], "identity_revoked");
    all_is_written();
    assert_eq!(heard("prod"), last_heard, "a revoked identity keeps its cluster online");
    assert_eq!(former.receipt(&receipt(&queued, "succeeded", true)).expect(403)["error"], "identity_revoked");
    let former_id = former.config["payload"]["identity_id"].as_str().unwrap();
    assert!(manager.audit(&token).contains(&format!("gateway.call refused {former_id} revoked identity")));
    assert_eq!(agent.polled(0), [id(&queued)]);
}

#[test]
fn only_certificates_of_the_authority_get_in() {
    let (folder, elsewhere) = (Folder::new("own-ca"), Folder::new("other-ca"));
    let (token, other_token) = (folder.token("acme"), elsewhere.token("acme"));
    let (manager, other) = (folder.serve(), elsewhere.serve());
    let path = "/v1/cluster-agent/commands?wait_s=0";
    let ca = folder.ca();
    without_certificate(&ca, &format!("{}{path}", manager.gateway)).expect_err("no certificate");
    other.post(&other_token, "/api/v1/clusters", &json!({ "cluster_id": "prod", "namespace": "navin" }));
    let body = json!({ "gateway_url": manager.gateway });
    let mut issued = other.post(&other_token, "/api/v1/clusters/prod/kubernetes/agent", &body).expect(201);
    issued["ca_crt"] = json!(ca);
    let stranger = Agent::new(&issued, &manager.gateway);
    stranger.try_poll(0).expect_err("a certificate of another authority");
    manager.cluster(&token, "prod").poll(0).expect(200);
}

#[test]
fn an_identity_is_all_that_the_secret_holds() {
    let (_folder, token, manager) = served("identity");
    manager.post(&token, "/api/v1/clusters", &json!({ "cluster_id": "prod", "namespace": "navin" }));
    let path = "/api/v1/clusters/prod/kubernetes/agent";
    let body = json!({ "gateway_url": "https://manager.example:8462", "poll_wait_s": 5 });
    let issued = manager.post(&token, path, &body).expect(201);
    let payload = &issued["config"]["payload"];
    assert_eq!((&payload["poll_wait_s"], &payload["namespace"]), (&json!(5), &json!("navin")));
    let secret = issued["secret_yaml"].as_str().unwrap();
    assert!(secret.contains("  name: navin-cluster-agent-identity\n  namespace: \"navin\"\n"));
    for name in ["manager_pem", "tls_crt", "tls_key", "ca_crt"] {
        for line in issued[name].as_str().unwrap().lines() {
            assert!(secret.contains(&format!("    {line}\n")), "{name}: {line}");
        }
    }
    let shown = manager.get(&token, "/api/v1/clusters/prod").expect(200);
    assert_eq!(shown["identity_id"], payload["identity_id"]);
    for refused in [
        json!({}),
        json!({ "gateway_url": "http://manager.example" }),
        json!({ "gateway_url": "https://manager.example/path" }),
        json!({ "gateway_url": "https://manager.example", "poll_wait_s": 31 }),
        json!({ "gateway_url": "https://manager.example", "tenant_id": "rival" }),
    ] {
        manager.post(&token, path, &refused).expect(400);
    }
    let unchanged = manager.get(&token, "/api/v1/clusters/prod").expect(200);
    assert_eq!(unchanged["identity_id"], payload["identity_id"], "a refused one revokes nothing");
}

/// docs/MANAGER.md, "When a key is lost".
#[test]
fn keys_that_are_moved_away_while_no_manager_runs_are_made_anew_and_the_next_identity_trusts_them() {
    let (folder, token, manager) = served("new-keys");
    let mut agent = manager.cluster(&token, "prod");
    manager.kill();
    let away = folder.join("away");
    fs::create_dir(&away).unwrap();
    for names in [&["ca.crt", "ca.key", "server.crt", "server.key"][..], &["manager.pem", "signing.key"]] {
        for name in names {
            fs::rename(folder.join("data/tls").join(name), away.join(name)).unwrap();
        }
        let manager = folder.serve();
        for name in names {
            let path = folder.join("data/tls").join(name);
            assert_ne!(fs::read(&path).unwrap(), fs::read(away.join(name)).unwrap(), "{name}");
        }
        if names.contains(&"ca.key") {
            agent.at(&manager).try_poll(0).expect_err("a certificate of the former authority");
        }
        let trusted = agent.config["key_id"].clone();
        agent = manager.identity(&token, "prod");
        let queued = manager.queue(&token, "prod");
        assert_eq!(agent.polled(0), [id(&queued)]);
        agent.receipt(&receipt(&queued, "succeeded", true)).expect(200);
        assert_eq!(queued["envelope"]["key_id"], agent.config["key_id"]);
        assert_eq!(trusted != agent.config["key_id"], names.contains(&"signing.key"));
        manager.kill();
    }
}
