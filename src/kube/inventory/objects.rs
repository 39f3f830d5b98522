//! The objects of an inventory: what is read of each, and what is told of it. A text is that of the object's
//! own bytes wherever it stands there as it is: a large cluster has a hundred thousand of them.

mod node;

pub(super) use node::Node;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// An object of a list, as far as it is read.
pub(super) trait Listed<'a>: Deserialize<'a> {
    /// By which the list is sorted.
    fn name(&self) -> &str;

    /// What is told of it.
    fn told(&self) -> impl Serialize;
}

#[derive(Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

type Texts<'a> = BTreeMap<Text<'a>, Option<Text<'a>>>;

/// The text, empty where there is none.
fn str<'t>(text: Option<&'t Text<'_>>) -> &'t str {
    text.map_or("", |text| text.0.as_ref())
}

/// A server may write null for what is empty.
fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(source: D) -> Result<T, D::Error> {
    Option::deserialize(source).map(Option::unwrap_or_default)
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Named<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Namespace<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    metadata: Named<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    status: NamespaceStatus<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct NamespaceStatus<'a> {
    #[serde(borrow)]
    phase: Option<Text<'a>>,
}

impl<'a> Listed<'a> for Namespace<'a> {
    fn name(&self) -> &str {
        str(self.metadata.name.as_ref())
    }

    fn told(&self) -> impl Serialize {
        json!({ "name": self.metadata.name, "phase": self.status.phase })
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Crd<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    metadata: Named<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    spec: CrdSpec<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CrdSpec<'a> {
    #[serde(borrow)]
    group: Option<Text<'a>>,
    #[serde(borrow)]
    scope: Option<Text<'a>>,
    #[serde(borrow, deserialize_with = "nullable")]
    names: CrdNames<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    versions: Vec<CrdVersion<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CrdNames<'a> {
    #[serde(borrow)]
    kind: Option<Text<'a>>,
}

#[derive(Deserialize, Serialize, Default)]
#[serde(default)]
struct CrdVersion<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(deserialize_with = "nullable")]
    served: bool,
    #[serde(deserialize_with = "nullable")]
    storage: bool,
}

impl<'a> Listed<'a> for Crd<'a> {
    fn name(&self) -> &str {
        str(self.metadata.name.as_ref())
    }

    fn told(&self) -> impl Serialize {
        json!({
            "name": self.metadata.name,
            "group": self.spec.group,
            "kind": self.spec.names.kind,
            "scope": self.spec.scope,
            "versions": self.spec.versions,
        })
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ClassMetadata<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow, deserialize_with = "nullable")]
    annotations: Texts<'a>,
}

impl ClassMetadata<'_> {
    fn is_true(&self, annotation: &'static str) -> bool {
        str(self.annotations.get(&Text(annotation.into())).and_then(Option::as_ref)) == "true"
    }
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct StorageClass<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    metadata: ClassMetadata<'a>,
    #[serde(borrow)]
    provisioner: Option<Text<'a>>,
    #[serde(borrow)]
    reclaim_policy: Option<Text<'a>>,
    #[serde(borrow)]
    volume_binding_mode: Option<Text<'a>>,
    allow_volume_expansion: Option<bool>,
}

impl<'a> Listed<'a> for StorageClass<'a> {
    fn name(&self) -> &str {
        str(self.metadata.name.as_ref())
    }

    fn told(&self) -> impl Serialize {
        json!({
            "name": self.metadata.name,
            "provisioner": self.provisioner,
            "default": self.metadata.is_true("storageclass.kubernetes.io/is-default-class"),
            "reclaim_policy": self.reclaim_policy,
            "binding_mode": self.volume_binding_mode,
            "expansion": self.allow_volume_expansion.unwrap_or(false),
        })
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct IngressClass<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    metadata: ClassMetadata<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    spec: IngressClassSpec<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct IngressClassSpec<'a> {
    #[serde(borrow)]
    controller: Option<Text<'a>>,
}

impl<'a> Listed<'a> for IngressClass<'a> {
    fn name(&self) -> &str {
        str(self.metadata.name.as_ref())
    }

    fn told(&self) -> impl Serialize {
        json!({
            "name": self.metadata.name,
            "controller": self.spec.controller,
            "default": self.metadata.is_true("ingressclass.kubernetes.io/is-default-class"),
        })
    }
}
