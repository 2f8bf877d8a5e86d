//! The objects that every cluster holds, written at each start where they are missing or behind.

use crate::call::{Call, MayAlwaysCreate, World};
use crate::catalog::Catalog;
use crate::options::{Caller, Warnings, WriteOptions};
use crate::ownership::SERVER;
use crate::resource::Resource;
use crate::update::Replace;
use futures_util::future::join_all;
use parking_lot::Mutex;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupVersionKind, Status, Str, Value};
use pintle_auth::bootstrap::{self, Action, Seed, reconcile};
use pintle_kinds::flowcontrol;
use pintle_storage::At;

/// The group of flow schemas and priority levels.
const FLOW_CONTROL: &str = "flowcontrol.apiserver.k8s.io";

/// The manager of the fields of flow control's objects.
const FLOW_CONTROL_MANAGER: &str = "api-priority-and-fairness-config-producer-v1";

/// The flow schemas and priority levels that every cluster holds.
pub fn flow_control() -> Vec<Seed> {
    let seed = |resource, object: &Value| Seed { group: FLOW_CONTROL, version: "v1", resource, object: object.clone() };
    let levels = flowcontrol::bootstrap::priority_levels().iter();
    let schemas = flowcontrol::bootstrap::flow_schemas().iter();
    levels
        .map(|level| seed("prioritylevelconfigurations", level))
        .chain(schemas.map(|schema| seed("flowschemas", schema)))
        .collect()
}

/// The APIServices of what is served.
pub fn api_services() -> Vec<Seed> {
    let rows = pintle_schema::resources();
    bootstrap::api_services(|group, version| rows.iter().any(|row| row.group == group && row.version == version))
}

/// Writes the seeds. Those of RBAC and flow control are brought up to date, all others are created where they are
/// missing.
///
/// # Errors
/// The first that could not be written.
pub async fn seed(catalog: &Catalog, world: &World, seeds: Vec<Seed>) -> Result<()> {
    // namespaces first: the rest may live in them
    let (namespaces, rest): (Vec<Seed>, Vec<Seed>) = seeds.into_iter().partition(|s| s.resource == "namespaces");
    for group in [namespaces, rest] {
        // all at once: the store gathers them into few flushes
        let written = join_all(group.into_iter().map(|seed| write(catalog, world, seed))).await;
        written.into_iter().collect::<Result<Vec<()>>>()?;
    }
    Ok(())
}

async fn write(catalog: &Catalog, world: &World, seed: Seed) -> Result<()> {
    let manager = if seed.group == FLOW_CONTROL { FLOW_CONTROL_MANAGER } else { SERVER };
    let caller = &Caller { user: pintle_auth::user::apiserver(), default_manager: Str::const_new(manager) };
    let served = catalog.served().clone();
    let Some(resource) = served.get(seed.group, seed.version, seed.resource) else {
        return Err(Box::new(Status::internal(format!("{}/{} is not served", seed.group, seed.resource))));
    };
    let (namespace, name) = (seed.object.namespace().to_owned(), seed.object.name().to_owned());
    let warnings = Mutex::new(Warnings::default());
    let call = Call {
        world,
        caller,
        namespace: if resource.is_namespaced { &namespace } else { "" },
        name: &name,
        subresource: "",
        now: world.env.clock.now(),
        warnings: &warnings,
        may_create: &MayAlwaysCreate,
    };
    let key = resource.store.key(call.namespace, &name);
    let found = resource.store.storage.get(&key, At::Latest).await;
    let found = found.map_err(|e| crate::errors::storage_status(&e, resource.group_resource(), &name))?;
    let existing = match &found.record {
        Some(record) => Some(resource.object(record).await?),
        None => None,
    };
    let action = match (&existing, seed.group) {
        (None, _) => Action::Create(seed.object),
        (Some(existing), "rbac.authorization.k8s.io") => reconcile(Some(existing), &seed.object),
        (Some(existing), FLOW_CONTROL) => {
            flowcontrol::bootstrap::revision(existing, &seed.object).map_or(Action::Keep, Action::Update)
        }
        (Some(_), _) => Action::Keep,
    };
    match action {
        Action::Keep => Ok(()),
        Action::Create(object) => create(resource, &call, object).await,
        Action::Update(object) => {
            let object = decoded(resource, object)?;
            resource.update_with(&call, &Replace::new(object), &WriteOptions::default()).await.map(|_| ())
        }
        Action::Recreate(object) => {
            resource.delete(&call, &crate::options::DeleteOptions::default()).await?;
            create(resource, &call, object).await
        }
    }
}

async fn create(resource: &Resource, call: &Call<'_>, object: Value) -> Result<()> {
    let object = decoded(resource, object)?;
    match resource.create(call, object.clone(), &WriteOptions::default()).await {
        Ok(_) => {}
        // another server of the same store was quicker
        Err(status) if status.is("AlreadyExists") => return Ok(()),
        Err(status) => return Err(status),
    }
    if object["status"].is_empty() || resource.strategy.subresource("status").is_none() {
        return Ok(());
    }
    let call = Call { subresource: "status", ..*call };
    resource.update_with(&call, &Replace::new(object), &WriteOptions::default()).await.map(|_| ())
}

/// An object of our own in the form that a decoded body has.
fn decoded(resource: &Resource, object: Value) -> Result<Value> {
    let Some(id) = resource.type_id() else { return Ok(object) };
    let GroupVersionKind { kind, .. } = &resource.kind;
    let parsed = pintle_schema::decode_value(&object, id).map_err(|why| Box::new(Status::internal(why)))?;
    if let Some(why) = parsed.issues.wrong_type {
        return Err(Box::new(Status::internal(format!("a seed of kind {kind} is malformed: {why}"))));
    }
    let mut object = parsed.value;
    resource.set_kind(&mut object);
    resource.strategy.set_defaults(&mut object);
    Ok(object)
}
