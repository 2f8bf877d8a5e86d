//! The spec of a PersistentVolumeClaim, wherever it stands: in a claim, in the claim template of an ephemeral volume.

use super::At;
use super::checks::{NOT_POSITIVE, one_of, push_faults, required};
use super::resources::{quantity, validate_resource_quantity};
use super::selectors::{SelectorOptions, is_invalid, validate_label_selector, validate_labels};
use pintle_apimachinery::{ErrorList, Value, names};

/// The access modes, as upstream tells them.
pub const ACCESS_MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
/// The volume modes.
pub const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];

/// What the spec may hold besides what is well-formed: what the old object held already.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClaimOptions {
    /// The selector's values may be no label values.
    pub allow_invalid_values_in_selector: bool,
    /// The API group of a data source may be no DNS name.
    pub allow_invalid_api_group: bool,
}

impl ClaimOptions {
    /// What a claim template may hold that replaces `old` (`null` for none).
    pub fn of_template(old: &Value) -> ClaimOptions {
        let is_invalid = is_invalid(&old["spec"]["selector"], SelectorOptions::default());
        ClaimOptions { allow_invalid_values_in_selector: is_invalid, allow_invalid_api_group: false }
    }
}

/// The defaults of a claim's spec.
pub fn set_claim_spec_defaults(spec: &mut Value) {
    spec.set_default("volumeMode", "Filesystem");
}

/// The metadata of a template whose objects are named by others: labels and annotations only.
pub fn validate_template_metadata(at: &At<'_>, errors: &mut ErrorList) {
    let annotations = at.child("annotations");
    errors.extend(crate::meta::validate_annotations(annotations.value(), annotations.path()));
    validate_labels(&at.child("labels"), errors);
    // in the order of upstream's struct
    const OTHERS: &[(&str, &str)] = &[
        ("name", "name"),
        ("generateName", "generateName"),
        ("namespace", "namespace"),
        ("selfLink", "selfLink"),
        ("uid", "uID"),
        ("resourceVersion", "resourceVersion"),
        ("generation", "generation"),
        ("creationTimestamp", "creationTimestamp"),
        ("deletionTimestamp", "deletionTimestamp"),
        ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
        ("ownerReferences", "ownerReferences"),
        ("finalizers", "finalizers"),
        ("managedFields", "managedFields"),
    ];
    for (name, called) in OTHERS {
        let field = at.child_called(name, called);
        if field.is_set() {
            errors.push(field.forbidden("cannot be set"));
        }
    }
}

/// A claim template: metadata and spec.
pub fn validate_claim_template(at: &At<'_>, options: ClaimOptions, errors: &mut ErrorList) {
    validate_template_metadata(&at.child("metadata"), errors);
    validate_claim_spec(&at.child("spec"), options, errors);
}

/// The spec of a claim.
pub fn validate_claim_spec(at: &At<'_>, options: ClaimOptions, errors: &mut ErrorList) {
    let modes = at.child("accessModes");
    if modes.items().is_empty() {
        errors.push(modes.required("at least 1 access mode is required"));
    }
    let selector_options = SelectorOptions {
        allow_invalid_values: options.allow_invalid_values_in_selector,
        ..SelectorOptions::default()
    };
    validate_label_selector(&at.child("selector"), selector_options, errors);
    for mode in modes.items() {
        // upstream names the list, not the item
        one_of(&At::new(mode, *modes.path()), ACCESS_MODES, errors);
    }
    let is_once_pod = |mode: &Value| mode.as_str() == Some("ReadWriteOncePod");
    let is_other = |mode: &Value| !is_once_pod(mode) && ACCESS_MODES.contains(&mode.str_or_empty());
    if modes.items().iter().any(is_once_pod) && modes.items().iter().any(is_other) {
        errors.push(modes.forbidden("may not use ReadWriteOncePod with other access modes"));
    }
    validate_storage(at, errors);
    optional_class_name(&at.child("storageClassName"), errors);
    let volume_mode = at.child("volumeMode");
    if volume_mode.is_set() {
        one_of(&volume_mode, VOLUME_MODES, errors);
    }
    validate_data_sources(at, options, errors);
    optional_class_name(&at.child("volumeAttributesClassName"), errors);
}

