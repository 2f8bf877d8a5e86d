//! Validation of metadata, the same for every kind.
//!
//! Follows: apimachinery/pkg/api/validation/objectmeta.go (v0.35).

use crate::common::goform;
use crate::strategy::{MetadataRounds, Strategy};
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::meta::{Meta, well_known};
use pintle_apimachinery::names::{self, Faults};
use pintle_apimachinery::{ErrorList, FieldError, Path, Value};

/// Annotations of one object may hold this many bytes, keys and values together.
pub const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// A field manager's name may have this many bytes.
pub const FIELD_MANAGER_BYTES_MAX: usize = 128;

/// What upstream says of a change to what cannot change.
pub const IMMUTABLE: &str = "field is immutable";

/// Validates an object's metadata. `name_faults` is the kind's rule, told whether it sees a generateName.
pub fn validate(object: &Value, is_namespaced: bool, name_faults: impl Fn(&str, bool) -> Faults) -> ErrorList {
    let metadata = object.metadata();
    let path = Path::new("metadata");
    let mut errors = ErrorList::new();
    let generate_name = metadata["generateName"].str_or_empty();
    if !generate_name.is_empty() {
        let field = path.child("generateName");
        errors.extend(
            name_faults(generate_name, true).into_iter().map(|f| FieldError::invalid(&field, generate_name, f)),
        );
    }
    let name_path = path.child("name");
    match object.name() {
        "" => errors.push(FieldError::required(&name_path, "name or generateName is required")),
        name => errors.extend(name_faults(name, false).into_iter().map(|f| FieldError::invalid(&name_path, name, f))),
    }
    let namespace_path = path.child("namespace");
    match (is_namespaced, object.namespace()) {
        (true, "") => errors.push(FieldError::required(&namespace_path, "")),
        (true, namespace) => {
            let faults = names::dns1123_label(namespace);
            errors.extend(faults.into_iter().map(|f| FieldError::invalid(&namespace_path, namespace, f)));
        }
        (false, "") => {}
        (false, _) => errors.push(FieldError::forbidden(&namespace_path, "not allowed on this type")),
    }
    errors.extend(nonnegative(&metadata["generation"], &path.child("generation")));
    validate_maps_and_owners(metadata, &path, &mut errors);
    errors.extend(validate_finalizers(&metadata["finalizers"], &path.child("finalizers")));
    errors.extend(validate_managed_fields(&metadata["managedFields"], &path.child("managedFields")));
    errors
}

/// Validates the metadata of a new object by its kind's rules.
pub fn validate_for_create(object: &Value, is_namespaced: bool, strategy: &dyn Strategy) -> ErrorList {
    let mut errors = validate(object, is_namespaced, |name, is_prefix| strategy.name_faults(name, is_prefix));
    if strategy.metadata_rounds().checks_finalizers {
        errors.extend(unqualified_finalizers(object));
    }
    errors
}

/// Validates the metadata of an update as all kinds have it, and repeats what it finds as often as the kind's own
/// validation finds it again.
pub fn validate_for_update(object: &Value, old: &Value, is_namespaced: bool, rounds: MetadataRounds) -> ErrorList {
    let as_new = validate(object, is_namespaced, names::path_segment);
    let as_update = validate_update(object, old);
    let finalizers = if rounds.checks_finalizers { unqualified_finalizers(object) } else { ErrorList::new() };
    if as_new.is_empty() && as_update.is_empty() && finalizers.is_empty() {
        return ErrorList::new();
    }
    let mut errors = [as_new.clone(), as_update.clone()].concat();
    errors.extend((0..rounds.as_update).flat_map(|_| [as_update.clone(), finalizers.clone()].concat()));
    errors.extend((0..rounds.as_new).flat_map(|_| [as_new.clone(), finalizers.clone()].concat()));
    errors
}

/// Finalizers that are neither qualified names nor among the few that everybody knows.
fn unqualified_finalizers(object: &Value) -> ErrorList {
    let metadata = Path::new("metadata");
    let path = metadata.child("finalizers");
    let finalizers = object.finalizers().enumerate();
    finalizers.filter_map(|(idx, finalizer)| unqualified_finalizer(finalizer, &path.index(idx))).collect()
}

/// The finalizer of namespaces: it holds them until their contents are gone.
pub const FINALIZER_KUBERNETES: &str = "kubernetes";

/// A finalizer that is neither a qualified name nor among the few that everybody knows.
pub fn unqualified_finalizer(finalizer: &str, path: &Path<'_>) -> Option<FieldError> {
    let known = [FINALIZER_KUBERNETES, well_known::FINALIZER_ORPHAN, well_known::FINALIZER_FOREGROUND];
    let is_fine = finalizer.contains('/') || known.contains(&finalizer);
    let rule = "name is neither a standard finalizer name nor is it fully qualified";
    (!is_fine).then(|| FieldError::invalid(path, finalizer, rule))
}

fn validate_maps_and_owners(metadata: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    errors.extend(validate_labels(&metadata["labels"], &path.child("labels")));
    errors.extend(validate_annotations(&metadata["annotations"], &path.child("annotations")));
    errors.extend(validate_owner_references(&metadata["ownerReferences"], &path.child("ownerReferences")));
}

/// An integer that must not be negative, if it is there.
pub fn nonnegative(value: &Value, path: &Path<'_>) -> Option<FieldError> {
    let number = value.as_i64()?;
    (number < 0).then(|| FieldError::invalid(path, number, "must be greater than or equal to 0"))
}

