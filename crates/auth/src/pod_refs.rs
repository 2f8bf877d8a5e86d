//! What a pod refers to: secrets, config maps, claims.
//!
//! Follows: pkg/api/pod/util.go (v1.35).

use pintle_apimachinery::Value;

/// Volume sources that name a secret: the source's field, and the path below it.
const VOLUME_SECRETS: [(&str, &str); 11] = [
    ("azureFile", "secretName"),
    ("cephfs", "secretRef.name"),
    ("cinder", "secretRef.name"),
    ("flexVolume", "secretRef.name"),
    ("rbd", "secretRef.name"),
    ("secret", "secretName"),
    ("scaleIO", "secretRef.name"),
    ("iscsi", "secretRef.name"),
    ("storageos", "secretRef.name"),
    ("csi", "nodePublishSecretRef.name"),
    ("image", "pullSecretRef.name"),
];

fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(|field| spec[field].items())
}

/// What the environment of the containers refers to: `from` is the member of `envFrom` items, `key` that of `valueFrom`.
fn environment<'s>(spec: &'s Value, from: &'static str, key: &'static str) -> impl Iterator<Item = &'s str> {
    containers(spec).flat_map(move |container| {
        let sources = container["envFrom"].items().iter().map(move |source| &source[from]["name"]);
        let values = container["env"].items().iter().map(move |env| &env["valueFrom"][key]["name"]);
        sources.chain(values).filter_map(Value::as_str)
    })
}

fn projected<'s>(spec: &'s Value, field: &'static str) -> impl Iterator<Item = &'s str> {
    spec["volumes"]
        .items()
        .iter()
        .flat_map(|volume| volume["projected"]["sources"].items())
        .filter_map(move |source| source[field]["name"].as_str())
}

/// The secrets that a pod's spec refers to, in no particular order, some perhaps twice.
pub fn secret_names(spec: &Value) -> Vec<&str> {
    let pull = spec["imagePullSecrets"].items().iter().filter_map(|reference| reference["name"].as_str());
    let volumes = spec["volumes"]
        .items()
        .iter()
        .flat_map(|volume| VOLUME_SECRETS.iter().filter_map(move |(source, path)| volume[*source].at(path).as_str()));
    let environment = environment(spec, "secretRef", "secretKeyRef");
    pull.chain(environment).chain(volumes).chain(projected(spec, "secret")).filter(|name| !name.is_empty()).collect()
}

/// The config maps that a pod's spec refers to, likewise.
pub fn config_map_names(spec: &Value) -> Vec<&str> {
    let volumes = spec["volumes"].items().iter().filter_map(|volume| volume["configMap"]["name"].as_str());
    let environment = environment(spec, "configMapRef", "configMapKeyRef");
    environment.chain(volumes).chain(projected(spec, "configMap")).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::json;

    #[test]
    fn references() {
        let spec = json!({
            "imagePullSecrets": [{"name": "pull"}],
            "initContainers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "e1"}}}, {"value": "x"}]}],
            "containers": [{"envFrom": [{"secretRef": {"name": "e2"}}, {"configMapRef": {"name": "m1"}}]}],
            "volumes": [
                {"secret": {"secretName": "v1"}}, {"csi": {"nodePublishSecretRef": {"name": "v2"}}},
                {"configMap": {"name": "m2"}}, {"emptyDir": {}},
                {"projected": {"sources": [{"secret": {"name": "p"}}, {"configMap": {"name": "m3"}}]}},
            ],
        });
        assert_eq!(secret_names(&spec), ["pull", "e1", "e2", "v1", "v2", "p"]);
        assert_eq!(config_map_names(&spec), ["m1", "m2", "m3"]);
    }
}
