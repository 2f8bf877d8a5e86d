//! Tables of a resource's objects: columns and cells.

use crate::resource::{Definition, Resource};
use jiff::Timestamp;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::time::{format_time, human_duration, seconds_between};
use pintle_apimachinery::{Value, json};

impl Resource {
    /// The column definitions.
    pub fn table_columns(&self) -> Value {
        match &self.definition {
            Definition::Builtin(_) => pintle_schema::columns(&self.gvr.group, &self.gvr.version, &self.gvr.resource)
                .map(|c| json!({"name": c.name, "type": c.kind, "format": c.format, "description": "", "priority": c.priority}))
                .collect(),
            Definition::Custom(custom) => custom.table_columns(),
        }
    }

    /// The cells of an object's row.
    pub fn table_cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let age = || match object.creation_timestamp() {
            Some(at) => Value::from(human_duration(seconds_between(at, now))),
            None => Value::from("<unknown>"),
        };
        let _ = format_time;
        match &self.definition {
            Definition::Builtin(_) => vec![Value::from(object.name()), age()],
            Definition::Custom(custom) => custom.table_cells(object, now),
        }
    }
}
