//! ServiceCIDRs and their status.

use crate::prepare::{StatusMetadata, StatusSubresource, anything_goes};
use crate::{MetadataRounds, Strategy, UpdateStrategy};

/// The strategy of ServiceCIDRs.
#[derive(Debug)]
pub struct ServiceCidr;

static STATUS: StatusSubresource =
    StatusSubresource { metadata: StatusMetadata::Stays, rounds: MetadataRounds::UPDATE, validate: anything_goes };

impl UpdateStrategy for ServiceCidr {
    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for ServiceCidr {
    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        (name == "status").then_some(&STATUS as _)
    }
}
