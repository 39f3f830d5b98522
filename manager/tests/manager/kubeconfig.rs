//! What a cluster is given, and what the manager sees with its kubeconfig: on a real API server.

use crate::support::{Folder, LIMIT, Manager, served};
use navin_test_support::{Api, Cluster, TlsServer};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn yaml(manager: &Manager, token: &str, path: &str) -> String {
    let answer = manager.get(token, path);
    assert_eq!((answer.status, answer.content_type.as_str()), (200, "application/yaml"), "{answer:?}");
    answer.body.as_str().unwrap().to_owned()
}

/// Waits until the API server's authorizer has heard of a new binding, or of its end.
fn until_may(admin: &Api, user: &str, namespace: &str, resource: &str, may: bool) {
    let review = json!({ "spec": { "user": user, "groups": ["system:authenticated"],
        "resourceAttributes": { "verb": "create", "namespace": namespace, "resource": resource,
            "group": if resource == "secrets" { "" } else { "platform.navin.ai" } } } });
    crate::support::until("the rights are effective", || {
        let (_, answer) = admin.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review);
        (answer["status"]["allowed"] == json!(may)).then_some(())
    });
}

#[test]
fn an_imported_cluster_is_seen_with_the_rights_of_import_rbac_and_refused_with_more_or_less() {
    let (folder, cluster) = (Folder::new("import"), Cluster::shared());
    let token = folder.token("acme");
    let manager = folder.serve();
    let (admin, namespace) = (cluster.admin(), "navin-imported");
    let body = json!({ "cluster_id": "prod", "namespace": namespace });
    assert_eq!(manager.post(&token, "/api/v1/clusters", &body).expect(201)["kubernetes"], json!(null));
    let path = "/api/v1/clusters/prod/kubernetes/import-rbac?namespace=";
    manager.get(&token, &format!("{path}default")).expect(400);
    admin.apply_yaml(&yaml(&manager, &token, &format!("{path}{namespace}")));
    let user = format!("system:serviceaccount:{namespace}:navin-import");
    until_may(&admin, &user, namespace, "managedcomponents", true);
    let kubeconfig = cluster.kubeconfig_for(&cluster.service_account_token(namespace, "navin-import"));
    let with = |kubeconfig: &str| {
        let mut body = body.clone();
        body["kubeconfig"] = json!(kubeconfig);
        body
    };

    let seen = manager.post(&token, "/api/v1/clusters", &with(&kubeconfig)).expect(200);
    assert!(seen["kubernetes"]["version"].as_str().unwrap().starts_with("v1."), "{seen}");
    assert!(manager.audit(&token).contains(&"cluster.check done prod checked with a kubeconfig".to_owned()));

    // One right too many.
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": { "name": "more", "namespace": namespace },
        "rules": [{ "apiGroups": [""], "resources": ["secrets"], "verbs": ["create"] }] });
    let binding = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": { "name": "more", "namespace": namespace },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "more" },
        "subjects": [{ "kind": "ServiceAccount", "name": "navin-import", "namespace": namespace }] });
    admin.apply(&role);
    admin.apply(&binding);
    until_may(&admin, &user, namespace, "secrets", true);
    let refused = manager.post(&token, "/api/v1/clusters", &with(&kubeconfig)).expect(422);
    let finding = format!("must not be able to create secrets in {namespace}");
    assert_eq!((&refused["code"], &refused["findings"]), (&json!("kubeconfig_rights"), &json!([finding])));

    // None at all, and all that there are: neither registers a cluster.
    admin.apply(&json!({ "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": { "name": "nobody", "namespace": namespace } }));
    let account = cluster.service_account_token(namespace, "nobody");
    let new =
        |kubeconfig: &str| json!({ "cluster_id": "new", "namespace": namespace, "kubeconfig": kubeconfig });
    let refused =
        manager.post(&token, "/api/v1/clusters", &new(&cluster.kubeconfig_for(&account))).expect(422);
    let findings = refused["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 18, "{refused}");
    assert!(findings.contains(&json!("cannot get deployments.apps coredns in kube-system")), "{refused}");
    let path = folder.join("admin.yaml");
    cluster.kubeconfig(&path);
    let refused =
        manager.post(&token, "/api/v1/clusters", &new(&std::fs::read_to_string(path).unwrap())).expect(422);
    assert!(
        refused["findings"].as_array().unwrap().contains(&json!("must not be able to * *.* in the cluster"))
    );
    let refused =
        manager.post(&token, "/api/v1/clusters", &new(&cluster.kubeconfig_for("unknown"))).expect(422);
    assert_eq!(refused["code"], "kubeconfig_unreachable", "{refused}");
    manager.get(&token, "/api/v1/clusters/new").expect(404);
}

