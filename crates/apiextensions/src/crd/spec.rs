//! Validation of a definition's spec and status: names, versions, columns, subresources, selectable fields.
//!
//! Follows: apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go (v0.35). What all versions have
//! alike is told at the top of the spec, as upstream's internal form keeps it.

use super::internal::{self, Shared};
use super::schema::{self, Leniency, shown_as};
use super::webhook;
use crate::structural::{Structural, Type, fieldpath};
use pintle_apimachinery::names::{self, Faults};
use pintle_apimachinery::{ErrorList, FieldError, Path, Value};

/// A version may have this many selectable fields; a definition with more is refused.
pub const SELECTABLE_FIELDS_MAX: usize = 8;

/// What an update may keep.
#[derive(Debug)]
pub(super) struct Options<'o> {
    pub(super) leniency: Leniency,
    pub(super) requires_known_review_version: bool,
    pub(super) allows_bad_ca_bundle: bool,
    /// The definition before an update.
    pub(super) old: Option<&'o Value>,
}

impl Options<'_> {
    /// Whether a version has the schema that it had.
    fn is_unchanged(&self, version: &Value) -> bool {
        let before = self
            .old
            .and_then(|old| old.at("spec.versions").items().iter().find(|before| before["name"] == version["name"]));
        before.is_some_and(|before| crate::version::schema_of(before) == crate::version::schema_of(version))
    }
}

/// The errors of a spec.
pub(super) fn validate(spec: &Value, options: &Options<'_>) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = ErrorList::new();
    group_and_scope(spec, &path, &mut errors);
    let versions = spec["versions"].items();
    let shared = Shared::of(versions);
    let mut leniency = options.leniency;
    let preserves_unknown = spec["preserveUnknownFields"].is_true();
    leniency.requires_structural |= !preserves_unknown;
    required_schemas(spec, &path, shared, &leniency, &mut errors);
    let has = |is: &dyn Fn(&Value) -> bool| versions.iter().any(|v| schema::any_node(crate::version::schema_of(v), is));
    if has(&|node| !node["default"].is_null()) {
        leniency.requires_structural = true;
        if preserves_unknown {
            let rule = "must be false in order to use defaults in the schema";
            errors.push(FieldError::invalid(&path.child("preserveUnknownFields"), true, rule));
        }
    }
    leniency.requires_structural |= has(&has_extension);
    let options = Options { leniency, ..*options };
    for (idx, version) in versions.iter().enumerate() {
        one_version(version, &path.child("versions").index(idx), shared, &options, &mut errors);
    }
    version_names(spec, &path, shared, &mut errors);
    validate_names(&spec["names"], &path.child("names"), true, &mut errors);
    if let Some(first) = versions.first() {
        shared_parts(first, versions, &path, shared, &options, &mut errors);
    }
    conversion(spec, &path, preserves_unknown, &options, &mut errors);
    errors
}

/// Whether a node uses one of Kubernetes' own keywords.
fn has_extension(node: &Value) -> bool {
    ["embedded-resource", "preserve-unknown-fields", "int-or-string", "list-map-keys", "list-type", "validations"]
        .iter()
        .any(|name| !node[format!("x-kubernetes-{name}").as_str()].is_null())
}

fn joined(faults: &Faults) -> String {
    faults.join(",")
}

fn group_and_scope(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let (group, at) = (spec["group"].str_or_empty(), path.child("group"));
    let faults = names::dns1123_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else if !faults.is_empty() {
        errors.push(FieldError::invalid(&at, group, joined(&faults)));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid(&at, group, "should be a domain with at least one dot"));
    }
    enumeration(&path.child("scope"), spec["scope"].str_or_empty(), &["Cluster", "Namespaced"], errors);
}

fn enumeration(at: &Path<'_>, value: &str, accepted: &[&str], errors: &mut ErrorList) {
    if value.is_empty() {
        errors.push(FieldError::required(at, ""));
    } else if !accepted.contains(&value) {
        errors.push(FieldError::not_supported(at, value, accepted));
    }
}

fn required_schemas(spec: &Value, path: &Path<'_>, shared: Shared, leniency: &Leniency, errors: &mut ErrorList) {
    let versions = spec["versions"].items();
    let is_missing = |version: &Value| crate::version::schema_of(version).is_null();
    if shared.schema && !is_missing(&versions[0]) {
        return;
    }
    let at_versions = path.child("versions");
    for (idx, version) in versions.iter().enumerate().filter(|(_, version)| is_missing(version)) {
        let at_version = at_versions.index(idx);
        let at = at_version.child("schema.openAPIV3Schema");
        if leniency.requires_schema {
            errors.push(FieldError::required(&at, ""));
        } else if !spec["preserveUnknownFields"].is_true() && version["served"].is_true() {
            errors.push(FieldError::required(&at, "because otherwise all fields are pruned"));
        }
    }
}

