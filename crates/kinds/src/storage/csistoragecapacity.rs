//! CSIStorageCapacities.

use crate::common::checks::dns1123_subdomain;
use crate::common::equality;
use crate::common::node_labels::warn_of_node_label_selector;
use crate::common::resources::validate_nonnegative_quantity;
use crate::common::selectors::{SelectorOptions, is_invalid, validate_label_selector};
use crate::common::{At, goform};
use crate::meta::IMMUTABLE;
use crate::{RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::{ErrorList, FieldError, Value};

/// The strategy of CSIStorageCapacities.
#[derive(Debug)]
pub struct CsiStorageCapacity;

impl UpdateStrategy for CsiStorageCapacity {
    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let allow_invalid_values = is_invalid(&old["nodeTopology"], SelectorOptions::default());
        let mut errors = validate(object, SelectorOptions { allow_invalid_values, ..SelectorOptions::default() });
        let (topology, class) = (At::top(object, "nodeTopology"), At::top(object, "storageClassName"));
        if !equality::semantic(topology.value(), &old["nodeTopology"], "meta/v1.LabelSelector") {
            let shown = goform::compact(topology.value(), "*meta/v1.LabelSelector");
            errors.push(FieldError { shown: Some(shown), ..topology.invalid(IMMUTABLE) });
        }
        if class.text() != old["storageClassName"].str_or_empty() {
            errors.push(class.invalid(IMMUTABLE));
        }
        errors
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> Vec<String> {
        warnings(object)
    }
}

impl Strategy for CsiStorageCapacity {
    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        validate(object, SelectorOptions::default())
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}

fn warnings(object: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    warn_of_node_label_selector(&At::top(object, "nodeTopology"), &mut warnings);
    warnings
}

fn validate(object: &Value, options: SelectorOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    validate_label_selector(&At::top(object, "nodeTopology"), options, &mut errors);
    dns1123_subdomain(&At::top(object, "storageClassName"), &mut errors);
    validate_nonnegative_quantity(&At::top(object, "capacity"), &mut errors);
    errors
}
