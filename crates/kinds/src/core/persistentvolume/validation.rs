//! The rules of a persistent volume's spec, which stands inside VolumeAttachments, too.

use super::sources::{SOURCES, Volume};
use crate::common::resources::quantity;
use crate::common::selectors::validate_node_selector;
use crate::common::{At, dns1123_subdomain, goform, one_of};
use pintle_apimachinery::{ErrorList, FieldError};

/// The access modes there are, sorted.
const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// What passes, and where the spec stands.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpecOptions<'a> {
    /// The name of the volume; empty for an inline one.
    pub name: &'a str,
    /// Whether the spec stands inside a VolumeAttachment.
    pub is_inline: bool,
    /// Values of node labels that are none pass: the old object had such.
    pub any_label_value: bool,
}

/// Checks a spec.
pub fn validate_spec(spec: &At<'_>, options: SpecOptions<'_>, errors: &mut ErrorList) {
    let is_inline = options.is_inline;
    if is_inline {
        forbid_inline(spec, "claimRef", errors);
        let capacity = spec.child("capacity");
        if !capacity.is_empty() {
            errors.push(capacity.forbidden("may not be specified in the context of inline volumes"));
        }
        let csi = spec.child("csi");
        if !csi.is_set() {
            errors.push(csi.required("has to be specified in the context of inline volumes"));
        }
    }
    validate_access_modes(&spec.child("accessModes"), errors);
    if !is_inline {
        validate_capacity(&spec.child("capacity"), errors);
    }
    validate_reclaim_policy(&spec.child("persistentVolumeReclaimPolicy"), is_inline, errors);
    let affinity = spec.child("nodeAffinity");
    if affinity.is_set() && !is_inline {
        let required = affinity.child("required");
        if required.is_set() {
            validate_node_selector(&required, options.any_label_value, errors);
        } else {
            errors.push(required.required("must specify required node constraints"));
        }
    }
    if is_inline {
        forbid_inline(spec, "nodeAffinity", errors);
    }
    validate_source(spec, options, errors);
    validate_classes_and_mode(spec, is_inline, errors);
}

fn forbid_inline(spec: &At<'_>, field: &str, errors: &mut ErrorList) {
    let at = spec.child(field);
    if at.is_set() {
        errors.push(at.forbidden("may not be specified in the context of inline volumes"));
    }
}

fn validate_access_modes(modes: &At<'_>, errors: &mut ErrorList) {
    if modes.items().is_empty() {
        errors.push(modes.required(""));
    }
    let (mut has_pod, mut has_other) = (false, false);
    for mode in modes.items() {
        // upstream tells the list, not the item
        let mode = At::new(mode, *modes.path());
        one_of(&mode, &ACCESS_MODES, errors);
        if mode.text() == "ReadWriteOncePod" {
            has_pod = true;
        } else if ACCESS_MODES.contains(&mode.text()) {
            has_other = true;
        }
    }
    if has_pod && has_other {
        errors.push(modes.forbidden("may not use ReadWriteOncePod with other access modes"));
    }
}

fn validate_capacity(capacity: &At<'_>, errors: &mut ErrorList) {
    let n_amounts = capacity.entries().len();
    if n_amounts == 0 {
        errors.push(capacity.required(""));
    }
    if !capacity.has("storage") || n_amounts > 1 {
        let shown = goform::compact(capacity, "{}api/resource.Quantity");
        errors.push(FieldError { shown: Some(shown), ..capacity.not_supported(&["storage"]) });
    }
    for (_, amount) in capacity.each_entry() {
        let parsed = quantity(&amount);
        if parsed.value() < 0 {
            errors.push(amount.invalid_showing(parsed.value(), "must be a valid resource quantity"));
        }
        if parsed.sign() <= 0 {
            errors.push(amount.invalid("must be greater than zero"));
        }
    }
}

fn validate_reclaim_policy(policy: &At<'_>, is_inline: bool, errors: &mut ErrorList) {
    if policy.text().is_empty() {
        return;
    }
    if !is_inline {
        one_of(policy, &["Delete", "Recycle", "Retain"], errors);
    } else if policy.text() != "Retain" {
        errors.push(policy.forbidden("may only be Retain in the context of inline volumes"));
    }
}

fn validate_source(spec: &At<'_>, options: SpecOptions<'_>, errors: &mut ErrorList) {
    let mut n_sources = 0;
    for source in SOURCES {
        let member = spec.get(source.member);
        if member.is_null() {
            continue;
        }
        if n_sources > 0 && source.is_exclusive {
            errors.push(spec.child(source.told_twice).forbidden("may not specify more than 1 volume type"));
            continue;
        }
        n_sources += 1;
        let volume = Volume { name: options.name, spec };
        (source.validate)(&At::new(member, spec.path().child(source.told)), &volume, errors);
    }
    if n_sources == 0 {
        errors.push(spec.required("must specify a volume type"));
    }
    let policy = spec.child("persistentVolumeReclaimPolicy");
    let host_path = spec.get("hostPath");
    if policy.text() == "Recycle" && !host_path.is_null() && is_root(host_path["path"].str_or_empty()) {
        errors.push(policy.forbidden("may not be 'recycle' for a hostPath mount of '/'"));
    }
}

/// Whether a path means `/` when it is written as short as can be.
fn is_root(path: &str) -> bool {
    if !path.starts_with('/') {
        return false;
    }
    let depth = path.split('/').fold(0usize, |depth, step| match step {
        "" | "." => depth,
        ".." => depth.saturating_sub(1),
        _ => depth + 1,
    });
    depth == 0
}

fn validate_classes_and_mode(spec: &At<'_>, is_inline: bool, errors: &mut ErrorList) {
    let class = spec.child("storageClassName");
    if !class.text().is_empty() {
        if is_inline {
            errors.push(class.forbidden("may not be specified in the context of inline volumes"));
        } else {
            dns1123_subdomain(&class, errors);
        }
    }
    let mode = spec.child("volumeMode");
    if mode.is_set() && !is_inline {
        one_of(&mode, &["Block", "Filesystem"], errors);
    } else if mode.is_set() && mode.text() != "Filesystem" {
        let rule = "may not specify volumeMode other than Filesystem in the context of inline volumes";
        errors.push(mode.forbidden(rule));
    }
    let attributes = spec.child("volumeAttributesClassName");
    // inside attachments upstream does not look at it
    if attributes.is_set() && !is_inline {
        if attributes.text().is_empty() {
            errors.push(attributes.required("an empty string is disallowed"));
        } else {
            dns1123_subdomain(&attributes, errors);
        }
        let csi = spec.child("csi");
        if !csi.is_set() {
            errors.push(csi.required("has to be specified when using volumeAttributesClassName"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots() {
        for (path, is) in [("/", true), ("//", true), ("/a/..", true), ("/../.", true), ("/a", false), ("", false)] {
            assert_eq!(is_root(path), is, "{path}");
        }
    }
}
