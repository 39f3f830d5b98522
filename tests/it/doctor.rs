//! `doctor` on the real thing: what it finds where one thing is wrong, and that it changes nothing.

use crate::doctor_lab::{Doctor, said};
use crate::inbox_lab;
use crate::lab::{BOUND, Changed, changed, queue, with_crd_again, without_crd};
use crate::rights_lab::{IN_ITS_NAMESPACE, IN_THE_CLUSTER};
use navin_test_support::{World, until};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// No more than was asked.
const SAID_OF_RIGHTS: &str = "all that are needed; it may neither read Secrets nor create Pods";

#[test]
fn of_a_good_agent_everything_is_ok_one_line_each() {
    let world = World::start("doctor-well", &json!({}));
    let agent = inbox_lab::agent(&world);
    let doctor = Doctor::of(&world, agent.inbox());
    until("everything to be ok", BOUND, || (doctor.findings().0 == Some(0)).then_some(()));
    let (code, text, stderr) = said(doctor.run(&[]));
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let names: Vec<&str> = text.lines().map(|line| line.strip_prefix("ok      ").expect(line)).collect();
    let names: Vec<&str> = names.iter().map(|line| line.split_once(": ").expect("a name").0).collect();
    let all = ["identity files", "configuration", "certificate", "API server", "permissions", "CRD", "Lease"];
    assert_eq!(names, [&all[..], &["state", "gateway", "clock", "threads"]].concat(), "{text}");
    for part in [
        world.tenant_id(),
        world.cluster_id(),
        agent.holder().as_str(),
        "version v1.",
        "term 1",
        SAID_OF_RIGHTS,
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn before_any_replica_led_there_is_no_lease_and_the_doctor_makes_none_and_takes_no_command() {
    let world = World::start("doctor-early", &json!({}));
    let command = queue(&world, "inventory.report", &json!({}));
    let (message, _) = Doctor::of(&world, world.folder()).only_wrong("Lease");
    assert!(message.contains("no replica has led"), "{message}");
    let shown = world.manager.command_status(world.cluster_id(), &command);
    assert_eq!(shown["status"], "queued", "it was not delivered to the doctor: {shown}");
    assert_eq!((world.namespace.lease(), world.namespace.state()), (None, None));
}

#[test]
fn each_right_that_is_missing_or_too_much_is_named() {
    let world = World::start("doctor-rights", &json!({}));
    let (admin, name) = (world.cluster.admin(), &world.namespace.name);
    let doctor = Doctor::of(&world, world.folder());
    let bindings = "/apis/rbac.authorization.k8s.io/v1";
    let role = format!("{bindings}/namespaces/{name}/roles/navin-cluster-agent");
    let permissions = || -> BTreeSet<String> {
        let (_, findings) = doctor.findings();
        let about = findings.iter().filter(|finding| finding["name"] == "permissions");
        about.map(|finding| finding["message"].as_str().expect("a text").to_owned()).collect()
    };

    let mut rules = admin.get(&role).1["rules"].clone();
    rules[1]["verbs"] = json!(["get"]);
    assert_eq!(admin.patch(&role, &json!({ "rules": rules })).0, 200);
    let one = BTreeSet::from(["missing: update /configmaps/navin-cluster-agent-state".to_owned()]);
    until("one verb to be missing", BOUND, || (permissions() == one).then_some(()));

    let cluster_wide = format!("{bindings}/clusterrolebindings/navin-cluster-agent-{name}");
    for path in [&cluster_wide, &format!("{bindings}/namespaces/{name}/rolebindings/navin-cluster-agent")] {
        assert_eq!(admin.delete(path).0, 200);
    }
    let all = IN_THE_CLUSTER.into_iter().chain(IN_ITS_NAMESPACE).map(|right| format!("missing: {right}"));
    let all: BTreeSet<String> = all.collect();
    until("every right to be missing", BOUND, || (permissions() == all).then_some(()));

    admin.apply(&json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": format!("too-much-{name}") },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "kind": "ServiceAccount", "name": "navin-cluster-agent", "namespace": name }],
    }));
    let much = ["get /secrets", "list /secrets", "create /pods"];
    let much: BTreeSet<String> = much.into_iter().map(|right| format!("too much: {right}")).collect();
    until("what is too much to be named", BOUND, || (permissions() == much).then_some(()));
    admin.delete(&format!("{bindings}/clusterrolebindings/too-much-{name}"));
}

#[test]
fn a_revoked_identity_another_ca_and_a_manager_that_is_down_are_told_apart() {
    let world = World::start("doctor-manager", &json!({}));
    let agent = inbox_lab::agent(&world);
    let mut doctor = Doctor::of(&world, agent.inbox());
    until("everything to be ok", BOUND, || (doctor.findings().0 == Some(0)).then_some(()));

    let other = world.folder().join("other-ca");
    fs::create_dir(&other).expect("a folder");
    for name in ["manager.pem", "config.json", "tls.crt", "tls.key"] {
        fs::copy(world.identity_dir.join(name), other.join(name)).expect("a file of the identity");
    }
    fs::write(other.join("ca.crt"), world.cluster.ca_pem()).expect("another CA");
    let own = std::mem::replace(&mut doctor.identity_dir, other);
    let (code, text, _) = said(doctor.run(&[]));
    assert_eq!(code, Some(1));
    for line in
        ["WRONG   certificate: tls.crt: not given by an issuer in ca.crt", "WRONG   gateway: https://"]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(text.contains("UnknownIssuer"), "{text}");
    doctor.identity_dir = own;

    world.manager.issue_identity(world.cluster_id(), &json!({}));
    let (message, advice) = doctor.only_wrong("gateway");
    assert!(message.contains("403 \"identity_revoked\"") && advice.contains("Secret"), "{message} {advice}");

    world.manager.process().kill9();
    let (message, _) = doctor.only_wrong("gateway");
    assert!(message.contains("no connection"), "{message}");
}

