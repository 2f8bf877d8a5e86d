//! Conversion between the versions that serve one stored object. Of the built-in kinds only two have several:
//! HorizontalPodAutoscaler (`autoscaling/v2` is stored) and Event (`v1` is stored). Custom resources are not our
//! concern.

use crate::autoscaling;
use crate::core::event;
use pintle_apimachinery::{GroupVersion, GroupVersionKind, Value};

/// The form in which objects of a kind are stored, and on which the kind's strategy works.
pub fn stored_kind(kind: &GroupVersionKind) -> GroupVersionKind {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("autoscaling", "HorizontalPodAutoscaler") => GroupVersionKind::new("autoscaling", "v2", &kind.kind),
        ("events.k8s.io", "Event") => GroupVersionKind::new("", "v1", &kind.kind),
        _ => kind.clone(),
    }
}

/// `value`, which is a whole object of `kind` in the form of `from`, in the form of `to`.
///
/// # Errors
/// When there is no such conversion.
pub fn convert(value: Value, from: &GroupVersion, to: &GroupVersion, kind: &str) -> Result<Value, String> {
    if from == to {
        return Ok(value);
    }
    let [old, new] = [from, to].map(|gv| (gv.group.as_str(), gv.version.as_str()));
    match (kind, old, new) {
        ("HorizontalPodAutoscaler", ("autoscaling", "v1"), ("autoscaling", "v2")) => Ok(autoscaling::v1::to_v2(value)),
        ("HorizontalPodAutoscaler", ("autoscaling", "v2"), ("autoscaling", "v1")) => {
            Ok(autoscaling::v1::from_v2(value))
        }
        ("Event", ("", "v1"), ("events.k8s.io", "v1")) => Ok(event::to_group(value)),
        ("Event", ("events.k8s.io", "v1"), ("", "v1")) => Ok(event::to_core(value)),
        _ => Err(format!("{kind} cannot be converted from {from} to {to}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::json;

    #[test]
    fn events_there_and_back() {
        let (core, group) = (GroupVersion::new("", "v1"), GroupVersion::new("events.k8s.io", "v1"));
        let event = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": {"kind": "Pod"},
            "message": "m", "source": {}, "firstTimestamp": null, "lastTimestamp": "2026-01-01T00:00:00Z",
            "eventTime": null, "series": {"lastObservedTime": null}, "reportingComponent": "", "reportingInstance": "i"
        });
        let new = convert(event.clone(), &core, &group, "Event").unwrap();
        assert_eq!(
            new,
            json!({
                "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
                "regarding": {"kind": "Pod"}, "note": "m", "deprecatedSource": {}, "deprecatedFirstTimestamp": null,
                "deprecatedLastTimestamp": "2026-01-01T00:00:00Z", "eventTime": null,
                "series": {"count": 0, "lastObservedTime": null}, "reportingInstance": "i"
            })
        );
        assert_eq!(convert(new, &group, &core, "Event").unwrap(), event);
        let refused = convert(event, &core, &GroupVersion::new("apps", "v1"), "Event");
        assert_eq!(refused.unwrap_err(), "Event cannot be converted from v1 to apps/v1");
    }
}