fn validate_storage(at: &At<'_>, errors: &mut ErrorList) {
    // upstream leaves `requests` out of the path
    let resources = at.child("resources");
    let storage = At::new(&resources.value()["requests"]["storage"], resources.path().key("storage"));
    if !storage.is_set() {
        errors.push(storage.required(""));
    } else if quantity(storage.value()).sign() <= 0 {
        errors.push(storage.invalid(NOT_POSITIVE));
    } else {
        validate_resource_quantity("storage", &storage, errors);
    }
}

fn optional_class_name(at: &At<'_>, errors: &mut ErrorList) {
    if !at.text().is_empty() {
        push_faults(at, names::dns1123_subdomain(at.text()), errors);
    }
}

fn validate_data_sources(at: &At<'_>, options: ClaimOptions, errors: &mut ErrorList) {
    let (source, reference) = (at.child("dataSource"), at.child("dataSourceRef"));
    for source in [&source, &reference] {
        if source.is_set() {
            validate_data_source(source, options, errors);
        }
    }
    let namespace = reference.value()["namespace"].str_or_empty();
    let is_same = ["apiGroup", "kind", "name"].iter().all(|field| source[field] == reference[field]);
    if !source.is_set() || !reference.is_set() {
        return;
    }
    let rule = if !namespace.is_empty() {
        "may not be specified when dataSourceRef.namespace is specified"
    } else if !is_same {
        "must match dataSourceRef"
    } else {
        return;
    };
    // upstream shows the path where a value belongs, which prints as an empty struct
    errors.push(at.invalid_showing(Value::object(), rule));
}

fn validate_data_source(at: &At<'_>, options: ClaimOptions, errors: &mut ErrorList) {
    required(&at.child("name"), errors);
    required(&at.child("kind"), errors);
    let (group, kind) = (at.child("apiGroup"), at["kind"].str_or_empty());
    if group.text().is_empty() {
        if kind != "PersistentVolumeClaim" {
            errors.push(
                at.invalid_showing(kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"),
            );
        }
    } else if !options.allow_invalid_api_group {
        push_faults(&group, names::dns1123_subdomain(group.text()), errors);
    }
    let namespace = at.child("namespace");
    if !namespace.text().is_empty() {
        push_faults(&namespace, names::dns1123_label(namespace.text()), errors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[test]
    fn claim_templates() {
        let object = json!({"template": {
            "metadata": {"name": "a", "labels": {"a": "b"}},
            "spec": {
                "accessModes": ["ReadWriteOncePod", "ReadWriteOnce", "x"],
                "resources": {"requests": {"storage": "0"}},
                "volumeMode": "x",
                "dataSource": {"name": "a", "kind": "b"},
                "dataSourceRef": {"name": "a", "kind": "PersistentVolumeClaim"},
                "storageClassName": "",
                "volumeAttributesClassName": "A",
            },
        }});
        let mut errors = ErrorList::new();
        validate_claim_template(&At::top(&object, "template"), ClaimOptions::default(), &mut errors);
        expect![[r#"
            template.metadata.name: Forbidden: cannot be set
            template.spec.accessModes: Unsupported value: "x": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"
            template.spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes
            template.spec.resources[storage]: Invalid value: "0": must be greater than zero
            template.spec.volumeMode: Unsupported value: "x": supported values: "Block", "Filesystem"
            template.spec.dataSource: Invalid value: "b": must be 'PersistentVolumeClaim' when referencing the default apiGroup
            template.spec: Invalid value: {}: must match dataSourceRef
            template.spec.volumeAttributesClassName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        "#]]
        .assert_eq(&errors.iter().map(|e| format!("{e}\n")).collect::<String>());
    }
}
