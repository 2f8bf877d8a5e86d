//! The strategy of a resource: the hooks that the registry calls around a write, in the order they stand here.
//!
//! Follows: apiserver/pkg/registry/rest/{create,update}.go (v0.35); differs: what may change is `&mut` and what may not
//! is `&`, so the contract is in the types.

use jiff::Timestamp;
use pintle_apimachinery::names::{self, Faults};
use pintle_apimachinery::{ErrorList, Str, Value};
use std::borrow::Cow;

/// Who makes the request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserInfo {
    /// User name.
    pub name: Str,
    /// Unique id of the user, if known.
    pub uid: Str,
    /// Groups.
    pub groups: Vec<Str>,
    /// Anything else that the authenticator told: keys with lists of values.
    pub extra: Vec<(Str, Vec<Str>)>,
}

/// What a strategy may know of the request.
#[derive(Clone, Copy, Debug)]
pub struct RequestInfo<'a> {
    /// The namespace in the path; empty for cluster-scoped resources.
    pub namespace: &'a str,
    /// The subresource in the path; empty for none.
    pub subresource: &'a str,
    /// Who asks.
    pub user: &'a UserInfo,
    /// Wall time of the request.
    pub now: Timestamp,
}

/// The fields that a field selector may name, each with the value it has in an object.
pub type FieldTable = &'static [(&'static str, for<'v> fn(&'v Value) -> Cow<'v, str>)];

/// How the kind's own validation looks at the metadata. Every kind's metadata is checked by common rules; on update
/// those come first, and upstream tells what it finds there once more each time that it looks again, so the answer
/// repeats causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataRounds {
    /// Checks of the new metadata by itself, on update.
    pub as_new: u8,
    /// Checks of the change, on update.
    pub as_update: u8,
    /// Whether finalizers must be qualified or standard names.
    pub checks_finalizers: bool,
}

impl MetadataRounds {
    /// What most kinds do on update.
    pub const BOTH: MetadataRounds = MetadataRounds { as_new: 1, as_update: 1, checks_finalizers: true };
    /// What most status subresources do.
    pub const UPDATE: MetadataRounds = MetadataRounds { as_new: 0, as_update: 1, checks_finalizers: true };
    /// Only the new metadata.
    pub const NEW: MetadataRounds = MetadataRounds { as_new: 1, as_update: 0, checks_finalizers: true };
    /// None at all.
    pub const NONE: MetadataRounds = MetadataRounds { as_new: 0, as_update: 0, checks_finalizers: false };

    /// The same with any finalizer that is well-formed.
    #[must_use]
    pub const fn any_finalizers(self) -> MetadataRounds {
        MetadataRounds { checks_finalizers: false, ..self }
    }
}

/// How updates of a resource, or of one of its subresources, work.
pub trait UpdateStrategy: Sync + Send + std::fmt::Debug {
    /// 1st. Puts back what the client may not change (status, or all but status) and raises the generation. Metadata
    /// that the server owns (uid, creationTimestamp, deletionTimestamp ...) is put back already.
    fn prepare_for_update(&self, request: RequestInfo<'_>, object: &mut Value, old: &Value) {
        let _ = (request, object, old);
    }

    /// 2nd. Every error, not the first; `object`'s and `old`'s metadata are validated already. Also runs what
    /// [`Strategy::validate`] runs where upstream does so.
    fn validate_update(&self, request: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let _ = (request, object, old);
        ErrorList::new()
    }

    /// How often [`UpdateStrategy::validate_update`] checks the metadata upstream, see
    /// [`crate::meta::validate_for_update`].
    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::BOTH
    }

    /// 3rd, if nothing was wrong. Texts for `Warning` headers.
    fn warnings_on_update(&self, request: RequestInfo<'_>, object: &Value, old: &Value) -> Vec<String> {
        let _ = (request, object, old);
        Vec::new()
    }

    /// Dotted paths of the fields that writes through here never change and that therefore nobody owns through here
    /// (upstream's GetResetFields): `status` for most resources.
    fn reset_fields(&self) -> &'static [&'static str] {
        &[]
    }

    /// Dotted paths of the only fields that writes through here may come to own, `*` for every item of a list; `None`
    /// where [`UpdateStrategy::reset_fields`] says it (upstream's GetResetFieldsFilter).
    fn owned_fields(&self) -> Option<&'static [&'static str]> {
        None
    }
}

/// How a resource is written, selected and deleted.
pub trait Strategy: UpdateStrategy {
    /// Fills in defaults: after decoding a body, after a patch, before the object is looked at at all. Runs on whole
    /// objects of the kind (on the templates inside, too) and must be idempotent. `null` and absent members are the
    /// same here; zero values are already dropped by their fields' rules.
    fn set_defaults(&self, object: &mut Value) {
        let _ = object;
    }

