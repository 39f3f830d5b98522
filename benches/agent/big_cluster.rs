//! A control plane of its own that holds a large cluster: nodes as a cloud's are, namespaces, CRDs and classes.

mod objects;

use crate::audit::Audit;
use crate::lab::BOUND;
use crate::measure::cpu_ms;
use crate::raw::Raw;
use navin_test_support::{Cluster, RunFolder, say, until};
use objects::{crd, ingress_class, namespace, node, storage_class};
use serde_json::Value;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Connections that fill it.
const WORKERS: usize = 4;
/// Besides the four that every cluster has.
const NAMESPACES: u32 = 500;
const CRDS: u32 = 200;
const STORAGE_CLASSES: u32 = 8;
const INGRESS_CLASSES: u32 = 4;

/// The cluster, and who asked it what.
pub(crate) struct BigCluster {
    pub(crate) cluster: &'static Cluster,
    pub(crate) audit: Audit,
    /// For the peers: the cluster's admin.
    pub(crate) kubeconfig: PathBuf,
    nodes: u32,
    _folder: RunFolder,
}

impl BigCluster {
    /// Starts it and fills it: about ten seconds for 5,000 nodes.
    pub(crate) fn start(nodes: u32) -> Self {
        let cluster: &'static Cluster = Box::leak(Box::new(Cluster::start_audited()));
        let folder = RunFolder::new("bench-big");
        let kubeconfig = folder.path().join("kubeconfig");
        cluster.kubeconfig(&kubeconfig);
        let mut big =
            Self { cluster, audit: Audit::new(cluster.audit_log()), kubeconfig, nodes: 0, _folder: folder };
        big.fill("/apis/storage.k8s.io/v1/storageclasses", 0..STORAGE_CLASSES, storage_class);
        big.fill("/apis/networking.k8s.io/v1/ingressclasses", 0..INGRESS_CLASSES, ingress_class);
        big.fill("/api/v1/namespaces", 0..NAMESPACES, namespace);
        big.fill("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", 0..CRDS, crd);
        big.grow(nodes);
        big
    }

    /// Adds nodes until there are so many, and waits until the API server has nothing left to do about it.
    pub(crate) fn grow(&mut self, nodes: u32) {
        say(&format!("making a cluster of {nodes} nodes"));
        self.fill("/api/v1/nodes", self.nodes..nodes, node);
        self.nodes = nodes;
        let server = self.cluster.api_server().pid();
        until("the API server, to be at rest", BOUND, || {
            let (before, started) = (cpu_ms(server), Instant::now());
            thread::sleep(Duration::from_secs(1));
            (cpu_ms(server) - before < 100.0 * started.elapsed().as_secs_f64()).then_some(())
        });
    }

    /// A connection as its admin.
    pub(crate) fn raw(&self) -> Raw {
        Raw::connect_to(self.cluster.url(), self.cluster.ca_pem(), self.cluster.admin_token())
    }

    fn fill(&self, path: &str, numbers: Range<u32>, make: fn(u32) -> Value) {
        let next = AtomicU32::new(numbers.start);
        let fill = || {
            let mut raw = self.raw();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= numbers.end {
                    return;
                }
                let body = make(number).to_string();
                let (status, answer) = raw.call("POST", path, "application/json", body.as_bytes());
                assert_eq!(status, 201, "POST {path}: {}", String::from_utf8_lossy(&answer));
            }
        };
        thread::scope(|scope| {
            for _ in 0..WORKERS {
                scope.spawn(fill);
            }
        });
    }
}

impl Drop for BigCluster {
    /// It holds a gigabyte or more.
    fn drop(&mut self) {
        self.cluster.stop();
    }
}