fn config(cluster: &Value, user: &Value) -> String {
    json!({ "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
        "clusters": [{ "name": "c", "cluster": cluster }], "users": [{ "name": "u", "user": user }] })
    .to_string()
}

/// The manager's own authority, as a kubeconfig has one.
fn authority(folder: &Folder) -> String {
    use base64::Engine as _;
    let pem = std::fs::read(folder.join("data/tls/ca.crt")).unwrap();
    base64::engine::general_purpose::STANDARD.encode(pem)
}

/// A server with the manager's certificate, and what registers a cluster with it as its API server.
fn api_server(folder: &Folder, answer: impl Fn() -> String + Send + Sync + 'static) -> (TlsServer, Value) {
    let tls = |name: &str| folder.join("data/tls").join(name);
    let server =
        TlsServer::with_files(&tls("server.crt"), &tls("server.key"), move |_| Some((200, answer())));
    let cluster = json!({ "server": server.url(), "certificate-authority-data": authority(folder) });
    let body = json!({ "cluster_id": "prod", "namespace": "navin",
        "kubeconfig": config(&cluster, &json!({ "token": "t" })) });
    (server, body)
}

#[test]
fn of_an_api_server_that_answers_without_end_little_is_read() {
    let (folder, token, manager) = served("kubeconfig-endless");
    let (server, body) = api_server(&folder, || "0".repeat(128 * 1024 * 1024));
    let refused = manager.post(&token, "/api/v1/clusters", &body).expect(422);
    assert_eq!(refused["code"], "kubeconfig_unreachable", "{refused}");
    // What the connection holds comes on top of the 64 KiB that are read.
    assert!(server.sent() < 32 * 1024 * 1024, "{} bytes were taken", server.sent());
}

#[test]
fn what_a_manager_can_reach_is_not_told() {
    let (folder, token, manager) = served("kubeconfig-told");
    let (server, no_json) = api_server(&folder, || "no JSON".to_owned());
    let (other, mut elsewhere) = api_server(&folder, || "{}".to_owned());
    let with = |address: &str, ca: &str| {
        let cluster = json!({ "server": address, "certificate-authority-data": ca });
        let kubeconfig = config(&cluster, &json!({ "token": "t" }));
        json!({ "cluster_id": "prod", "namespace": "navin", "kubeconfig": kubeconfig })
    };
    let (ours, theirs) = (authority(&folder), authority(&served("kubeconfig-told-other").0));
    elsewhere["kubeconfig"] =
        json!(elsewhere["kubeconfig"].as_str().unwrap().replace("127.0.0.1", "127.0.0.2"));
    let nobody = with("https://127.0.0.1:1", &ours);
    let told =
        [no_json, elsewhere, nobody, with(&server.url(), &theirs), with(&manager.url(), &ours)].map(|body| {
            let refused = manager.post(&token, "/api/v1/clusters", &body).expect(422);
            refused["detail"].as_str().unwrap().to_owned()
        });
    drop(other);
    // The last is a server of that authority, which says 401.
    assert!(
        told[..4].iter().all(|one| one.starts_with("no answer of an API server") && *one == told[0]),
        "{told:?}"
    );
}

#[test]
fn a_tenant_has_two_kubeconfigs_looked_at_at_once() {
    let (folder, token, manager) = served("kubeconfig-two");
    let other = folder.token("rival");
    let (_server, body) = api_server(&folder, || {
        thread::sleep(Duration::from_secs(1));
        "no JSON".to_owned()
    });
    let post = |token: &str| manager.post(token, "/api/v1/clusters", &body);
    let (seen, began) = (AtomicBool::new(false), Instant::now());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !seen.load(Ordering::Relaxed) && began.elapsed() < LIMIT {
                    post(&token);
                }
            });
        }
        let refused = crate::support::until("both are looked at", || {
            // Ours may be one of the two.
            Some(post(&token)).filter(|answer| answer.status != 422)
        });
        let others = post(&other);
        seen.store(true, Ordering::Relaxed);
        refused.expect_put_off(503, 5);
        assert_eq!(refused.body["code"], "overloaded");
        assert_eq!(others.expect(422)["code"], "kubeconfig_unreachable");
    });
}