fn one_version(version: &Value, path: &Path<'_>, shared: Shared, options: &Options<'_>, errors: &mut ErrorList) {
    let name = version["name"].str_or_empty();
    let faults = names::dns1035_label(name);
    if !faults.is_empty() {
        errors.push(FieldError::invalid(&path.child("name"), name, joined(&faults)));
    }
    let at = path.child("deprecationWarning");
    for fault in deprecation_faults(version) {
        errors.push(FieldError::invalid(&at, version["deprecationWarning"].str_or_empty(), fault));
    }
    let compiled = crate::version::schema_of(version);
    if !shared.schema && !compiled.is_null() {
        let has_status = !version["subresources"]["status"].is_null();
        errors.extend(schema::validate(
            &path.child("schema"),
            compiled,
            has_status,
            options.is_unchanged(version),
            &options.leniency,
        ));
    }
    if !shared.subresources {
        subresources(&version["subresources"], &path.child("subresources"), errors);
    }
    if !shared.columns {
        columns(&version["additionalPrinterColumns"], &path.child("additionalPrinterColumns"), errors);
    }
    let selectable = version["selectableFields"].items();
    if shared.selectable || selectable.is_empty() {
        return;
    }
    let at = path.child("selectableFields");
    if shared.schema || compiled.is_null() {
        let rule = "may only be set when `version.schema.openAPIV3Schema` is not included";
        errors.push(FieldError::invalid(&at, "", rule));
        return;
    }
    selectable_fields(version, compiled, &at, &path.child("schema.openAPIV3Schema"), options, errors);
}

/// What all versions have alike.
fn shared_parts(
    first: &Value,
    versions: &[Value],
    path: &Path<'_>,
    shared: Shared,
    options: &Options<'_>,
    errors: &mut ErrorList,
) {
    let compiled = crate::version::schema_of(first);
    if shared.schema && !compiled.is_null() {
        let has_status = versions.iter().any(|version| !version["subresources"]["status"].is_null());
        errors.extend(schema::validate(
            &path.child("validation"),
            compiled,
            has_status,
            options.is_unchanged(first),
            &options.leniency,
        ));
    }
    if shared.subresources {
        subresources(&first["subresources"], &path.child("subresources"), errors);
    }
    if shared.columns {
        columns(&first["additionalPrinterColumns"], &path.child("additionalPrinterColumns"), errors);
    }
    if !shared.selectable || first["selectableFields"].items().is_empty() {
        return;
    }
    let at = path.child("selectableFields");
    if !shared.schema || first["schema"].is_null() {
        errors.push(FieldError::invalid(&at, "", "may only be set when validations.schema is included"));
    } else {
        selectable_fields(first, compiled, &at, &path.child("schema.openAPIV3Schema"), options, errors);
    }
}

fn deprecation_faults(version: &Value) -> Vec<String> {
    let Some(warning) = version["deprecationWarning"].as_str() else { return Vec::new() };
    if !version["deprecated"].is_true() {
        return vec!["can only be set for deprecated versions".to_owned()];
    }
    let mut faults = Vec::new();
    if warning.len() > 256 {
        faults.push("must be <= 256 characters long".to_owned());
    }
    if warning.is_empty() {
        faults.push("must not be an empty string".to_owned());
    }
    let is_printable = |c: char| c == ' ' || !(c.is_control() || c.is_whitespace() || c == '\u{ad}' || c == '\u{feff}');
    if let Some((at, _)) = warning.char_indices().find(|(_, c)| !is_printable(*c)) {
        faults
            .push(format!("must only contain printable UTF-8 characters; non-printable character found at index {at}"));
    }
    faults
}

fn version_names(spec: &Value, path: &Path<'_>, shared: Shared, errors: &mut ErrorList) {
    let versions = spec["versions"].items();
    let at = path.child("versions");
    let shown = || internal::versions(&spec["versions"], shared);
    let is_repeated = |idx: usize| versions[..idx].iter().any(|v| v["name"] == versions[idx]["name"]);
    if (0..versions.len()).any(is_repeated) {
        errors.push(shown_as(&at, shown(), "must contain unique version names"));
    }
    if versions.iter().filter(|v| v["storage"].is_true()).count() != 1 {
        errors.push(shown_as(&at, shown(), "must have exactly one version marked as storage version"));
    }
    let first = versions.first().map_or("", |v| v["name"].str_or_empty());
    let faults = names::dns1035_label(first);
    if !first.is_empty() && !faults.is_empty() {
        errors.push(FieldError::invalid(&path.child("version"), first, joined(&faults)));
    }
}

