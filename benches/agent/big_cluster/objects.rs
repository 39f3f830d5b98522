//! What a large cluster holds.

use navin_cluster_agent::rules::names;
use serde_json::{Map, Value, json};

/// Chance that is the same in every run (SplitMix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn one_of<'a>(&mut self, these: &[&'a str]) -> &'a str {
        let number = self.below(these.len() as u64);
        these[usize::try_from(number).expect("a small number")]
    }
}

/// Hexadecimal digits that nobody else has.
fn hex(of: &str, digits: usize) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, of.as_bytes());
    let mut text = names::hex(digest.as_ref());
    text.truncate(digits);
    text
}

const REGISTRIES: [&str; 6] = [
    "registry.k8s.io",
    "quay.io",
    "docker.io",
    "ghcr.io",
    "123456789012.dkr.ecr.eu-central-1.amazonaws.com",
    "europe-docker.pkg.dev/acme-prod",
];
const IMAGES: [&str; 22] = [
    "kube-proxy",
    "pause",
    "coredns",
    "ingress-nginx/controller",
    "prometheus/node-exporter",
    "prometheus/prometheus",
    "grafana/grafana",
    "grafana/loki",
    "cilium/cilium",
    "cilium/operator-generic",
    "calico/node",
    "calico/cni",
    "fluent/fluent-bit",
    "jetstack/cert-manager-controller",
    "external-dns/external-dns",
    "metrics-server/metrics-server",
    "sig-storage/csi-provisioner",
    "sig-storage/csi-node-driver-registrar",
    "sig-storage/livenessprobe",
    "ebs-csi-driver/aws-ebs-csi-driver",
    "team-a/checkout",
    "team-a/cart",
];
const TYPES: [&str; 5] = ["m6i.2xlarge", "m6i.4xlarge", "c6i.8xlarge", "r6i.4xlarge", "m7g.4xlarge"];

/// A node of a cloud: about 9.7 kB as the API server lists it.
pub(super) fn node(number: u32) -> Value {
    let mut chance = Chance(number.into());
    let own = |what: &str, digits: usize| hex(&format!("{number}-{what}"), digits);
    let zone = format!("eu-central-1{}", ["a", "b", "c"][number as usize % 3]);
    let name = format!("big-node-{number:05}.eu-central-1.compute.internal");
    let kind = chance.one_of(&TYPES);
    let arch = if kind.starts_with("m7g") { "arm64" } else { "amd64" };
    let ip = format!("10.{}.{}.{}", 64 + number / 65_536, number / 256 % 256, number % 256);
    let pods = format!("100.{}.{}.0/24", 64 + number / 256 % 64, number % 256);
    let labels = json!({
        "big-cluster": "true", "beta.kubernetes.io/arch": arch, "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/instance-type": kind, "kubernetes.io/arch": arch, "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": name, "node.kubernetes.io/instance-type": kind,
        "topology.kubernetes.io/region": "eu-central-1", "topology.kubernetes.io/zone": zone,
        "failure-domain.beta.kubernetes.io/region": "eu-central-1",
        "failure-domain.beta.kubernetes.io/zone": zone, "topology.ebs.csi.aws.com/zone": zone,
        "eks.amazonaws.com/nodegroup": format!("ng-{}-{zone}", kind.replace('.', "-")),
        "eks.amazonaws.com/capacityType": chance.one_of(&["ON_DEMAND", "SPOT"]),
        "k8s.io/cloud-provider-aws": own("cloud", 32), "node-role.kubernetes.io/worker": "",
        "team": chance.one_of(&["a", "b", "c", "d"]), "type": "kwok",
    });
    let driver = format!(r#"{{"ebs.csi.aws.com": "i-{0}", "efs.csi.aws.com": "i-{0}"}}"#, own("id", 17));
    let annotations = json!({
        "alpha.kubernetes.io/provided-node-ip": ip, "kwok.x-k8s.io/node": "fake",
        "csi.volume.kubernetes.io/nodeid": driver, "node.alpha.kubernetes.io/ttl": "15",
        "kubeadm.alpha.kubernetes.io/cri-socket": "unix:///run/containerd/containerd.sock",
        "projectcalico.org/IPv4Address": format!("{ip}/18"),
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
    });
    let mut spec = json!({
        "podCIDR": pods, "podCIDRs": [pods], "providerID": format!("aws:///{zone}/i-{}", own("id", 17)),
    });
    if number.is_multiple_of(20) {
        spec["taints"] = json!([{ "key": "dedicated", "value": "ml", "effect": "NoSchedule" }]);
    }
    let volume = |k: u32| format!("kubernetes.io/csi/ebs.csi.aws.com^vol-{}", own(&format!("v{k}"), 17));
    let attached = [0, 1, 2].map(|k| json!({ "name": volume(k), "devicePath": "" }));
    let cores = match kind.split('.').nth(1) {
        Some("2xlarge") => 8,
        Some("4xlarge") => 16,
        _ => 32,
    };
    let memory = format!("{}Ki", cores * 4 * 1024 * 1024 - chance.below(400_000));
    let resources = |cpu: String, disk: &str| {
        json!({ "cpu": cpu, "memory": memory, "pods": "110", "ephemeral-storage": disk,
            "hugepages-1Gi": "0", "hugepages-2Mi": "0" })
    };
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "labels": labels, "annotations": annotations },
        "spec": spec,
        "status": {
            "capacity": resources(cores.to_string(), "104845292Ki"),
            "allocatable": resources(format!("{}m", cores * 1000 - 90), "95551679124"),
            "conditions": conditions(!number.is_multiple_of(97)),
            "addresses": [{ "type": "InternalIP", "address": ip }, { "type": "Hostname", "address": name },
                { "type": "InternalDNS", "address": name }],
            "daemonEndpoints": { "kubeletEndpoint": { "Port": 10250 } },
            "nodeInfo": {
                "machineID": own("machine", 32), "systemUUID": own("system", 36), "bootID": own("boot", 36),
                "kernelVersion": format!("6.12.40-63.114.amzn2023.{arch}"),
                "osImage": "Amazon Linux 2023.8.20260707", "containerRuntimeVersion": "containerd://2.1.4",
                "kubeletVersion": format!("v1.{}.{}", 34 + number % 3, number % 5), "kubeProxyVersion": "",
                "operatingSystem": "linux", "architecture": arch,
            },
            "images": IMAGES.map(|image| image_of(image, &mut chance)),
            "volumesInUse": [volume(0), volume(1), volume(2)],
            "volumesAttached": attached,
        },
    })
}

