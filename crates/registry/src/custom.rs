//! Custom resources: a version of a CustomResourceDefinition as the registry sees it.

use crate::call::Call;
use crate::decode::Body;
use crate::options::FieldValidation;
use crate::resource::Resource;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupVersion, Status, Value};
use pintle_schema::Node;

/// A version of a definition, compiled.
#[derive(Debug)]
pub struct CustomVersion {}

impl CustomVersion {
    /// Where an object begins in the version's schema.
    pub fn node(&self) -> Node<'_> {
        pintle_schema::builtin().root(pintle_schema::TypeId(0))
    }

    /// Brings a stored object to what the present schema makes of it.
    pub fn on_read(&self, _object: &mut Value) {}

    /// The object in another version.
    ///
    /// # Errors
    /// 500 when the conversion fails.
    pub async fn convert(&self, object: Value, to: &GroupVersion) -> Result<Value> {
        let _ = to;
        Ok(object)
    }

    /// The object in another version, when that takes no webhook.
    ///
    /// # Errors
    /// Why the conversion fails.
    pub fn convert_now(&self, object: &Value, to: &GroupVersion) -> std::result::Result<Option<Value>, String> {
        let _ = to;
        Ok(Some(object.clone()))
    }

    /// The schema of another version.
    pub fn node_of_version(&self, _version: &GroupVersion) -> Option<Node<'_>> {
        None
    }

    /// The Scale that shows an object.
    ///
    /// # Errors
    /// 500 when it says nothing of replicas.
    pub fn scale_of(&self, _object: &Value) -> Result<Value> {
        Err(Box::new(Status::internal("custom resources are not served yet")))
    }

    /// Puts a Scale into the object.
    ///
    /// # Errors
    /// 500 when it cannot be put.
    pub fn set_scale(&self, _scale: &Value, _object: &mut Value) -> Result<()> {
        Err(Box::new(Status::internal("custom resources are not served yet")))
    }

    /// Where replicas are kept.
    pub fn replicas_path(&self) -> Vec<String> {
        Vec::new()
    }

    /// Column definitions of its tables.
    pub fn table_columns(&self) -> Value {
        Value::array()
    }

    /// Cells of a row.
    pub fn table_cells(&self, _object: &Value, _now: jiff::Timestamp) -> Vec<Value> {
        Vec::new()
    }

    /// Reads what a patch made: the object, and the texts of what strict validation refuses.
    ///
    /// # Errors
    /// What `refuse` makes of a fault.
    pub fn decode_patched(
        &self,
        _resource: &Resource,
        patched: Value,
        _refuse: &dyn Fn(&str) -> Box<Status>,
    ) -> Result<(Value, Vec<String>)> {
        Ok((patched, Vec::new()))
    }

    /// Reads a body.
    ///
    /// # Errors
    /// 400 in upstream's words.
    pub fn decode(&self, _call: &Call<'_>, _resource: &Resource, _body: Body<'_>, _strictness: FieldValidation) -> Result<Value> {
        Err(Box::new(Status::internal("custom resources are not served yet")))
    }
}
