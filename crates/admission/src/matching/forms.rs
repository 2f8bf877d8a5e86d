//! The forms of objects: the versions in which one and the same object is served.

use crate::attributes::Attributes;
use async_trait::async_trait;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupVersionKind, GroupVersionResource, Value};

/// What webhooks and policies need to know of the server's resources. The registry implements it.
#[async_trait]
pub trait Forms: Send + Sync + std::fmt::Debug {
    /// The resources as which the objects of `resource` are served (it is one of them), each with the kind that
    /// `subresource` (empty for none) has there, in the server's order.
    fn equivalents(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> Vec<(GroupVersionResource, GroupVersionKind)>;

    /// The resource of this kind, and whether its objects live in namespaces. `None` when it is not served.
    fn resource_of(&self, kind: &GroupVersionKind) -> Option<(GroupVersionResource, bool)>;

    /// The object, which is of the kind `from`, in the form `to`.
    ///
    /// # Errors
    /// 500 when it cannot be converted.
    async fn convert(&self, object: Value, from: &GroupVersionKind, to: &GroupVersionKind) -> Result<Value>;

    /// What someone made of an object of this kind, read anew: pruned and defaulted.
    ///
    /// # Errors
    /// Why it is no such object.
    fn read(&self, kind: &GroupVersionKind, object: Value) -> Result<Value, String>;
}

/// Every resource has one form, which is taken as it comes: for tests, and where there is no registry.
#[derive(Debug)]
pub struct SingleForms;

#[async_trait]
impl Forms for SingleForms {
    fn equivalents(&self, _: &GroupVersionResource, _: &str) -> Vec<(GroupVersionResource, GroupVersionKind)> {
        Vec::new()
    }

    fn resource_of(&self, _kind: &GroupVersionKind) -> Option<(GroupVersionResource, bool)> {
        None
    }

    async fn convert(&self, object: Value, _from: &GroupVersionKind, _to: &GroupVersionKind) -> Result<Value> {
        Ok(object)
    }

    fn read(&self, _kind: &GroupVersionKind, object: Value) -> Result<Value, String> {
        Ok(object)
    }
}

/// The form in which somebody sees an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub resource: GroupVersionResource,
    pub kind: GroupVersionKind,
}

/// An object before and after, in one form.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub object: Option<Value>,
    pub old: Option<Value>,
}

impl Form {
    /// That in which the operation came in.
    pub(crate) fn of(attributes: &Attributes<'_>) -> Form {
        Form { resource: attributes.resource.clone(), kind: attributes.kind.clone() }
    }
}

impl Pair {
    /// The objects of the operation in this form.
    pub(crate) async fn read(
        forms: &dyn Forms,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
        form: &Form,
    ) -> Result<Pair> {
        Ok(Pair {
            object: in_form(forms, object, attributes.kind, &form.kind).await?,
            old: in_form(forms, attributes.old, attributes.kind, &form.kind).await?,
        })
    }
}

/// The object in the form `to`.
pub(crate) async fn in_form(
    forms: &dyn Forms,
    object: Option<&Value>,
    from: &GroupVersionKind,
    to: &GroupVersionKind,
) -> Result<Option<Value>> {
    let Some(object) = object else { return Ok(None) };
    let mut object = object.clone();
    if from != to {
        object = forms.convert(object, from, to).await?;
        object.set("apiVersion", to.api_version());
        object.set("kind", to.kind.clone());
    }
    Ok(Some(object))
}
