//! Another image, by another digest, while commands flow.

use crate::docs;
use crate::site::{NAMESPACE, SOON, Site, is_ready, name};
use navin_test_support::until;
use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};

/// Between two commands.
const EVERY: Duration = Duration::from_millis(50);
/// How many components they go to, in turn.
const COMPONENTS: usize = 7;

/// Every command that was issued has one outcome, and there is never no replica.
pub(crate) fn new_image(site: &Site) -> String {
    site.two_ready();
    let next = site.image("navin-cluster-agent-next");
    let manifests = docs::commands(2).swap_remove(1);
    let started = Instant::now();
    site.sh(&manifests.replace("registry.example/navin-cluster-agent@sha256:…", &next));

    let (mut commands, mut fewest) = (vec![], u64::MAX);
    let mut rolled_out = None;
    // And a little longer: what is issued last is delivered to the last leader.
    until("the new image, on two replicas", SOON, || {
        let number = commands.len();
        let command = site.apply(&format!("rolling-{}", number % COMPONENTS), number);
        commands.push(command);
        let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/navin-cluster-agent");
        let (_, deployment) = site.api.get(&path);
        fewest = fewest.min(deployment["status"]["readyReplicas"].as_u64().unwrap_or(0));
        if rolled_out.is_none() && is_rolled_out(&deployment) {
            rolled_out = Some((started.elapsed(), number));
        }
        thread::sleep(EVERY);
        rolled_out.filter(|(_, last)| commands.len() > last + 2 * COMPONENTS)
    });
    assert!(fewest >= 1, "there was a moment without a replica");
    // What an ending leader was sent and did not take is delivered again 15 s later; a newer command for the same
    // component may have succeeded by then (CONTRACT section 2, superseded).
    let (mut superseded, mut applied) = (0, [0; COMPONENTS]);
    for (number, command) in commands.iter().enumerate() {
        let command = site.outcome(command);
        if command["receipt"]["reason"] == "superseded" {
            superseded += 1;
        } else {
            assert_eq!(command["status"], "succeeded", "{command}");
            applied[number % COMPONENTS] += 1;
        }
    }
    for (number, applied) in applied.into_iter().enumerate() {
        let component = site.component(&format!("rolling-{number}"));
        let last = (0..commands.len()).rfind(|command| command % COMPONENTS == number);
        assert_eq!(component["spec"]["value"], json!(last), "{component}");
        assert_eq!(component["metadata"]["generation"], applied, "{component}");
    }
    for pod in site.two_ready() {
        assert_eq!(pod["spec"]["containers"][0]["image"], next, "{pod}");
    }
    let (took, _) = rolled_out.expect("a rollout that ended");
    format!(
        "{} commands, each with one outcome ({superseded} superseded); rolled out in {:.1} s, never fewer than {fewest} ready",
        commands.len(),
        took.as_secs_f32()
    )
}

/// A pod that ends at once is no reason for one that works to go.
pub(crate) fn bad_arguments(site: &Site) -> String {
    let before = site.two_ready();
    let names = |pods: &[Value]| -> Vec<String> { pods.iter().map(|pod| name(pod).to_owned()).collect() };
    site.sh(&format!(
        "kubectl patch deployment navin-cluster-agent -n {NAMESPACE} --type json \
            -p '[{{\"op\": \"replace\", \"path\": \"/spec/template/spec/containers/0/args\", \"value\": [\"nonsense\"]}}]'"
    ));
    // It has been started again: whatever the rollout makes of it has been made.
    until("the new pod to fail twice", SOON, || {
        let pods = site.pods();
        let new = pods.iter().find(|pod| !names(&before).contains(&name(pod).to_owned()))?;
        (new["status"]["containerStatuses"][0]["restartCount"].as_u64()? >= 2).then_some(())
    });
    // The new one may be called ready for a moment.
    let ready: Vec<Value> = site.pods().into_iter().filter(is_ready).collect();
    assert!(names(&before).iter().all(|old| names(&ready).contains(old)), "a replica that worked is gone");
    site.sh(&format!("kubectl rollout undo deployment/navin-cluster-agent -n {NAMESPACE}"));
    assert_eq!(names(&site.two_ready()), names(&before));
    String::new()
}

fn is_rolled_out(deployment: &Value) -> bool {
    let status = &deployment["status"];
    status["observedGeneration"] == deployment["metadata"]["generation"]
        && ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"]
            .iter()
            .all(|count| status[count] == 2)
}
