//! Printer columns: what a Table of custom resources shows.
//!
//! Follows: apiextensions-apiserver/pkg/registry/customresource/tableconvertor (v0.35).

use crate::jsonpath::{JsonPath, text_of};
use jiff::Timestamp;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::time::{human_duration, parse_time, seconds_between};
use pintle_apimachinery::{Str, Value, json};

const NAME_DESCRIPTION: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

const AGE_DESCRIPTION: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// One column behind the name.
#[derive(Clone, Debug, PartialEq)]
struct Column {
    name: Str,
    kind: Str,
    format: Str,
    description: String,
    priority: i64,
    path: JsonPath,
}

/// The columns of a version.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns(Vec<Column>);

impl Columns {
    /// Reads `additionalPrinterColumns`; absent or empty ones give the default column, Age. From a column on whose path
    /// is none, there are no columns, as upstream has it.
    pub fn compile(columns: &Value) -> Columns {
        let age = json!([{
            "name": "Age", "type": "date", "description": AGE_DESCRIPTION, "jsonPath": ".metadata.creationTimestamp",
        }]);
        let columns = if columns.items().is_empty() { &age } else { columns };
        let read = columns.items().iter().map_while(|column| {
            let text = |field: &str| column[field].str_or_empty();
            let path = JsonPath::parse(text("jsonPath")).ok()?;
            let description = match text("description") {
                "" => format!("Custom resource definition column (in JSONPath format): {}", text("jsonPath")),
                given => given.to_owned(),
            };
            Some(Column {
                name: Str::new(text("name")),
                kind: Str::new(text("type")),
                format: Str::new(text("format")),
                description,
                priority: column["priority"].as_i64().unwrap_or(0),
                path,
            })
        });
        Columns(read.collect())
    }

    /// `columnDefinitions` of a Table.
    pub fn definitions(&self) -> Value {
        let name = json!({
            "name": "Name", "type": "string", "format": "name", "description": NAME_DESCRIPTION, "priority": 0,
        });
        let others = self.0.iter().map(|column| {
            json!({
                "name": &column.name, "type": &column.kind, "format": &column.format,
                "description": column.description.as_str(), "priority": column.priority,
            })
        });
        std::iter::once(name).chain(others).collect()
    }

    /// The cells of an object's row.
    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let name = Value::from(object.name());
        std::iter::once(name).chain(self.0.iter().map(|column| column.cell(object, now))).collect()
    }
}

impl Column {
    fn cell(&self, object: &Value, now: Timestamp) -> Value {
        let Some(value) = self.path.find(object).ok().and_then(|found| found.first().copied()) else {
            return Value::Null;
        };
        match (self.kind.as_str(), value) {
            ("string", value) => Value::from(text_of(value)),
            ("integer", Value::Int(_)) | ("number", Value::Float(_)) | ("boolean", Value::Bool(_)) => value.clone(),
            #[expect(clippy::cast_possible_truncation, reason = "an integer column cuts fractions")]
            ("integer", Value::Float(f)) => Value::Int(*f as i64),
            ("number", Value::Int(_)) => value.as_f64().map_or(Value::Null, Value::Float),
            ("date", Value::String(text)) => Value::from(age(text, now)),
            _ => Value::Null,
        }
    }
}

/// A time as its age.
fn age(text: &str, now: Timestamp) -> String {
    if text.is_empty() || text == "null" {
        return "<unknown>".to_owned();
    }
    match parse_time(text) {
        Some(at) => human_duration(seconds_between(at, now)),
        None => "<invalid>".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn cells_by_type() {
        let column = |name: &str, kind: &str, path: &str| json!({"name": name, "type": kind, "jsonPath": path});
        let columns = Columns::compile(&json!([
            (column("Str", "string", ".spec.s")),
            (column("Int", "integer", ".spec.i")),
            (column("Num", "number", ".spec.n")),
            (column("Bool", "boolean", ".spec.b")),
            (column("When", "date", ".spec.d")),
            (column("List", "string", ".spec.l[*].x")),
            (column("Obj", "string", ".spec.o"))
        ]));
        let now = parse_time("2026-01-01T00:01:00Z").unwrap();
        let row = |spec: Value| {
            Value::from(columns.cells(&json!({"metadata": {"name": "a"}, "spec": spec}), now)).to_json_string()
        };
        let full = json!({"s": "text", "i": 5, "n": 1.5, "b": true, "d": "2026-01-01T00:00:00Z", "l": [{"x": "p"}, {"x": "q"}], "o": {"k": "v"}});
        expect![[r#"["a","text",5,1.5,true,"60s","p","{\"k\":\"v\"}"]"#]].assert_eq(&row(full));
        expect![[r#"["a",null,null,null,null,null,null,null]"#]].assert_eq(&row(json!({})));
        let odd = json!({"s": 5, "i": "text", "n": 3, "b": "yes", "d": "nonsense", "l": []});
        expect![[r#"["a","5",null,3,null,"<invalid>",null,null]"#]].assert_eq(&row(odd));
        assert_eq!(Columns::compile(&Value::NULL).definitions().items().len(), 2);
    }
}
