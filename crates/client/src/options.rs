//! The options of each verb (`meta/v1` `ListOptions` and its kin), and how they go on the wire.

use crate::error::{Error, Result};
use crate::request::Request;
use serde_json::json;
use std::fmt::Display;

/// How the options of a verb go on the wire.
pub trait Options {
    /// Writes the options into the request.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] when two options contradict each other.
    fn write(&self, request: &mut Request) -> Result<()>;
}

/// Generates the chained setters of an options struct and the same ones for a [`Call`](crate::Call) with it.
macro_rules! setters {
    ($options:ident { $( $(#[$doc:meta])* fn $name:ident($self_:ident $(, $arg:ident: $ty:ty)?) $body:block )* }) => {
        impl $options {
            $( $(#[$doc])* #[must_use] pub fn $name(mut $self_ $(, $arg: $ty)?) -> Self { $body $self_ } )*
        }

        impl<T> crate::Call<'_, $options, T> {
            $( $(#[$doc])* pub fn $name(mut self $(, $arg: $ty)?) -> Self {
                self.options = self.options.$name($($arg)?);
                self
            } )*
        }
    };
}

/// Options of reading one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GetOptions {
    /// Unset: the latest. `0`: whatever the server has at hand. Else: not older than this.
    pub resource_version: String,
}

setters! { GetOptions {
    /// Not older than this version; `0` for whatever the server has at hand.
    fn resource_version(self, version: impl Display) { self.resource_version = version.to_string(); }
} }

impl Options for GetOptions {
    fn write(&self, request: &mut Request) -> Result<()> {
        request.set_param("resourceVersion", self.resource_version.as_str());
        Ok(())
    }
}

/// How a list's version relates to the one asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceVersionMatch {
    /// Exactly that version, if it is still there.
    Exact,
    /// That version or a later one.
    NotOlderThan,
}

/// Options of listing and watching.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// Only objects with such labels.
    pub label_selector: String,
    /// Only objects with such fields.
    pub field_selector: String,
    /// Unset: the latest. `0`: whatever the server has at hand. Else see `resource_version_match`. A watch starts
    /// after this version.
    pub resource_version: String,
    /// How the list's version relates to `resource_version`.
    pub resource_version_match: Option<ResourceVersionMatch>,
    /// Objects in one answer; `None` for all.
    pub limit: Option<u32>,
    /// Where the last answer ended.
    pub continue_token: String,
    /// The server ends the request after this many seconds.
    pub timeout_seconds: Option<u32>,
    /// Let the server tell the version from time to time (watch).
    pub allow_watch_bookmarks: bool,
    /// Begin with an ADDED event for each object that is there, ended by a marked bookmark (watch).
    pub send_initial_events: Option<bool>,
}

setters! { ListOptions {
    /// Only objects with such labels; text or a `Selector`.
    fn labels(self, selector: impl Display) { self.label_selector = selector.to_string(); }
    /// Only objects with such fields; text or a `FieldSelector`.
    fn fields(self, selector: impl Display) { self.field_selector = selector.to_string(); }
    /// At this version: see [`ListOptions::resource_version`].
    fn resource_version(self, version: impl Display) { self.resource_version = version.to_string(); }
    /// How the list's version relates to the one asked for.
    fn resource_version_match(self, how: ResourceVersionMatch) { self.resource_version_match = Some(how); }
    /// At most so many objects in one answer.
    fn limit(self, limit: u32) { self.limit = Some(limit); }
    /// From where the last answer ended.
    fn continue_token(self, token: impl Into<String>) { self.continue_token = token.into(); }
    /// The server ends the request after this many seconds.
    fn timeout_seconds(self, seconds: u32) { self.timeout_seconds = Some(seconds); }
    /// Let the server tell the version from time to time (watch).
    fn bookmarks(self) { self.allow_watch_bookmarks = true; }
    /// Begin with what is there (watch).
    fn initial_events(self) {
        self.send_initial_events = Some(true);
        self.allow_watch_bookmarks = true;
        self.resource_version_match = Some(ResourceVersionMatch::NotOlderThan);
    }
} }

impl Options for ListOptions {
    fn write(&self, request: &mut Request) -> Result<()> {
        request.set_param("labelSelector", self.label_selector.as_str());
        request.set_param("fieldSelector", self.field_selector.as_str());
        request.set_param("resourceVersion", self.resource_version.as_str());
        if let Some(how) = self.resource_version_match {
            let text = match how {
                ResourceVersionMatch::Exact => "Exact",
                ResourceVersionMatch::NotOlderThan => "NotOlderThan",
            };
            request.set_param("resourceVersionMatch", text);
        }
        if let Some(limit) = self.limit {
            request.set_param("limit", limit.to_string());
        }
        request.set_param("continue", self.continue_token.as_str());
        if let Some(seconds) = self.timeout_seconds {
            request.set_param("timeoutSeconds", seconds.to_string());
        }
        if self.allow_watch_bookmarks {
            request.set_param("allowWatchBookmarks", "true");
        }
        if let Some(is_wanted) = self.send_initial_events {
            request.set_param("sendInitialEvents", is_wanted.to_string());
        }
        Ok(())
    }
}

/// What the server does with fields that the kind does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drops them.
    Ignore,
    /// Drops them and says so in a warning.
    Warn,
    /// Refuses the request.
    Strict,
}

