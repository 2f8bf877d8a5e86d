//! What the server hands out to objects that are written: cluster IPs and node ports of Services.

use crate::call::Call;
use crate::resource::Resource;
use pintle_apimachinery::Value;
use pintle_apimachinery::status::Result;

/// What was handed out to an object that is about to be written: given back unless it is kept.
#[derive(Debug, Default)]
pub struct Allocated {}

impl Allocated {
    /// The object was written.
    pub fn keep(self) {}
}

impl Resource {
    /// Hands out what a new object needs.
    pub(crate) async fn allocate_on_create(&self, call: &Call<'_>, object: &mut Value, dry_run: bool) -> Result<Allocated> {
        let _ = (call, object, dry_run);
        Ok(Allocated::default())
    }

    /// Hands out what a changed object needs besides.
    pub(crate) async fn allocate_on_update(
        &self,
        call: &Call<'_>,
        object: &mut Value,
        old: &Value,
        dry_run: bool,
    ) -> Result<Allocated> {
        let _ = (call, object, old, dry_run);
        Ok(Allocated::default())
    }

    /// Takes back what a deleted object had.
    pub(crate) async fn after_delete(&self, object: &Value) {
        let _ = object;
    }

    /// Whether DELETE shows the deleted object instead of a Status.
    pub(crate) fn returns_deleted_object(&self) -> bool {
        self.strategy.returns_deleted_object()
            || (self.gvr.group.is_empty() && matches!(self.gvr.resource.as_str(), "pods" | "podtemplates"))
    }
}
