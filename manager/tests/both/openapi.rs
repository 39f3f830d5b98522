//! Every call that `/openapi.json` describes, as described: with what it takes, with what it does not,
//! without a token, and with another tenant's.

use super::walk::{CLUSTER, Call, Walk, bad_bodies};
use crate::support::{Folder, served};
use serde_json::{Map, Value, json};

#[test]
fn every_call_takes_what_is_described_and_answers_as_described() {
    let folder = Folder::new("walk-valid");
    let token = folder.token("acme");
    let walk = Walk::start(&folder, &token);
    for operation in walk.operations() {
        let call = walk.valid(&operation);
        let answer = walk.send(&token, &operation, &call);
        assert!(answer.status < 300, "{} {}: {answer:?}", operation.method, operation.path);
        walk.check(&operation, &call, &answer);
    }
}

#[test]
fn every_call_refuses_what_is_not_described_as_described() {
    let folder = Folder::new("walk-bad");
    let token = folder.token("acme");
    let walk = Walk::start(&folder, &token);
    for operation in walk.operations() {
        let good = walk.valid(&operation);
        let mut calls: Vec<Call> = bad_bodies(&walk.document, &operation)
            .into_iter()
            .map(|body| Call { body, ..good.clone() })
            .collect();
        for parameter in &operation.parameters {
            let name = parameter["name"].as_str().unwrap();
            for bad in
                ["", "%00", "%ff", "..", "A", "-1", "0", "1001", "1e3", "%E2%82%AC", "x'--", &"a".repeat(600)]
            {
                let mut call = good.clone();
                if parameter["in"] == "query" {
                    call.query.retain(|(known, _)| known != name);
                    call.query.push((name.to_owned(), bad.to_owned()));
                } else {
                    let of = if name == "cluster_id" { CLUSTER } else { &walk.command_id };
                    call.path = call.path.replace(of, bad);
                    if bad.is_empty() || bad == ".." {
                        continue;
                    }
                }
                calls.push(call);
            }
            if parameter["in"] == "query" {
                let twice = vec![(name.to_owned(), "1".to_owned()); 2];
                calls.push(Call { query: twice, ..good.clone() });
            }
        }
        for call in calls {
            let answer = walk.send(&token, &operation, &call);
            let told: String = String::from_utf8_lossy(&call.body).chars().take(300).collect();
            assert!(
                (400..500).contains(&answer.status),
                "{} {} {:?} {told}: {answer:?}",
                operation.method,
                call.path,
                call.query
            );
            walk.check(&operation, &call, &answer);
        }
    }
}

#[test]
fn without_a_good_token_every_call_is_refused_but_those_that_need_none() {
    let folder = Folder::new("walk-tokenless");
    let token = folder.token("acme");
    let walk = Walk::start(&folder, &token);
    let listed = String::from_utf8(folder.run(&["token", "list"]).stdout).unwrap();
    assert!(listed.starts_with("TOKEN ") && listed.contains("acme") && !listed.contains(&token), "{listed}");
    let listed: Value = serde_json::from_slice(&folder.run(&["token", "list", "-o", "json"]).stdout).unwrap();
    let id = listed["tokens"][0]["token_id"].as_str().unwrap().to_owned();
    assert!(folder.run(&["token", "revoke", &id]).status.success());
    assert!(!folder.run(&["token", "revoke", &id]).status.success(), "revoked twice");
    for operation in walk.operations() {
        let public = operation.described["security"] == json!([]);
        for token in ["", "navin_wrong", &token] {
            let call = walk.valid(&operation);
            let answer = walk.send(token, &operation, &call);
            assert_eq!(
                answer.status,
                if public { 200 } else { 401 },
                "{} {}",
                operation.method,
                operation.path
            );
            walk.check(&operation, &call, &answer);
        }
    }
    let audited = walk.manager.audit(&folder.token("acme"));
    assert!(audited.contains(&format!("token.revoke done {id} ")), "{audited:?}");
    assert!(audited.contains(&"rest.get refused /api/v1/audit revoked token".to_owned()), "{audited:?}");
}

