//! Looks at a cluster with the kubeconfig that it is registered with. CONTRACT section 8: does the API
//! answer, what version is it, and can its user do what the import needs and no more?
//!
//! A kubeconfig can name programs to run, files to read and proxies to go through. All of that is
//! refused: what counts is in the text itself, and the kubeconfig is dropped when this returns.
//!
//! The server that it names may be any that the manager can reach, and of any intent: little of its answer is read, and
//! of what went wrong a tenant is told the same, whatever it was. How long it took can still be told apart.

use axum::http::Response;
use http_body_util::Limited;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::{Api, PostParams};
use kube::client::{ClientBuilder, DynBody};
use kube::config::{AuthInfo, Cluster, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::time::Duration;
use tokio::task::JoinSet;
use tower::util::MapResponseLayer;

/// How long all of it may take.
const LIMIT: Duration = Duration::from_secs(15);

/// How long a connection may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Questions under way at once.
const AT_ONCE: usize = 8;

/// Largest answer that is read, in bytes: many times what an API server answers to these questions.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// What is said wherever the server is not reached, or is none that is wanted.
const NO_ANSWER: &str = "no answer of an API server within 15 s: look at the kubeconfig's server and \
    certificate-authority-data, and at what stands between the manager and it; the manager's log at debug says what it met";

/// Longest foreign text that is shown, in characters.
const MAX_SHOWN: usize = 200;

/// What was seen.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The API server's version, such as `v1.36.3`.
    pub(crate) version: String,
}

/// Why the cluster is not registered with this kubeconfig.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It cannot be used.
    Kubeconfig(String),
    /// The API server does not answer, or not to this user.
    Unreachable(String),
    /// What the kubeconfig's user cannot do and must, or can do and must not.
    Rights(Vec<String>),
}

/// One thing that may be done.
#[derive(Debug, Clone, Copy)]
struct Right<'r> {
    verb: &'r str,
    group: &'r str,
    resource: &'r str,
    name: &'r str,
    /// Empty: in the cluster as a whole.
    namespace: &'r str,
}

const fn right<'r>(verb: &'r str, group: &'r str, resource: &'r str, namespace: &'r str) -> Right<'r> {
    Right { verb, group, resource, name: "", namespace }
}

const CRDS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");
const RBAC: &str = "rbac.authorization.k8s.io";
const PLATFORM: (&str, &str) = ("platform.navin.ai", "managedcomponents");

/// What the import needs: the same as `deploy/import-rbac.yaml` gives.
fn needed(namespace: &str) -> Vec<Right<'_>> {
    let mut rights = Vec::new();
    for (group, resource) in [
        ("", "nodes"),
        ("", "namespaces"),
        CRDS,
        ("storage.k8s.io", "storageclasses"),
        ("networking.k8s.io", "ingressclasses"),
    ] {
        rights.extend(["get", "list"].map(|verb| right(verb, group, resource, "")));
    }
    rights.push(Right { name: "coredns", ..right("get", "apps", "deployments", "kube-system") });
    for verb in ["get", "list", "watch", "create", "update", "patch", "delete"] {
        rights.push(right(verb, PLATFORM.0, PLATFORM.1, namespace));
    }
    rights
}

