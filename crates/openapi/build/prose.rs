//! What types and fields are for: the descriptions that k8s-openapi carries.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::Value;
use std::collections::BTreeMap;

/// The prose of one definition.
#[derive(Debug, Default)]
pub(crate) struct Prose {
    pub(crate) about: String,
    /// By field name.
    pub(crate) fields: BTreeMap<String, String>,
}

/// The prose of all definitions, by name.
pub(crate) fn all() -> BTreeMap<String, Prose> {
    let mut generator = SchemaSettings::openapi3().into_generator();
    roots(&mut generator);
    let text = |schema: &Value| schema["description"].as_str().unwrap_or_default().to_owned();
    generator
        .take_definitions(true)
        .into_iter()
        .map(|(name, schema)| {
            let fields = schema["properties"].as_object().into_iter().flatten();
            let fields = fields.map(|(field, schema)| (field.clone(), text(schema))).collect();
            (name, Prose { about: text(&schema), fields })
        })
        .collect()
}

macro_rules! roots {
    ($generator:ident: $($module:path { $($kind:ident)* })*) => {
        $({
            use $module as module;
            $( $generator.subschema_for::<module::$kind>(); )*
        })*
    };
}

/// Visits the kinds from which all other types are reached.
fn roots(generator: &mut SchemaGenerator) {
    use k8s_openapi::api;
    roots!(generator:
        api::admissionregistration::v1 {
            MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
            ValidatingWebhookConfiguration
        }
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 { CustomResourceDefinition }
        k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1 { APIService }
        api::apps::v1 { ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet }
        api::authentication::v1 { SelfSubjectReview TokenRequest TokenReview }
        api::authorization::v1 {
            LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview
        }
        api::autoscaling::v1 { HorizontalPodAutoscaler Scale }
        api::autoscaling::v2 { HorizontalPodAutoscaler }
        api::batch::v1 { CronJob Job }
        api::certificates::v1 { CertificateSigningRequest }
        api::coordination::v1 { Lease }
        api::core::v1 {
            Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume
            PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount
        }
        api::discovery::v1 { EndpointSlice }
        api::events::v1 { Event }
        api::flowcontrol::v1 { FlowSchema PriorityLevelConfiguration }
        api::networking::v1 { IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR }
        api::node::v1 { RuntimeClass }
        api::policy::v1 { Eviction PodDisruptionBudget }
        api::rbac::v1 { ClusterRole ClusterRoleBinding Role RoleBinding }
        api::resource::v1 { DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice }
        api::scheduling::v1 { PriorityClass }
        api::storage::v1 { CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass }
        k8s_openapi::apimachinery::pkg::apis::meta::v1 {
            APIGroup APIGroupList APIResourceList APIVersions DeleteOptions ListMeta Status
        }
    );
}
