//! LimitRanges.

use super::quantities::round_up_to_millis;
use crate::{MetadataRounds, Strategy, UpdateStrategy};
use pintle_apimachinery::Value;

/// The strategy of LimitRanges.
#[derive(Debug)]
pub struct LimitRange;

impl UpdateStrategy for LimitRange {
    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::NEW
    }
}

impl Strategy for LimitRange {
    fn set_defaults(&self, object: &mut Value) {
        for limit in object.at_mut("spec.limits").map_or(&mut [][..], Value::items_mut) {
            if limit["type"].as_str() == Some("Container") {
                fill_absent(limit, "max", "default");
                fill_absent(limit, "default", "defaultRequest");
                fill_absent(limit, "min", "defaultRequest");
            }
            for amounts in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
                round_up_to_millis(limit.get_mut(amounts));
            }
        }
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }
}

/// Copies the amounts of `from` that `to` does not have.
fn fill_absent(limit: &mut Value, from: &str, to: &str) {
    if limit[from].entries().len() == 0 {
        return;
    }
    let given = limit[from].clone();
    for (resource, amount) in given.entries() {
        limit[to].set_default(resource, amount.clone());
    }
}
