//! For tests of controllers and informers.

#[cfg(test)]
pub(crate) use objects::{TestObject, object};

#[cfg(test)]
mod objects {
    use crate::Cached;
    use pintle_client::DynamicObject;

    pub(crate) type TestObject = Cached<DynamicObject>;

    /// An object `namespace/name` at a version, on a node.
    pub(crate) fn object(key: &str, version: u64, node: &str) -> TestObject {
        let (namespace, name) = key.split_once('/').unwrap();
        let raw = format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"{namespace}","uid":"uid-{name}","resourceVersion":"{version}"}},"spec":{{"node":"{node}"}}}}"#
        );
        Cached::from_json(raw.into_bytes()).unwrap()
    }
}
