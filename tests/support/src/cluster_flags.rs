//! How etcd and kube-apiserver are started.

/// Every call once, when it is answered, without its bodies.
pub(crate) const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
";

pub(crate) fn etcd_flags(client_port: u16, peer_port: u16) -> Vec<String> {
    let (client, peer) = (format!("http://127.0.0.1:{client_port}"), format!("http://127.0.0.1:{peer_port}"));
    vec![
        "--data-dir=etcd".into(),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        // A machine that loses its power loses the test as well.
        "--unsafe-no-fsync".into(),
        "--log-level=warn".into(),
    ]
}

pub(crate) fn api_server_flags(etcd_port: u16, secure_port: u16) -> Vec<String> {
    vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
        "--bind-address=127.0.0.1".into(),
        format!("--secure-port={secure_port}"),
        // Loopback is no address for an Endpoints object, and nobody here looks for one.
        "--advertise-address=127.0.0.1".into(),
        "--endpoint-reconciler-type=none".into(),
        "--cert-dir=certificates".into(),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        "--service-account-signing-key-file=accounts.key".into(),
        "--service-account-key-file=accounts.pub".into(),
        "--service-cluster-ip-range=10.96.0.0/16".into(),
        "--authorization-mode=RBAC,Node".into(),
        "--token-auth-file=tokens.csv".into(),
    ]
}
