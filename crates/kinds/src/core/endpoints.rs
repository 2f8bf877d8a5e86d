//! Endpoints.

use crate::{Strategy, UpdateStrategy};
use pintle_apimachinery::Value;

/// The strategy of Endpoints.
#[derive(Debug)]
pub struct Endpoints;

impl UpdateStrategy for Endpoints {}

impl Strategy for Endpoints {
    fn set_defaults(&self, object: &mut Value) {
        for subset in object.get_mut("subsets").map_or(&mut [][..], Value::items_mut) {
            for port in subset.get_mut("ports").map_or(&mut [][..], Value::items_mut) {
                port.set_default("protocol", "TCP");
            }
        }
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }
}
