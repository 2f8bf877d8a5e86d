//! ServiceAccounts.

use crate::{RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{Value, json};

const ENFORCE_MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

/// The strategy of ServiceAccounts.
#[derive(Debug)]
pub struct ServiceAccount;

impl UpdateStrategy for ServiceAccount {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, _: &Value) {
        keep_secret_names(object);
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> Vec<String> {
        if old.annotation(ENFORCE_MOUNTABLE_SECRETS).is_some() { Vec::new() } else { warnings(object) }
    }
}

impl Strategy for ServiceAccount {
    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        keep_secret_names(object);
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

/// Of references to secrets only the name means anything.
fn keep_secret_names(object: &mut Value) {
    for secret in object.get_mut("secrets").map_or(&mut [][..], Value::items_mut) {
        let name = secret["name"].take();
        *secret = if name.is_null() { Value::object() } else { json!({ "name": name }) };
    }
}

fn warnings(object: &Value) -> Vec<String> {
    if object.annotation(ENFORCE_MOUNTABLE_SECRETS).is_none() {
        return Vec::new();
    }
    vec![format!(
        "metadata.annotations[{ENFORCE_MOUNTABLE_SECRETS}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
    )]
}
