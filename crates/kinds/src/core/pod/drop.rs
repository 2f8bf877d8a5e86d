//! Fields of features that are off in this version: they vanish before a write unless the old object has them.
//!
//! Follows: pkg/api/pod/util.go and pkg/features (v1.35); features that are on by default have no code here.

use super::CONTAINER_LISTS;
use pintle_apimachinery::Value;

/// Status lists of containers, as [`CONTAINER_LISTS`].
pub(super) const STATUS_LISTS: [&str; 3] = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];

/// Takes fields of disabled features out of a pod spec; `old` is the spec before, `null` on create.
pub fn drop_disabled_spec_fields(spec: &mut Value, old: &Value) {
    // ClusterTrustBundleProjection, PodCertificateRequest
    for source in ["clusterTrustBundle", "podCertificate"] {
        if projects(spec, source) && !projects(old, source) {
            drop_projection(spec, source);
        }
    }
    // GenericWorkload
    if old["workloadRef"].is_null() {
        spec.remove("workloadRef");
    }
    // ContainerStopSignals
    if has_stop_signal(spec) && !has_stop_signal(old) {
        drop_stop_signals(spec);
    }
}

fn projects(spec: &Value, source: &str) -> bool {
    let mut sources = spec["volumes"].items().iter().flat_map(|volume| volume["projected"]["sources"].items());
    sources.any(|s| s.has(source))
}

fn drop_projection(spec: &mut Value, source: &str) {
    for volume in spec["volumes"].items_mut() {
        let sources = volume.at_mut("projected.sources").map(Value::items_mut).unwrap_or_default();
        for projection in sources {
            projection.remove(source);
        }
    }
}

fn has_stop_signal(spec: &Value) -> bool {
    let mut containers = CONTAINER_LISTS.iter().flat_map(|list| spec[list].items());
    containers.any(|container| container["lifecycle"].has("stopSignal"))
}

fn drop_stop_signals(spec: &mut Value) {
    for list in CONTAINER_LISTS {
        for container in spec.get_mut(list).map(Value::items_mut).unwrap_or_default() {
            if let Some(lifecycle) = container.get_mut("lifecycle") {
                lifecycle.remove("stopSignal");
                if lifecycle.is_empty() {
                    container.remove("lifecycle");
                }
            }
        }
    }
}

/// Takes fields of disabled features out of a pod's status.
pub(super) fn drop_disabled_status_fields(status: &mut Value, old: &Value) {
    // InPlacePodLevelResourcesVerticalScaling
    if old["resources"].is_null() && old["allocatedResources"].is_null() {
        status.remove("resources");
        status.remove("allocatedResources");
    }
    // DRAExtendedResource
    if old["extendedResourceClaimStatus"].is_null() {
        status.remove("extendedResourceClaimStatus");
    }
    // ResourceHealthStatus
    for list in STATUS_LISTS {
        for container in status.get_mut(list).map(Value::items_mut).unwrap_or_default() {
            container.remove("allocatedResourcesStatus");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::json;

    #[test]
    fn what_is_off_vanishes_unless_it_was_there() {
        let spec = json!({
            "containers": [{"name": "c", "lifecycle": {"stopSignal": "SIGTERM"}}],
            "volumes": [{"name": "v", "projected": {"sources": [{"podCertificate": {}}]}}],
            "workloadRef": {"name": "w"},
        });
        let mut fresh = spec.clone();
        drop_disabled_spec_fields(&mut fresh, &Value::NULL);
        assert_eq!(
            fresh.to_json_string(),
            r#"{"containers":[{"name":"c"}],"volumes":[{"name":"v","projected":{"sources":[{}]}}]}"#
        );
        let mut kept = spec.clone();
        drop_disabled_spec_fields(&mut kept, &spec);
        assert_eq!(kept, spec);
    }
}