/// The errors of names; in a spec, some are required.
pub(super) fn validate_names(wanted: &Value, path: &Path<'_>, is_spec: bool, errors: &mut ErrorList) {
    let text = |field: &str| wanted[field].str_or_empty();
    if is_spec {
        for field in ["plural", "singular", "kind", "listKind"] {
            if text(field).is_empty() {
                errors.push(FieldError::required(&path.child(field), ""));
            }
        }
    }
    for (field, is_kind) in [("plural", false), ("singular", false), ("kind", true), ("listKind", true)] {
        let name = text(field);
        let faults = if is_kind { names::dns1035_label(&name.to_lowercase()) } else { names::dns1035_label(name) };
        if name.is_empty() || faults.is_empty() {
            continue;
        }
        let prefix = if is_kind { "may have mixed case, but should otherwise match: " } else { "" };
        errors.push(FieldError::invalid(&path.child(field), name, format!("{prefix}{}", joined(&faults))));
    }
    let labels = |field: &str, errors: &mut ErrorList| {
        let at = path.child(field);
        for (idx, name) in wanted[field].items().iter().enumerate() {
            let faults = names::dns1035_label(name.str_or_empty());
            if !faults.is_empty() {
                errors.push(FieldError::invalid(&at.index(idx), name, joined(&faults)));
            }
        }
    };
    labels("shortNames", errors);
    if !text("kind").is_empty() && text("kind") == text("listKind") {
        let rule = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(&path.child("listKind"), text("listKind"), rule));
    }
    labels("categories", errors);
}

fn columns(columns: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    const TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];
    const FORMATS: &[&str] = &["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    for (idx, column) in columns.items().iter().enumerate() {
        let path = path.index(idx);
        let text = |field: &str| column[field].str_or_empty();
        if text("name").is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
        let (at, rule) = (path.child("type"), format!("must be one of {}", TYPES.join(",")));
        if text("type").is_empty() {
            errors.push(FieldError::required(&at, rule));
        } else if !TYPES.contains(&text("type")) {
            errors.push(FieldError::invalid(&at, text("type"), rule));
        }
        if !text("format").is_empty() && !FORMATS.contains(&text("format")) {
            let rule = format!("must be one of {}", FORMATS.join(","));
            errors.push(FieldError::invalid(&path.child("format"), text("format"), rule));
        }
        let at = path.child("JSONPath");
        if text("jsonPath").is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else {
            errors.extend(simple_path(text("jsonPath"), &at));
        }
    }
}

fn simple_path(text: &str, at: &Path<'_>) -> Option<FieldError> {
    (!text.starts_with('.')).then(|| FieldError::invalid(at, text, "must be a simple json path starting with ."))
}

fn subresources(subresources: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let scale = &subresources["scale"];
    if scale.is_null() {
        return;
    }
    let paths: [(&str, &[&str], &str); 3] = [
        ("specReplicasPath", &[".spec."], ".spec"),
        ("statusReplicasPath", &[".status."], ".status"),
        ("labelSelectorPath", &[".spec.", ".status."], "either .spec or .status"),
    ];
    for (field, roots, told) in paths {
        let (text, name) = (scale[field].str_or_empty(), format!("scale.{field}"));
        let at = path.child(&name);
        if text.is_empty() {
            if field != "labelSelectorPath" {
                errors.push(FieldError::required(&at, ""));
            }
        } else if let Some(error) = simple_path(text, &at) {
            errors.push(error);
        } else if !roots.iter().any(|root| text.starts_with(root)) {
            errors.push(FieldError::invalid(&at, text, format!("should be a json path under {told}")));
        }
    }
}

