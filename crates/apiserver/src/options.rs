//! Query parameters and bodies into options.
//!
//! Follows: apimachinery/pkg/apis/meta/{v1/validation,internalversion/validation} (v0.35), error texts included.

use crate::query::pairs;
use pintle_apimachinery::field::{FieldError, Path, go_quote};
use pintle_apimachinery::fieldselector::FieldSelector;
use pintle_apimachinery::labels::Selector;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{ErrorList, Status, Str, Value};
use pintle_registry::options::{
    DeleteOptions, FieldValidation, ListOptions, Preconditions, Propagation, VersionMatch, WriteOptions, check_options,
};
use std::borrow::Cow;
use std::time::Duration;

/// The parameters of a query, by name.
#[derive(Debug)]
pub(crate) struct Params<'q>(Vec<(Cow<'q, str>, Cow<'q, str>)>);

impl<'q> Params<'q> {
    /// Of a raw query.
    pub(crate) fn of(query: &'q str) -> Params<'q> {
        Params(pairs(query).collect())
    }

    /// The first value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_ref())
    }

    /// All values of a parameter.
    pub(crate) fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_ref())
    }

    /// A boolean parameter: as upstream, present and neither `0` nor `false` is true.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.get(name).map(|value| !matches!(value, "0" | "false"))
    }

    /// An integer.
    pub(crate) fn int(&self, name: &str) -> Result<Option<i64>> {
        match self.get(name) {
            None => Ok(None),
            Some(text) => text.parse::<i64>().map(Some).map_err(|why| {
                let why = match why.kind() {
                    std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => "value out of range",
                    _ => "invalid syntax",
                };
                Box::new(Status::bad_request(format!("strconv.ParseInt: parsing {}: {why}", go_quote(text))))
            }),
        }
    }
}

/// Which write the options are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteVerb {
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH; whether it is a server-side apply.
    Patch {
        /// Whether it is a server-side apply.
        is_apply: bool,
    },
}

/// Options of a write.
///
/// # Errors
/// 422 in upstream's words.
pub(crate) fn write_options(query: &str, verb: WriteVerb) -> Result<WriteOptions> {
    let params = Params::of(query);
    let mut errors = ErrorList::new();
    let kind = match verb {
        WriteVerb::Create => "CreateOptions",
        WriteVerb::Update => "UpdateOptions",
        WriteVerb::Patch { .. } => "PatchOptions",
    };
    let mut options = WriteOptions::default();
    if let WriteVerb::Patch { is_apply } = verb {
        let force = params.flag("force");
        options.force = force.unwrap_or_default();
        if is_apply && params.get("fieldManager").unwrap_or_default().is_empty() {
            errors.push(FieldError::required(&Path::new("fieldManager"), "is required for apply patch"));
        } else if !is_apply && force.is_some() {
            errors.push(FieldError::forbidden(&Path::new("force"), "may not be specified for non-apply patch"));
        }
    }
    if let Some(manager) = params.get("fieldManager") {
        options.field_manager = Str::new(manager);
        errors.extend(pintle_kinds::meta::validate_field_manager(manager, &Path::new("fieldManager")));
    }
    options.dry_run = dry_run(params.all("dryRun"), &mut errors);
    options.field_validation = match params.get("fieldValidation").unwrap_or_default() {
        "" | "Warn" => FieldValidation::Warn,
        "Ignore" => FieldValidation::Ignore,
        "Strict" => FieldValidation::Strict,
        other => {
            errors.push(FieldError::not_supported(
                &Path::new("fieldValidation"),
                other,
                &["", "Ignore", "Strict", "Warn"],
            ));
            FieldValidation::Warn
        }
    };
    check_options(kind, &errors)?;
    Ok(options)
}

fn dry_run<'v>(values: impl Iterator<Item = &'v str>, errors: &mut ErrorList) -> bool {
    let values: Vec<&str> = values.collect();
    if values.iter().any(|v| *v != "All") {
        let shown: Value = values.iter().map(|v| Value::from(*v)).collect();
        errors.push(FieldError::not_supported(&Path::new("dryRun"), &shown, &["All"]));
    }
    !values.is_empty()
}

/// The `resourceVersion` of a GET; `None` when unset.
///
/// # Errors
/// 500, as upstream, when it is no number.
pub(crate) fn get_version(query: &str) -> Result<Option<u64>> {
    match Params::of(query).get("resourceVersion") {
        None | Some("") => Ok(None),
        Some(text) => match text.parse::<u64>() {
            Ok(version) => Ok(Some(version)),
            Err(_) => Err(Box::new(Status::plain_error(bad_version(text).to_string()))),
        },
    }
}

fn bad_version(text: &str) -> Status {
    let error = FieldError::invalid(
        &Path::new("resourceVersion"),
        text,
        format!("strconv.ParseUint: parsing {}: invalid syntax", go_quote(text)),
    );
    Status::plain_error(error.to_string())
}

