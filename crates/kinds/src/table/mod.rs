//! Tables: what `kubectl get` shows. The cells of each built-in kind, rows and whole `Table` documents, and the other
//! reduced form of objects, `PartialObjectMetadata`.
//!
//! Columns are facts of the catalogue ([`pintle_schema::columns`]); cells are made here, in the same order, from the
//! wire form of the object. Custom resources bring columns and cells of their own to [`row_of`] and [`table_of`].
//!
//! Follows: pkg/printers/internalversion (v1.35), with the wide columns always present, as the server does.

mod apps;
mod autoscaling;
mod cluster;
mod events;
mod format;
mod network;
mod pods;
mod policy;
mod volumes;

use format::Subject;
use jiff::Timestamp;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::{Value, json};

/// Makes the cells of one kind.
type Cells = fn(&Subject<'_>) -> Vec<Value>;

/// Group, resource, and what makes its cells; sorted, so that it can be searched.
static KINDS: &[(&str, &str, Cells)] = &[
    ("", "componentstatuses", cluster::component_status),
    ("", "configmaps", cluster::config_map),
    ("", "endpoints", network::endpoints),
    ("", "events", events::event),
    ("", "namespaces", cluster::namespace),
    ("", "nodes", cluster::node),
    ("", "persistentvolumeclaims", volumes::persistent_volume_claim),
    ("", "persistentvolumes", volumes::persistent_volume),
    ("", "pods", pods::pod),
    ("", "podtemplates", apps::pod_template),
    ("", "replicationcontrollers", apps::replication_controller),
    ("", "resourcequotas", cluster::resource_quota),
    ("", "secrets", cluster::secret),
    ("", "serviceaccounts", cluster::name_and_age),
    ("", "services", network::service),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", policy::webhook_configuration),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", policy::validating_admission_policy),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings", policy::validating_admission_policy_binding),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations", policy::webhook_configuration),
    ("apiregistration.k8s.io", "apiservices", cluster::api_service),
    ("apps", "controllerrevisions", apps::controller_revision),
    ("apps", "daemonsets", apps::daemon_set),
    ("apps", "deployments", apps::deployment),
    ("apps", "replicasets", apps::replica_set),
    ("apps", "statefulsets", apps::stateful_set),
    ("autoscaling", "horizontalpodautoscalers", autoscaling::horizontal_pod_autoscaler),
    ("batch", "cronjobs", apps::cron_job),
    ("batch", "jobs", apps::job),
    ("certificates.k8s.io", "certificatesigningrequests", cluster::certificate_signing_request),
    ("coordination.k8s.io", "leases", cluster::lease),
    ("discovery.k8s.io", "endpointslices", network::endpoint_slice),
    ("events.k8s.io", "events", events::event),
    ("flowcontrol.apiserver.k8s.io", "flowschemas", policy::flow_schema),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", policy::priority_level_configuration),
    ("networking.k8s.io", "ingressclasses", network::ingress_class),
    ("networking.k8s.io", "ingresses", network::ingress),
    ("networking.k8s.io", "ipaddresses", network::ip_address),
    ("networking.k8s.io", "networkpolicies", network::network_policy),
    ("networking.k8s.io", "servicecidrs", network::service_cidr),
    ("node.k8s.io", "runtimeclasses", cluster::runtime_class),
    ("policy", "poddisruptionbudgets", policy::pod_disruption_budget),
    ("rbac.authorization.k8s.io", "clusterrolebindings", policy::role_binding),
    ("rbac.authorization.k8s.io", "rolebindings", policy::role_binding),
    ("resource.k8s.io", "deviceclasses", cluster::name_and_age),
    ("resource.k8s.io", "resourceclaims", volumes::resource_claim),
    ("resource.k8s.io", "resourceclaimtemplates", cluster::name_and_age),
    ("resource.k8s.io", "resourceslices", volumes::resource_slice),
    ("scheduling.k8s.io", "priorityclasses", cluster::priority_class),
    ("storage.k8s.io", "csidrivers", volumes::csi_driver),
    ("storage.k8s.io", "csinodes", volumes::csi_node),
    ("storage.k8s.io", "storageclasses", volumes::storage_class),
    ("storage.k8s.io", "volumeattachments", volumes::volume_attachment),
    ("storage.k8s.io", "volumeattributesclasses", volumes::volume_attributes_class),
];

/// The columns of a `Scale`, whatever it scales: name and type.
const SCALE_COLUMNS: &[(&str, &str)] =
    &[("Name", "string"), ("Desired", "integer"), ("Available", "integer"), ("Age", "string")];

/// What a row holds of its object (`includeObject`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// Its metadata.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

impl IncludeObject {
    /// Reads the query parameter; absent and empty mean metadata.
    ///
    /// # Errors
    /// The message of the 400 that answers anything else.
    pub fn parse(text: &str) -> Result<IncludeObject, String> {
        match text {
            "" | "Metadata" => Ok(IncludeObject::Metadata),
            "Object" => Ok(IncludeObject::Object),
            "None" => Ok(IncludeObject::None),
            other => Err(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', 'Object', 'None', or empty",
                go_quote(other)
            )),
        }
    }
}

