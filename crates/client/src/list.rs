//! A list of objects.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use serde::Deserialize;

/// Objects, and what the server says of them together.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(bound(deserialize = "K: Deserialize<'de>"))]
pub struct ObjectList<K> {
    /// The list's version, and where the next page starts.
    #[serde(default)]
    pub metadata: ListMeta,
    /// The objects, ordered by namespace and name.
    #[serde(default = "Vec::new", deserialize_with = "null_is_empty")]
    pub items: Vec<K>,
}

fn null_is_empty<'de, D: serde::Deserializer<'de>, K: Deserialize<'de>>(from: D) -> Result<Vec<K>, D::Error> {
    Ok(Option::<Vec<K>>::deserialize(from)?.unwrap_or_default())
}

impl<K> ObjectList<K> {
    /// The list's version.
    pub fn resource_version(&self) -> &str {
        self.metadata.resource_version.as_deref().unwrap_or_default()
    }

    /// Where the next page starts; `None` when there is none.
    pub fn continue_token(&self) -> Option<&str> {
        self.metadata.continue_.as_deref().filter(|token| !token.is_empty())
    }

    /// The objects.
    pub fn iter(&self) -> std::slice::Iter<'_, K> {
        self.items.iter()
    }
}

impl<K> IntoIterator for ObjectList<K> {
    type Item = K;
    type IntoIter = std::vec::IntoIter<K>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<'a, K> IntoIterator for &'a ObjectList<K> {
    type Item = &'a K;
    type IntoIter = std::slice::Iter<'a, K>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}
