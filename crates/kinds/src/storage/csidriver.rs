//! CSIDrivers.

use crate::prepare::raise_generation;
use crate::{RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::{Value, json};

const TOKENS_IN_SECRETS: &str = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes";

/// The strategy of CSIDrivers.
#[derive(Debug)]
pub struct CsiDriver;

impl UpdateStrategy for CsiDriver {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        raise_generation(object, old, &["spec"]);
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> Vec<String> {
        let is_changed = object.at("spec.tokenRequests") != old.at("spec.tokenRequests");
        if is_changed { warnings(object) } else { Vec::new() }
    }
}

impl Strategy for CsiDriver {
    fn set_defaults(&self, object: &mut Value) {
        let spec = object.make("spec");
        spec.set_default("attachRequired", true);
        for off in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
            spec.set_default(off, false);
        }
        spec.set_default("fsGroupPolicy", "ReadWriteOnceWithFSType");
        if spec["volumeLifecycleModes"].items().is_empty() {
            spec.set("volumeLifecycleModes", json!(["Persistent"]));
        }
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

fn warnings(object: &Value) -> Vec<String> {
    let spec = &object["spec"];
    let has_tokens = !spec["tokenRequests"].items().is_empty();
    if has_tokens && spec["serviceAccountTokenInSecrets"].is_null() {
        vec![TOKENS_IN_SECRETS.to_owned()]
    } else {
        Vec::new()
    }
}
