//! Scripts for the tests of plugins: operations in one line each, and what came of them.

use crate::attributes::{Admission, Attributes, Operation, Warnings};
use crate::chain::{Chain, Plugin};
use expect_test::Expect;
use parking_lot::Mutex;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{GroupVersionKind, GroupVersionResource, Status, Value};
use pintle_auth::{Lookup, StaticLookup, UserInfo};
use std::sync::Arc;

/// A plugin over objects.
pub(crate) struct Script {
    lookup: Arc<StaticLookup>,
    chain: Chain,
    user: UserInfo,
    dry_run: bool,
}

/// What came of an operation.
#[derive(Debug)]
pub(crate) struct Outcome {
    result: Result<(), Box<Status>>,
    object: Value,
    warnings: Vec<String>,
}

impl Script {
    pub(crate) fn new(plugin: impl FnOnce(Arc<dyn Lookup>) -> Arc<dyn Plugin>) -> Script {
        let lookup = Arc::new(StaticLookup::default());
        let chain = Chain::of(plugin(lookup.clone()));
        Script { chain, lookup, user: pintle_auth::user::named("jane", &[]), dry_run: false }
    }

    /// The same world with nothing written.
    pub(crate) fn dry(mut self) -> Script {
        self.dry_run = true;
        self
    }

    /// Puts an object of `resource` or `resource.group` into the world.
    pub(crate) fn put(&self, resource: &str, object: Value) {
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        self.lookup.put(group, resource, object);
    }

    /// `target`: `resource[.group][/subresource] namespace|-`.
    pub(crate) async fn create(&self, target: &str, object: Value) -> Outcome {
        self.run(Operation::Create, target, Some(object), None).await
    }

    pub(crate) async fn update(&self, target: &str, old: Value, object: Value) -> Outcome {
        self.run(Operation::Update, target, Some(object), Some(&old)).await
    }

    /// `target`: `resource[.group] namespace|- name`.
    pub(crate) async fn delete(&self, target: &str) -> Outcome {
        self.run(Operation::Delete, target, None, None).await
    }

    async fn run(&self, operation: Operation, target: &str, object: Option<Value>, old: Option<&Value>) -> Outcome {
        let words: Vec<&str> = target.split(' ').collect();
        let (resource, subresource) = words[0].split_once('/').unwrap_or((words[0], ""));
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        let kind = match resource {
            "pods" => "Pod",
            "namespaces" => "Namespace",
            "persistentvolumeclaims" => "PersistentVolumeClaim",
            other => other,
        };
        let namespace = if words[1] == "-" { "" } else { words[1] };
        let own_name = object.as_ref().map(|object| object.name().to_owned()).unwrap_or_default();
        let warnings = Mutex::new(Warnings::default());
        let attributes = Attributes {
            operation,
            resource: &GroupVersionResource::new(group, "v1", resource),
            subresource,
            kind: &GroupVersionKind::new(group, "v1", kind),
            namespace,
            name: words.get(2).copied().unwrap_or(&own_name),
            old,
            options: &Value::Null,
            dry_run: self.dry_run,
            user: &self.user,
            warnings: &warnings,
        };
        let mut object = object.unwrap_or_default();
        let mut result = self.chain.mutate(&attributes, &mut object).await;
        if result.is_ok() {
            let seen = (operation != Operation::Delete).then_some(&object);
            result = self.chain.validate(&attributes, seen).await;
        }
        Outcome { result, object, warnings: warnings.into_inner().texts().to_vec() }
    }
}

impl Outcome {
    /// The object, which was admitted.
    pub(crate) fn ok(self) -> Value {
        self.result.expect("the operation is admitted");
        self.object
    }

    /// The member of the object, which was admitted, at this path.
    pub(crate) fn shows(self, path: &str, expect: Expect) {
        expect.assert_eq(&self.ok().at(path).to_json_string());
    }

    pub(crate) fn is_ok(&self) -> bool {
        self.result.is_ok()
    }

    pub(crate) fn status(&self) -> &Status {
        self.result.as_ref().expect_err("the operation is refused")
    }

    pub(crate) fn refused(self, expect: Expect) {
        let status = self.status();
        expect.assert_eq(&format!("{} {}", status.code, status.message));
    }

    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