    /// What is wrong with an object's name, or (`is_prefix`) with its generateName.
    fn name_faults(&self, name: &str, is_prefix: bool) -> Faults {
        if is_prefix {
            names::dns1123_subdomain(&names::mask_trailing_dash(name))
        } else {
            names::dns1123_subdomain(name)
        }
    }

    /// Before the 1st of a create. Texts for `Warning` headers that are sent even when the object turns out to be
    /// invalid: about what [`Strategy::prepare_for_create`] is about to change.
    fn early_warnings(&self, request: RequestInfo<'_>, object: &Value) -> Vec<String> {
        let _ = (request, object);
        Vec::new()
    }

    /// 1st of a create. Clears what the client may not set (status), sets the generation to 1 where the kind has one.
    fn prepare_for_create(&self, request: RequestInfo<'_>, object: &mut Value) {
        let _ = (request, object);
    }

    /// 2nd of a create. Every error, not the first; the metadata is validated already.
    fn validate(&self, request: RequestInfo<'_>, object: &Value) -> ErrorList {
        let _ = (request, object);
        ErrorList::new()
    }

    /// 3rd of a create, if nothing was wrong. Texts for `Warning` headers.
    fn warnings_on_create(&self, request: RequestInfo<'_>, object: &Value) -> Vec<String> {
        let _ = (request, object);
        Vec::new()
    }

    /// Annotations in which the served form keeps what is a field upstream: reduced forms of objects lack them.
    fn annotations_of_conversion(&self) -> &'static [&'static str] {
        &[]
    }

    /// Last before a write, of create and update. May reorder or normalise, never adds meaning.
    fn canonicalize(&self, object: &mut Value) {
        let _ = object;
    }

    /// Whether PUT to an absent name creates.
    fn allows_create_on_update(&self) -> bool {
        false
    }

    /// Whether an update without resourceVersion is allowed.
    fn allows_unconditional_update(&self) -> bool {
        true
    }

    /// How a subresource that updates the same object works (`status`, `ephemeralcontainers`, `resize`, `approval`,
    /// `finalize`); `None` where there is none.
    fn subresource(&self, name: &str) -> Option<&dyn UpdateStrategy> {
        let _ = name;
        None
    }

    /// The fields that a field selector may name, besides `metadata.name` and `metadata.namespace`.
    fn selectable_fields(&self) -> FieldTable {
        &[]
    }

    /// Those of [`Strategy::selectable_fields`] that the stored form calls differently, with its name.
    fn renamed_fields(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The text of the 400 for a field selector that names another field.
    fn unknown_field_message(&self, field: &str) -> String {
        format!(
            "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
            pintle_apimachinery::field::go_quote(field)
        )
    }

    /// Whether DELETE without a propagation policy orphans dependents.
    fn orphans_by_default(&self) -> bool {
        false
    }

    /// The text of the `Warning` header of a DELETE (or DELETECOLLECTION) that names no propagation policy, if there is
    /// one. Jobs alone have one.
    fn default_deletion_warning(&self) -> Option<&'static str> {
        None
    }

    /// Whether DELETE answers the deleted object instead of a `Status`.
    fn returns_deleted_object(&self) -> bool {
        false
    }

    /// Why the object of this name cannot be deleted, ever; for the 403.
    fn delete_refusal(&self, name: &str) -> Option<&'static str> {
        let _ = name;
        None
    }

    /// Whether owners, dependents and deletion finalizers mean anything to the kind. Events alone are not collected.
    fn is_garbage_collected(&self) -> bool {
        true
    }

    /// Whether the object is kept although it has no finalizers in its metadata: a namespace is, until its
    /// `spec.finalizers` are empty.
    fn holds_deletion(&self, object: &Value) -> bool {
        let _ = object;
        false
    }

    /// Whether the first DELETE only ever marks the object, whatever holds it: namespaces alone are like that.
    fn is_deleted_in_two_steps(&self) -> bool {
        false
    }

    /// Called when the deletion of an object that [`Strategy::holds_deletion`] begins.
    fn begin_deletion(&self, object: &mut Value, now: Timestamp) {
        let _ = (object, now);
    }

    /// The grace period in seconds that a DELETE asking for `requested` seconds gets; `None` where the kind is deleted
    /// at once. Pods alone have one.
    fn grace_period_seconds(&self, object: &Value, requested: Option<i64>) -> Option<i64> {
        let _ = (object, requested);
        None
    }
}

/// The strategy of resources without rules of their own.
#[derive(Debug)]
pub struct Generic;

impl UpdateStrategy for Generic {}
impl Strategy for Generic {}
