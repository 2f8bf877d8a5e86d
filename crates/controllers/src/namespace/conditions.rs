//! What a namespace's conditions say of its deletion.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, NamespaceCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pintle_apimachinery::time::floor_second;

/// The condition types in upstream's order, each with reason and message for when all is well.
const TYPES: [(&str, &str, &str); 5] = [
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
];

/// Something that keeps a namespace: a condition that is `True`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) type_: &'static str,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// A condition of each type: `True` where there is trouble.
pub(super) fn conditions_of(troubles: &[Trouble], now: Timestamp) -> Vec<NamespaceCondition> {
    let condition = |(type_, ok_reason, ok_message): (&str, &str, &str)| {
        let trouble = troubles.iter().find(|trouble| trouble.type_ == type_);
        let (status, reason, message) = match trouble {
            Some(trouble) => ("True", trouble.reason, trouble.message.as_str()),
            None => ("False", ok_reason, ok_message),
        };
        NamespaceCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_transition_time: Some(Time(floor_second(now))),
        }
    };
    TYPES.into_iter().map(condition).collect()
}

/// The namespace with these conditions; `None` when it says all that already.
pub(super) fn with_conditions(namespace: &Namespace, conditions: Vec<NamespaceCondition>) -> Option<Namespace> {
    let mut changed = namespace.clone();
    let known = changed.status.get_or_insert_default().conditions.get_or_insert_default();
    let mut is_changed = false;
    for condition in conditions {
        match known.iter_mut().find(|known| known.type_ == condition.type_) {
            None => {
                known.push(condition);
                is_changed = true;
            }
            Some(known) => {
                let is_same = known.status == condition.status
                    && known.reason == condition.reason
                    && known.message == condition.message;
                if !is_same {
                    let since = if known.status == condition.status {
                        known.last_transition_time.clone()
                    } else {
                        condition.last_transition_time.clone()
                    };
                    *known = NamespaceCondition { last_transition_time: since, ..condition };
                    is_changed = true;
                }
            }
        }
    }
    is_changed.then_some(changed)
}
