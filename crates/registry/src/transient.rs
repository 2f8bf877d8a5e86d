//! Objects that are asked and answered and never stored: reviews, token requests.

use crate::admit::{Attributes, Operation};
use crate::call::Call;
use crate::create::{create_options, wipe_system_fields};
use crate::options::WriteOptions;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupVersionKind, GroupVersionResource, Status, Value};
use pintle_patch::apply::{OneVersion, Scope, Writer, update};

/// What is asked.
#[derive(Debug)]
pub struct Question<'a> {
    /// The resource in the path.
    pub resource: &'a GroupVersionResource,
    /// Kind of the object.
    pub kind: &'a GroupVersionKind,
    /// Whether it belongs to the namespace in the path.
    pub is_namespaced: bool,
}

impl Question<'_> {
    /// The first half of a create: namespace, field owners, mutating admission.
    ///
    /// # Errors
    /// 400 for another namespace than the path's; whatever admission refuses.
    pub async fn open(&self, call: &Call<'_>, object: &mut Value, options: &WriteOptions) -> Result<()> {
        wipe_system_fields(object);
        if self.is_namespaced {
            let own = object.namespace();
            if own.is_empty() {
                object.make("metadata").set("namespace", call.namespace);
            } else if own != call.namespace {
                return Err(Box::new(Status::bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request",
                )));
            }
        } else if let Some(metadata) = object.get_mut("metadata") {
            metadata.remove("namespace");
        }
        if let Some(found) = pintle_schema::kind(&self.kind.group, &self.kind.version, &self.kind.kind) {
            let scope = Scope {
                kind: self.kind,
                node: pintle_schema::builtin().root(found.id),
                subresource: call.subresource,
                reset_fields: None,
                is_custom: false,
                versions: &OneVersion,
            };
            let writer = Writer { manager: call.manager(&options.field_manager), now: call.now };
            update(&scope, None, object, &writer);
        }
        let wire = create_options(options);
        call.world.admission.mutate(&self.attributes(call, &wire, options), object).await
    }

    /// The second half: validating admission.
    ///
    /// # Errors
    /// Whatever refuses it.
    pub async fn close(&self, call: &Call<'_>, object: &Value, options: &WriteOptions) -> Result<()> {
        let wire = create_options(options);
        call.world.admission.validate(&self.attributes(call, &wire, options), Some(object)).await
    }

    fn attributes<'c>(&'c self, call: &'c Call<'_>, wire: &'c Value, options: &WriteOptions) -> Attributes<'c> {
        Attributes {
            operation: Operation::Create,
            resource: self.resource,
            subresource: call.subresource,
            kind: self.kind,
            namespace: call.namespace,
            name: call.name,
            old: None,
            options: wire,
            dry_run: options.dry_run,
            user: &call.caller.user,
            warnings: call.warnings,
        }
    }
}
