//! What must hold on real nodes: run by `tests/node/run`, in the network of the cluster that it brought up.
//!
//! Every check is a function that panics where its name is not so, and says what it measured. They build on
//! each other, in this order, and the first that fails ends the run.

mod access;
mod break_glass;
mod confinement;
mod docs;
mod failover;
mod identity;
mod install;
mod placement;
mod rollout;
mod site;

use site::Site;
use std::time::Instant;

/// A check: what holds, and the function that looks.
type Check = (&'static str, fn(&Site) -> String);

const CHECKS: [Check; 18] = [
    ("the manager imports the cluster with a kubeconfig of navin-import", install::import),
    ("two replicas are ready, spread over the nodes", install::two_replicas),
    ("a component is applied and deleted from the manager's command line", install::apply_and_delete),
    ("doctor and health are content in every pod", install::doctor_and_health),
    ("the process may do nothing in its container", confinement::process),
    ("nothing listens in the pod", confinement::network),
    ("the accounts may do what is listed, and nothing else", access::as_listed),
    ("a leader whose pod is deleted hands over", failover::pod_deleted),
    (
        "a leader whose node is cut off is followed by expiry, and nothing is done twice",
        failover::node_cut_off,
    ),
    ("a new image rolls out under commands, and none is lost", rollout::new_image),
    ("a new identity is taken without a restart, the old one refused", identity::issued_again),
    ("a signed file runs past a manager that is down", break_glass::signed_file),
    ("a drained node's replica goes to the other, and both run on one", placement::drained),
    ("kubectl apply -k deploy is what the manager renders", placement::kustomize),
    ("a pod that is not restricted is refused", confinement::restricted_namespace),
    ("no container was started twice", placement::no_restarts),
    ("a pod that ends at once takes the place of none that works", rollout::bad_arguments),
    ("what is uninstalled leaves nothing", install::uninstalled),
];

/// What makes no sense on one node.
const OF_TWO_NODES: [&str; 2] = [
    "a leader whose node is cut off is followed by expiry, and nothing is done twice",
    "a drained node's replica goes to the other, and both run on one",
];

fn main() {
    let started = Instant::now();
    let site = Site::found();
    let mut held = 0;
    for (name, check) in CHECKS {
        if site.nodes < 2 && OF_TWO_NODES.contains(&name) {
            println!("      -    {name}: skipped on one node");
            continue;
        }
        site.begin(name);
        let began = Instant::now();
        let said = check(&site);
        println!(
            "  {:6.1} s  {name}{}{said}",
            began.elapsed().as_secs_f32(),
            if said.is_empty() { "" } else { ": " }
        );
        held += 1;
    }
    site.ended();
    println!("{held} checks held in {:.0} s, on {} node(s)", started.elapsed().as_secs_f32(), site.nodes);
}
