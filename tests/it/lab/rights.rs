//! The rights of the agent's service account (CONTRACT section 6), as the API server and the doctor write them.

/// In the cluster as a whole.
pub(crate) const IN_THE_CLUSTER: [&str; 10] = [
    "get /nodes",
    "list /nodes",
    "get /namespaces",
    "list /namespaces",
    "get apiextensions.k8s.io/customresourcedefinitions",
    "list apiextensions.k8s.io/customresourcedefinitions",
    "get storage.k8s.io/storageclasses",
    "list storage.k8s.io/storageclasses",
    "get networking.k8s.io/ingressclasses",
    "list networking.k8s.io/ingressclasses",
];

/// In the managed namespace, besides.
pub(crate) const IN_ITS_NAMESPACE: [&str; 15] = [
    "get coordination.k8s.io/leases/navin-cluster-agent",
    "watch coordination.k8s.io/leases/navin-cluster-agent",
    "update coordination.k8s.io/leases/navin-cluster-agent",
    "create coordination.k8s.io/leases",
    "get /configmaps/navin-cluster-agent-state",
    "update /configmaps/navin-cluster-agent-state",
    "create /configmaps",
    "create /events",
    "patch /events",
    "get platform.navin.ai/managedcomponents",
    "list platform.navin.ai/managedcomponents",
    "watch platform.navin.ai/managedcomponents",
    "create platform.navin.ai/managedcomponents",
    "update platform.navin.ai/managedcomponents",
    "delete platform.navin.ai/managedcomponents",
];