fn image_of(name: &str, chance: &mut Chance) -> Value {
    let registry = chance.one_of(&REGISTRIES);
    let digest = hex(&format!("{name}-{}", chance.below(40)), 64);
    let version = format!("v{}.{}.{}", 1 + chance.below(3), chance.below(30), chance.below(9));
    json!({ "names": [format!("{registry}/{name}@sha256:{digest}"), format!("{registry}/{name}:{version}")],
        "sizeBytes": 500_000 + chance.below(900_000_000) })
}

fn conditions(ready: bool) -> Value {
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({ "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": "2026-11-30T02:00:00Z", "lastTransitionTime": "2026-08-01T06:11:02Z" })
    };
    let enough = |kind: &str, what: &str| {
        let message = format!("kubelet has sufficient {} available", what.to_lowercase());
        condition(kind, "False", &format!("KubeletHasSufficient{what}"), &message)
    };
    let is_ready = if ready {
        condition("Ready", "True", "KubeletReady", "kubelet is posting ready status")
    } else {
        condition("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
    };
    json!([
        enough("MemoryPressure", "Memory"),
        enough("DiskPressure", "Disk"),
        enough("PIDPressure", "PID"),
        condition("NetworkUnavailable", "False", "CalicoIsUp", "Calico is running on this node"),
        is_ready,
    ])
}

pub(super) fn namespace(number: u32) -> Value {
    let (team, stage) = (number % 25, ["dev", "staging", "prod"][number as usize % 3]);
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": format!("big-ns-{number:04}"),
        "labels": { "big-cluster": "true", "team": format!("team-{team}"),
            "env": stage,
            "pod-security.kubernetes.io/enforce": "baseline", "cost-center": format!("cc-{:04}", number % 40),
            "app.kubernetes.io/managed-by": "helm" },
        "annotations": { "owner": format!("team-{team}@example.com"),
            "meta.helm.sh/release-name": format!("tenant-{number}"),
            "field.cattle.io/projectId": format!("c-m-abcdefgh:p-{team:05}") } } })
}

/// One of about 6.5 kB, as operators bring them.
pub(super) fn crd(number: u32) -> Value {
    let (group, kind) = (format!("g{}.big.example.com", number % 10), format!("Big{number:03}"));
    let plural = format!("{}s", kind.to_lowercase());
    let text = |description: &str| json!({ "type": "string", "description": description });
    let part = |k: u32| {
        let name = format!("option{k}");
        let description = format!("settings of part {k} of {kind}, used when the part is enabled");
        (
            name,
            json!({ "type": "object", "description": description, "properties": {
            "enabled": { "type": "boolean" }, "name": text("the name of the referenced object"),
            "namespace": text("the namespace of the referenced object"),
            "values": { "type": "array", "items": { "type": "string" } } } }),
        )
    };
    let amounts = json!({ "type": "object", "additionalProperties": {
        "anyOf": [{ "type": "integer" }, { "type": "string" }], "x-kubernetes-int-or-string": true } });
    let mut properties: Map<String, Value> = (0..8).map(part).collect();
    properties.insert("replicas".into(), json!({ "type": "integer", "format": "int32", "minimum": 0 }));
    properties.insert(
        "resources".into(),
        json!({ "type": "object",
        "properties": { "limits": amounts, "requests": amounts } }),
    );
    let conditions = json!({ "type": "array", "items": { "type": "object", "required": ["type", "status"],
        "properties": {
            "type": text("type of the condition in CamelCase"),
            "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
            "reason": text("a programmatic identifier of the reason of the last transition"),
            "message": text("a human readable message about the transition"),
            "lastTransitionTime": { "type": "string", "format": "date-time" } } } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}"), "labels": { "big-cluster": "true" },
            "annotations": { "controller-gen.kubebuilder.io/version": "v0.19.0" } },
        "spec": {
            "group": group, "scope": if number.is_multiple_of(5) { "Cluster" } else { "Namespaced" },
            "names": { "kind": kind, "listKind": format!("{kind}List"), "plural": plural,
                "singular": kind.to_lowercase() },
            "versions": [{ "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "description": format!("desired state of {kind}"),
                        "properties": properties },
                    "status": { "type": "object", "properties": { "conditions": conditions,
                        "phase": { "type": "string" } } } } } } }],
        },
    })
}

pub(super) fn storage_class(number: u32) -> Value {
    json!({ "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": { "name": format!("big-sc-{number:03}"), "labels": { "big-cluster": "true" } },
        "provisioner": "ebs.csi.aws.com", "parameters": { "type": "gp3", "encrypted": "true" },
        "reclaimPolicy": "Delete", "volumeBindingMode": "WaitForFirstConsumer", "allowVolumeExpansion": true })
}

pub(super) fn ingress_class(number: u32) -> Value {
    json!({ "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass",
        "metadata": { "name": format!("big-ic-{number:03}"), "labels": { "big-cluster": "true" } },
        "spec": { "controller": format!("example.com/ingress-{number}") } })
}
