//! ResourceQuotas and their status.

use super::quantities::round_up_to_millis;
use crate::prepare::{StatusMetadata, StatusSubresource, anything_goes, clear_status, keep};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::Value;
use pintle_apimachinery::quantity::Quantity;

/// The strategy of ResourceQuotas.
#[derive(Debug)]
pub struct ResourceQuota;

static STATUS: StatusSubresource =
    StatusSubresource { metadata: StatusMetadata::Changes, rounds: MetadataRounds::UPDATE, validate: anything_goes };

impl UpdateStrategy for ResourceQuota {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for ResourceQuota {
    fn set_defaults(&self, object: &mut Value) {
        for amounts in ["spec.hard", "status.hard", "status.used"] {
            round_up_to_millis(object.at_mut(amounts));
        }
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        clear_status(object, "core/v1.ResourceQuotaStatus");
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        ["cpu", "memory", "storage", "ephemeral-storage"]
            .iter()
            .filter_map(|resource| request_above_limit(object.at("spec.hard"), resource))
            .collect()
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        (name == "status").then_some(&STATUS as _)
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

fn request_above_limit(hard: &Value, resource: &str) -> Option<String> {
    let mut request_name = format!("requests.{resource}");
    if hard[request_name.as_str()].is_null() && matches!(resource, "cpu" | "memory") {
        resource.clone_into(&mut request_name);
    }
    let limit_name = format!("limits.{resource}");
    let (request, limit) = (hard[request_name.as_str()].as_str()?, hard[limit_name.as_str()].as_str()?);
    (Quantity::parse(request).ok()? > Quantity::parse(limit).ok()?)
        .then(|| format!("ResourceQuota {request_name} ({request}) should be less than {limit_name} ({limit})"))
}
