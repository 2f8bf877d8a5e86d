//! The scale subresource of custom resources: replicas and selector read and written by simple paths.
//!
//! Follows: apiextensions-apiserver/pkg/registry/customresource/etcd.go (v0.35).

use crate::structural::objectmeta::go_type;
use pintle_apimachinery::field::Path;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result as StatusResult;
use pintle_apimachinery::value::go_v;
use pintle_apimachinery::{ErrorList, FieldError, Status, Str, Value, json};

/// A simple path: member names with dots between, with or without a dot before.
#[derive(Clone, Debug, PartialEq)]
pub struct SimplePath {
    /// The path as written.
    pub text: Str,
    names: Vec<Str>,
}

impl SimplePath {
    /// Reads a path; any text is one.
    pub fn new(text: &str) -> SimplePath {
        let names = text.strip_prefix('.').unwrap_or(text).split('.').map(Str::new).collect();
        SimplePath { text: Str::new(text), names }
    }

    /// The member names.
    pub fn names(&self) -> &[Str] {
        &self.names
    }

    /// The value there; `None` where a member is absent.
    ///
    /// # Errors
    /// Upstream's text where something on the way is no object.
    pub fn get<'v>(&self, object: &'v Value) -> Result<Option<&'v Value>, String> {
        let mut value = object;
        for (idx, name) in self.names.iter().enumerate() {
            match value {
                Value::Null => return Ok(None),
                Value::Object(members) => match members.get(name) {
                    Some(member) => value = member,
                    None => return Ok(None),
                },
                other => return Err(accessor_error(&self.names[..=idx], other, "map[string]interface{}")),
            }
        }
        Ok(Some(value))
    }

    fn int(&self, object: &Value) -> Result<Option<i64>, String> {
        match self.get(object)? {
            None => Ok(None),
            Some(Value::Int(i)) => Ok(Some(*i)),
            Some(other) => Err(accessor_error(&self.names, other, "int64")),
        }
    }

    fn string<'v>(&self, object: &'v Value) -> Result<Option<&'v str>, String> {
        match self.get(object)? {
            None => Ok(None),
            Some(Value::String(s)) => Ok(Some(s)),
            Some(other) => Err(accessor_error(&self.names, other, "string")),
        }
    }

    fn set(&self, object: &mut Value, value: impl Into<Value>) -> Result<(), String> {
        let mut place = object;
        for (idx, name) in self.names.iter().enumerate() {
            let is_last = idx + 1 == self.names.len();
            let Some(members) = place.as_object_mut() else { return Err(cannot_set(&self.names[..idx])) };
            if !is_last && !members.contains_key(name) {
                members.insert(name, Value::object());
            }
            place = members.entry(name);
        }
        *place = value.into();
        Ok(())
    }
}

fn dotted(names: &[Str]) -> String {
    names.iter().fold(String::new(), |text, name| text + "." + name)
}

fn accessor_error(names: &[Str], value: &Value, wanted: &str) -> String {
    format!("{} accessor error: {} is of the type {}, expected {wanted}", dotted(names), go_v(value), go_type(value))
}

fn cannot_set(names: &[Str]) -> String {
    format!("value cannot be set because {} is not a map[string]interface{{}}", dotted(names))
}

/// The paths of a scale subresource.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// Where the wanted replicas are.
    pub spec_replicas: SimplePath,
    /// Where the present replicas are.
    pub status_replicas: SimplePath,
    /// Where the selector is, if anywhere.
    pub label_selector: Option<SimplePath>,
}

/// What a Scale shows for an object whose replicas are not set, while it is being updated: a value no client can mean.
pub const REPLICAS_UNSET: i64 = i32::MIN as i64;

impl Scale {
    /// Reads `subresources.scale` of a version.
    pub fn compile(scale: &Value) -> Scale {
        let path = |field: &str| SimplePath::new(scale[field].str_or_empty());
        Scale {
            spec_replicas: path("specReplicasPath"),
            status_replicas: path("statusReplicasPath"),
            label_selector: Some(&scale["labelSelectorPath"])
                .filter(|p| !p.is_empty())
                .map(|_| path("labelSelectorPath")),
        }
    }

