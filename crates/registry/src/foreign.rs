//! Objects that others have written into the store: a kube-apiserver over the same etcd, which may store protobuf, and
//! which stores definitions of custom resources in a version that nobody serves any more.

use pintle_apimachinery::Value;
use pintle_apimachinery::value::parse;

/// What stored protobuf begins with.
const PROTOBUF_MAGIC: &[u8] = b"k8s\0";
/// What values begin with that a kube-apiserver has encrypted.
const ENCRYPTED_MAGIC: &[u8] = b"k8s:enc:";
/// Fields of an old definition that hold for all of its versions, and the name that a version has for each.
const FOR_ALL_VERSIONS: [(&str, &str); 4] = [
    ("validation", "schema"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

/// Reads a stored value, whoever wrote it.
///
/// # Errors
/// Why it cannot be read.
pub(crate) fn read(value: &[u8]) -> Result<Value, String> {
    if value.starts_with(ENCRYPTED_MAGIC) {
        return Err("it is encrypted".to_owned());
    }
    let mut object = if value.starts_with(PROTOBUF_MAGIC) {
        pintle_codec::protobuf::decode_object(value, None).map_err(|why| why.to_string())?
    } else {
        parse(value).map_err(|why| why.to_string())?
    };
    if object["apiVersion"].str_or_empty() == "apiextensions.k8s.io/v1beta1" {
        upgrade_definition(&mut object);
    }
    Ok(object)
}

/// Brings a definition from `v1beta1` to `v1`.
fn upgrade_definition(object: &mut Value) {
    object.set("apiVersion", "apiextensions.k8s.io/v1");
    let spec = object.make("spec");
    let version = spec.remove("version");
    if spec["versions"].items().is_empty() && !version.is_null() {
        let mut only = Value::Null;
        only.set("name", version);
        only.set("served", true);
        only.set("storage", true);
        spec.make("versions").make_array().push(only);
    }
    for (field, of_version) in FOR_ALL_VERSIONS {
        let common = spec.remove(field);
        if common.is_null() {
            continue;
        }
        for version in spec.make("versions").items_mut() {
            version.set_default(of_version, common.clone());
        }
    }
    for version in spec.make("versions").items_mut() {
        for column in version.make("additionalPrinterColumns").items_mut() {
            let path = column.remove("JSONPath");
            if !path.is_null() {
                column.set("jsonPath", path);
            }
        }
        if version["additionalPrinterColumns"].items().is_empty() {
            version.remove("additionalPrinterColumns");
        }
    }
    if !spec["preserveUnknownFields"].is_true() {
        spec.remove("preserveUnknownFields");
    }
    let (client, reviews) =
        (spec.remove_at("conversion.webhookClientConfig"), spec.remove_at("conversion.conversionReviewVersions"));
    if !client.is_null() {
        spec.make("conversion.webhook").set("clientConfig", client);
        spec.make("conversion.webhook").set("conversionReviewVersions", reviews);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::json;

    fn definition(api_version: &str, spec: Value) -> Value {
        json!({"apiVersion": api_version, "kind": "CustomResourceDefinition", "metadata": {"name": "x"}, "spec": spec})
    }

    #[test]
    fn old_definitions() {
        let old = definition(
            "apiextensions.k8s.io/v1beta1",
            json!({
                "group": "example.com", "version": "v1", "scope": "Namespaced", "preserveUnknownFields": false,
                "validation": {"openAPIV3Schema": {"type": "object"}},
                "additionalPrinterColumns": [{"name": "A", "type": "string", "JSONPath": ".spec.a"}],
                "versions": [{"name": "v1", "served": true, "storage": true}, {"name": "v2", "served": true, "storage": false}],
                "conversion": {"strategy": "Webhook", "webhookClientConfig": {"url": "https://x"}, "conversionReviewVersions": ["v1"]},
            }),
        );
        let columns = json!([{"name": "A", "type": "string", "jsonPath": ".spec.a"}]);
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        let version = |name: &str, storage: bool| {
            json!({
                "name": name, "served": true, "storage": storage, "schema": schema.clone(),
                "additionalPrinterColumns": columns.clone(),
            })
        };
        let new = definition(
            "apiextensions.k8s.io/v1",
            json!({
                "group": "example.com", "scope": "Namespaced", "versions": [version("v1", true), version("v2", false)],
                "conversion": {
                    "strategy": "Webhook",
                    "webhook": {"clientConfig": {"url": "https://x"}, "conversionReviewVersions": ["v1"]},
                },
            }),
        );
        assert_eq!(read(old.to_json_string().as_bytes()).unwrap(), new);
        assert_eq!(read(new.to_json_string().as_bytes()).unwrap(), new);
    }

    #[test]
    fn protobuf() {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
        let bytes = pintle_codec::protobuf::encode_object(&object).unwrap();
        assert!(bytes.starts_with(PROTOBUF_MAGIC));
        let read = read(&bytes).unwrap();
        assert_eq!(read["metadata"]["name"], object["metadata"]["name"]);
        assert_eq!((&read["data"], &read["kind"]), (&object["data"], &object["kind"]));
    }

    #[test]
    fn what_cannot_be_read() {
        for bad in [&b"k8s:enc:aescbc:v1:x:"[..], b"k8s\0\xff", b"{"] {
            assert!(read(bad).is_err(), "{}", bad.escape_ascii());
        }
    }
}
