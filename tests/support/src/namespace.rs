//! A namespace for one scenario, with what `deploy/` puts into it: the agent's account and its rights.
//!
//! The files are those that are shipped, with another namespace's name, so what the agent may do in a
//! test is what it may do at a customer's.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::api::{Api, yaml_documents};
use crate::wait::until;

const CRD: &str = include_str!("../../../deploy/crd.yaml");
const ACCOUNT: &str = include_str!("../../../deploy/serviceaccount.yaml");
const RBAC: &str = include_str!("../../../deploy/rbac.yaml");

/// The namespace that the files of `deploy/` name.
const DEPLOYED: &str = "navin-platform";
/// Account, Role, Lease: all have this name.
const AGENT: &str = "navin-cluster-agent";

/// Once per cluster: the CRD, served; and the `ClusterRole` that every namespace's account is bound to.
pub(crate) fn install_cluster_wide(admin: &Api) {
    admin.apply_yaml(CRD);
    for role in yaml_documents(RBAC).iter().filter(|object| object["kind"] == "ClusterRole") {
        admin.apply(role);
    }
    until("the CRD to be served", Duration::from_secs(20), || {
        let (status, _) = admin.get("/apis/platform.navin.ai/v1/managedcomponents");
        (status == 200).then_some(())
    });
}

/// A fresh namespace, seen with the admin's eyes.
#[derive(Clone, Debug)]
pub struct Namespace {
    /// Its name.
    pub name: String,
    admin: Api,
}

impl Namespace {
    pub(crate) fn make(admin: Api, prefix: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let name = format!("{prefix}-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let (status, answer) = admin.post("/api/v1/namespaces", &json!({ "metadata": { "name": name } }));
        assert_eq!(status, 201, "namespace {name}: {answer}");
        for mut object in yaml_documents(ACCOUNT).into_iter().chain(yaml_documents(RBAC)) {
            move_to(&mut object, &name);
            if object["kind"] == "ClusterRoleBinding" {
                object["metadata"]["name"] = format!("{AGENT}-{name}").into();
            }
            if object["kind"] != "ClusterRole" {
                admin.apply(&object);
            }
        }
        let namespace = Self { name, admin };
        namespace.wait_for_rights();
        namespace
    }

    /// The authorizer learns of a new binding from a watch, a moment after it was made.
    fn wait_for_rights(&self) {
        let lease = json!({ "namespace": self.name, "verb": "get", "group": "coordination.k8s.io",
            "resource": "leases", "name": AGENT });
        let nodes = json!({ "verb": "list", "resource": "nodes" });
        for attributes in [lease, nodes] {
            let review = json!({ "spec": { "resourceAttributes": attributes,
                "user": format!("system:serviceaccount:{}:{AGENT}", self.name),
                "groups": ["system:serviceaccounts", "system:authenticated"] } });
            until("the agent's rights to be effective", Duration::from_secs(10), || {
                let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
                let (_, answer) = self.admin.post(path, &review);
                (answer["status"]["allowed"] == true).then_some(())
            });
        }
    }

    /// Where its components are: a collection to list and to POST to.
    pub fn components_path(&self) -> String {
        format!("/apis/platform.navin.ai/v1/namespaces/{}/managedcomponents", self.name)
    }

    /// Where one component is.
    pub fn component_path(&self, name: &str) -> String {
        format!("{}/{name}", self.components_path())
    }

    /// The component, if there is one.
    pub fn component(&self, name: &str) -> Option<Value> {
        self.found(&self.component_path(name))
    }

    /// Makes a component as an administrator would by hand.
    pub fn create_component(&self, name: &str, spec: &Value) -> Value {
        let object = json!({ "apiVersion": "platform.navin.ai/v1", "kind": "ManagedComponent",
            "metadata": { "name": name }, "spec": spec });
        let (status, answer) = self.admin.post(&self.components_path(), &object);
        assert_eq!(status, 201, "component {name}: {answer}");
        answer
    }

    /// Where the agent's Lease is.
    pub fn lease_path(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/{AGENT}", self.name)
    }

    /// The agent's Lease, if there is one.
    pub fn lease(&self) -> Option<Value> {
        self.found(&self.lease_path())
    }

    /// Who holds the agent's Lease, if anyone does.
    pub fn leader(&self) -> Option<String> {
        let holder = self.lease()?["spec"]["holderIdentity"].as_str()?.to_owned();
        (!holder.is_empty()).then_some(holder)
    }

    /// Where the agent's state is.
    pub fn state_path(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps/{AGENT}-state", self.name)
    }

    /// The agent's state, decoded, if there is one.
    pub fn state(&self) -> Option<Value> {
        let object = self.found(&self.state_path())?;
        let text = object["data"]["state.json"].as_str()?;
        Some(serde_json::from_str(text).unwrap_or_else(|error| panic!("state.json: {error}: {text}")))
    }

    /// The Events of the namespace.
    pub fn events(&self) -> Vec<Value> {
        self.admin.list(&format!("/api/v1/namespaces/{}/events", self.name))
    }

    fn found(&self, path: &str) -> Option<Value> {
        match self.admin.get(path) {
            (200, object) => Some(object),
            (404, _) => None,
            (status, answer) => panic!("GET {path}: {status} {answer}"),
        }
    }
}

/// Every mention of the deployed namespace becomes a mention of this one.
fn move_to(value: &mut Value, namespace: &str) {
    match value {
        Value::String(text) if text == DEPLOYED => namespace.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(|item| move_to(item, namespace)),
        Value::Object(members) => members.values_mut().for_each(|member| move_to(member, namespace)),
        _ => {}
    }
}