fn write_common(request: &mut Request, is_dry_run: bool, manager: &str, validation: Option<FieldValidation>) {
    if is_dry_run {
        request.set_param("dryRun", "All");
    }
    request.set_param("fieldManager", manager);
    if let Some(validation) = validation {
        let text = match validation {
            FieldValidation::Ignore => "Ignore",
            FieldValidation::Warn => "Warn",
            FieldValidation::Strict => "Strict",
        };
        request.set_param("fieldValidation", text);
    }
}

/// Options of creating.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateOptions {
    /// Check everything, change nothing.
    pub is_dry_run: bool,
    /// Who owns the fields.
    pub field_manager: String,
    /// What to do with fields that the kind does not have.
    pub field_validation: Option<FieldValidation>,
}

setters! { CreateOptions {
    /// Check everything, change nothing.
    fn dry_run(self) { self.is_dry_run = true; }
    /// Who owns the fields.
    fn field_manager(self, manager: impl Into<String>) { self.field_manager = manager.into(); }
    /// What to do with fields that the kind does not have.
    fn field_validation(self, validation: FieldValidation) { self.field_validation = Some(validation); }
} }

impl Options for CreateOptions {
    fn write(&self, request: &mut Request) -> Result<()> {
        write_common(request, self.is_dry_run, &self.field_manager, self.field_validation);
        Ok(())
    }
}

/// Options of replacing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdateOptions {
    /// Check everything, change nothing.
    pub is_dry_run: bool,
    /// Who owns the fields.
    pub field_manager: String,
    /// What to do with fields that the kind does not have.
    pub field_validation: Option<FieldValidation>,
}

setters! { UpdateOptions {
    /// Check everything, change nothing.
    fn dry_run(self) { self.is_dry_run = true; }
    /// Who owns the fields.
    fn field_manager(self, manager: impl Into<String>) { self.field_manager = manager.into(); }
    /// What to do with fields that the kind does not have.
    fn field_validation(self, validation: FieldValidation) { self.field_validation = Some(validation); }
} }

impl Options for UpdateOptions {
    fn write(&self, request: &mut Request) -> Result<()> {
        write_common(request, self.is_dry_run, &self.field_manager, self.field_validation);
        Ok(())
    }
}

/// Options of patching and applying.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchOptions {
    /// Check everything, change nothing.
    pub is_dry_run: bool,
    /// Who owns the fields; applying needs it.
    pub field_manager: String,
    /// Take fields over from their owners (apply only).
    pub is_forced: bool,
    /// What to do with fields that the kind does not have.
    pub field_validation: Option<FieldValidation>,
}

setters! { PatchOptions {
    /// Check everything, change nothing.
    fn dry_run(self) { self.is_dry_run = true; }
    /// Who owns the fields; applying needs it.
    fn field_manager(self, manager: impl Into<String>) { self.field_manager = manager.into(); }
    /// Take fields over from their owners (apply only).
    fn force(self) { self.is_forced = true; }
    /// What to do with fields that the kind does not have.
    fn field_validation(self, validation: FieldValidation) { self.field_validation = Some(validation); }
} }

impl Options for PatchOptions {
    fn write(&self, request: &mut Request) -> Result<()> {
        let is_apply = request.content_type == crate::api::Patch::<()>::APPLY;
        if is_apply && self.field_manager.is_empty() {
            return Err(Error::InvalidRequest("applying needs a field manager".to_owned()));
        }
        if self.is_forced && !is_apply {
            return Err(Error::InvalidRequest("only an apply can be forced".to_owned()));
        }
        write_common(request, self.is_dry_run, &self.field_manager, self.field_validation);
        if self.is_forced {
            request.set_param("force", "true");
        }
        Ok(())
    }
}

/// What becomes of the objects that the deleted one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropagationPolicy {
    /// They stay and lose their owner.
    Orphan,
    /// They go later.
    Background,
    /// They go first.
    Foreground,
}

