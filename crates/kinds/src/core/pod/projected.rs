//! Projected volumes and the downward API.
//!
//! Not here: projections of trust bundles and pod certificates. Their features are off, and `drop` takes them out
//! before validation.

use super::container_parts::{validate_field_ref, validate_resource_field_ref};
use super::options::PodOptions;
use super::security::validate_local_path;
use super::volume_sources::validate_mode;
use crate::common::At;
use crate::common::checks::required;
use pintle_apimachinery::ErrorList;

/// Shortest and longest life of a projected token, in seconds.
const TOKEN_SECONDS: std::ops::RangeInclusive<i64> = 600..=(1 << 32);

/// Fields of a pod that a volume may hold, sorted.
const VOLUME_FIELDS: &[&str] =
    &["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// A key of a secret or config map and the file it becomes.
pub(super) fn validate_key_to_path(at: &At<'_>, errors: &mut ErrorList) {
    required(&at.child("key"), errors);
    let path = at.child("path");
    required(&path, errors);
    validate_local_path(&path, errors);
    validate_mode(&at.child("mode"), errors);
}

/// `downwardAPI`. Upstream names the source, not the file.
pub(super) fn validate_downward_api(at: &At<'_>, errors: &mut ErrorList) {
    validate_mode(&at.child("defaultMode"), errors);
    for file in at["items"].items() {
        validate_downward_file(&At::new(file, *at.path()), errors);
    }
}

fn validate_downward_file(at: &At<'_>, errors: &mut ErrorList) {
    let path = at.child("path");
    required(&path, errors);
    validate_local_path(&path, errors);
    let (field, resource) = (at.child("fieldRef"), at.child("resourceFieldRef"));
    if field.is_set() {
        validate_field_ref(&field, VOLUME_FIELDS, errors);
        if resource.is_set() {
            let rule = "fieldRef and resourceFieldRef can not be specified simultaneously";
            errors.push(at.invalid_showing("resource", rule));
        }
    } else if resource.is_set() {
        validate_resource_field_ref(&resource, true, errors);
    } else {
        errors.push(at.required("one of fieldRef and resourceFieldRef is required"));
    }
    validate_mode(&at.child("mode"), errors);
}

/// `projected`.
pub(super) fn validate_projected(at: &At<'_>, options: &PodOptions, errors: &mut ErrorList) {
    validate_mode(&at.child("defaultMode"), errors);
    let mut paths: Vec<&str> = Vec::new();
    for (idx, source) in at.child("sources").each().enumerate() {
        let value = &at.value()["sources"].items()[idx];
        let mut n_sources = 0;
        for kind in ["secret", "configMap", "downwardAPI"] {
            let projection = source.child(kind);
            if !projection.is_set() {
                continue;
            }
            n_sources += 1;
            let is_downward = kind == "downwardAPI";
            if !is_downward {
                required(&projection.child("name"), errors);
            }
            let items = projection.child("items");
            for (item, item_value) in items.each().zip(value[kind]["items"].items()) {
                let path = item_value["path"].str_or_empty();
                if is_downward {
                    validate_downward_file(&At::new(item_value, *projection.path()), errors);
                } else {
                    validate_key_to_path(&item, errors);
                }
                if path.is_empty() {
                    continue;
                }
                if paths.contains(&path) {
                    let shown = if is_downward { path } else { projection["name"].str_or_empty() };
                    errors.push(at.invalid_showing(shown, "conflicting duplicate paths"));
                } else {
                    paths.push(path);
                }
            }
        }
        if source.child("serviceAccountToken").is_set() {
            n_sources += 1;
            validate_token(at, &source.child("serviceAccountToken"), options, errors);
        }
        if n_sources > 1 {
            errors.push(source.forbidden("may not specify more than 1 volume type per source"));
        }
    }
}

/// A projected token; upstream tells its path at the volume, not at the source.
fn validate_token(volume: &At<'_>, token: &At<'_>, options: &PodOptions, errors: &mut ErrorList) {
    let seconds = token.child("expirationSeconds");
    if seconds.int() < *TOKEN_SECONDS.start() {
        errors.push(seconds.invalid_int("may not specify a duration less than 10 minutes"));
    }
    if seconds.int() > *TOKEN_SECONDS.end() {
        errors.push(seconds.invalid_int("may not specify a duration larger than 2^32 seconds"));
    }
    let path = At::new(&token.value()["path"], volume.path().child("path"));
    if required(&path, errors) && !options.allow_non_local_token_path {
        validate_local_path(&path, errors);
    }
}
