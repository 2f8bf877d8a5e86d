//! The parameters with which a binding puts a policy into force.

use super::ValidatingAdmissionPolicy;
use super::source::{Binding, Policy};
use crate::matching::in_form;
use pintle_apimachinery::labels::Selector;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{GroupVersionKind, Value};
use std::sync::Arc;

impl ValidatingAdmissionPolicy {
    /// What the policy is evaluated with, once each: objects, or nothing where it or its binding wants none.
    ///
    /// # Errors
    /// Why there are none.
    pub(super) async fn params(
        &self,
        policy: &Policy,
        binding: &Binding,
        namespace: &str,
    ) -> Result<Vec<Option<Value>>, String> {
        let reference = &binding.param_ref;
        let Some(kind) = policy.param_kind.as_ref().filter(|_| !reference.is_null()) else { return Ok(vec![None]) };
        let Some((resource, is_namespaced)) = self.forms.resource_of(kind) else {
            return Err(format!("paramKind kind `{kind}` not known"));
        };
        let own_namespace = reference["namespace"].str_or_empty();
        let namespace = match (is_namespaced, own_namespace) {
            (true, "") if namespace.is_empty() => {
                return Err(
                    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources".to_owned()
                );
            }
            (true, "") => namespace,
            (true, own) => own,
            (false, "") => "",
            (false, _) => {
                return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned());
            }
        };
        let (name, selector) = (reference["name"].str_or_empty(), &reference["selector"]);
        let found: Vec<Arc<Value>> = match (name, selector.is_null()) {
            ("", true) => return Err("one of name or selector must be provided".to_owned()),
            ("", false) => {
                let selector = Selector::from_object(selector)?;
                let all = self.lookup.list(&resource.group, &resource.resource, namespace).await;
                all.into_iter().filter(|object| selector.matches(&object.metadata()["labels"])).collect()
            }
            (_, false) => return Err("paramRef.name and paramRef.selector are mutually exclusive".to_owned()),
            (name, true) => {
                let found = self.lookup.get(&resource.group, &resource.resource, namespace, name).await;
                found.into_iter().collect()
            }
        };
        if found.is_empty() && reference["parameterNotFoundAction"].as_str() == Some("Deny") {
            return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
        }
        let mut params = Vec::with_capacity(found.len());
        for object in found {
            params.push(Some(self.of_kind(&object, kind).await?));
        }
        Ok(params)
    }

    async fn of_kind(&self, object: &Value, kind: &GroupVersionKind) -> Result<Value, String> {
        let from = object.gvk().unwrap_or_else(|| kind.clone());
        let converted = in_form(&*self.forms, Some(object), &from, kind).await.map_err(|status| status.message)?;
        let mut converted = converted.unwrap_or_default();
        converted.set("apiVersion", kind.api_version());
        converted.set("kind", kind.kind.clone());
        Ok(converted)
    }
}
