//! A mutating admission webhook: an HTTPS server that changes each component on its way in.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use navin_test_support::{Cluster, TlsServer};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

/// A webhook for one namespace; it is unregistered and ends with this value.
pub(crate) struct Webhook {
    cluster: &'static Cluster,
    name: String,
    server: TlsServer,
    asked: Arc<AtomicUsize>,
}

impl Webhook {
    /// Registers a webhook that adds what `mutation` makes of a component as a JSON Patch.
    pub(crate) fn start(
        cluster: &'static Cluster,
        namespace: &str,
        mutation: impl Fn(&Value) -> Value + Send + Sync + 'static,
    ) -> Self {
        let files = cluster.folder().join("certificates");
        let file = |name: &str| files.join(name);
        let asked = Arc::new(AtomicUsize::new(0));
        let ours = Arc::clone(&asked);
        let server = TlsServer::with_files(&file("apiserver.crt"), &file("apiserver.key"), move |request| {
            ours.fetch_add(1, Ordering::Relaxed);
            let review: Value = serde_json::from_slice(&request.body).ok()?;
            let patch = mutation(&review["request"]["object"]);
            let answer = json!({
                "apiVersion": "admission.k8s.io/v1",
                "kind": "AdmissionReview",
                "response": {
                    "uid": review["request"]["uid"],
                    "allowed": true,
                    "patchType": "JSONPatch",
                    "patch": STANDARD.encode(patch.to_string()),
                },
            });
            Some((200, answer.to_string()))
        });
        let webhook = Self { cluster, name: format!("mutate.{namespace}.example"), server, asked };
        webhook.register(namespace);
        webhook
    }

    fn register(&self, namespace: &str) {
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": { "name": self.name },
            "webhooks": [{
                "name": self.name,
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "timeoutSeconds": 5,
                "clientConfig": {
                    "url": format!("{}/mutate", self.server.url()),
                    "caBundle": STANDARD.encode(self.cluster.ca_pem()),
                },
                "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": namespace } },
                "rules": [{
                    "apiGroups": ["platform.navin.ai"],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["managedcomponents"],
                }],
            }],
        });
        let (status, answer) = self.cluster.admin().post(CONFIGURATIONS, &configuration);
        assert_eq!(status, 201, "{answer}");
    }

    /// How often the API server asked.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.cluster.admin().delete(&format!("{CONFIGURATIONS}/{}", self.name));
    }
}