#[test]
fn a_kubeconfig_that_names_a_program_a_file_or_no_certificate_is_not_used() {
    let (folder, token, manager) = served("kubeconfig");
    let mark = folder.join("ran").display().to_string();
    let good_cluster =
        json!({ "server": "https://127.0.0.1:1", "certificate-authority-data": authority(&folder) });
    let with = |name: &str, value: Value| {
        let mut cluster = good_cluster.clone();
        cluster[name] = value;
        config(&cluster, &json!({ "token": "t" }))
    };
    let exec = json!({ "apiVersion": "client.authentication.k8s.io/v1", "command": "touch", "args": [mark],
        "interactiveMode": "Never" });
    for kubeconfig in [
        String::new(),
        "apiVersion: v1".to_owned(),
        "{".to_owned(),
        with("server", json!("http://127.0.0.1:1")),
        with("insecure-skip-tls-verify", json!(true)),
        with("certificate-authority", json!("/etc/hostname")),
        with("certificate-authority-data", json!(null)),
        with("certificate-authority-data", json!("LS0t")),
        with("proxy-url", json!("http://127.0.0.1:1")),
        config(&good_cluster, &json!({ "exec": exec })),
        config(&good_cluster, &json!({ "tokenFile": "/etc/hostname" })),
        config(
            &good_cluster,
            &json!({ "client-certificate": "/etc/hostname", "client-key": "/etc/hostname" }),
        ),
        config(&good_cluster, &json!({ "auth-provider": { "name": "gcp", "config": {} } })),
        config(&good_cluster, &json!({ "token": "t", "as": "system:admin" })),
    ] {
        let body = json!({ "cluster_id": "prod", "namespace": "navin", "kubeconfig": kubeconfig });
        let refused = manager.post(&token, "/api/v1/clusters", &body).expect(422);
        assert_eq!(refused["code"], "kubeconfig_invalid", "{kubeconfig}: {refused}");
    }
    assert!(!folder.join("ran").exists(), "a program was run");
    // Nobody listens there: refused in time, and without the cluster.
    let kubeconfig = config(&good_cluster, &json!({ "token": "t" }));
    let body = json!({ "cluster_id": "prod", "namespace": "navin", "kubeconfig": kubeconfig });
    assert_eq!(manager.post(&token, "/api/v1/clusters", &body).expect(422)["code"], "kubeconfig_unreachable");
    manager.get(&token, "/api/v1/clusters/prod").expect(404);
    assert!(manager.audit(&token).contains(&"rest.post refused /api/v1/clusters 422".to_owned()));
}

#[test]
fn the_manifests_are_taken_by_a_real_api_server_and_fit_their_cluster() {
    let (folder, cluster) = (Folder::new("manifests"), Cluster::shared());
    let token = folder.token("acme");
    let manager = folder.serve();
    let body = json!({ "cluster_id": "prod", "namespace": "0815" });
    manager.post(&token, "/api/v1/clusters", &body).expect(201);
    let gateway = json!({ "gateway_url": "https://manager.example:9443" });
    manager.post(&token, "/api/v1/clusters/prod/kubernetes/agent", &gateway).expect(201);
    let path = "/api/v1/clusters/prod/kubernetes/agent/manifests";
    for image in ["agent", "agent:latest", "agent@sha256:0", ""] {
        manager.get(&token, &format!("{path}?image={image}")).expect(400);
    }
    manager.get(&token, path).expect(400);
    let image = format!("registry.example:5000/navin/agent@sha256:{}", "0a".repeat(32));
    let text = yaml(&manager, &token, &format!("{path}?image={image}"));
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let kinds: Vec<&str> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    for kind in [
        "Namespace",
        "CustomResourceDefinition",
        "ServiceAccount",
        "Role",
        "RoleBinding",
        "ClusterRole",
        "ClusterRoleBinding",
        "Deployment",
        "NetworkPolicy",
        "PodDisruptionBudget",
    ] {
        assert!(kinds.contains(&kind), "{kind}");
    }
    for object in &objects {
        let place = object["metadata"]["namespace"].as_str();
        assert!(place.is_none_or(|place| place == "0815"), "{object}");
    }
    cluster.admin().apply_yaml(&text);
    let (_, policy) =
        cluster.admin().get("/apis/networking.k8s.io/v1/namespaces/0815/networkpolicies/navin-cluster-agent");
    assert_eq!(policy["spec"]["egress"][2]["ports"], json!([{ "port": 9443, "protocol": "TCP" }]));
    // The pods of the Deployment are such as the namespace lets in.
    let (_, deployment) =
        cluster.admin().get("/apis/apps/v1/namespaces/0815/deployments/navin-cluster-agent");
    let spec = &deployment["spec"]["template"]["spec"];
    assert_eq!(spec["containers"][0]["image"], json!(image));
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "as-deployed", "namespace": "0815" },
        "spec": spec });
    let (status, answer) = cluster.admin().post("/api/v1/namespaces/0815/pods?dryRun=All", &pod);
    assert_eq!(status, 201, "{answer}");
    let mut privileged = pod;
    privileged["spec"]["hostNetwork"] = json!(true);
    let (status, answer) = cluster.admin().post("/api/v1/namespaces/0815/pods?dryRun=All", &privileged);
    assert_eq!(status, 403, "Pod Security is not enforced: {answer}");
}
