//! VolumeAttachments and their status.

use crate::core::persistentvolume::set_spec_defaults;
use crate::prepare::{StatusMetadata, StatusSubresource, anything_goes, clear_status, keep};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::Value;

/// The strategy of VolumeAttachments.
#[derive(Debug)]
pub struct VolumeAttachment;

static STATUS: StatusSubresource =
    StatusSubresource { metadata: StatusMetadata::Stays, rounds: MetadataRounds::NEW, validate: anything_goes };

impl UpdateStrategy for VolumeAttachment {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::NEW
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for VolumeAttachment {
    fn set_defaults(&self, object: &mut Value) {
        if let Some(spec) = object.at_mut("spec.source.inlineVolumeSpec").filter(|spec| !spec.is_null()) {
            set_spec_defaults(spec);
        }
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        clear_status(object, "storage/v1.VolumeAttachmentStatus");
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        (name == "status").then_some(&STATUS as _)
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}
