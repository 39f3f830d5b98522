//! The agent's own certificate: refused by the manager, and about to end.

use crate::gateway::Scripted;
use crate::lab::{BOUND, POD, queue};
use navin_test_support::{AgentOptions, World, until};
use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair};
use ring::digest::{SHA256, digest};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_hours(24);

/// Puts a certificate of this issuer and its key into an identity's folder; the certificate.
fn replace(
    identity: &Path,
    issuer: &Issuer<'_, KeyPair>,
    change: impl FnOnce(&mut CertificateParams),
) -> Certificate {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    change(&mut params);
    let certificate = params.signed_by(&key, issuer).expect("a certificate");
    fs::write(identity.join("tls.crt"), certificate.pem()).expect("tls.crt");
    fs::write(identity.join("tls.key"), key.serialize_pem()).expect("tls.key");
    certificate
}

/// The manager's own authority.
fn managers(world: &World) -> Issuer<'static, KeyPair> {
    let file = |name: &str| fs::read_to_string(world.manager.data().join("tls").join(name)).expect(name);
    let key = KeyPair::from_pem(&file("ca.key")).expect("the authority's key");
    Issuer::from_ca_cert_pem(&file("ca.crt"), key).expect("the authority's certificate")
}

fn somebodys() -> Issuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    Issuer::new(params, KeyPair::generate().expect("a key"))
}

/// rustls/rustls#1707: with TLS 1.3 the refusal comes after the handshake, and passed for a connection.
#[test]
fn a_certificate_that_the_manager_refuses_is_named_so_and_tried_at_a_pace_and_never_online() {
    let ended = |params: &mut CertificateParams| {
        params.not_before = (SystemTime::now() - 9 * DAY).into();
        params.not_after = (SystemTime::now() - DAY).into();
    };
    thread::scope(|scope| {
        for (name, alerts) in
            [("ended", ["CertificateExpired"; 2]), ("foreign", ["UnknownCA", "DecryptError"])]
        {
            scope.spawn(move || {
                let world = World::start(name, &json!({}));
                if name == "ended" {
                    replace(&world.identity_dir, &managers(&world), ended);
                } else {
                    replace(&world.identity_dir, &somebodys(), |_| ());
                }
                let envs = vec![("RUST_LOG".to_owned(), "debug".to_owned())];
                let agent = world.agent_with(AgentOptions { envs, ..world.agent_options(POD) });
                agent.wait_leads(&world.namespace, BOUND);
                let log = || agent.process().stderr_text();
                let failed = |line: &&str| line.contains("poll failed");
                until("a third failure", BOUND, || (log().lines().filter(failed).count() >= 3).then_some(()));
                let log = log();
                for line in log.lines().filter(failed) {
                    assert!(alerts.iter().any(|alert| line.contains(alert)), "{name}: {line}");
                }
                let times: Vec<jiff::Timestamp> = log
                    .lines()
                    .filter(failed)
                    .map(|line| line.split(' ').next().and_then(|time| time.parse().ok()).expect("a time"))
                    .collect();
                let paced = times.is_sorted_by(|one, next| next.duration_since(*one).as_millis() >= 990);
                assert!(paced, "{name}: {times:?}");
                assert!(!log.contains("link=online"), "{name}");
                assert_eq!(world.manager.cluster(world.cluster_id())["agent"]["online"], false, "{name}");
            });
        }
    });
}

/// Who holds `ca.key` alone: in order for TLS, and nobody to the gateway.
#[test]
fn a_certificate_of_the_authority_that_no_identity_has_is_refused_audited_and_never_online() {
    let world = World::start("nobodys", &json!({}));
    let certificate = replace(&world.identity_dir, &managers(&world), |_| ());
    let queued = queue(&world, "inventory.report", &json!({}));
    let agent = world.agent(POD);
    agent.wait_log("poll failed error=\"the gateway answered 403 \\\"identity_revoked\\\"\"", BOUND);
    agent.wait_leads(&world.namespace, BOUND);
    assert_eq!(world.manager.command_status(world.cluster_id(), &queued)["status"], "queued");
    let cluster = world.manager.cluster(world.cluster_id());
    assert_eq!(cluster["agent"]["online"], false, "{cluster}");
    assert!(cluster["agent"]["last_contact_at"].is_null() && cluster["report"].is_null(), "{cluster}");
    assert!(!agent.process().stderr_text().contains("link=online"));
    // It is of no tenant, so that no call shows its entry: a row of the database alone, whose texts stand in a row there.
    let sum = digest(&SHA256, certificate.der());
    let sum = sum.as_ref().iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let entry = format!("certificate:{sum}gateway.callrefusedunknown certificate");
    let written = ["manager.db", "manager.db-wal"].iter().any(|name| {
        let file = fs::read(world.manager.data().join(name)).unwrap_or_default();
        file.windows(entry.len()).any(|bytes| bytes == entry.as_bytes())
    });
    assert!(written, "not in the audit: {entry}");
}

#[test]
fn a_certificate_that_ends_within_thirty_days_is_told_in_the_log_an_event_and_the_report() {
    let scripted = Scripted::start("expiring", &json!({ "report_interval_s": 10 }));
    let end: jiff::Timestamp = (SystemTime::now() + 29 * DAY).try_into().expect("a time");
    replace(&scripted.world.identity_dir, &somebodys(), |params| {
        params.not_after = (SystemTime::now() + 29 * DAY).into();
    });
    let agent = scripted.agent();
    agent.wait_log("the certificate towards the manager ends ", BOUND);
    let day = end.to_string()[..10].to_owned();
    let event = until("an Event", BOUND, || {
        let mut events = scripted.world.namespace.events().into_iter();
        events.find(|event| event["reason"] == "CertificateExpiring")
    });
    assert!(event["message"].as_str().is_some_and(|text| text.contains(&day)), "{event}");
    assert_eq!(event["type"], "Warning");
    let report = until("a second report", BOUND, || scripted.gateway.reports().into_iter().nth(1));
    assert!(report["certificate_not_after"].as_str().is_some_and(|text| text.starts_with(&day)), "{report}");
    let said = agent.count_log("the certificate towards the manager ends");
    assert_eq!(said, 1, "once a day, not with each report");
}
