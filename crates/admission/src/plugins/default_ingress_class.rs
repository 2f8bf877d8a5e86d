//! `DefaultIngressClass`: ingresses that name no class get the default one.

use super::default_class;
use crate::attributes::{Attributes, Operation};
use crate::chain::Plugin;
use async_trait::async_trait;
use pintle_apimachinery::Value;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_auth::Lookup;
use std::sync::Arc;

/// The plugin.
#[derive(Debug)]
pub struct DefaultIngressClass {
    /// Where ingress classes are.
    pub lookup: Arc<dyn Lookup>,
}

#[async_trait]
impl Plugin for DefaultIngressClass {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        attributes.operation == Operation::Create && attributes.is_on("networking.k8s.io", "ingresses")
    }

    async fn mutate(&self, _: &Attributes<'_>, object: &mut Value) -> Result<()> {
        let is_named =
            !object["spec"]["ingressClassName"].is_null() || object.annotation("kubernetes.io/ingress.class").is_some();
        if is_named {
            return Ok(());
        }
        let classes = self.lookup.list("networking.k8s.io", "ingressclasses", "").await;
        if let Some(class) = default_class(classes, &["ingressclass.kubernetes.io/is-default-class"]) {
            object.make("spec").set("ingressClassName", class.name());
        }
        Ok(())
    }
}
