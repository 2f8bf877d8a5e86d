//! What a request asks for besides its object, already read and checked.

pub use pintle_admission::Warnings;
use pintle_apimachinery::fieldselector::FieldSelector;
use pintle_apimachinery::labels::Selector;
use pintle_apimachinery::{ErrorList, Str};
use pintle_kinds::UserInfo;
use std::time::Duration;

/// What to do about unknown and duplicate fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drop them silently.
    Ignore,
    /// Drop them and warn.
    #[default]
    Warn,
    /// Refuse the request.
    Strict,
}

/// Options of create, update and patch.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Do everything but write.
    pub dry_run: bool,
    /// Who owns the fields that are set; the user agent's name when empty.
    pub field_manager: Str,
    /// What to do about unknown fields.
    pub field_validation: FieldValidation,
    /// Server-side apply: take fields that others own.
    pub force: bool,
}

/// What becomes of an object's dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They lose their owner.
    Orphan,
    /// The collector deletes them later.
    Background,
    /// They go first.
    Foreground,
}

/// Conditions of a delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// The object must have this uid.
    pub uid: Option<Str>,
    /// The object must stand at this version.
    pub resource_version: Option<Str>,
}

/// Options of delete and deletecollection.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Do everything but write.
    pub dry_run: bool,
    /// Seconds to wait for a graceful end.
    pub grace_period_seconds: Option<i64>,
    /// Conditions.
    pub preconditions: Preconditions,
    /// The deprecated form of [`Propagation::Orphan`] (true) and `Background` (false).
    pub orphan_dependents: Option<bool>,
    /// What becomes of dependents.
    pub propagation: Option<Propagation>,
}

/// How a list's `resourceVersion` is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// This version or a later one.
    NotOlderThan,
    /// This version.
    Exact,
}

/// Options of list and watch.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Which labels.
    pub labels: Selector,
    /// Which fields.
    pub fields: FieldSelector,
    /// The version asked for: `None` when unset, else its number (0 for any).
    pub resource_version: Option<u64>,
    /// How it is meant.
    pub version_match: Option<VersionMatch>,
    /// At most so many objects; 0 for all.
    pub limit: usize,
    /// Where to go on.
    pub continue_token: String,
    /// When to end a watch.
    pub timeout: Option<Duration>,
    /// Send bookmarks.
    pub allow_bookmarks: bool,
    /// Begin a watch with the present state.
    pub send_initial_events: Option<bool>,
}

/// Who asks and where: what every operation needs to know of its request.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// Who asks.
    pub user: UserInfo,
    /// The name under which fields are owned when the request names none.
    pub default_manager: Str,
}

/// The errors of an options object, if there are any, as the 422 that upstream answers.
///
/// # Errors
/// 422 on kind `KIND.meta.k8s.io ""`.
pub fn check_options(kind: &str, errors: &ErrorList) -> pintle_apimachinery::status::Result<()> {
    if errors.is_empty() {
        return Ok(());
    }
    let kind = pintle_apimachinery::GroupKind::new("meta.k8s.io", kind);
    Err(Box::new(pintle_apimachinery::Status::invalid(&kind, "", errors)))
}
