//! The manager, and all that a scenario stands on, without an agent.

use navin_test_support::World;
use serde_json::json;

#[test]
fn a_world_has_an_identity_and_a_manager_that_comes_back_as_it_was() {
    let world = World::start("world", &json!({ "lease_duration_s": 3 }));
    for name in ["config.json", "manager.pem", "tls.crt", "tls.key", "ca.crt"] {
        let text = std::fs::read_to_string(world.identity_dir.join(name)).expect(name);
        assert!(!text.is_empty(), "{name}");
    }
    let config = std::fs::read_to_string(world.identity_dir.join("config.json")).expect("config.json");
    let config: serde_json::Value = serde_json::from_str(&config).expect("JSON");
    assert_eq!(config["payload"]["namespace"], world.namespace.name);
    assert_eq!(config["payload"]["lease_duration_s"], 3);
    assert_eq!(config["payload"]["gateway_url"], world.manager.gateway_url());

    let manager = &world.manager;
    let id = manager.command(world.cluster_id(), "inventory.report", &json!({}));
    let queued = manager.command_status(world.cluster_id(), &id);
    assert_eq!(queued["status"], "queued");
    manager.restart();
    assert_eq!(manager.command_status(world.cluster_id(), &id)["nonce"], queued["nonce"]);
    assert_eq!(manager.inventory(world.cluster_id()), None);
    assert!(manager.audit().iter().any(|entry| entry["subject"] == id.as_str()));

    let stranger = manager.operator("others");
    assert_eq!(stranger.get(&format!("/api/v1/clusters/{}", world.cluster_id())).0, 404);
}