/// The cells of an object of a built-in resource, in the order of [`column_definitions`]. `resource` may carry a
/// subresource (`deployments/scale`); `object` has the
/// wire form that is stored.
pub fn cells(group: &str, resource: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    let subject = Subject { object, now };
    let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    if subresource == "scale" {
        return vec![subject.name(), subject.int("spec.replicas"), subject.int("status.replicas"), subject.age()];
    }
    match KINDS.binary_search_by(|(g, r, _)| (*g, *r).cmp(&(group, plural))) {
        Ok(idx) => KINDS[idx].2(&subject),
        Err(_) => vec![subject.name(), subject.created()],
    }
}

/// The columns of a built-in resource (or of its scale), as `columnDefinitions` has them.
pub fn column_definitions(group: &str, version: &str, resource: &str) -> Vec<Value> {
    let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    if subresource == "scale" {
        return SCALE_COLUMNS.iter().map(|(name, kind)| column(name, kind, "", 0)).collect();
    }
    let columns: Vec<Value> =
        pintle_schema::columns(group, version, plural).map(|c| column(c.name, c.kind, c.format, c.priority)).collect();
    if columns.is_empty() { default_columns() } else { columns }
}

/// Whether a built-in resource has columns of its own. The table of an empty list of one that has not has `null` rows.
pub fn has_own_columns(group: &str, resource: &str) -> bool {
    KINDS.binary_search_by(|(g, r, _)| (*g, *r).cmp(&(group, resource))).is_ok()
}

/// The columns of what has none of its own: name and time of creation.
fn default_columns() -> Vec<Value> {
    vec![column("Name", "string", "name", 0), column("Created At", "date", "", 0)]
}

fn column(name: &str, kind: &str, format: &str, priority: i32) -> Value {
    let description = match name {
        "Name" => "Name of the object.",
        "Age" | "Created At" => "When the object was created.",
        // upstream looks the text up where there is none
        "Handler" => "",
        other => other,
    };
    json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority})
}

/// A row of a built-in resource's table. `meta_version` is the version of `meta.k8s.io` that was asked for.
pub fn row(
    group: &str,
    resource: &str,
    object: &Value,
    include: IncludeObject,
    meta_version: &str,
    now: Timestamp,
) -> Value {
    let mut row = row_of(cells(group, resource, object, now), object, include, meta_version);
    if (group, resource) == ("", "pods")
        && let Some(condition) = pods::row_condition(object)
    {
        row.set("conditions", vec![condition]);
    }
    row
}

/// A row from its cells.
pub fn row_of(cells: Vec<Value>, object: &Value, include: IncludeObject, meta_version: &str) -> Value {
    let shown = match include {
        IncludeObject::None => Value::Null,
        IncludeObject::Metadata => partial_object_metadata(object, meta_version),
        IncludeObject::Object => object.clone(),
    };
    json!({"cells": (cells), "object": shown})
}

/// A whole `Table` of a built-in resource. `list_meta` is the metadata of the list, or the object's own version for a
/// single object. A watch leaves the columns out after its first event.
pub fn table(
    group: &str,
    version: &str,
    resource: &str,
    rows: Vec<Value>,
    list_meta: Value,
    with_columns: bool,
    meta_version: &str,
) -> Value {
    let columns = with_columns.then(|| column_definitions(group, version, resource));
    table_of(columns, rows, list_meta, meta_version)
}

/// A `Table` from its columns and rows.
pub fn table_of(columns: Option<Vec<Value>>, rows: Vec<Value>, list_meta: Value, meta_version: &str) -> Value {
    json!({
        "kind": "Table",
        "apiVersion": (meta_api_version(meta_version)),
        "metadata": list_meta,
        "columnDefinitions": columns,
        "rows": (Value::Array(rows)),
    })
}

/// `PartialObjectMetadata` of an object: its metadata and nothing else.
pub fn partial_object_metadata(object: &Value, meta_version: &str) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": (meta_api_version(meta_version)),
        "metadata": (object["metadata"].clone()),
    })
}

/// `PartialObjectMetadataList` of objects.
pub fn partial_object_metadata_list<'o>(
    objects: impl IntoIterator<Item = &'o Value>,
    list_meta: Value,
    meta_version: &str,
) -> Value {
    let items = objects.into_iter().map(|object| partial_object_metadata(object, meta_version));
    json!({
        "kind": "PartialObjectMetadataList",
        "apiVersion": (meta_api_version(meta_version)),
        "metadata": list_meta,
        "items": (items.collect::<Value>()),
    })
}

fn meta_api_version(version: &str) -> String {
    format!("meta.k8s.io/{version}")
}

#[cfg(test)]
mod tests;
