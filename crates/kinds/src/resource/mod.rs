//! The group `resource.k8s.io`.

pub mod admin;
mod checks;
pub mod claim;
pub mod claimtemplate;
mod claimvalidation;
pub mod deviceclass;
pub mod slice;
mod slicevalidation;

use crate::Strategy;

/// The strategy of a resource of this group, if it has one of its own.
pub fn strategy(resource: &str) -> Option<&'static dyn Strategy> {
    Some(match resource {
        "deviceclasses" => &deviceclass::DeviceClass,
        "resourceclaims" => &claim::ResourceClaim,
        "resourceclaimtemplates" => &claimtemplate::ResourceClaimTemplate,
        "resourceslices" => &slice::ResourceSlice,
        _ => return None,
    })
}
