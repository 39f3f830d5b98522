//! YAML for `kubectl apply`: the files of `deploy/`, for one cluster's namespace.

use super::call::Segments;
use super::caller::Operator;
use super::problem::Problem;
use crate::app::{Shared, http};
use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

/// The agent's side of a cluster, in the order in which it is applied.
const AGENT: [&str; 7] = [
    include_str!("../../../deploy/namespace.yaml"),
    include_str!("../../../deploy/crd.yaml"),
    include_str!("../../../deploy/serviceaccount.yaml"),
    include_str!("../../../deploy/rbac.yaml"),
    include_str!("../../../deploy/deployment.yaml"),
    include_str!("../../../deploy/networkpolicy.yaml"),
    include_str!("../../../deploy/poddisruptionbudget.yaml"),
];

/// What the manager may do in a cluster that it imports.
const IMPORT: &str = include_str!("../../../deploy/import-rbac.yaml");

/// The namespace that the files name.
const NAMESPACE: &str = "navin-platform";

/// The image that the files name.
const IMAGE: &str =
    "navin-cluster-agent@sha256:0000000000000000000000000000000000000000000000000000000000000000";

/// The gateway's port that the files name.
const GATEWAY_PORT: u16 = 8462;

/// Longest name of an image, in bytes.
const MAX_IMAGE_NAME: usize = 255;

/// For which namespace.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Import {
    namespace: Option<String>,
}

/// Of which image.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Image {
    image: String,
}

/// `GET /api/v1/clusters/{cluster_id}/kubernetes/import-rbac?namespace=`
pub(crate) async fn import_rbac(
    State(app): State<Shared>,
    Extension(operator): Extension<Operator>,
    Segments(cluster_id): Segments<String>,
    query: Result<Query<Import>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(query) = query.map_err(|_| Problem::bad_request("the query: expected namespace, once"))?;
    let placement = app.store.placement(&operator.cluster(cluster_id)?).await?;
    let placement = placement.ok_or_else(Problem::no_cluster)?;
    if query.namespace.is_some_and(|namespace| namespace != placement.namespace) {
        return Err(Problem::bad_request("namespace: not the one that the cluster is registered with"));
    }
    Ok(yaml(in_namespace(IMPORT, &placement.namespace)))
}

/// `GET /api/v1/clusters/{cluster_id}/kubernetes/agent/manifests?image=`
pub(crate) async fn agent(
    State(app): State<Shared>,
    Extension(operator): Extension<Operator>,
    Segments(cluster_id): Segments<String>,
    query: Result<Query<Image>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(query) = query.map_err(|_| Problem::bad_request("image: expected once"))?;
    let placement = app.store.placement(&operator.cluster(cluster_id)?).await?;
    let placement = placement.ok_or_else(Problem::no_cluster)?;
    if !is_pinned(&query.image) {
        return Err(Problem::bad_request("image: expected name@sha256:<64 lower-case hex digits>"));
    }
    let port = placement.gateway_url.as_deref().map_or(GATEWAY_PORT, port_of);
    let text = AGENT.map(|file| in_namespace(file, &placement.namespace)).join("---\n");
    let text = text
        .replace(IMAGE, &query.image)
        .replace(&format!("- port: {GATEWAY_PORT}\n"), &format!("- port: {port}\n"));
    Ok(yaml(text))
}

fn yaml(text: String) -> Response {
    http::text(StatusCode::OK, text, "application/yaml")
}

/// The file with every mention of its namespace replaced. The name is an RFC 1123 label: what it is in
/// YAML cannot be anything else.
fn in_namespace(file: &str, namespace: &str) -> String {
    let mut text = String::with_capacity(file.len());
    for line in file.lines() {
        let value = line.trim_start().trim_start_matches("- ");
        if value == format!("namespace: {NAMESPACE}") || value == format!("name: {NAMESPACE}") {
            // A label may be all digits, which YAML would read as a number.
            text.push_str(&line.replace(NAMESPACE, &format!("\"{namespace}\"")));
        } else {
            text.push_str(line);
        }
        text.push('\n');
    }
    text
}

/// Whether an image is named by its digest, in characters that are nothing else in YAML.
fn is_pinned(image: &str) -> bool {
    let Some((name, digest)) = image.split_once('@') else { return false };
    let Some(hex) = digest.strip_prefix("sha256:") else { return false };
    let is_hex = hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_name = name.len() <= MAX_IMAGE_NAME
        && name.split(['/', ':']).all(|part| {
            part.starts_with(|c: char| c.is_ascii_alphanumeric())
                && part.ends_with(|c: char| c.is_ascii_alphanumeric())
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
        });
    is_hex && is_name
}

/// The port of an address that the agent's rules took: `https://host[:port]`.
fn port_of(url: &str) -> u16 {
    let host = url.trim_start_matches("https://");
    let after_address = host.rsplit_once(']').map_or(host, |(_, rest)| rest);
    after_address.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or(443)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_named_by_its_digest() {
        let digest = format!("@sha256:{}", "0f".repeat(32));
        for name in ["agent", "registry.example:5000/navin/agent", "a/b:v1.2-3"] {
            assert!(is_pinned(&format!("{name}{digest}")), "{name}");
        }
        for name in ["", "a b", "a:", "/a", "a//b", "a\nkind: Pod", "a: b", "-a", "a@b", "\"a\""] {
            assert!(!is_pinned(&format!("{name}{digest}")), "{name}");
        }
        for image in
            ["agent", "agent:v1", "agent@sha256:", "agent@sha512:00", &format!("a@sha256:{}", "0".repeat(63))]
        {
            assert!(!is_pinned(image), "{image}");
        }
        assert!(!is_pinned(&format!("agent@sha256:{}", "A".repeat(64))));
    }

    #[test]
    fn the_port_is_the_addresss_or_that_of_https() {
        let cases =
            [("https://a", 443), ("https://a:8462", 8462), ("https://[::1]", 443), ("https://[::1]:9", 9)];
        for (url, port) in cases {
            assert_eq!(port_of(url), port, "{url}");
        }
    }

    #[test]
    fn no_mention_of_the_files_own_namespace_is_left() {
        for file in AGENT.iter().chain([&IMPORT]) {
            let text = in_namespace(file, "elsewhere");
            assert!(!text.lines().any(|line| !line.starts_with('#') && line.contains(NAMESPACE)), "{text}");
        }
        assert!(AGENT.iter().any(|file| file.contains(&format!("image: {IMAGE}\n"))));
        assert!(AGENT.iter().any(|file| file.contains(&format!("- port: {GATEWAY_PORT}\n"))));
    }
}
