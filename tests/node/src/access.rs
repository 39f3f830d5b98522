//! What the two accounts may do: the API server is asked about every verb on every resource that it has.
//!
//! `tests/node/allowed.txt` is the answer: `ACCOUNT NAMESPACE GROUP/RESOURCE[NAME]: VERBS`, `*` for the cluster as
//! a whole. What is allowed there is not repeated for each namespace, nor what is allowed for any name for each.

use crate::site::{NAMESPACE, Site};
use navin_test_support::{Api, workspace_dir};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::thread;

const ACCOUNTS: [&str; 2] = ["navin-cluster-agent", "navin-import"];
/// The cluster as a whole first; then the own namespace, the system's, and any other.
const SCOPES: [&str; 4] = ["", NAMESPACE, "kube-system", "default"];
/// Every verb that RBAC knows by name, and all at once.
const VERBS: [&str; 16] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "bind",
    "escalate",
    "impersonate",
    "use",
    "approve",
    "sign",
    "attest",
    "*",
];
/// Those that can be limited to a name.
const NAMED_VERBS: [&str; 5] = ["get", "watch", "update", "patch", "delete"];
/// The names in our roles, and one that is in none.
const NAMES: [&str; 4] = ["navin-cluster-agent", "navin-cluster-agent-state", "coredns", "any-other"];
const PATHS: [&str; 9] =
    ["/version", "/api", "/apis", "/healthz", "/metrics", "/logs", "/openapi/v3", "/debug/pprof", "/*"];
/// Questions under way at once.
const AT_ONCE: usize = 4;

/// A resource of the API server, subresources included: its group, and its name.
type Resource = (String, String);
/// The lines of `allowed.txt`: account, scope and resource, with the verbs.
type Allowed = BTreeMap<String, BTreeSet<String>>;

/// Compared line by line; the difference is told, and must be empty.
pub(crate) fn as_listed(site: &Site) -> String {
    let api = &site.api;
    let resources = discovered(api);
    let parts: Vec<Vec<Resource>> =
        (0..AT_ONCE).map(|part| resources.iter().skip(part).step_by(AT_ONCE).cloned().collect()).collect();
    let answers: Vec<(Allowed, usize)> = thread::scope(|scope| {
        let asked: Vec<_> = parts.iter().map(|part| scope.spawn(|| Questions::asked(api, part))).collect();
        asked.into_iter().map(|part| part.join().expect("answers")).collect()
    });
    let questions: usize = answers.iter().map(|(_, number)| number).sum();
    let found: BTreeSet<String> = answers
        .into_iter()
        .flat_map(|(allowed, _)| allowed)
        .map(|(what, verbs)| format!("{what}: {}", Vec::from_iter(verbs).join(" ")))
        .chain(paths(api))
        .collect();
    fs::write(site.folder.join("log/allowed.txt"), Vec::from_iter(found.clone()).join("\n") + "\n")
        .expect("a file of the logs");

    let listed = fs::read_to_string(workspace_dir().join("tests/node/allowed.txt")).expect("allowed.txt");
    let listed: BTreeSet<String> =
        listed.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect();
    for line in found.difference(&listed) {
        println!("            + {line}");
    }
    for line in listed.difference(&found) {
        println!("            - {line}");
    }
    assert!(found == listed, "allowed is not what tests/node/allowed.txt lists");
    format!("{} resources, {questions} questions, no difference", resources.len())
}

/// Every resource of every version of every group.
fn discovered(api: &Api) -> Vec<Resource> {
    let (_, groups) = api.get("/apis");
    let mut paths = vec![(String::new(), "/api/v1".to_owned())];
    for group in groups["groups"].as_array().expect("groups") {
        for version in group["versions"].as_array().expect("versions") {
            let version = version["groupVersion"].as_str().expect("a version");
            paths.push((group["name"].as_str().expect("a name").to_owned(), format!("/apis/{version}")));
        }
    }
    let mut found = BTreeSet::new();
    for (group, path) in paths {
        let (_, list) = api.get(&path);
        for resource in list["resources"].as_array().expect("resources") {
            found.insert((group.clone(), resource["name"].as_str().expect("a name").to_owned()));
        }
    }
    // No resource that discovery lists, but RBAC knows them: to act as somebody else.
    for subject in ["users", "groups", "uids"] {
        found.insert((String::new(), subject.to_owned()));
    }
    Vec::from_iter(found)
}

struct Questions<'a> {
    api: &'a Api,
    allowed: Allowed,
    number: usize,
}

impl Questions<'_> {
    fn asked(api: &Api, resources: &[Resource]) -> (Allowed, usize) {
        let mut questions = Questions { api, allowed: Allowed::new(), number: 0 };
        for account in ACCOUNTS {
            for resource in resources {
                for verb in VERBS {
                    questions.about(account, resource, verb);
                }
            }
        }
        (questions.allowed, questions.number)
    }

    fn about(&mut self, account: &str, resource: &Resource, verb: &str) {
        if self.ask(account, "", resource, verb, "") {
            return;
        }
        for scope in SCOPES {
            if !scope.is_empty() && self.ask(account, scope, resource, verb, "") {
                continue;
            }
            if NAMED_VERBS.contains(&verb) {
                for name in NAMES {
                    self.ask(account, scope, resource, verb, name);
                }
            }
        }
    }

    fn ask(&mut self, account: &str, scope: &str, resource: &Resource, verb: &str, name: &str) -> bool {
        let (group, resource) = resource;
        let (main, sub) = resource.split_once('/').unwrap_or((resource, ""));
        self.number += 1;
        let attributes = json!({ "namespace": scope, "verb": verb, "group": group, "resource": main,
            "subresource": sub, "name": name });
        let allowed = review(self.api, account, "resourceAttributes", attributes);
        if allowed {
            let shown = if scope.is_empty() { "*" } else { scope };
            let name = if name.is_empty() { String::new() } else { format!("[{name}]") };
            let what = format!("{account} {shown} {group}/{resource}{name}");
            self.allowed.entry(what).or_default().insert(verb.to_owned());
        }
        allowed
    }
}

/// What is no resource.
fn paths(api: &Api) -> Vec<String> {
    let mut allowed = vec![];
    for account in ACCOUNTS {
        for path in PATHS {
            for verb in ["get", "post"] {
                if review(api, account, "nonResourceAttributes", json!({ "path": path, "verb": verb })) {
                    allowed.push(format!("{account} {path}: {verb}"));
                }
            }
        }
    }
    allowed
}

/// As the account's own token would be answered: with the groups that every account is in.
fn review(api: &Api, account: &str, kind: &str, attributes: Value) -> bool {
    let groups =
        ["system:serviceaccounts", &format!("system:serviceaccounts:{NAMESPACE}"), "system:authenticated"];
    let mut review = json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": { "user": format!("system:serviceaccount:{NAMESPACE}:{account}"), "groups": groups } });
    review["spec"][kind] = attributes;
    let (status, answer) = api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review);
    assert_eq!(status, 201, "{answer}");
    answer["status"]["allowed"] == true
}