    /// The Scale of an object, and whether its replicas are set.
    fn read(&self, object: &Value) -> Result<(Value, bool), String> {
        let replicas = self.spec_replicas.int(object)?;
        let mut status = json!({"replicas": as_i32(self.status_replicas.int(object)?.unwrap_or(0))});
        if let Some(path) = &self.label_selector {
            let selector = path.string(object)?.unwrap_or_default();
            if !selector.is_empty() {
                status.set("selector", selector);
            }
        }
        let mut metadata = Value::object();
        for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
            let value = &object.metadata()[field];
            if !value.is_empty() {
                metadata.set(field, value.clone());
            }
        }
        let spec = match as_i32(replicas.unwrap_or(0)) {
            0 => Value::object(),
            replicas => json!({"replicas": replicas}),
        };
        let scale = json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status,
        });
        Ok((scale, replicas.is_some()))
    }

    /// GET: the Scale of an object.
    ///
    /// # Errors
    /// 500 when the replicas are not set or something at a path is of the wrong type.
    pub fn get(&self, object: &Value) -> StatusResult<Value> {
        let (scale, is_set) = self.read(object).map_err(|why| Box::new(Status::plain_error(why)))?;
        if !is_set {
            let why = format!("the spec replicas field {:?} does not exist", self.spec_replicas.text.as_str());
            return Err(Box::new(Status::internal(why)));
        }
        Ok(scale)
    }

    /// The Scale that an update of it starts from; replicas that are not set show as [`REPLICAS_UNSET`].
    ///
    /// # Errors
    /// 500 when something at a path is of the wrong type.
    pub fn get_for_update(&self, object: &Value) -> StatusResult<Value> {
        let (mut scale, is_set) = self.read(object).map_err(|why| Box::new(Status::plain_error(why)))?;
        if !is_set {
            scale["spec"].set("replicas", REPLICAS_UNSET);
        }
        Ok(scale)
    }

    /// PUT and PATCH: takes the replicas (and the resourceVersion, if there is one) of an updated Scale over.
    ///
    /// # Errors
    /// 400 when the Scale has no replicas; 500 when they cannot be written.
    pub fn apply(&self, object: &mut Value, scale: &Value) -> StatusResult<()> {
        let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
        if replicas == REPLICAS_UNSET {
            let why = format!("the spec replicas field {:?} cannot be empty", self.spec_replicas.text.as_str());
            return Err(Box::new(Status::bad_request(why)));
        }
        self.spec_replicas.set(object, replicas).map_err(|why| Box::new(Status::plain_error(why)))?;
        if !scale.resource_version().is_empty() {
            object.make("metadata").set("resourceVersion", scale.resource_version());
        }
        Ok(())
    }

    /// The errors of the wanted replicas in an object.
    pub fn validate_spec(&self, object: &Value) -> ErrorList {
        validate_replicas(&self.spec_replicas, object)
    }

    /// The errors of the present replicas and the selector in an object.
    pub fn validate_status(&self, object: &Value) -> ErrorList {
        let mut errors = validate_replicas(&self.status_replicas, object);
        if let Some(path) = &self.label_selector
            && let Err(why) = path.string(object)
        {
            errors.push(FieldError::invalid(&Path::new(&path.text), "", why));
        }
        errors
    }
}

fn validate_replicas(path: &SimplePath, object: &Value) -> ErrorList {
    let at = Path::new(&path.text);
    let fault = match path.int(object) {
        Err(why) => FieldError::invalid(&at, 0i64, why),
        Ok(Some(replicas)) if replicas < 0 => FieldError::invalid(&at, replicas, "should be a non-negative integer"),
        Ok(Some(replicas)) if replicas > i64::from(i32::MAX) => {
            FieldError::invalid(&at, replicas, format!("should be less than or equal to {}", i32::MAX))
        }
        Ok(_) => return ErrorList::new(),
    };
    vec![fault]
}

/// Cut to 32 bits, as Go converts.
#[expect(clippy::cast_possible_truncation, reason = "the conversion that upstream makes")]
fn as_i32(number: i64) -> i32 {
    number as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn read_and_written() {
        let scale = Scale::compile(
            &json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}),
        );
        let mut object = json!({"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"replicas": 3}, "status": {"selector": "a=b"}});
        expect![[r#"{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a"},"spec":{"replicas":3},"status":{"replicas":0,"selector":"a=b"}}"#]]
            .assert_eq(&scale.get(&object).unwrap().to_json_string());
        scale.apply(&mut object, &json!({"metadata": {"resourceVersion": "7"}, "spec": {"replicas": -5}})).unwrap();
        assert_eq!(object["metadata"]["resourceVersion"].as_str(), Some("7"));
        assert_eq!(
            scale.validate_spec(&object)[0].to_string(),
            ".spec.replicas: Invalid value: -5: should be a non-negative integer"
        );
        assert_eq!(
            scale.get(&json!({"spec": {}})).unwrap_err().message,
            "Internal error occurred: the spec replicas field \".spec.replicas\" does not exist"
        );
        assert_eq!(
            scale.get(&json!({"spec": {"replicas": "x"}})).unwrap_err().message,
            ".spec.replicas accessor error: x is of the type string, expected int64"
        );
        let mut empty = json!({});
        scale.apply(&mut empty, &json!({"spec": {"replicas": 2}})).unwrap();
        assert_eq!(empty.to_json_string(), r#"{"spec":{"replicas":2}}"#);
    }
}
