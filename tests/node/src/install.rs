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
    let [_, manifests, identity, rollout] = installation(site);
    site.sh(&manifests);
    site.sh(&identity);
    site.sh(&rollout);
    let pods = site.two_ready();
    let nodes: BTreeSet<&str> = pods.iter().filter_map(|pod| pod["spec"]["nodeName"].as_str()).collect();
    assert_eq!(nodes.len(), site.nodes, "{nodes:?}");
    for pod in &pods {
        assert_eq!(pod["spec"]["containers"][0]["image"], site.image("navin-cluster-agent"));
    }
    let leader = site.next_leader("");
    assert!(pods.iter().any(|pod| name(pod) == leader), "{leader}");
    format!("on {}", Vec::from_iter(nodes).join(" and "))
}

/// The third block of the README's installation.
fn installation(site: &Site) -> [String; 4] {
    with_image(site, 2).try_into().expect("four commands in the README")
}

/// A block of the README's commands, with the image that was built for this.
fn with_image(site: &Site, block: usize) -> Vec<String> {
    let image = site.image("navin-cluster-agent");
    let named = |line: String| line.replace("registry.example/navin-cluster-agent@sha256:…", &image);
    docs::commands(block).into_iter().map(named).collect()
}

/// From the manager's command line, waited for: the README's fourth block.
pub(crate) fn apply_and_delete(site: &Site) -> String {
    let [show, apply, delete]: [String; 3] =
        docs::commands(3).try_into().expect("three commands in the README");
    site.sh(&show);
    let seen = site.sh(&apply);
    assert!(seen.contains("web"), "{seen}");
    assert_eq!(site.component("web")["spec"]["replicas"], 2);
    site.sh(&delete);
    let left = site.sh("kubectl get managedcomponents -n navin-platform -o name");
    assert_eq!(left, "");
    String::new()
}

/// By the README's last block; with it goes all that was applied, for the manager's import too.
pub(crate) fn uninstalled(site: &Site) -> String {
    let uninstall: [String; 2] = with_image(site, 4).try_into().expect("two commands in the README");
    for line in uninstall {
        site.sh(&line);
    }
    let kinds = "namespace,customresourcedefinition,clusterrole,clusterrolebinding,role,rolebinding";
    let left = site.sh(&format!("kubectl get {kinds} --all-namespaces -o name | grep -i navin || true"));
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
