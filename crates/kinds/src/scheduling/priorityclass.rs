//! PriorityClasses.

use crate::common::At;
use crate::common::checks::{immutable, one_of_required};
use crate::prepare::start_generation;
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{ErrorList, FieldError, Path, Value};

/// Names that begin so are the server's.
const SYSTEM_PREFIX: &str = "system-";

/// Highest priority that users may define.
pub const USER_PRIORITY_MAX: i64 = 1_000_000_000;

/// The classes that every cluster has, with their values.
pub const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-node-critical", 2 * USER_PRIORITY_MAX + 1000), ("system-cluster-critical", 2 * USER_PRIORITY_MAX)];

/// The strategy of PriorityClasses.
#[derive(Debug)]
pub struct PriorityClass;

impl UpdateStrategy for PriorityClass {
    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        let value = At::top(object, "value");
        if value.int() != old["value"].as_i64().unwrap_or_default() {
            errors.push(value.forbidden("may not be changed in an update."));
        }
        immutable(&At::top(object, "preemptionPolicy"), &old["preemptionPolicy"], "", &mut errors);
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }
}

impl Strategy for PriorityClass {
    fn set_defaults(&self, object: &mut Value) {
        object.set_default("preemptionPolicy", "PreemptLowerPriority");
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        start_generation(object);
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        let (value, policy) = (At::top(object, "value"), At::top(object, "preemptionPolicy"));
        if object.name().starts_with(SYSTEM_PREFIX) {
            errors.extend(system_class_fault(object, value.int()).map(|fault| {
                let metadata = Path::new("metadata");
                let rule = format!("priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {fault}");
                FieldError::forbidden(&metadata.child("name"), rule)
            }));
        } else if value.int() > USER_PRIORITY_MAX {
            let rule = format!("maximum allowed value of a user defined priority is {USER_PRIORITY_MAX}");
            errors.push(value.forbidden(rule));
        }
        if policy.is_set() {
            one_of_required(&policy, &["PreemptLowerPriority", "Never"], &mut errors);
        }
        errors
    }

    fn delete_refusal(&self, name: &str) -> Option<&'static str> {
        let is_system = SYSTEM_CLASSES.iter().any(|(system, _)| *system == name);
        is_system.then_some("this is a system priority class and cannot be deleted")
    }
}

/// What tells the class from the server's own of that name.
fn system_class_fault(object: &Value, value: i64) -> Option<String> {
    let name = object.name();
    match SYSTEM_CLASSES.iter().find(|(system, _)| *system == name) {
        None => Some(format!("{name} is not a known system priority class")),
        Some((_, known)) if *known != value => Some(format!("value of {name} PriorityClass must be {known}")),
        Some(_) if object["globalDefault"].is_true() => {
            Some(format!("globalDefault of {name} PriorityClass must be false"))
        }
        Some(_) => None,
    }
}
