//! The main job from end to end, on the real thing: an API server, the manager and the agent as processes.
//!
//! `cargo run --example demo` ends by itself, exit 0 only if every step held; `--keep` leaves everything
//! running until Ctrl-C and prints how to reach it.

use navin_test_support::{World, cargo_binary, until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Longest that any single step may take once everything is built.
const BOUND: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    let keep = std::env::args().any(|argument| argument == "--keep");
    if std::env::args().skip(1).any(|argument| argument != "--keep") {
        eprintln!("usage: cargo run --example demo [-- --keep]");
        return ExitCode::from(64);
    }
    let mut demo = Demo { start: Instant::now(), last: Instant::now() };
    demo.run(keep);
    ExitCode::SUCCESS
}

/// Says what happened and how long it took. A step that does not hold panics, and the demo fails.
struct Demo {
    start: Instant,
    last: Instant,
}

impl Demo {
    fn done(&mut self, what: &str) {
        println!("[{:5.2} s] {what}", self.last.elapsed().as_secs_f64());
        self.last = Instant::now();
    }

    fn run(&mut self, keep: bool) {
        let world = World::start("demo", &json!({}));
        self.done("an API server and the manager are up; the cluster is registered, its identity issued");
        let agent = world.agent("navin-cluster-agent-0");
        agent.wait_leads(&world.namespace, BOUND);
        self.done("the agent holds its Lease and asks the manager for commands");

        self.apply_and_delete(&world);
        self.inventory(&world);
        self.tamper(&world);
        println!("every step held, {:.1} s in all", self.start.elapsed().as_secs_f64());
        if keep {
            stay(&world);
        }
    }

    fn apply_and_delete(&mut self, world: &World) {
        let spec = json!({ "replicas": 2, "image": "registry.example/ingress@sha256:0123", "ratio": 1.5 });
        let outcome = world.apply("ingress", &spec, BOUND);
        assert_eq!(outcome["status"], "succeeded", "{outcome}");
        self.done("a signed command asked for the component 'ingress'; its receipt is at the manager:");
        show(&outcome["receipt"]);
        let live = world.namespace.component("ingress").expect("the API server holds the component");
        assert_eq!(live["spec"], spec);
        self.done("the component as the API server holds it:");
        show(&without_managed_fields(live));

        let outcome = world.delete("ingress", BOUND);
        assert_eq!(outcome["status"], "succeeded", "{outcome}");
        assert_eq!(world.namespace.component("ingress"), None);
        self.done("a signed command deleted it, and the API server has it no more");
    }

    fn inventory(&mut self, world: &World) {
        let cluster = world.cluster_id();
        let outcome = world.manager.execute(cluster, "inventory.report", &json!({}), BOUND);
        assert_eq!(outcome["status"], "succeeded", "{outcome}");
        let inventory = until("the inventory at the manager", BOUND, || world.manager.inventory(cluster));
        let inventory = inventory.get("inventory").unwrap_or(&inventory);
        let names: Vec<&Value> =
            inventory["namespaces"]["items"].as_array().into_iter().flatten().map(|n| &n["name"]).collect();
        assert!(names.iter().any(|name| *name == "kube-system"), "{inventory}");
        self.done(&format!(
            "the inventory is at the manager: Kubernetes {}, {} namespaces, {} CRDs",
            inventory["version"]["gitVersion"].as_str().unwrap_or("?"),
            names.len(),
            inventory["crds"]["items"].as_array().map_or(0, Vec::len),
        ));
    }

    fn tamper(&mut self, world: &World) {
        let arguments = json!({ "name": "ingress", "spec": { "replicas": 2 } }).to_string();
        let signed = world.manager.run(&[
            "sign",
            "--data",
            "data",
            "--tenant",
            world.tenant_id(),
            "--cluster",
            world.cluster_id(),
            "--operation",
            "managedcomponent.apply",
            "--arguments",
            &arguments,
        ]);
        let accepted = verify(world, &signed);
        assert_eq!(accepted.1, Some(0), "{}", accepted.0);
        self.done(&format!("a command file as the manager signed it is {}", accepted.0.trim()));
        let refused = verify(world, &signed.replace("\"replicas\":2", "\"replicas\":3"));
        assert_eq!(refused.1, Some(1), "{}", refused.0);
        assert!(refused.0.contains("invalid_signature"), "{}", refused.0);
        self.done(&format!("the same file with one digit changed is {}", refused.0.trim()));
    }
}

/// What `navin-cluster-agent verify -` says of a command file: its output and exit code.
fn verify(world: &World, envelope: &str) -> (String, Option<i32>) {
    let mut child = Command::new(cargo_binary("navin-cluster-agent"))
        .args(["verify", "-", "--identity-dir"])
        .arg(&world.identity_dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the agent's binary starts");
    child.stdin.take().expect("a pipe").write_all(envelope.as_bytes()).expect("verify reads its input");
    let mut output = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut output).expect("verify prints text");
    (output, child.wait().expect("verify ends").code())
}

fn show(value: &Value) {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    for line in text.lines() {
        println!("          {line}");
    }
}

fn without_managed_fields(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object
}

/// Leaves everything running, and says how to reach it.
fn stay(world: &World) {
    let kubeconfig = world.folder().join("kubeconfig");
    world.cluster.kubeconfig(&kubeconfig);
    let token = world.manager.run(&["token", "--data", "data", "--tenant", world.tenant_id()]);
    println!("left running until Ctrl-C; reach it with");
    println!(
        "  kubectl --kubeconfig {} -n {} get managedcomponents",
        kubeconfig.display(),
        world.namespace.name
    );
    println!(
        "  curl --cacert {} -H 'Authorization: Bearer {}' {}/api/v1/clusters",
        world.manager.data().join("tls/ca.crt").display(),
        token.trim(),
        world.manager.rest_url()
    );
    loop {
        std::thread::park();
    }
}