/// What would make a leaked kubeconfig a way to take over the cluster, or another tenant's namespace.
fn forbidden(namespace: &str) -> Vec<Right<'_>> {
    let mut rights = vec![
        right("*", "*", "*", ""),
        right("list", "", "secrets", ""),
        right("list", "", "configmaps", ""),
        right("list", "", "pods", ""),
        right("get", "", "nodes/proxy", ""),
        right("delete", "", "nodes", ""),
        right("patch", "", "nodes", ""),
        right("create", "", "namespaces", ""),
        right("delete", "", "namespaces", ""),
        right("create", CRDS.0, CRDS.1, ""),
        right("delete", CRDS.0, CRDS.1, ""),
        right("impersonate", "", "users", ""),
        right("impersonate", "", "groups", ""),
        right("create", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", ""),
        right("create", "certificates.k8s.io", "certificatesigningrequests", ""),
        right("list", PLATFORM.0, PLATFORM.1, ""),
        right("update", "apps", "deployments", "kube-system"),
        right("list", "apps", "deployments", "kube-system"),
    ];
    for verb in ["create", "update", "bind", "escalate"] {
        rights
            .extend(["clusterroles", "clusterrolebindings"].map(|resource| right(verb, RBAC, resource, "")));
        rights.extend(["roles", "rolebindings"].map(|resource| right(verb, RBAC, resource, namespace)));
    }
    for namespace in [namespace, "kube-system", "default"] {
        rights.extend(["get", "list", "create"].map(|verb| right(verb, "", "secrets", namespace)));
        rights.push(right("create", "", "pods", namespace));
        rights.push(right("create", "", "pods/exec", namespace));
        rights.push(right("create", "", "serviceaccounts/token", namespace));
        for verb in ["create", "update", "delete"] {
            for resource in ["deployments", "daemonsets", "statefulsets"] {
                rights.push(right(verb, "apps", resource, namespace));
            }
        }
        rights.push(right("create", "batch", "jobs", namespace));
    }
    for other in ["kube-system", "default"].into_iter().filter(|other| *other != namespace) {
        for verb in ["get", "create", "update", "delete"] {
            rights.push(right(verb, PLATFORM.0, PLATFORM.1, other));
        }
    }
    rights
}

/// Looks at the cluster.
pub(crate) async fn check(kubeconfig: &str, namespace: &str) -> Result<Seen, Refused> {
    match tokio::time::timeout(LIMIT, look(kubeconfig, namespace)).await {
        Ok(seen) => seen,
        Err(_) => Err(Refused::Unreachable(NO_ANSWER.to_owned())),
    }
}

async fn look(kubeconfig: &str, namespace: &str) -> Result<Seen, Refused> {
    let client = client(kubeconfig).await?;
    let version = client.apiserver_version().await.map_err(|error| unreachable(&error))?;
    let mut findings = Vec::new();
    for (rights, expected) in [(needed(namespace), true), (forbidden(namespace), false)] {
        for some in rights.chunks(AT_ONCE) {
            findings.extend(ask(&client, some, expected).await?);
        }
    }
    findings.sort();
    if !findings.is_empty() {
        return Err(Refused::Rights(findings));
    }
    Ok(Seen { version: shown(&version.git_version) })
}

/// The rights that are not as they should be.
async fn ask(client: &Client, rights: &[Right<'_>], expected: bool) -> Result<Vec<String>, Refused> {
    let mut questions = JoinSet::new();
    for asked in rights {
        let (api, review) = (Api::<SelfSubjectAccessReview>::all(client.clone()), review(asked));
        let told = asked.told();
        questions.spawn(async move { (told, api.create(&PostParams::default(), &review).await) });
    }
    let mut findings = Vec::new();
    while let Some(answer) = questions.join_next().await {
        let Ok((told, answer)) = answer else {
            return Err(Refused::Unreachable("the check was cut short".to_owned()));
        };
        let allowed =
            answer.map_err(|error| unreachable(&error))?.status.is_some_and(|status| status.allowed);
        if allowed != expected {
            findings.push(format!("{} {told}", if expected { "cannot" } else { "must not be able to" }));
        }
    }
    Ok(findings)
}

fn review(asked: &Right<'_>) -> SelfSubjectAccessReview {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let (resource, subresource) = asked.resource.split_once('/').unwrap_or((asked.resource, ""));
    let attributes = ResourceAttributes {
        verb: text(asked.verb),
        group: text(asked.group),
        resource: text(resource),
        subresource: text(subresource),
        name: text(asked.name),
        namespace: text(asked.namespace),
        ..ResourceAttributes::default()
    };
    SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    }
}

