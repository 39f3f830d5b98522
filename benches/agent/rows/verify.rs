//! What it costs to trust an envelope: all that the agent does for each one before it acts, beside one Ed25519
//! verification of the same bytes.

use crate::Plan;
use crate::lab::Lab;
use crate::measure::thread_cpu_ms;
use crate::table::{Goal, Row, Sample};
use crate::units::figure;
use navin_cluster_agent::rules::config::Configuration;
use navin_cluster_agent::rules::envelope::KeyRing;
use navin_cluster_agent::rules::json::canonical;
use navin_cluster_agent::rules::link::Link;
use navin_cluster_agent::rules::names::parse_time;
use navin_cluster_agent::rules::state::State;
use navin_cluster_agent::rules::verdict::{Trust, Verdict, judge};
use navin_test_support::SigningKey;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::{Value, json};
use std::hint::black_box;

/// What a command usually has, and the most that it may.
const SMALL: usize = 2 * 1024;
const LARGE: usize = 256 * 1024;
/// Its key, its signature, and the names of its members, in bytes.
const AROUND: usize = 256;
/// Bytes that one measurement verifies.
const AT_ONCE: usize = 8 << 20;
const NOON: &str = "2026-11-30T12:00:00Z";

pub(crate) fn rows(_: &Lab, plan: &Plan) -> Vec<Row> {
    let small = Signed::of(SMALL, setting);
    let (texts, settings) = (Signed::of(LARGE, text), Signed::of(LARGE, setting));
    let (mut ours, mut bare) = ([vec![], vec![], vec![]], [vec![], vec![]]);
    for _ in 0..plan.times(9) {
        ours[0].push(small.each_us(Signed::judge));
        ours[1].push(texts.megabytes_a_second(Signed::judge));
        ours[2].push(settings.megabytes_a_second(Signed::judge));
        bare[0].push(small.each_us(Signed::ring_alone));
        bare[1].push(texts.megabytes_a_second(Signed::ring_alone));
    }
    let [ours_small, ours_texts, ours_settings] = ours.map(Sample::of);
    let [bare_small, bare_large] = bare.map(Sample::of);
    let row = |what: &str, ours: Sample, bare: &Sample, goals: Vec<Goal>| Row {
        what: what.to_owned(),
        ours,
        limit: Some(("ring's Ed25519 alone", bare.clone())),
        goals,
        ..Row::default()
    };
    let large = "verify envelopes of 256 kB, MB a second of CPU:";
    vec![
        row("verify one envelope of 2 kB: µs of CPU", ours_small, &bare_small, vec![Goal::TimesLimit(3.0)]),
        row(&format!("{large} texts of 4 kB"), ours_texts, &bare_large, vec![Goal::AtLeast(100.0)]),
        row(&format!("{large} 2,000 objects"), ours_settings, &bare_large, vec![]),
    ]
}

/// The name of [`inner`].
pub(crate) const INNER: &str = "verify-loop";

/// For a counter of instructions: verifies the small one so many times, and nothing else that grows with that.
pub(crate) fn inner(arguments: &[String]) {
    let times: u32 = arguments.first().and_then(|times| times.parse().ok()).expect("how many times");
    let signed = Signed::of(SMALL, setting);
    (0..times).for_each(|_| signed.judge());
}

/// One apply command, signed, and all that it is judged by.
struct Signed {
    wire: Vec<u8>,
    /// What was signed.
    message: String,
    signature: Vec<u8>,
    key: Vec<u8>,
    trust: Trust,
    state: State,
}

impl Signed {
    /// Of at most so many bytes on the wire, and not much less.
    fn of(bytes: usize, setting: fn(usize) -> Value) -> Self {
        let signer = SigningKey::of_seed(7);
        let (mut payload, mut settings, mut length) = (payload(), vec![], 0);
        loop {
            let setting = setting(settings.len());
            length += setting.to_string().len() + 1;
            if length > bytes - payload.to_string().len() - AROUND {
                break;
            }
            settings.push(setting);
        }
        payload["arguments"]["spec"]["settings"] = settings.into();
        let message = canonical(&payload);
        let signature = signer.signature(&message);
        let wire = envelope(&signer, &payload);
        assert!((bytes * 9 / 10..=bytes).contains(&wire.len()), "{} bytes", wire.len());
        let ring = KeyRing::from_pem(&signer.public_pem()).expect("a key");
        let config = Configuration::open(&envelope(&signer, &configuration()), &ring)
            .expect("a configuration")
            .into_value();
        let key = signer.public().to_vec();
        Self { wire, message, signature, key, trust: Trust { ring, config }, state: State::new(1, "bench_1") }
    }

    fn judge(&self) {
        let now = parse_time(NOON).expect("a time");
        let verdict = judge(black_box(&self.wire), &self.trust, &self.state, Link::Online, now);
        assert!(matches!(black_box(verdict), Verdict::Run(_)), "it is in order");
    }

    fn ring_alone(&self) {
        let key = UnparsedPublicKey::new(&ED25519, &self.key);
        black_box(key.verify(black_box(self.message.as_bytes()), &self.signature)).expect("a signature");
    }

    fn each_us(&self, act: fn(&Self)) -> f64 {
        let times = u32::try_from(AT_ONCE / self.wire.len()).expect("not so many");
        act(self);
        let before = thread_cpu_ms();
        (0..times).for_each(|_| act(self));
        (thread_cpu_ms() - before) * 1_000.0 / f64::from(times)
    }

    fn megabytes_a_second(&self, act: fn(&Self)) -> f64 {
        figure(self.wire.len()) / self.each_us(act)
    }
}

fn payload() -> Value {
    json!({
        "type": "navin.command/v1", "command_id": "c5cefdd8-0273-45c9-821e-7a607108e022",
        "tenant_id": "acme", "target": { "kind": "cluster", "id": "prod-eu-1" },
        "operation": "managedcomponent.apply",
        "arguments": { "name": "checkout", "spec": {
            "image": "registry.example/acme/checkout@sha256:0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a6978",
            "replicas": 3, "paused": false,
            "resources": { "requests": { "cpu": "250m", "memory": "256Mi" }, "limits": { "memory": "512Mi" } },
        } },
        "nonce": "0123456789abcdefghijklmn", "sequence": 4711,
        "not_before": "2026-11-30T11:55:00Z", "not_after": "2026-11-30T12:55:00Z",
    })
}

/// About 120 bytes of what a spec consists of: names, addresses, numbers.
fn setting(number: usize) -> Value {
    json!({ "name": format!("upstream-{number}"), "enabled": !number.is_multiple_of(3), "weight": number % 100,
        "address": format!("https://service-{number}.team-a.svc.cluster.local:8443/api/v1") })
}

/// What a large spec mostly consists of: files that it carries.
fn text(number: usize) -> Value {
    json!({ "file": format!("conf.d/{number}.yaml"), "text": "server: https://example.org:8443\n".repeat(128) })
}

fn configuration() -> Value {
    json!({
        "type": "navin.agent-config/v1", "tenant_id": "acme", "cluster_id": "prod-eu-1",
        "identity_id": "86b31929-be9d-481e-81ae-46c379187c17", "gateway_url": "https://manager.example:8462",
        "namespace": "navin-platform", "issued_at": "2026-11-30T11:59:00Z",
    })
}

fn envelope(signer: &SigningKey, payload: &Value) -> Vec<u8> {
    signer.envelope(payload, &canonical(payload)).to_string().into_bytes()
}