/// Options of a list, or of a watch.
///
/// # Errors
/// 400 for parameters of the wrong form and bad selectors, 422 for combinations that mean nothing.
pub(crate) fn list_options(query: &str, is_watch: bool) -> Result<ListOptions> {
    let params = Params::of(query);
    let mut options = ListOptions {
        labels: Selector::parse(params.get("labelSelector").unwrap_or_default()).map_err(bad_request)?,
        fields: FieldSelector::parse(params.get("fieldSelector").unwrap_or_default()).map_err(bad_request)?,
        ..ListOptions::default()
    };
    let limit = params.int("limit")?.unwrap_or_default();
    options.limit = usize::try_from(limit).unwrap_or_default();
    let timeout = params.int("timeoutSeconds")?;
    options.timeout =
        timeout.and_then(|seconds| u64::try_from(seconds).ok()).filter(|s| *s > 0).map(Duration::from_secs);
    options.continue_token = params.get("continue").unwrap_or_default().to_owned();
    options.allow_bookmarks = params.flag("allowWatchBookmarks").unwrap_or_default();
    options.send_initial_events = params.flag("sendInitialEvents");
    let version = params.get("resourceVersion").unwrap_or_default();
    let version_match = params.get("resourceVersionMatch").unwrap_or_default();
    let errors = combination_errors(&options, version, version_match, is_watch);
    check_options("ListOptions", &errors)?;
    options.version_match = match version_match {
        "NotOlderThan" => Some(VersionMatch::NotOlderThan),
        "Exact" => Some(VersionMatch::Exact),
        _ => None,
    };
    options.resource_version = match version {
        "" => None,
        text => match text.parse::<u64>() {
            Ok(version) => Some(version),
            Err(_) if is_watch => return Err(Box::new(bad_version(text))),
            Err(_) => {
                let status = bad_version(text);
                return Err(Box::new(Status::bad_request(format!("invalid resource version: {}", status.message))));
            }
        },
    };
    if is_watch {
        options.limit = 0;
        options.continue_token.clear();
    }
    Ok(options)
}

fn bad_request(text: String) -> Box<Status> {
    Box::new(Status::bad_request(text))
}

fn combination_errors(options: &ListOptions, version: &str, version_match: &str, is_watch: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("resourceVersionMatch");
    let mut forbid = |path: &Path<'_>, why: &str| errors.push(FieldError::forbidden(path, why));
    let has_match = !version_match.is_empty();
    let sends = options.send_initial_events.is_some();
    let continues = has_match && !options.continue_token.is_empty();
    if is_watch {
        if sends && version_match != "NotOlderThan" {
            forbid(&path, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
        }
        if has_match && !sends {
            forbid(&path, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
        }
        if has_match && version_match != "NotOlderThan" {
            errors.push(FieldError::not_supported(&path, version_match, &["NotOlderThan"]));
        }
        if continues {
            errors.push(FieldError::forbidden(&path, "resourceVersionMatch is forbidden when continue is provided"));
        }
        return errors;
    }
    if has_match && version.is_empty() {
        forbid(&path, "resourceVersionMatch is forbidden unless resourceVersion is provided");
    }
    if continues {
        forbid(&path, "resourceVersionMatch is forbidden when continue is provided");
    }
    if version_match == "Exact" && version == "0" {
        forbid(&path, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    }
    if sends {
        forbid(&Path::new("sendInitialEvents"), "sendInitialEvents is forbidden for list");
    }
    if has_match && !matches!(version_match, "NotOlderThan" | "Exact") {
        errors.push(FieldError::not_supported(&path, version_match, &["Exact", "NotOlderThan", ""]));
    }
    errors
}

/// Options of a delete: from a DeleteOptions object, or from the query when there is no body.
///
/// # Errors
/// 422 for values that mean nothing.
pub(crate) fn delete_options(query: &str, body: Option<&Value>) -> Result<DeleteOptions> {
    let mut errors = ErrorList::new();
    let mut options = DeleteOptions::default();
    let (policy, dry_runs): (Option<String>, Vec<String>);
    if let Some(body) = body {
        options.grace_period_seconds = body["gracePeriodSeconds"].as_i64();
        options.orphan_dependents = body["orphanDependents"].as_bool();
        let text = |value: &Value| value.as_str().map(Str::new);
        options.preconditions = Preconditions {
            uid: text(&body["preconditions"]["uid"]),
            resource_version: text(&body["preconditions"]["resourceVersion"]),
        };
        policy = body["propagationPolicy"].as_str().map(str::to_owned);
        dry_runs = body["dryRun"].items().iter().map(|v| v.str_or_empty().to_owned()).collect();
    } else {
        let params = Params::of(query);
        options.grace_period_seconds = params.int("gracePeriodSeconds")?;
        options.orphan_dependents = params.flag("orphanDependents");
        let text = |name: &str| params.get(name).filter(|text| !text.is_empty()).map(Str::new);
        options.preconditions = Preconditions { uid: text("uid"), resource_version: text("resourceVersion") };
        policy = params.get("propagationPolicy").map(str::to_owned);
        dry_runs = params.all("dryRun").map(str::to_owned).collect();
    }
    let path = Path::new("propagationPolicy");
    if options.orphan_dependents.is_some() && policy.is_some() {
        errors.push(FieldError::invalid(
            &path,
            policy.as_deref().unwrap_or_default(),
            "orphanDependents and deletionPropagation cannot be both set",
        ));
    }
    options.propagation = match policy.as_deref() {
        None => None,
        Some("Orphan") => Some(Propagation::Orphan),
        Some("Background") => Some(Propagation::Background),
        Some("Foreground") => Some(Propagation::Foreground),
        Some(other) => {
            errors.push(FieldError::not_supported(&path, other, &["Foreground", "Background", "Orphan", "nil"]));
            None
        }
    };
    options.dry_run = dry_run(dry_runs.iter().map(String::as_str), &mut errors);
    check_options("DeleteOptions", &errors)?;
    Ok(options)
}