fn selectable_fields(
    version: &Value,
    schema: &Value,
    path: &Path<'_>,
    schema_path: &Path<'_>,
    options: &Options<'_>,
    errors: &mut ErrorList,
) {
    let structural = match Structural::compile(schema) {
        Ok(structural) => structural,
        Err(why) => {
            errors.push(FieldError::invalid(schema_path, "", why));
            return;
        }
    };
    let mut seen: Vec<String> = Vec::new();
    for (idx, field) in version["selectableFields"].items().iter().enumerate() {
        let at_item = path.index(idx);
        let at = at_item.child("jsonPath");
        let text = field["jsonPath"].str_or_empty();
        if text.is_empty() {
            errors.push(FieldError::required(&at, ""));
            continue;
        }
        let found = match fieldpath::find(text, &structural, false) {
            Ok(found) => found,
            Err(why) => {
                errors.push(FieldError::invalid(&at, text, format!("is an invalid path: {why}")));
                continue;
            }
        };
        if found.root == "metadata" {
            errors.push(FieldError::invalid(&at, text, "must not point to fields in metadata"));
        }
        if !found.schema.is_some_and(|s| matches!(s.ty, Type::String | Type::Boolean | Type::Integer)) {
            let rule = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(&at, text, rule));
        }
        if seen.contains(&found.path) {
            errors.push(FieldError::duplicate(&at, text));
        } else {
            seen.push(found.path);
        }
    }
    let is_kept = || {
        let old = options.old.map(|old| old.at("spec.versions").items()).unwrap_or_default();
        old.iter().any(|v| v["name"] == version["name"] && v["selectableFields"] == version["selectableFields"])
    };
    if seen.len() > SELECTABLE_FIELDS_MAX && !is_kept() {
        errors.push(FieldError::too_many(path, seen.len(), SELECTABLE_FIELDS_MAX));
    }
}

/// Versions of ConversionReview that are spoken here.
const REVIEW_VERSIONS: &[&str] = &["v1", "v1beta1"];

/// Whether a list of review versions is empty or names one that is spoken here.
pub(super) fn has_known_review_version(versions: &Value) -> bool {
    versions.items().is_empty() || versions.items().iter().any(|v| REVIEW_VERSIONS.contains(&v.str_or_empty()))
}

fn conversion(spec: &Value, path: &Path<'_>, preserves_unknown: bool, options: &Options<'_>, errors: &mut ErrorList) {
    let conversion = &spec["conversion"];
    if conversion.is_null() {
        return;
    }
    let path = path.child("conversion");
    let strategy = conversion["strategy"].str_or_empty();
    let at = path.child("strategy");
    if preserves_unknown && strategy != "None" {
        errors.push(FieldError::invalid(&at, strategy, "must be None if spec.preserveUnknownFields is true"));
    }
    enumeration(&at, strategy, &["None", "Webhook"], errors);
    let (config, versions) = (conversion.at("webhook.clientConfig"), conversion.at("webhook.conversionReviewVersions"));
    let (at_config, at_versions) = (path.child("webhookClientConfig"), path.child("conversionReviewVersions"));
    if strategy != "Webhook" {
        const RULE: &str = "should not be set when strategy is not set to Webhook";
        if !config.is_null() {
            errors.push(FieldError::forbidden(&at_config, RULE));
        }
        if !versions.items().is_empty() {
            errors.push(FieldError::forbidden(&at_versions, RULE));
        }
        return;
    }
    if config.is_null() {
        errors.push(FieldError::required(&at_config, "required when strategy is set to Webhook"));
    } else {
        webhook::validate_client_config(config, &at_config, options.allows_bad_ca_bundle, errors);
    }
    if versions.items().is_empty() {
        errors.push(FieldError::required(&at_versions, ""));
        return;
    }
    for (idx, version) in versions.items().iter().enumerate() {
        let at = at_versions.index(idx);
        if versions.items()[..idx].contains(version) {
            errors.push(FieldError::invalid(&at, version, "duplicate version"));
            continue;
        }
        let faults = names::dns1035_label(version.str_or_empty());
        errors.extend(faults.into_iter().map(|fault| FieldError::invalid(&at, version, fault)));
    }
    if options.requires_known_review_version && !has_known_review_version(versions) {
        let rule = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        errors.push(FieldError::invalid(&at_versions, versions, rule));
    }
}

/// The errors of `status.storedVersions` beside the versions of the spec.
pub(super) fn validate_stored_versions(definition: &Value) -> ErrorList {
    let status = Path::new("status");
    let path = status.child("storedVersions");
    let stored = definition.at("status.storedVersions");
    if stored.items().is_empty() {
        return vec![FieldError::invalid(&path, stored, "must have at least one stored version")];
    }
    let mut errors = ErrorList::new();
    let versions = definition.at("spec.versions").items();
    for version in versions.iter().filter(|v| v["storage"].is_true() && !stored.items().contains(&v["name"])) {
        let rule = format!("must have the storage version {}", version["name"].str_or_empty());
        errors.push(FieldError::invalid(&path, stored, rule));
    }
    for (idx, name) in stored.items().iter().enumerate() {
        if versions.iter().any(|v| v["name"] == *name) {
            continue;
        }
        let name = name.str_or_empty();
        let rule = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
        );
        errors.push(FieldError::invalid(&path.index(idx), name, rule));
    }
    errors
}