#[test]
fn a_cluster_without_the_crd_is_told_to_get_it() {
    let (cluster, _turn) = changed(Changed::Schema);
    let world = World::start_in(cluster, "doctor-crd", &json!({}));
    let agent = inbox_lab::agent(&world);
    let doctor = Doctor::of(&world, agent.inbox());
    let crd = without_crd(&world);
    let (message, advice) = doctor.only_wrong("CRD");
    assert!(
        message.contains("not served") && advice.contains("`navin-manager manifests`"),
        "{message} {advice}"
    );
    with_crd_again(&world, &crd);
}

#[test]
fn an_unusable_token_or_api_server_is_named_and_what_rests_on_it_is_unknown() {
    let world = World::start("doctor-api", &json!({}));
    let mut doctor = Doctor::of(&world, world.folder());
    let good = doctor.token.clone();
    doctor.token = world.folder().join("none");
    let (message, _) = doctor.only_wrong("API server");
    assert!(message.contains("none: not readable"), "{message}");
    fs::write(&doctor.token, "of-another-cluster").expect("a token");
    let (message, advice) = doctor.only_wrong("API server");
    assert!(message.contains("Unauthorized") && advice.contains("mount a token"), "{message} {advice}");
    doctor.token = good;
    "https://127.0.0.1:1".clone_into(&mut doctor.kube_api);
    let (message, advice) = doctor.only_wrong("API server");
    assert!(message.contains("127.0.0.1:1: no connection") && advice.contains("its address"), "{message}");
    let (_, findings) = doctor.findings();
    for name in ["permissions", "CRD", "Lease", "state", "threads"] {
        let finding = findings.iter().find(|finding| finding["name"] == name).expect(name);
        assert_eq!(finding["status"], "unknown", "{finding}");
        let not_asked = finding["message"].as_str().expect("a text").contains("not asked: see API server");
        assert_eq!(not_asked, name != "threads", "{finding}");
    }
}

/// What must not be in a bundle nor a log: in a spec, long enough to be found in pieces.
const CANARY: &str = "CaNaRy7xCaNaRy7xCaNaRy7x";

#[test]
fn a_bundle_has_what_is_needed_and_nothing_secret_and_no_log_has_either() {
    let world = World::start("doctor-bundle", &json!({}));
    let mut options = inbox_lab::options(&world, "agent-a");
    options.envs = vec![("RUST_LOG".to_owned(), "trace,ureq=trace,rustls=trace".to_owned())];
    let agent = world.agent_with(options);
    agent.wait_leads(&world.namespace, BOUND);
    let done = world.apply("kept", &json!({ "password": CANARY }), BOUND);
    assert_eq!(done["status"], "succeeded", "{done}");
    let doctor = Doctor::of(&world, agent.inbox());
    let archive = doctor.run(&["--bundle"]);
    assert_eq!(archive.status.code(), Some(0), "{}", said(doctor.run(&[])).1);

    // Debian's tar is a judge of its own.
    let untar = |args: &[&str]| {
        let mut tar =
            Command::new("tar").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("tar");
        tar.stdin.take().expect("its input").write_all(&archive.stdout).expect("it reads");
        let output = tar.wait_with_output().expect("tar ends");
        assert!(output.status.success());
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let names = "README.txt\ndoctor.json\nversion.txt\nconfig.json\nlease.json\nstate.json\n";
    assert_eq!(untar(&["-tf", "-"]), names);
    let text = untar(&["-xOf", "-"]);
    for part in
        [agent.holder().as_str(), "\"kept\"", "\"succeeded\"", "gateway_url", "\"well\": true", "commit "]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let state = world.namespace.state().expect("a state").to_string();
    assert!(state.contains(CANARY) && state.contains("\"signature\""), "there was something to hide");
    let token = fs::read_to_string(world.folder().join("agent-a.token")).expect("the agent's token");
    let key = fs::read_to_string(world.identity_dir.join("tls.key")).expect("the key");
    let pieces = |text: &str| -> Vec<String> {
        text.as_bytes()
            .chunks(16)
            .filter(|piece| piece.len() == 16)
            .map(|piece| String::from_utf8_lossy(piece).into_owned())
            .collect()
    };
    let mut secrets = vec![CANARY.to_owned()];
    // Every token of this account has the same head.
    secrets.extend(token.split('.').skip(1).flat_map(pieces));
    secrets.extend(key.lines().filter(|line| !line.starts_with('-')).flat_map(pieces));
    let log = agent.process().stderr_text() + &agent.process().stdout_text();
    for secret in &secrets {
        assert!(!text.contains(secret), "{secret} is in the bundle");
        let line = log.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret} is in the log");
    }
    assert!(!text.contains("\"signature\""));
}
