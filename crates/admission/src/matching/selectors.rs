//! The selectors that webhooks and policies have: of the namespace, and of the object.
//!
//! Follows: apiserver/pkg/admission/plugin/webhook/predicates (v0.35).

use super::rules::namespace_of;
use crate::attributes::Attributes;
use pintle_apimachinery::labels::Selector;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupResource, Status, Value};
use pintle_auth::Lookup;
use std::sync::Arc;

/// Both selectors, or why they are none.
#[derive(Clone, Debug)]
pub(crate) struct Selectors {
    namespaces: Result<Selector, String>,
    objects: Result<Selector, String>,
}

/// What the selectors say of an operation. Faults count only when everything else fits.
#[derive(Debug)]
pub(crate) enum Selection {
    /// One of them does not fit.
    None,
    /// They fit, or cannot be told to.
    Fits(Result<()>),
}

impl Selectors {
    /// Reads `namespaceSelector` and `objectSelector`.
    pub(crate) fn read(holder: &Value) -> Selectors {
        Selectors {
            namespaces: Selector::from_object(&holder["namespaceSelector"]),
            objects: Selector::from_object(&holder["objectSelector"]),
        }
    }

    pub(crate) async fn select(
        &self,
        lookup: &dyn Lookup,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Selection {
        let in_namespace = self.is_namespace_selected(lookup, attributes, object).await;
        let of_object = self.is_object_selected(attributes, object);
        if matches!(in_namespace, Ok(false)) || matches!(of_object, Ok(false)) {
            return Selection::None;
        }
        Selection::Fits(in_namespace.and(of_object).map(|_| ()))
    }

    async fn is_namespace_selected(
        &self,
        lookup: &dyn Lookup,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<bool> {
        let name = namespace_of(attributes);
        let is_namespace_itself = attributes.resource.resource == "namespaces";
        if name.is_empty() && !is_namespace_itself {
            return Ok(true);
        }
        let selector = usable(&self.namespaces)?;
        if selector.is_everything() {
            return Ok(true);
        }
        if is_namespace_itself && attributes.subresource.is_empty() && attributes.is_write() {
            return Ok(object.is_some_and(|object| selector.matches(&object.metadata()["labels"])));
        }
        let found = namespace(lookup, name).await?;
        Ok(selector.matches(&found.metadata()["labels"]))
    }

    fn is_object_selected(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<bool> {
        let selector = usable(&self.objects)?;
        let is_selected = |object: Option<&Value>| object.is_some_and(|o| selector.matches(&o.metadata()["labels"]));
        Ok(selector.is_everything() || is_selected(object) || is_selected(attributes.old))
    }
}

fn usable(selector: &Result<Selector, String>) -> Result<&Selector> {
    selector.as_ref().map_err(|why| Box::new(Status::internal(why)))
}

/// A namespace, asked of the store when it is not in memory yet.
pub(crate) async fn namespace(lookup: &dyn Lookup, name: &str) -> Result<Arc<Value>> {
    let found = match lookup.get("", "namespaces", "", name).await {
        Some(found) => Some(found),
        None => lookup.get_live("", "namespaces", "", name).await?,
    };
    found.ok_or_else(|| Box::new(Status::not_found(&GroupResource::new("", "namespaces"), name)))
}
