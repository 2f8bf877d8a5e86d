//! Discovery: groups, versions, resources; in the legacy form and aggregated.

use pintle_apimachinery::{Value, json};
use pintle_registry::Served;
use pintle_schema::Resource as Row;
use std::collections::BTreeMap;

/// The groups that are served, core group first, then the built-in ones in upstream's order, then those of custom
/// resources by name. Versions in order of preference.
pub(crate) fn groups(served: &Served) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |group: &str, version: &str| match groups.iter_mut().find(|(g, _)| g == group) {
        Some((_, versions)) => {
            if !versions.iter().any(|v| v == version) {
                versions.push(version.to_owned());
            }
        }
        None => groups.push((group.to_owned(), vec![version.to_owned()])),
    };
    for row in pintle_schema::resources() {
        add(row.group, row.version);
    }
    let mut custom: Vec<_> = served.iter().filter(|r| r.is_custom()).collect();
    custom.sort_by(|a, b| a.gvr.group.cmp(&b.gvr.group).then_with(|| compare_versions(&a.gvr.version, &b.gvr.version)));
    for resource in custom {
        add(&resource.gvr.group, &resource.gvr.version);
    }
    groups
}

/// Kubernetes' order of versions: `v2`, `v1`, `v2beta1`, `v1alpha1`, then others by text; best first.
pub(crate) fn compare_versions(a: &str, b: &str) -> std::cmp::Ordering {
    /// Major, stability (GA 2, beta 1, alpha 0), minor.
    fn rank(version: &str) -> Option<(u8, u64, u64)> {
        let rest = version.strip_prefix('v')?;
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let major: u64 = rest[..digits].parse().ok()?;
        match &rest[digits..] {
            "" => Some((2, major, 0)),
            tail => {
                let (stability, minor) = match (tail.strip_prefix("beta"), tail.strip_prefix("alpha")) {
                    (Some(minor), _) => (1, minor),
                    (None, Some(minor)) => (0, minor),
                    (None, None) => return None,
                };
                Some((stability, major, minor.parse().ok()?))
            }
        }
    }
    match (rank(a), rank(b)) {
        (Some(a), Some(b)) => b.cmp(&a),
        (Some(_), None) => std::cmp::Ordering::Less,
        (None, Some(_)) => std::cmp::Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// `/api`.
pub(crate) fn core_versions(address: &str) -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]})
}

