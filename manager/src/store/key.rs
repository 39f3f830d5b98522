//! Whose cluster something is about.

/// Whose cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ClusterKey {
    /// The tenant.
    pub(crate) tenant_id: String,
    /// The cluster, unique in its tenant.
    pub(crate) cluster_id: String,
}

impl ClusterKey {
    /// The cluster as one text. Neither name has a slash in it.
    pub(super) fn text(&self) -> String {
        format!("{}/{}", self.tenant_id, self.cluster_id)
    }

    /// The cluster of such a text.
    pub(super) fn of_text(text: &str) -> Option<Self> {
        let (tenant_id, cluster_id) = text.split_once('/')?;
        Some(Self { tenant_id: tenant_id.to_owned(), cluster_id: cluster_id.to_owned() })
    }
}