/// Options of deleting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Check everything, change nothing.
    pub is_dry_run: bool,
    /// Seconds that the object may take to end; 0 deletes at once.
    pub grace_period_seconds: Option<i64>,
    /// What becomes of the objects that this one owns.
    pub propagation_policy: Option<PropagationPolicy>,
    /// Only if the object has this uid.
    pub uid: Option<String>,
    /// Only if the object has this version.
    pub resource_version: Option<String>,
}

setters! { DeleteOptions {
    /// Check everything, change nothing.
    fn dry_run(self) { self.is_dry_run = true; }
    /// Seconds that the object may take to end; 0 deletes at once.
    fn grace_period(self, seconds: i64) { self.grace_period_seconds = Some(seconds); }
    /// What becomes of the objects that this one owns.
    fn propagation(self, policy: PropagationPolicy) { self.propagation_policy = Some(policy); }
    /// Dependents go first.
    fn foreground(self) { self.propagation_policy = Some(PropagationPolicy::Foreground); }
    /// Dependents go later.
    fn background(self) { self.propagation_policy = Some(PropagationPolicy::Background); }
    /// Dependents stay.
    fn orphan(self) { self.propagation_policy = Some(PropagationPolicy::Orphan); }
    /// Only if the object has this uid.
    fn uid(self, uid: impl Into<String>) { self.uid = Some(uid.into()); }
    /// Only if the object has this version.
    fn resource_version(self, version: impl Into<String>) { self.resource_version = Some(version.into()); }
} }

impl DeleteOptions {
    fn body(&self) -> serde_json::Value {
        let mut body = json!({ "kind": "DeleteOptions", "apiVersion": "v1" });
        if self.is_dry_run {
            body["dryRun"] = json!(["All"]);
        }
        if let Some(seconds) = self.grace_period_seconds {
            body["gracePeriodSeconds"] = json!(seconds);
        }
        if let Some(policy) = self.propagation_policy {
            body["propagationPolicy"] = json!(match policy {
                PropagationPolicy::Orphan => "Orphan",
                PropagationPolicy::Background => "Background",
                PropagationPolicy::Foreground => "Foreground",
            });
        }
        if let Some(uid) = &self.uid {
            body["preconditions"]["uid"] = json!(uid);
        }
        if let Some(version) = &self.resource_version {
            body["preconditions"]["resourceVersion"] = json!(version);
        }
        body
    }
}

impl Options for DeleteOptions {
    fn write(&self, request: &mut Request) -> Result<()> {
        if *self != DeleteOptions::default() {
            let bytes = serde_json::to_vec(&self.body());
            request.body = bytes.map_err(|source| Error::Encode { what: "DeleteOptions", source })?.into();
        }
        Ok(())
    }
}

/// Options of deleting a collection: which objects, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteCollectionOptions {
    /// Which objects.
    pub list: ListOptions,
    /// How.
    pub delete: DeleteOptions,
}

setters! { DeleteCollectionOptions {
    /// Only objects with such labels; text or a `Selector`.
    fn labels(self, selector: impl Display) { self.list.label_selector = selector.to_string(); }
    /// Only objects with such fields; text or a `FieldSelector`.
    fn fields(self, selector: impl Display) { self.list.field_selector = selector.to_string(); }
    /// Check everything, change nothing.
    fn dry_run(self) { self.delete.is_dry_run = true; }
    /// Seconds that the objects may take to end; 0 deletes at once.
    fn grace_period(self, seconds: i64) { self.delete.grace_period_seconds = Some(seconds); }
    /// What becomes of the objects that these own.
    fn propagation(self, policy: PropagationPolicy) { self.delete.propagation_policy = Some(policy); }
} }

impl Options for DeleteCollectionOptions {
    fn write(&self, request: &mut Request) -> Result<()> {
        self.list.write(request)?;
        self.delete.write(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Verb;

    #[test]
    fn on_the_wire() {
        let mut request = Request::new(Verb::List, "/api/v1/pods");
        ListOptions::default().labels("a=b").limit(5).resource_version(7).initial_events().write(&mut request).unwrap();
        assert_eq!(
            request.path_and_query(),
            "/api/v1/pods?labelSelector=a%3Db&resourceVersion=7&resourceVersionMatch=NotOlderThan&limit=5&allowWatchBookmarks=true&sendInitialEvents=true"
        );
        let mut request = Request::new(Verb::Delete, "/x");
        DeleteOptions::default().write(&mut request).unwrap();
        assert!(request.body.is_empty());
        DeleteOptions::default().foreground().grace_period(0).uid("u").write(&mut request).unwrap();
        assert_eq!(
            std::str::from_utf8(&request.body).unwrap(),
            r#"{"apiVersion":"v1","gracePeriodSeconds":0,"kind":"DeleteOptions","preconditions":{"uid":"u"},"propagationPolicy":"Foreground"}"#
        );
    }
}