/// Validates a map of labels.
pub fn validate_labels(labels: &Value, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for (key, value) in labels.entries() {
        errors.extend(names::qualified_name(key).into_iter().map(|f| FieldError::invalid(path, key, f)));
        let value = value.str_or_empty();
        errors.extend(names::label_value(value).into_iter().map(|f| FieldError::invalid(path, value, f)));
    }
    errors
}

/// Validates a map of annotations.
pub fn validate_annotations(annotations: &Value, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut n_bytes = 0;
    for (key, value) in annotations.entries() {
        // keys are told apart by case but checked without it
        let faults = names::qualified_name(&key.to_lowercase());
        errors.extend(faults.into_iter().map(|f| FieldError::invalid(path, key, f)));
        n_bytes += key.len() + value.str_or_empty().len();
    }
    if n_bytes > ANNOTATIONS_BYTES_MAX {
        errors.push(FieldError::too_long(path, ANNOTATIONS_BYTES_MAX));
    }
    errors
}

/// Validates owner references.
pub fn validate_owner_references(owners: &Value, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut controller: Option<String> = None;
    for owner in owners.items() {
        let text = |field: &str| owner[field].str_or_empty();
        let gv = pintle_apimachinery::GroupVersion::parse(text("apiVersion")).unwrap_or_default();
        if gv.version.is_empty() {
            errors.push(FieldError::invalid(
                &path.child("apiVersion"),
                text("apiVersion"),
                "version must not be empty",
            ));
        }
        for field in ["kind", "name", "uid"] {
            if text(field).is_empty() {
                errors.push(FieldError::invalid(&path.child(field), "", "must not be empty"));
            }
        }
        if text("apiVersion") == "v1" && text("kind") == "Event" {
            let error = FieldError::invalid(path, "", "/v1, Kind=Event is disallowed from being an owner");
            errors.push(FieldError { shown: Some(goform::compact(owner, "meta/v1.OwnerReference")), ..error });
        }
        if owner["controller"].is_true() {
            let this = format!("{}/{}", text("kind"), text("name"));
            match &controller {
                Some(first) => {
                    let rule = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                    );
                    let shown = goform::compact(owners, "[]meta/v1.OwnerReference");
                    errors.push(FieldError { shown: Some(shown), ..FieldError::invalid(path, "", rule) });
                }
                None => controller = Some(this),
            }
        }
    }
    errors
}

/// Validates finalizers.
pub fn validate_finalizers(finalizers: &Value, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let list: Vec<&str> = finalizers.items().iter().map(Value::str_or_empty).collect();
    for finalizer in &list {
        errors.extend(names::qualified_name(finalizer).into_iter().map(|f| FieldError::invalid(path, *finalizer, f)));
    }
    if list.contains(&well_known::FINALIZER_ORPHAN) && list.contains(&well_known::FINALIZER_FOREGROUND) {
        errors.push(FieldError::invalid(
            path,
            finalizers,
            "finalizer orphan and foregroundDeletion cannot be both set",
        ));
    }
    errors
}

/// Validates managedFields as a client may send them.
pub fn validate_managed_fields(entries: &Value, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for (idx, entry) in entries.items().iter().enumerate() {
        let path = path.index(idx);
        let operation = entry["operation"].str_or_empty();
        if operation != "Apply" && operation != "Update" {
            errors.push(FieldError::invalid(&path.child("operation"), operation, "must be `Apply` or `Update`"));
        }
        let fields_type = entry["fieldsType"].str_or_empty();
        if !fields_type.is_empty() && fields_type != "FieldsV1" {
            errors.push(FieldError::invalid(&path.child("fieldsType"), fields_type, "must be `FieldsV1`"));
        }
        errors.extend(validate_field_manager(entry["manager"].str_or_empty(), &path.child("manager")));
        let subresource = entry["subresource"].str_or_empty();
        if subresource.len() > 256 {
            errors.push(FieldError::too_long(&path.child("subresource"), 256));
        }
    }
    errors
}

/// Validates a field manager's name.
pub fn validate_field_manager(manager: &str, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if manager.len() > FIELD_MANAGER_BYTES_MAX {
        errors.push(FieldError::too_long(path, FIELD_MANAGER_BYTES_MAX));
    }
    for (at, c) in manager.char_indices() {
        if c.is_control() {
            let rule = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
            errors.push(FieldError::invalid(path, manager, rule));
        }
    }
    errors
}

/// Validates the change of an object's metadata.
pub fn validate_update(object: &Value, old: &Value) -> ErrorList {
    let path = Path::new("metadata");
    let (new_meta, old_meta) = (object.metadata(), old.metadata());
    let mut errors = ErrorList::new();
    if object.is_terminating() {
        let added: Vec<&str> = object
            .finalizers()
            .filter(|f| !old.has_finalizer(f))
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect();
        if !added.is_empty() {
            let quoted: Vec<String> = added.iter().map(|f| go_quote(f)).collect();
            errors.push(FieldError::forbidden(
                &path.child("finalizers"),
                format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                    quoted.join(", ")
                ),
            ));
        }
    }
    if object.resource_version().is_empty() {
        errors.push(FieldError::invalid(&path.child("resourceVersion"), "", "must be specified for an update"));
    }
    let (generation, old_generation) = (object.generation(), old.generation());
    if generation < old_generation {
        errors.push(FieldError::invalid(&path.child("generation"), generation, "must not be decremented"));
    }
    for field in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if new_meta[field] != old_meta[field] {
            errors.push(FieldError::invalid(&path.child(field), &new_meta[field], IMMUTABLE));
        }
    }
    validate_maps_and_owners(new_meta, &path, &mut errors);
    errors.extend(validate_managed_fields(&new_meta["managedFields"], &path.child("managedFields")));
    errors
}
