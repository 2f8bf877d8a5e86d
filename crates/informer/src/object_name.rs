//! [`ObjectName`]: what a cache and a work queue call an object.

use pintle_apimachinery::Str;
use std::fmt;
use std::str::FromStr;

/// The namespace and name of an object of a known kind. Ordered by namespace, then name.
///
/// In text it is client-go's key: `namespace/name`, or `name` alone outside namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// The namespace; empty outside namespaces.
    pub namespace: Str,
    /// The name.
    pub name: Str,
}

impl ObjectName {
    /// The object `name` in `namespace`, which is empty outside namespaces.
    pub fn new(namespace: impl AsRef<str>, name: impl AsRef<str>) -> ObjectName {
        ObjectName { namespace: Str::new(namespace), name: Str::new(name) }
    }

    /// An object outside namespaces.
    pub fn cluster(name: impl AsRef<str>) -> ObjectName {
        ObjectName::new("", name)
    }

    /// The name of any object.
    pub fn of<K: pintle_client::Object>(object: &K) -> ObjectName {
        ObjectName::new(object.namespace(), object.name())
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

/// A key with more than one slash.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unexpected key format: {0:?}")]
pub struct KeyError(String);

impl FromStr for ObjectName {
    type Err = KeyError;

    fn from_str(key: &str) -> Result<ObjectName, KeyError> {
        match key.split_once('/') {
            None => Ok(ObjectName::cluster(key)),
            Some((namespace, name)) if !name.contains('/') => Ok(ObjectName::new(namespace, name)),
            Some(_) => Err(KeyError(key.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_there_and_back() {
        for key in ["a/b", "b"] {
            assert_eq!(key.parse::<ObjectName>().unwrap().to_string(), key);
        }
        assert_eq!("a/b/c".parse::<ObjectName>().unwrap_err().to_string(), r#"unexpected key format: "a/b/c""#);
    }
}
