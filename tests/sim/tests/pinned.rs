//! What the simulation once found, written down: these runs broke an invariant, and must not again.

use navin_sim::faults::{CallFault, SECOND, Trouble};
use navin_sim::script::{Rule, Script};
use navin_sim::workload::Item;
use navin_sim::world::{Options, Outcome, run};
use serde_json::json;

fn play(script: Script) -> Outcome {
    let outcome = run(1, Options { script: Some(script), speak: true, ..Options::default() });
    assert_eq!(outcome.violation, None, "{}", outcome.text);
    outcome
}

fn apply(name: &str) -> Item {
    Item::Approve("managedcomponent.apply", Some(name.to_owned()), Some(json!({ "size": 1 })), 20)
}

fn rule(after: u64, method: &'static str, path: &'static str, fault: CallFault) -> Rule {
    Rule { after, method, path, fault, times: 1 }
}

/// The leader thread resigns (403 for a write of the state) while a renewal is on its way; its answer came
/// afterwards and brought the permission back, while another replica took the Lease that was released.
#[test]
fn a_renewal_that_is_answered_after_the_resignation_brings_no_permission_back() {
    let (renewal, state) = ("/leases/", "/configmaps/");
    let second = SECOND / 4;
    let script = Script {
        end: 120 * SECOND,
        troubles: vec![],
        // Whenever the renewal leaves, a write of the state follows before it is answered.
        items: (80..140).map(|at| (at * second, apply(&format!("component-{}", at % 4)))).collect(),
        rules: vec![
            rule(22 * SECOND, "PUT", renewal, CallFault::AnswerDelayed(3 * SECOND)),
            rule(22 * SECOND, "PUT", state, CallFault::Refused(403)),
            // Where it does believe that it leads, it goes on believing until this is answered.
            rule(22 * SECOND, "GET", state, CallFault::AnswerDelayed(2 * SECOND)),
        ],
    };
    let outcome = play(script);
    assert_eq!(outcome.stats.calls.iter().sum::<u64>(), 3, "all faults happened\n{}", outcome.text);
    assert!(outcome.stats.failovers >= 2);
}

/// A delete that the API server has taken ends as a success, whether what is left can be read or not.
#[test]
fn a_delete_that_was_answered_ends_as_a_success_even_if_the_object_cannot_be_read_any_more() {
    let component = "/managedcomponents/component-0";
    let script = Script {
        end: 120 * SECOND,
        troubles: vec![],
        items: vec![
            (10 * SECOND, apply("component-0")),
            (15 * SECOND, Item::Hold("component-0".to_owned())),
            (
                20 * SECOND,
                Item::Approve("managedcomponent.delete", Some("component-0".to_owned()), None, 900),
            ),
        ],
        rules: vec![
            // The first reading is the delete's own; then none is answered.
            rule(19 * SECOND, "GET", component, CallFault::RequestDelayed(0)),
            Rule { times: 1_000, ..rule(19 * SECOND, "GET", component, CallFault::Refused(403)) },
        ],
    };
    let outcome = play(script);
    let outcomes: Vec<_> =
        outcome.stats.outcomes.iter().map(|(what, count)| (what.as_str(), *count)).collect();
    assert_eq!(outcomes, [("succeeded", 2)], "{}", outcome.text);
}

/// The manager is away for half an hour: the Lease is handed over, drift is repaired, and nothing is lost.
#[test]
fn without_the_manager_the_lease_goes_round_and_what_was_asked_for_stays() {
    let name = || "component-0".to_owned();
    let script = Script {
        end: 40 * 60 * SECOND,
        troubles: vec![(60 * SECOND, Trouble::GatewayAway(30 * 60 * SECOND))],
        items: vec![
            (10 * SECOND, apply("component-0")),
            (10 * 60 * SECOND, Item::EditSpec(name(), 7)),
            (20 * 60 * SECOND, Item::Delete(name())),
        ],
        rules: vec![],
    };
    let outcome = play(script);
    assert!(outcome.stats.failovers >= 3, "{}", outcome.stats.failovers);
    // The command's own, two by hand, two repairs.
    assert_eq!(outcome.stats.writes, 3, "{}", outcome.text);
}
