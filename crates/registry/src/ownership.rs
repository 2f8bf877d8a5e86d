//! Field ownership around a write: the adapter between the registry's objects and `pintle_patch::apply`.

use crate::call::Call;
use crate::options::WriteOptions;
use crate::resource::Resource;
use pintle_apimachinery::Value;

/// Brings managedFields of `object` (served form) up to date after a create, update or patch by the caller.
pub(crate) fn on_write(
    resource: &Resource,
    call: &Call<'_>,
    options: &WriteOptions,
    live: Option<&Value>,
    object: &mut Value,
) {
    let _ = (resource, call, options, live, object);
}

/// Applies a configuration to the live object (server-side apply); the answer is in the served form, defaulted, its
/// managedFields up to date.
pub(crate) fn apply(
    resource: &Resource,
    call: &Call<'_>,
    options: &WriteOptions,
    body: &[u8],
    live: Option<&Value>,
) -> pintle_apimachinery::status::Result<Value> {
    let _ = (resource, call, options, body, live);
    Err(Box::new(pintle_apimachinery::Status::internal("server-side apply is not served yet")))
}
