//! Tables of a resource's objects.

use crate::resource::{Definition, Resource};
use jiff::Timestamp;
use pintle_apimachinery::Value;
use pintle_kinds::table::{self, IncludeObject};

impl Resource {
    /// The column definitions.
    pub fn table_columns(&self) -> Value {
        match &self.definition {
            Definition::Builtin(_) => {
                Value::Array(table::column_definitions(&self.gvr.group, &self.gvr.version, &self.gvr.resource))
            }
            Definition::Custom(custom) => custom.table_columns(),
        }
    }

    /// The row of an object (served or stored form). `meta_version` is the version of `meta.k8s.io` that was asked for.
    pub fn table_row(&self, object: &Value, include: IncludeObject, meta_version: &str, now: Timestamp) -> Value {
        match &self.definition {
            Definition::Builtin(_) => {
                let shown = self.internal_form(object);
                let mut row = table::row(&self.gvr.group, &self.gvr.resource, &shown, include, meta_version, now);
                if include == IncludeObject::Object {
                    row.set("object", object.clone());
                }
                row
            }
            Definition::Custom(custom) => table::row_of(custom.table_cells(object, now), object, include, meta_version),
        }
    }

    /// The PartialObjectMetadata of an object (served or stored form).
    pub fn partial_metadata(&self, object: &Value, meta_version: &str) -> Value {
        table::partial_object_metadata(&self.internal_form(object), meta_version)
    }
}
