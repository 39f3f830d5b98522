//! JSON as `serde_json` reads it when it is asked for every member: the reader that ours is held against. It
//! takes duplicate members, any depth below 128 and any number that a double holds.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::collections::BTreeSet;
use std::fmt;

/// A value with all of its members.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// `null`
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer that is not negative.
    Natural(u64),
    /// A negative integer.
    Negative(i64),
    /// Any other number.
    Double(f64),
    /// A text.
    Text(String),
    /// An array.
    Array(Vec<Tree>),
    /// An object, its members in their order, each as often as it is there.
    Object(Vec<(String, Tree)>),
}

impl Tree {
    /// Reads a text.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// Whether `wanted` holds for this value or one in it.
    pub fn any(&self, wanted: &impl Fn(&Self) -> bool) -> bool {
        wanted(self)
            || match self {
                Self::Array(items) => items.iter().any(|item| item.any(wanted)),
                Self::Object(members) => members.iter().any(|(_, member)| member.any(wanted)),
                Self::Null
                | Self::Bool(_)
                | Self::Natural(_)
                | Self::Negative(_)
                | Self::Double(_)
                | Self::Text(_) => false,
            }
    }

    /// Whether an object of it has two members of one name.
    #[must_use]
    pub fn has_duplicates(&self) -> bool {
        self.any(&|tree| match tree {
            Self::Object(members) => {
                let names: BTreeSet<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
                names.len() < members.len()
            }
            _ => false,
        })
    }

    /// How many arrays and objects are open at its deepest.
    #[must_use]
    pub fn depth(&self) -> usize {
        match self {
            Self::Array(items) => 1 + items.iter().map(Self::depth).max().unwrap_or(0),
            Self::Object(members) => 1 + members.iter().map(|(_, member)| member.depth()).max().unwrap_or(0),
            _ => 0,
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Natural(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Negative(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Double(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = source.next_element()? {
            items.push(item);
        }
        Ok(Tree::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Tree, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = source.next_entry()? {
            members.push(member);
        }
        Ok(Tree::Object(members))
    }
}

impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, target: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => target.serialize_unit(),
            Self::Bool(value) => target.serialize_bool(*value),
            Self::Natural(value) => target.serialize_u64(*value),
            Self::Negative(value) => target.serialize_i64(*value),
            Self::Double(value) => target.serialize_f64(*value),
            Self::Text(value) => target.serialize_str(value),
            Self::Array(items) => target.collect_seq(items),
            Self::Object(members) => {
                let mut map = target.serialize_map(Some(members.len()))?;
                for (name, member) in members {
                    map.serialize_entry(name, member)?;
                }
                map.end()
            }
        }
    }
}
