//! The main job from end to end, then cut off from the manager, on the real thing: an API server, the manager
//! and the agent as processes.
//!
//! `cargo run --example demo` ends by itself, exit 0 only if every step held; `--keep` leaves everything
//! running until Ctrl-C and prints how to reach it.

use navin_test_support::{Agent, World, cargo_binary, until};
use serde_json::{Value, json};
use std::ffi::OsStr;
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
    // Built before the first step begins, which would count it.
    cargo_binary("navin-manager");
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
        let world = World::start("demo", &json!({ "offline_after_s": 5 }));
        self.done("an API server and the manager are up; the cluster is registered, its identity issued");
        let mut options = world.agent_options("navin-cluster-agent-0");
        options.inbox = Some(world.folder().join("inbox"));
        let agent = world.agent_with(options);
        agent.wait_leads(&world.namespace, BOUND);
        self.done("the agent holds its Lease and asks the manager for commands");

        self.apply_and_delete(&world);
        self.inventory(&world);
        self.tamper(&world);
        self.cut_off(&world, &agent);
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
        let inventory = &inventory["inventory"];
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
        let arguments = json!({ "name": "ingress", "spec": { "replicas": 2 } });
        let signed = sign(world, "managedcomponent.apply", &arguments);
        let accepted = verify(world, &signed);
        assert_eq!(accepted.1, Some(0), "{}", accepted.0);
        self.done(&format!("a command file as the manager signed it is {}", accepted.0.trim()));
        let refused = verify(world, &signed.replace("\"replicas\":2", "\"replicas\":3"));
        assert_eq!(refused.1, Some(1), "{}", refused.0);
        assert!(refused.0.contains("invalid_signature"), "{}", refused.0);
        self.done(&format!("the same file with one digit changed is {}", refused.0.trim()));
    }

    fn cut_off(&mut self, world: &World, agent: &Agent) {
        let (cluster, spec) = (world.cluster_id(), json!({ "replicas": 2 }));
        assert_eq!(world.apply("ingress", &spec, BOUND)["status"], "succeeded");
        world.manager.process().kill9();
        self.done("'ingress' is applied again, and the manager is killed: nobody answers the agent any more");
        agent.wait_log("link=offline", BOUND);
        self.done("the agent calls itself offline, 5 s after the last answer");

        let (path, admin) = (world.namespace.component_path("ingress"), world.cluster.admin());
        let restored = |what: &str| {
            until(what, BOUND, || (world.namespace.component("ingress")?["spec"] == spec).then_some(()));
        };
        admin.patch(&path, &json!({ "spec": { "replicas": 99, "added": true } }));
        restored("the component to be as it was signed");
        self.done("somebody changed 'ingress' by hand: restored to its signed spec");
        admin.delete(&path);
        restored("the component to be there again");
        self.done("somebody deleted it: made anew");

        let delete = sign(world, "managedcomponent.delete", &json!({ "name": "ingress" }));
        let (refused, code) = submit(agent, &delete);
        assert_eq!((&refused["reason"], code), (&json!("manager_unreachable"), Some(1)), "{refused}");
        self.done("a signed delete, put into the inbox by hand, is refused: manager_unreachable");
        let report = sign(world, "inventory.report", &json!({}));
        let (answered, code) = submit(agent, &report);
        assert_eq!((&answered["status"], code), (&json!("succeeded"), Some(0)), "{answered}");
        let namespaces = &answered["result"]["inventory"]["namespaces"]["items"];
        let count = namespaces.as_array().map_or(0, Vec::len);
        assert!(count > 0, "{answered}");
        self.done(&format!("an inventory.report is answered in the inbox: {count} namespaces and the rest"));

        world.manager.restart();
        for (receipt, status) in [(&refused, "refused"), (&answered, "succeeded")] {
            let command_id = receipt["command_id"].as_str().expect("a command_id");
            until("the receipt at the manager", 2 * BOUND, || {
                (world.manager.command_status(cluster, command_id)["status"] == status).then_some(())
            });
        }
        self.done("the manager is back, and has both receipts");
        assert_eq!(world.delete("ingress", BOUND)["status"], "succeeded");
        assert_eq!(world.namespace.component("ingress"), None);
        self.done("the delete, issued anew, is done");
    }
}

/// A command file, made with `navin-manager sign` on the manager's own folder.
fn sign(world: &World, operation: &str, arguments: &Value) -> String {
    world.manager.sign(world.tenant_id(), world.cluster_id(), operation, arguments)
}

/// What `navin-cluster-agent submit -` says of a command file: the receipt and the exit code.
fn submit(agent: &Agent, envelope: &str) -> (Value, Option<i32>) {
    let arguments = ["submit".as_ref(), "-".as_ref(), "--inbox".as_ref(), agent.inbox().as_os_str()];
    let (output, code) = run_agent(&arguments, envelope);
    (serde_json::from_str(&output).unwrap_or(Value::Null), code)
}

/// What `navin-cluster-agent verify -` says of a command file: its output and exit code.
fn verify(world: &World, envelope: &str) -> (String, Option<i32>) {
    let folder = world.identity_dir.as_os_str();
    run_agent(&["verify".as_ref(), "-".as_ref(), "--identity-dir".as_ref(), folder], envelope)
}

/// The output and the exit code of a subcommand that reads `input`.
fn run_agent(arguments: &[&OsStr], input: &str) -> (String, Option<i32>) {
    let mut child = Command::new(cargo_binary("navin-cluster-agent"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the agent's binary starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads its input");
    let mut output = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut output).expect("it prints text");
    (output, child.wait().expect("it ends").code())
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
    println!("left running until Ctrl-C; reach it from another shell with");
    println!(
        "  export NAVIN_SERVER={} NAVIN_CA={} NAVIN_TOKEN={} NAVIN_CLUSTER={}",
        world.manager.rest_url(),
        world.manager.data().join("tls/ca.crt").display(),
        token.trim(),
        world.cluster_id()
    );
    println!(
        "  echo '{{\"replicas\": 2}}' | {} apply web -f - --wait --timeout 60",
        cargo_binary("navin-manager").display()
    );
    println!(
        "  kubectl --kubeconfig {} -n {} get managedcomponents",
        kubeconfig.display(),
        world.namespace.name
    );
    loop {
        std::thread::park();
    }
}
