//! The cluster is brought in and the agent installed, by what the documentation says.

use crate::docs;
use crate::site::{HOST, Site, name};
use std::collections::BTreeSet;

/// Registered; then, with rights for the manager, looked at.
pub(crate) fn import(site: &Site) -> String {
    let [register, ..] = installation(site);
    site.sh(&register);
    site.sh("navin-manager import-rbac | kubectl apply -f -");
    site.sh(&format!(
        "kubeconfig=$NODE_DIR/import.conf
        token=$(kubectl create token navin-import -n navin-platform)
        kubectl config --kubeconfig=$kubeconfig set-cluster prod --server=https://{HOST}:6443 \
            --certificate-authority=$NODE_DIR/keys/ca.crt --embed-certs
        kubectl config --kubeconfig=$kubeconfig set-credentials navin-import --token=$token
        kubectl config --kubeconfig=$kubeconfig set-context prod --cluster=prod --user=navin-import
        kubectl config --kubeconfig=$kubeconfig use-context prod
        {register} --kubeconfig $kubeconfig"
    ));
    // The admin can do more than the import needs.
    let refused = site.try_sh(&format!(
        "kubectl config view --flatten > $NODE_DIR/admin-flat.conf; {register} --kubeconfig $NODE_DIR/admin-flat.conf"
    ));
    assert_eq!(refused.status.code(), Some(1), "an admin's kubeconfig");
    let (_, cluster) = site.manager.get("/api/v1/clusters/prod");
    format!("Kubernetes {}", cluster["kubernetes"]["version"].as_str().expect("a version"))
}

/// The commands after the registration, as they are written.
pub(crate) fn two_replicas(site: &Site) -> String {
    let [_, manifests, identity, show] = installation(site);
    site.sh(&manifests);
    site.sh(&identity);
    let pods = site.two_ready();
    let nodes: BTreeSet<&str> = pods.iter().filter_map(|pod| pod["spec"]["nodeName"].as_str()).collect();
    assert_eq!(nodes.len(), site.nodes, "{nodes:?}");
    for pod in &pods {
        assert_eq!(pod["spec"]["containers"][0]["image"], site.image("navin-cluster-agent"));
    }
    let leader = site.next_leader("");
    assert!(pods.iter().any(|pod| name(pod) == leader), "{leader}");
    site.sh(&show);
    format!("on {}", Vec::from_iter(nodes).join(" and "))
}

/// `docs/MANAGER.md`, "Bring a cluster in", with the image that was built for this.
fn installation(site: &Site) -> [String; 4] {
    let commands: [String; 4] =
        docs::commands("Bring a cluster in").try_into().expect("four commands in the docs");
    let image = site.image("navin-cluster-agent");
    commands.map(|line| line.replace("registry.example/navin-cluster-agent@sha256:…", &image))
}

/// From the manager's command line, waited for.
pub(crate) fn apply_and_delete(site: &Site) -> String {
    site.sh("echo 'replicas: 3' | navin-manager apply web -f - --wait --timeout 60");
    assert_eq!(site.component("web")["spec"]["replicas"], 3);
    site.sh("navin-manager delete web --wait --timeout 60");
    let left = site.sh("kubectl get managedcomponents -n navin-platform -o name");
    assert_eq!(left, "");
    String::new()
}

/// Both, as the kubelet and a person run them.
pub(crate) fn doctor_and_health(site: &Site) -> String {
    for pod in site.two_ready() {
        for task in ["health", "doctor"] {
            let said = site
                .sh(&format!("kubectl exec -n navin-platform {} -- /navin-cluster-agent {task}", name(&pod)));
            assert!(!said.contains("WARN") && !said.contains("warning"), "{said}");
        }
    }
    String::new()
}