/// `/apis`.
pub(crate) fn group_list(served: &Served) -> Value {
    let groups: Value = groups(served).iter().filter(|(g, _)| !g.is_empty()).map(|(g, v)| group_value(g, v)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`; `None` when there is no such group.
pub(crate) fn group(served: &Served, name: &str) -> Option<Value> {
    let (group, versions) = groups(served).into_iter().find(|(g, _)| g == name && !g.is_empty())?;
    let mut value = group_value(&group, &versions);
    value.set("kind", "APIGroup");
    value.set("apiVersion", "v1");
    Some(value)
}

fn group_value(group: &str, versions: &[String]) -> Value {
    let version = |v: &String| json!({"groupVersion": format!("{group}/{v}"), "version": v.as_str()});
    let preferred = versions.first().map_or(Value::Null, version);
    json!({"name": group, "versions": versions.iter().map(version).collect::<Value>(), "preferredVersion": preferred})
}

/// A resource or subresource as discovery tells it.
struct Entry {
    name: String,
    subresource: String,
    kind: String,
    /// The group and version of the kind, where they are not those of the path (or are always told).
    kind_gv: Option<(String, String)>,
    is_namespaced: bool,
    singular: String,
    verbs: Vec<String>,
    short_names: Vec<String>,
    categories: Vec<String>,
    hash: String,
}

fn texts<T: AsRef<str>>(list: &[T]) -> Vec<String> {
    list.iter().map(|t| t.as_ref().to_owned()).collect()
}

fn builtin_entry(row: &Row) -> Entry {
    let is_foreign = (row.kind_group, row.kind_version) != (row.group, row.version);
    Entry {
        name: row.plural.to_owned(),
        subresource: row.subresource.to_owned(),
        kind: row.kind.to_owned(),
        kind_gv: is_foreign.then(|| (row.kind_group.to_owned(), row.kind_version.to_owned())),
        is_namespaced: row.is_namespaced,
        singular: row.singular.to_owned(),
        verbs: texts(row.verbs),
        short_names: texts(row.short_names),
        categories: texts(row.categories),
        hash: row.storage_version_hash.to_owned(),
    }
}

/// The entries of a group and version, in order; empty when there are none.
fn entries(served: &Served, group: &str, version: &str) -> Vec<Entry> {
    let builtin: Vec<Entry> = pintle_schema::resources()
        .iter()
        .filter(|row| row.group == group && row.version == version)
        .map(builtin_entry)
        .collect();
    if !builtin.is_empty() {
        return builtin;
    }
    let mut out = Vec::new();
    for resource in served.group_version(group, version).filter(|r| r.is_custom()) {
        let gv = Some((group.to_owned(), version.to_owned()));
        out.push(Entry {
            name: resource.gvr.resource.to_string(),
            subresource: String::new(),
            kind: resource.kind.kind.to_string(),
            kind_gv: gv.clone(),
            is_namespaced: resource.is_namespaced,
            singular: resource.discovery.singular.to_string(),
            verbs: texts(&resource.verbs),
            short_names: texts(&resource.discovery.short_names),
            categories: texts(&resource.discovery.categories),
            hash: resource.discovery.storage_version_hash.to_string(),
        });
        for subresource in &resource.subresources {
            let is_scale = *subresource == "scale";
            out.push(Entry {
                name: resource.gvr.resource.to_string(),
                subresource: subresource.to_string(),
                kind: if is_scale { "Scale".to_owned() } else { resource.kind.kind.to_string() },
                kind_gv: if is_scale { Some(("autoscaling".to_owned(), "v1".to_owned())) } else { gv.clone() },
                is_namespaced: resource.is_namespaced,
                singular: String::new(),
                verbs: texts(&["get", "patch", "update"]),
                short_names: Vec::new(),
                categories: Vec::new(),
                hash: String::new(),
            });
        }
    }
    out
}

/// `/apis/GROUP/VERSION` or `/api/v1`; `None` when it is not served.
pub(crate) fn resource_list(served: &Served, group: &str, version: &str) -> Option<Value> {
    let entries = entries(served, group, version);
    if entries.is_empty() {
        return None;
    }
    let is_custom = !pintle_schema::resources().iter().any(|r| r.group == group);
    let resources: Value = entries.iter().map(|e| legacy(e, is_custom)).collect();
    let gv = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let mut list = json!({"kind": "APIResourceList", "groupVersion": gv, "resources": resources});
    if !group.is_empty() {
        list.set("apiVersion", "v1");
    }
    Some(list)
}

fn legacy(entry: &Entry, is_custom: bool) -> Value {
    let name =
        if entry.subresource.is_empty() { entry.name.clone() } else { format!("{}/{}", entry.name, entry.subresource) };
    let mut value = json!({
        "name": name, "singularName": entry.singular.as_str(), "namespaced": entry.is_namespaced,
        "kind": entry.kind.as_str(), "verbs": entry.verbs.clone(),
    });
    let is_own = is_custom && entry.kind != "Scale";
    if let Some((group, version)) = entry.kind_gv.as_ref().filter(|_| !is_own) {
        if !group.is_empty() {
            value.set("group", group.as_str());
        }
        value.set("version", version.as_str());
    }
    set_lists(&mut value, entry);
    if !entry.hash.is_empty() {
        value.set("storageVersionHash", entry.hash.as_str());
    }
    value
}

fn set_lists(value: &mut Value, entry: &Entry) {
    if !entry.short_names.is_empty() {
        value.set("shortNames", entry.short_names.clone());
    }
    if !entry.categories.is_empty() {
        value.set("categories", entry.categories.clone());
    }
}

/// `/api` or `/apis` in the aggregated form.
pub(crate) fn aggregated(served: &Served, is_core: bool) -> Value {
    let items: Value = groups(served)
        .iter()
        .filter(|(group, _)| group.is_empty() == is_core)
        .map(|(group, versions)| {
            let mut metadata = Value::object();
            if !group.is_empty() {
                metadata.set("name", group.as_str());
            }
            let versions: Value = versions.iter().map(|v| aggregated_version(served, group, v)).collect();
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_version(served: &Served, group: &str, version: &str) -> Value {
    let kind = |entry: &Entry| {
        let (group, version) = entry.kind_gv.clone().unwrap_or_default();
        json!({"group": group, "version": version, "kind": entry.kind.as_str()})
    };
    let entries = entries(served, group, version);
    let mut subresources: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for entry in entries.iter().filter(|e| !e.subresource.is_empty()) {
        let value = json!({"subresource": entry.subresource.as_str(), "responseKind": kind(entry), "verbs": entry.verbs.clone()});
        subresources.entry(&entry.name).or_default().push(value);
    }
    let resources: Value = entries
        .iter()
        .filter(|e| e.subresource.is_empty())
        .map(|entry| {
            let mut value = json!({
                "resource": entry.name.as_str(), "responseKind": kind(entry),
                "scope": if entry.is_namespaced { "Namespaced" } else { "Cluster" },
                "singularResource": entry.singular.as_str(), "verbs": entry.verbs.clone(),
            });
            set_lists(&mut value, entry);
            if let Some(subresources) = subresources.remove(entry.name.as_str()) {
                value.set("subresources", Value::Array(subresources));
            }
            value
        })
        .collect();
    json!({"version": version, "resources": resources, "freshness": "Current"})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_stability() {
        let mut versions = ["v1alpha1", "foo", "v2", "v1beta2", "v10", "v1", "v1beta1", "bar"];
        versions.sort_by(|a, b| compare_versions(a, b));
        assert_eq!(versions, ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "bar", "foo"]);
    }
}
