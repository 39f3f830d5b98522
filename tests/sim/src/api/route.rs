//! Paths of the objects that are kept.

use crate::identity::NAMESPACE;

/// The kinds of objects that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `coordination.k8s.io/v1`
    Lease,
    /// `v1`
    ConfigMap,
    /// `platform.navin.ai/v1`
    Component,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Lease, Self::ConfigMap, Self::Component];

    /// `kind` of an object.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Lease => "Lease",
            Self::ConfigMap => "ConfigMap",
            Self::Component => "ManagedComponent",
        }
    }

    /// `apiVersion` of an object.
    #[must_use]
    pub fn api_version(self) -> &'static str {
        match self {
            Self::Lease => "coordination.k8s.io/v1",
            Self::ConfigMap => "v1",
            Self::Component => "platform.navin.ai/v1",
        }
    }

    /// The plural, as messages name it.
    #[must_use]
    pub fn resource(self) -> &'static str {
        match self {
            Self::Lease => "leases.coordination.k8s.io",
            Self::ConfigMap => "configmaps",
            Self::Component => "managedcomponents.platform.navin.ai",
        }
    }

    fn collection(self) -> String {
        match self {
            Self::Lease => format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"),
            Self::ConfigMap => format!("/api/v1/namespaces/{NAMESPACE}/configmaps"),
            Self::Component => format!("/apis/platform.navin.ai/v1/namespaces/{NAMESPACE}/managedcomponents"),
        }
    }
}

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The kind.
    pub kind: Kind,
    /// The object; None for the collection.
    pub name: Option<String>,
    /// The status subresource.
    pub status: bool,
    /// What follows the question mark.
    pub query: String,
}

impl Route {
    /// Reads a path; None where nothing is kept.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        for kind in Kind::ALL {
            let Some(rest) = path.strip_prefix(kind.collection().as_str()) else { continue };
            let mut parts = rest.split('/').skip(1);
            let name = parts.next().map(str::to_owned);
            let status = parts.next() == Some("status");
            return Some(Self { kind, name, status, query: query.to_owned() });
        }
        None
    }
}