impl Right<'_> {
    /// The right in words, as `kubectl auth can-i` has them.
    fn told(&self) -> String {
        let group = if self.group.is_empty() { String::new() } else { format!(".{}", self.group) };
        let name = if self.name.is_empty() { String::new() } else { format!(" {}", self.name) };
        let place = match self.namespace {
            "" => "in the cluster".to_owned(),
            namespace => format!("in {namespace}"),
        };
        format!("{} {}{group}{name} {place}", self.verb, self.resource)
    }
}

async fn client(kubeconfig: &str) -> Result<Client, Refused> {
    let refused = |why: &str| Refused::Kubeconfig(why.to_owned());
    let parsed = Kubeconfig::from_yaml(kubeconfig).map_err(|_| refused("not a kubeconfig in YAML"))?;
    for cluster in parsed.clusters.iter().filter_map(|named| named.cluster.as_ref()) {
        check_cluster(cluster).map_err(refused)?;
    }
    for user in parsed.auth_infos.iter().filter_map(|named| named.auth_info.as_ref()) {
        check_user(user).map_err(refused)?;
    }
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(parsed, &options)
        .await
        .map_err(|_| refused("the current context lacks its cluster, its user or something in them"))?;
    if config.root_cert.as_ref().is_none_or(Vec::is_empty) {
        return Err(refused("certificate-authority-data: expected a certificate in PEM"));
    }
    config.proxy_url = None;
    config.connect_timeout = Some(CONNECT_LIMIT);
    config.read_timeout = Some(LIMIT);
    config.write_timeout = Some(LIMIT);
    let builder =
        ClientBuilder::try_from(config).map_err(|_| refused("its certificates or keys cannot be used"))?;
    let limit = |answer: Response<Box<DynBody>>| answer.map(|body| Limited::new(body, MAX_ANSWER_BYTES));
    Ok(builder.with_layer(&MapResponseLayer::new(limit)).build())
}

fn check_cluster(cluster: &Cluster) -> Result<(), &'static str> {
    if !cluster.server.as_deref().is_some_and(|server| server.starts_with("https://")) {
        return Err("server: expected https://…");
    }
    if cluster.insecure_skip_tls_verify == Some(true) {
        return Err("insecure-skip-tls-verify: the API server must be known by its certificate");
    }
    if cluster.certificate_authority.is_some() {
        return Err("certificate-authority: expected certificate-authority-data, no file");
    }
    if cluster.certificate_authority_data.is_none() {
        return Err("certificate-authority-data: missing");
    }
    if cluster.proxy_url.is_some() {
        return Err("proxy-url: not taken");
    }
    Ok(())
}

fn check_user(user: &AuthInfo) -> Result<(), &'static str> {
    if user.exec.is_some() || user.auth_provider.is_some() {
        return Err("exec, auth-provider: the manager runs no program; expected a token or a certificate");
    }
    if user.token_file.is_some() || user.client_certificate.is_some() || user.client_key.is_some() {
        return Err("tokenFile, client-certificate, client-key: expected the data itself, no file");
    }
    if user.impersonate.is_some() || user.impersonate_groups.is_some() || user.impersonate_uid.is_some() {
        return Err("as, as-groups, as-uid: expected the user itself");
    }
    Ok(())
}

/// Why there was no answer. What a server said that proved to be of the kubeconfig's authority, as its status alone: what is
/// in its body may be anything. Else nothing, or a tenant could look around in the manager's network.
fn unreachable(error: &kube::Error) -> Refused {
    let why = match error {
        kube::Error::Api(status) => match status.code {
            401 => "the API server does not know the kubeconfig's user (401)".to_owned(),
            code => format!("the API server answered {code}"),
        },
        other => {
            let mut innermost: &dyn std::error::Error = other;
            while let Some(source) = innermost.source() {
                innermost = source;
            }
            tracing::debug!(
                error = shown(&innermost.to_string()),
                "a kubeconfig's API server did not answer"
            );
            NO_ANSWER.to_owned()
        }
    };
    Refused::Unreachable(why)
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_SHOWN).collect()
}
