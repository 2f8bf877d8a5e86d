//! For tests of controllers and informers: a source of objects without a server, faults for any source, and checkers
//! of what handlers hear.
//!
//! To test a controller as a whole, give its client a [`FakeServer`](pintle_client::fake::FakeServer) instead.

mod chaos;
mod clock;
mod history;
mod source;

pub use chaos::{ChaosConfig, ChaosSource};
pub use clock::TokioClock;
pub use history::{History, HistoryHandler, Violation};
pub use source::FakeControllerSource;

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

#[cfg(test)]
mod simulation;
