//! Configurations: each member, each range, and the phrase that is told.

use super::*;
use crate::rules::vectors;
use serde_json::json;

fn payload() -> Value {
    vectors::load("envelopes.json")["config"]["payload"].clone()
}

fn ring() -> KeyRing {
    KeyRing::from_pem(vectors::load("envelopes.json")["manager_pem"].as_str().unwrap()).unwrap()
}

#[test]
fn a_signed_configuration_opens_and_a_changed_one_does_not() {
    let config = vectors::load("envelopes.json")["config"].clone();
    let opened = Configuration::open(config.to_string().as_bytes(), &ring()).unwrap().into_value();
    assert_eq!(opened.gateway_url.host(), "manager.example");
    assert_eq!(opened.gateway_url.port(), 8462);
    assert_eq!(opened.lease_duration(), Duration::from_secs(15));

    let refused =
        |config: &Value| Configuration::open(config.to_string().as_bytes(), &ring()).unwrap_err().to_string();
    let mut changed = config.clone();
    changed["payload"]["namespace"] = "other".into();
    assert_eq!(refused(&changed), "signature: does not verify");
    let mut stranger = config.clone();
    stranger["key_id"] = "00".repeat(32).into();
    assert_eq!(refused(&stranger), "key_id: not a trusted key of the manager");
    let mut short = config;
    short["payload"]["lease_duration_s"] = 2.into();
    assert_eq!(refused(&short), "payload.lease_duration_s: expected 3 to 300, found 2");
}

#[test]
fn a_command_never_passes_for_a_configuration_nor_the_other_way_round() {
    let vectors = vectors::load("envelopes.json");
    let command = vectors::base64(&vectors["cases"][0]["wire_b64"]);
    let error = Configuration::open(&command, &ring()).unwrap_err();
    assert_eq!(error.to_string(), "payload.type: expected navin.agent-config/v1");
    let config = vectors["config"].to_string();
    assert!(crate::rules::envelope::open_command(config.as_bytes(), &ring(), 604_800).is_err());
}

#[test]
fn members_with_a_default_may_be_left_out_and_no_other() {
    let defaults =
        ["lease_duration_s", "offline_after_s", "poll_wait_s", "report_interval_s", "max_validity_s"];
    let whole = Configuration::from_payload(&payload()).unwrap();
    for name in payload().as_object().unwrap().keys() {
        let mut without = payload();
        without.as_object_mut().unwrap().remove(name);
        let read = Configuration::from_payload(&without);
        if defaults.contains(&name.as_str()) {
            assert_eq!(read, Ok(whole.clone()), "{name}");
        } else {
            assert_eq!(read.unwrap_err().to_string(), format!("payload.{name}: missing"));
        }
        let mut null = payload();
        null[name] = Value::Null;
        assert!(Configuration::from_payload(&null).is_err(), "{name}");
    }
    let mut more = payload();
    more["extra"] = 1.into();
    assert_eq!(Configuration::from_payload(&more).unwrap_err().to_string(), "payload: unknown member");
}

#[test]
fn every_range_includes_its_ends_and_nothing_beyond() {
    for (name, min, max) in [
        ("lease_duration_s", 3, 300),
        ("offline_after_s", 5, 86_400),
        ("poll_wait_s", 1, 30),
        ("report_interval_s", 10, 86_400),
    ] {
        for (number, good) in
            [(json!(min), true), (json!(max), true), (json!(min - 1), false), (json!(max + 1), false)]
        {
            let mut changed = payload();
            changed[name] = number;
            assert_eq!(Configuration::from_payload(&changed).is_ok(), good, "{changed}");
        }
        for other in [json!("15"), json!(15.5), json!(-15), json!([15])] {
            let mut changed = payload();
            changed[name] = other;
            assert!(Configuration::from_payload(&changed).is_err(), "{changed}");
        }
    }
}

#[test]
fn a_poll_waits_at_most_a_third_of_the_time_to_offline() {
    for (wait, offline, effective) in [(30, 120, 30), (30, 60, 20), (30, 5, 1), (1, 5, 1), (10, 120, 10)] {
        let mut changed = payload();
        changed["poll_wait_s"] = wait.into();
        changed["offline_after_s"] = offline.into();
        let configuration = Configuration::from_payload(&changed).unwrap();
        assert_eq!(configuration.poll_wait(), Duration::from_secs(effective));
    }
}

#[test]
fn a_gateway_url_is_a_host_and_perhaps_a_port() {
    for (text, host, port) in [
        ("https://manager.example", "manager.example", 443),
        ("https://manager.example:8462", "manager.example", 8462),
        ("https://MANAGER-1:1", "MANAGER-1", 1),
        ("https://10.0.0.1:65535", "10.0.0.1", 65535),
        ("https://[::1]", "::1", 443),
        ("https://[fd00::1]:8462", "fd00::1", 8462),
    ] {
        let url = GatewayUrl::parse(text).unwrap();
        assert_eq!((url.host(), url.port(), url.as_str()), (host, port, text));
    }
    for bad in [
        "",
        "https://",
        "http://manager.example",
        "HTTPS://manager.example",
        "manager.example",
        "https://manager.example/",
        "https://manager.example/x",
        "https://manager.example?x",
        "https://manager.example#x",
        "https://user@manager.example",
        "https://user:pass@manager.example",
        "https://manager.example:",
        "https://manager.example:0",
        "https://manager.example:08462",
        "https://manager.example:65536",
        "https://manager.example:+1",
        "https://manager.example:1:2",
        "https://:8462",
        "https://manager..example",
        "https://-manager.example",
        "https://manager_1.example",
        "https://manager.example ",
        "https://manager.example\\x",
        "https://münchen.example",
        "https://999.1.1.1",
        "https://1",
        "https://[::1",
        "https://[manager]",
        "https://[::1]x",
        "https://[fe80::1%25eth0]",
        "https://::1",
    ] {
        assert!(GatewayUrl::parse(bad).is_none(), "{bad}");
    }
}
