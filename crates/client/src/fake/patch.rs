//! The patches, as far as a server without kinds can have them: JSON patch and merge patch are whole; strategic merge
//! and apply merge lists by the keys that the well-known lists have.

use pintle_apimachinery::status::Result;
use pintle_apimachinery::{Status, Value, value};

/// The keys by which well-known lists are merged, by the list's name.
const MERGE_KEYS: [(&str, &str); 16] = [
    ("conditions", "type"),
    ("containers", "name"),
    ("containerStatuses", "name"),
    ("env", "name"),
    ("ephemeralContainers", "name"),
    ("imagePullSecrets", "name"),
    ("initContainers", "name"),
    ("initContainerStatuses", "name"),
    ("ownerReferences", "uid"),
    ("ports", "port"),
    ("secrets", "name"),
    ("volumeDevices", "devicePath"),
    ("volumeMounts", "mountPath"),
    ("volumes", "name"),
    ("hostAliases", "ip"),
    ("addresses", "type"),
];

pub(super) fn parse(body: &[u8]) -> Result<Value> {
    value::parse(body).map_err(|error| Box::new(Status::bad_request(error.to_string())))
}

/// `object` after the patch of this media type.
pub(super) fn apply(content_type: &str, mut object: Value, body: &[u8]) -> Result<Value> {
    let patch = parse(body)?;
    match content_type {
        "application/json-patch+json" => {
            for operation in patch.items() {
                operate(&mut object, operation)?;
            }
        }
        "application/merge-patch+json" => merge(&mut object, &patch, "", false),
        "application/strategic-merge-patch+json" | "application/apply-patch+yaml" => {
            merge(&mut object, &patch, "", true)
        }
        other => return Err(Box::new(Status::unsupported_media_type(format!("no patch of type {other}")))),
    }
    Ok(object)
}

fn merge(target: &mut Value, patch: &Value, list_name: &str, is_strategic: bool) {
    match patch {
        Value::Object(_) => {
            target.make_object();
            for (key, value) in patch.entries().filter(|(key, _)| !(is_strategic && key.starts_with('$'))) {
                if value.is_null() {
                    target.remove(key);
                } else {
                    let mut member = target.remove(key);
                    merge(&mut member, value, key, is_strategic);
                    target.set(key, member);
                }
            }
        }
        Value::Array(items) if is_strategic => match merge_key(list_name, items) {
            Some(key) => merge_list(target, items, key),
            None => *target = patch.clone(),
        },
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) | Value::Array(_) => {
            *target = patch.clone();
        }
    }
}

fn merge_key(list_name: &str, items: &[Value]) -> Option<&'static str> {
    let (_, key) = MERGE_KEYS.iter().find(|(name, _)| *name == list_name)?;
    // ports of containers and of services have different keys
    let key =
        if list_name == "ports" && items.iter().any(|item| item.has("containerPort")) { "containerPort" } else { key };
    items.iter().all(|item| item.has(key)).then_some(key)
}

fn merge_list(target: &mut Value, items: &[Value], key: &str) {
    let list = target.make_array();
    for item in items {
        let idx = list.iter().position(|known| known[key] == item[key]);
        if item["$patch"].as_str() == Some("delete") {
            if let Some(idx) = idx {
                list.remove(idx);
            }
            continue;
        }
        match idx {
            Some(idx) => merge(&mut list[idx], item, "", true),
            None => list.push(item.clone()),
        }
    }
}

fn operate(object: &mut Value, operation: &Value) -> Result<()> {
    let invalid = |why: String| Box::new(Status::failure(422, "Invalid", why));
    let path = pointer(operation["path"].str_or_empty());
    let missing = || invalid(format!("path {:?} does not exist", operation["path"].str_or_empty()));
    match operation["op"].str_or_empty() {
        "add" => add(object, &path, operation["value"].clone()).ok_or_else(missing),
        "replace" => {
            *find(object, &path).ok_or_else(missing)? = operation["value"].clone();
            Ok(())
        }
        "remove" => take(object, &path).map(drop).ok_or_else(missing),
        "move" => {
            let value = take(object, &pointer(operation["from"].str_or_empty())).ok_or_else(missing)?;
            add(object, &path, value).ok_or_else(missing)
        }
        "copy" => {
            let value = find(object, &pointer(operation["from"].str_or_empty())).ok_or_else(missing)?.clone();
            add(object, &path, value).ok_or_else(missing)
        }
        "test" if find(object, &path).is_some_and(|value| *value == operation["value"]) => Ok(()),
        "test" => Err(invalid(format!("testing path {} failed", operation["path"].str_or_empty()))),
        other => Err(Box::new(Status::bad_request(format!("unknown operation {other:?}")))),
    }
}

fn pointer(text: &str) -> Vec<String> {
    text.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect()
}

fn find<'a>(object: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(object, |at, part| match at {
        Value::Array(items) => items.get_mut(part.parse::<usize>().ok()?),
        other => other.get_mut(part),
    })
}

fn add(object: &mut Value, path: &[String], value: Value) -> Option<()> {
    let (last, parent) = path.split_last()?;
    match find(object, parent)? {
        Value::Array(items) => {
            let idx = if last == "-" { items.len() } else { last.parse().ok()? };
            (idx <= items.len()).then(|| items.insert(idx, value))
        }
        parent @ Value::Object(_) => {
            parent.set(last, value);
            Some(())
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => None,
    }
}

fn take(object: &mut Value, path: &[String]) -> Option<Value> {
    let (last, parent) = path.split_last()?;
    match find(object, parent)? {
        Value::Array(items) => {
            let idx: usize = last.parse().ok()?;
            (idx < items.len()).then(|| items.remove(idx))
        }
        parent => parent.has(last).then(|| parent.remove(last)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::json;

    #[test]
    fn each_kind_of_patch() {
        let pod = || json!({"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b"}], "x": 1}});
        let text = |content_type: &str, patch: &str| {
            apply(content_type, pod(), patch.as_bytes())
                .map_or_else(|status| status.to_string(), |v| v.to_json_string())
        };
        expect_test::expect![[r#"
            {"spec":{"containers":[{"name":"c"}]}}
            {"spec":{"containers":[{"image":"2","name":"a"},{"name":"b"},{"name":"c"}],"x":1}}
            {"spec":{"containers":[{"name":"b"}],"y":{"name":"b"}}}
            path "/no/way" does not exist
            testing path /spec/x failed
        "#]]
        .assert_eq(&format!(
            "{}\n{}\n{}\n{}\n{}\n",
            text("application/merge-patch+json", r#"{"spec":{"x":null,"containers":[{"name":"c"}]}}"#),
            text("application/strategic-merge-patch+json", r#"{"spec":{"containers":[{"name":"a","image":"2"},{"name":"c"}]}}"#),
            text("application/json-patch+json", r#"[{"op":"remove","path":"/spec/containers/0"},{"op":"move","from":"/spec/x","path":"/spec/y"},{"op":"copy","from":"/spec/containers/0","path":"/spec/y"}]"#),
            text("application/json-patch+json", r#"[{"op":"add","path":"/no/way","value":1}]"#),
            text("application/json-patch+json", r#"[{"op":"test","path":"/spec/x","value":2}]"#),
        ));
    }
}