#[test]
fn another_tenants_token_sees_nothing_of_a_cluster_in_any_call() {
    let folder = Folder::new("walk-foreign");
    let (token, foreign) = (folder.token("acme"), folder.token("rival"));
    let walk = Walk::start(&folder, &token);
    let before = walk.manager.get(&token, &format!("/api/v1/clusters/{CLUSTER}")).expect(200);
    for operation in walk.operations() {
        let call = walk.valid(&operation);
        let answer = walk.send(&foreign, &operation, &call);
        walk.check(&operation, &call, &answer);
        if operation.path.contains("{cluster_id}") {
            assert_eq!(answer.status, 404, "{} {}", operation.method, operation.path);
        }
        if operation.id != "audit" {
            // Its own refused calls are in its audit, by their paths.
            assert!(!answer.body.to_string().contains(CLUSTER), "{} {}", operation.method, operation.path);
        }
    }
    for entry in walk.manager.audit(&foreign) {
        assert!(!entry.contains(CLUSTER) || entry.ends_with(" 404"), "{entry}");
    }
    let after = walk.manager.get(&token, &format!("/api/v1/clusters/{CLUSTER}")).expect(200);
    let unchanging = |cluster: &Value| -> Map<String, Value> {
        cluster.as_object().unwrap().clone().into_iter().filter(|(name, _)| name != "agent").collect()
    };
    assert_eq!(unchanging(&before), unchanging(&after));
}

#[test]
fn lists_are_read_page_by_page() {
    let (_folder, token, manager) = served("pages");
    for number in 0..5 {
        let body = json!({ "cluster_id": format!("c{number}"), "namespace": "navin" });
        manager.post(&token, "/api/v1/clusters", &body).expect(201);
        manager.queue(&token, "c0");
    }
    for (path, name, key, count) in [
        ("/api/v1/clusters", "clusters", "cluster_id", 5),
        ("/api/v1/clusters/c0/kubernetes/commands", "commands", "command_id", 5),
        ("/api/v1/audit", "entries", "audit_id", 11),
    ] {
        let whole = manager.get(&token, path).expect(200);
        let keys = |page: &Value| -> Vec<String> {
            page[name].as_array().unwrap().iter().map(|row| row[key].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!((keys(&whole).len(), &whole["continue"]), (count, &json!(null)), "{path}");
        let (mut found, mut next) = (Vec::new(), String::new());
        loop {
            let page = manager.get(&token, &format!("{path}?limit=2{next}")).expect(200);
            found.extend(keys(&page));
            match page["continue"].as_str() {
                Some(text) => next = format!("&continue={text}"),
                None => break,
            }
        }
        assert_eq!(found, keys(&whole), "{path}");
    }
}

#[test]
fn metrics_are_what_the_agents_report() {
    let folder = Folder::new("metrics");
    let token = folder.token("acme");
    let walk = Walk::start(&folder, &token);
    let metrics = walk.manager.get(&token, "/metrics").expect(200);
    let metrics = metrics.as_str().unwrap();
    let lines = [
        "navin_agent_online{cluster=\"walked-cluster\"} 1",
        "navin_commands{cluster=\"walked-cluster\",status=\"succeeded\"} 1",
        "navin_receipts_total{cluster=\"walked-cluster\"} 1",
        "navin_report_age_seconds{cluster=\"walked-cluster\"} ",
        "navin_certificate_days_left{cluster=\"walked-cluster\"} 36",
        "navin_agent_executed_total{cluster=\"walked-cluster\"} 3",
        "navin_agent_refused_total{cluster=\"walked-cluster\",reason=\"expired\"} 1",
        "navin_agent_drift_repaired_total{cluster=\"walked-cluster\"} 2",
        "navin_agent_offline_periods_total{cluster=\"walked-cluster\"} 1",
        "navin_agent_receipts_waiting{cluster=\"walked-cluster\"} 4",
        "navin_agent_state_bytes{cluster=\"walked-cluster\"} 9",
        "navin_agent_clock_offset_seconds{cluster=\"walked-cluster\"} 1.5",
    ];
    for line in lines {
        assert!(metrics.contains(&format!("\n{line}")), "{line}: {metrics}");
    }
    let described = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let shown = lines.iter().filter_map(|line| line.split('{').next());
    assert!(described.eq(shown), "each metric has its line here: {metrics}");
}
