//! EndpointSlices.

use crate::prepare::start_generation;
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::Value;
use pintle_apimachinery::meta::{Meta, set_meta};
use pintle_apimachinery::names;

/// The strategy of EndpointSlices.
#[derive(Debug)]
pub struct EndpointSlice;

impl UpdateStrategy for EndpointSlice {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        let is_same_member = |member: &str| object[member] == old[member];
        let is_same = ["addressType", "endpoints", "ports"].into_iter().all(is_same_member);
        if !is_same || object.metadata()["labels"] != old.metadata()["labels"] {
            set_meta(object, "generation", old.generation() + 1);
        }
        if object["endpoints"] != old["endpoints"] {
            drop_topology(object, old);
        }
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::NEW
    }
}

impl Strategy for EndpointSlice {
    fn set_defaults(&self, object: &mut Value) {
        for port in object.get_mut("ports").map_or(&mut [][..], Value::items_mut) {
            port.set_default("name", "");
            port.set_default("protocol", "TCP");
        }
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        start_generation(object);
        drop_topology(object, &Value::NULL);
    }
}

const HOSTNAME: &str = "kubernetes.io/hostname";

/// The old topology map cannot be written; a node name that it held before moves to its field.
fn drop_topology(object: &mut Value, old: &Value) {
    for endpoint in object.get_mut("endpoints").map_or(&mut [][..], Value::items_mut) {
        let topology = endpoint.remove("deprecatedTopology");
        let Some(node) = topology[HOSTNAME].as_str() else { continue };
        let had_it = |old: &Value| old["deprecatedTopology"][HOSTNAME].as_str() == Some(node);
        let is_known = !node.is_empty() && old["endpoints"].items().iter().any(had_it);
        if is_known && endpoint["nodeName"].is_null() && names::dns1123_subdomain(node).is_empty() {
            endpoint.set("nodeName", node);
        }
    }
}
