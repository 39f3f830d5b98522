//! A node: what is read of it, and what is told.

use super::{Listed, Text, Texts, nullable, str};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

#[derive(Deserialize, Default)]
#[serde(default)]
pub(in crate::kube::inventory) struct Node<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    metadata: NodeMetadata<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    spec: NodeSpec<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    status: NodeStatus<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct NodeMetadata<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(deserialize_with = "nullable")]
    labels: Roles,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct NodeSpec<'a> {
    unschedulable: Option<bool>,
    #[serde(borrow, deserialize_with = "nullable")]
    taints: Vec<Taint<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct NodeStatus<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    conditions: Vec<Typed<'a>>,
    #[serde(borrow, deserialize_with = "nullable")]
    addresses: Vec<Typed<'a>>,
    #[serde(borrow, deserialize_with = "nullable")]
    node_info: NodeInfo<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    capacity: Texts<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    allocatable: Texts<'a>,
}

#[derive(Deserialize, Serialize, Default)]
#[serde(default)]
struct Taint<'a> {
    #[serde(borrow)]
    key: Option<Text<'a>>,
    #[serde(borrow)]
    value: Option<Text<'a>>,
    #[serde(borrow)]
    effect: Option<Text<'a>>,
}

/// A condition (`type`, `status`) or an address (`type`, `address`).
#[derive(Deserialize, Default)]
#[serde(default)]
struct Typed<'a> {
    #[serde(borrow)]
    r#type: Option<Text<'a>>,
    #[serde(borrow)]
    status: Option<Text<'a>>,
    #[serde(borrow)]
    address: Option<Text<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct NodeInfo<'a> {
    #[serde(borrow)]
    kubelet_version: Option<Text<'a>>,
    #[serde(borrow)]
    os_image: Option<Text<'a>>,
    #[serde(borrow)]
    kernel_version: Option<Text<'a>>,
    #[serde(borrow)]
    architecture: Option<Text<'a>>,
    #[serde(borrow)]
    container_runtime_version: Option<Text<'a>>,
}

/// Of labels, the roles that they give, sorted.
#[derive(Default)]
struct Roles(Vec<String>);

impl<'de> Deserialize<'de> for Roles {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_map(Self::default())
    }
}

impl<'de> Visitor<'de> for Roles {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("labels")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut labels: A) -> Result<Self, A::Error> {
        while let Some((key, _)) = labels.next_entry::<Text<'de>, IgnoredAny>()? {
            self.0.extend(key.0.strip_prefix("node-role.kubernetes.io/").map(str::to_owned));
        }
        self.0.sort_unstable();
        Ok(self)
    }
}

impl<'a> Listed<'a> for Node<'a> {
    fn name(&self) -> &str {
        str(self.metadata.name.as_ref())
    }

    fn told(&self) -> impl Serialize {
        #[derive(Serialize)]
        struct Told<'t> {
            name: Option<&'t Text<'t>>,
            roles: &'t [String],
            ready: bool,
            schedulable: bool,
            kubelet_version: Option<&'t Text<'t>>,
            os_image: Option<&'t Text<'t>>,
            kernel_version: Option<&'t Text<'t>>,
            architecture: Option<&'t Text<'t>>,
            container_runtime: Option<&'t Text<'t>>,
            capacity: &'t Texts<'t>,
            allocatable: &'t Texts<'t>,
            taints: &'t [Taint<'t>],
            internal_addresses: Vec<&'t Text<'t>>,
        }
        let status = &self.status;
        let info = &status.node_info;
        let ready = |c: &Typed| str(c.r#type.as_ref()) == "Ready" && str(c.status.as_ref()) == "True";
        let internal = status.addresses.iter().filter(|a| str(a.r#type.as_ref()) == "InternalIP");
        Told {
            name: self.metadata.name.as_ref(),
            roles: &self.metadata.labels.0,
            ready: status.conditions.iter().any(ready),
            schedulable: !self.spec.unschedulable.unwrap_or(false),
            kubelet_version: info.kubelet_version.as_ref(),
            os_image: info.os_image.as_ref(),
            kernel_version: info.kernel_version.as_ref(),
            architecture: info.architecture.as_ref(),
            container_runtime: info.container_runtime_version.as_ref(),
            capacity: &status.capacity,
            allocatable: &status.allocatable,
            taints: &self.spec.taints,
            internal_addresses: internal.filter_map(|a| a.address.as_ref()).collect(),
        }
    }
}
