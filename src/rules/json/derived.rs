//! What stands inside a derived type, where serde's own reading would not do: a value, a text that is only passed on, a
//! map. For the reasons in [`super`].

use super::{MAX_FOREIGN_DEPTH, Node, Reader};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// A JSON value as its text, shared: in memory it is never more than its bytes, and a copy is none.
#[derive(Clone)]
pub struct Raw(Arc<RawValue>);

impl Raw {
    /// The text; none where it is not JSON.
    #[must_use]
    pub fn new(text: String) -> Option<Self> {
        RawValue::from_string(text).ok().map(|text| Self(text.into()))
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Raw {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, target: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(target)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(source).map(|text| Self(text.into()))
    }
}

/// Reads a value, duplicate member names refused, numbers of any size.
///
/// # Errors
/// Those of the deserializer, and what [`super::parse_foreign`] refuses.
pub fn value<'de, D: Deserializer<'de>>(source: D) -> Result<Value, D::Error> {
    Node { reader: &Reader::new(MAX_FOREIGN_DEPTH, false, usize::MAX), depth: 0 }.deserialize(source)
}

/// Reads a map, of which no name stands twice.
///
/// # Errors
/// Those of the deserializer, and a name that stands twice.
pub fn map<'de, D, K, V>(source: D) -> Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord,
    V: Deserialize<'de>,
{
    source.deserialize_map(Map(PhantomData))
}

struct Map<K, V>(PhantomData<(K, V)>);

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Visitor<'de> for Map<K, V> {
    type Value = BTreeMap<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Self::Value, A::Error> {
        let mut map = BTreeMap::new();
        while let Some((name, value)) = source.next_entry()? {
            if map.insert(name, value).is_some() {
                return Err(A::Error::custom("a member stands twice"));
            }
        }
        Ok(map)
    }
}
