//! `DefaultStorageClass`: claims that name no class get the default one.

use super::default_class;
use crate::attributes::{Attributes, Operation};
use crate::chain::Plugin;
use async_trait::async_trait;
use pintle_apimachinery::Value;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_auth::Lookup;
use std::sync::Arc;

/// The annotation by which claims of old named their class.
pub(super) const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

const DEFAULT_ANNOTATIONS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

/// The plugin.
#[derive(Debug)]
pub struct DefaultStorageClass {
    /// Where storage classes are.
    pub lookup: Arc<dyn Lookup>,
}

#[async_trait]
impl Plugin for DefaultStorageClass {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        attributes.operation == Operation::Create && attributes.is_on("", "persistentvolumeclaims")
    }

    async fn mutate(&self, _: &Attributes<'_>, object: &mut Value) -> Result<()> {
        let is_named = object.annotation(CLASS_ANNOTATION).is_some() || !object["spec"]["storageClassName"].is_null();
        if is_named {
            return Ok(());
        }
        let classes = self.lookup.list("storage.k8s.io", "storageclasses", "").await;
        if let Some(class) = default_class(classes, &DEFAULT_ANNOTATIONS) {
            object.make("spec").set("storageClassName", class.name());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::Script;
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[tokio::test]
    async fn the_newest_default() {
        let script = Script::new(|lookup| Arc::new(DefaultStorageClass { lookup }));
        let claim = |spec: Value| json!({"metadata": {"name": "c"}, "spec": spec});
        script.create("persistentvolumeclaims ns", claim(json!({}))).await.shows("spec", expect!["{}"]);
        for (name, day, annotation) in [("old", 1, 0), ("new", 2, 0), ("beta", 2, 1)] {
            let created = format!("2026-01-0{day}T00:00:00Z");
            script.put("storageclasses.storage.k8s.io", json!({"metadata": {"name": name, "creationTimestamp": created, "annotations": {(DEFAULT_ANNOTATIONS[annotation]): "true"}}}));
        }
        script.put("storageclasses.storage.k8s.io", json!({"metadata": {"name": "a"}}));
        script
            .create("persistentvolumeclaims ns", claim(json!({})))
            .await
            .shows("spec", expect![[r#"{"storageClassName":"beta"}"#]]);
        script
            .create("persistentvolumeclaims ns", claim(json!({"storageClassName": ""})))
            .await
            .shows("spec", expect![[r#"{"storageClassName":""}"#]]);
    }
}
