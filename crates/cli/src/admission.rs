//! The admission chain of a server, from its flags.

use anyhow::{Error, Result};
use pintle_admission::plugins::{
    AlwaysAdmit, AlwaysDeny, AlwaysPullImages, CertificateApproval, CertificateSigning, CertificateSubjectRestriction,
    DefaultIngressClass, DefaultStorageClass, DefaultTolerationSeconds, DenyServiceExternalIps,
    ExtendedResourceToleration, LimitPodHardAntiAffinityTopology, LimitRanger, NamespaceExists, NamespaceLifecycle,
    OwnerReferencesPermissionEnforcement, PersistentVolumeClaimResize, PodNodeSelector, PodSecurity, PodTopologyLabels,
    Priority, RoleEscalation, RuntimeClass, ServiceAccount, StorageObjectInUseProtection, TaintNodesByCondition,
    pod_security,
};
use pintle_admission::quota::ResourceQuota;
use pintle_admission::webhook::{Caller, MutatingAdmissionWebhook, ValidatingAdmissionWebhook, Webhooks};
use pintle_admission::{Admission, Cel, Chain, Expressions, Forms, Plugin, ValidatingAdmissionPolicy, chain};
use pintle_apimachinery::env::Env;
use pintle_auth::Lookup;
use pintle_auth::authz::Authorizer;
use pintle_auth::authz::rbac::Rbac;
use pintle_registry::Catalog;
use pintle_registry::forms::CatalogForms;
use pintle_registry::lookup::CatalogLookup;
use pintle_registry::quota::CatalogQuotaWriter;
use std::collections::BTreeMap;
use std::sync::Arc;

/// `--enable-admission-plugins` and `--disable-admission-plugins`.
pub(crate) struct PluginFlags<'a> {
    pub(crate) enable: &'a [String],
    pub(crate) disable: &'a [String],
}

/// Makes the chain.
pub(crate) fn admission(
    flags: &PluginFlags<'_>,
    catalog: &Arc<Catalog>,
    authorizer: Arc<dyn Authorizer>,
    rbac: &Arc<Rbac>,
    caller: Arc<dyn Caller>,
    env: &Env,
) -> Result<Arc<dyn Admission>> {
    let mut enabled = chain::enabled(flags.enable, flags.disable).map_err(Error::msg)?;
    let view = Arc::new(CatalogLookup::new(catalog.clone()));
    let lookup: Arc<dyn Lookup> = view.clone();
    let quota_writer = Arc::new(CatalogQuotaWriter::new(catalog.clone()));
    let forms: Arc<dyn Forms> = Arc::new(CatalogForms::new(catalog.clone()));
    let expressions: Arc<dyn Expressions> = Arc::new(Cel::new(authorizer.clone()));
    let policies = ValidatingAdmissionPolicy::new(lookup.clone(), forms.clone(), expressions.clone());
    let webhooks = Webhooks { lookup: lookup.clone(), forms, expressions, caller, env: env.clone() };
    let pod_security = PodSecurity {
        lookup: lookup.clone(),
        defaults: pod_security::Policy::default(),
        exemptions: pod_security::Exemptions::default(),
    };
    let available: Vec<(&'static str, Arc<dyn Plugin>)> = vec![
        ("AlwaysAdmit", Arc::new(AlwaysAdmit)),
        ("AlwaysDeny", Arc::new(AlwaysDeny)),
        ("AlwaysPullImages", Arc::new(AlwaysPullImages)),
        ("CertificateApproval", Arc::new(CertificateApproval { authorizer: authorizer.clone() })),
        ("CertificateSigning", Arc::new(CertificateSigning { authorizer: authorizer.clone() })),
        ("CertificateSubjectRestriction", Arc::new(CertificateSubjectRestriction)),
        ("DefaultIngressClass", Arc::new(DefaultIngressClass { lookup: lookup.clone() })),
        ("DefaultStorageClass", Arc::new(DefaultStorageClass { lookup: lookup.clone() })),
        ("DefaultTolerationSeconds", Arc::new(DefaultTolerationSeconds::default())),
        ("DenyServiceExternalIPs", Arc::new(DenyServiceExternalIps)),
        ("ExtendedResourceToleration", Arc::new(ExtendedResourceToleration)),
        ("LimitPodHardAntiAffinityTopology", Arc::new(LimitPodHardAntiAffinityTopology)),
        ("LimitRanger", Arc::new(LimitRanger { lookup: lookup.clone() })),
        ("MutatingAdmissionWebhook", Arc::new(MutatingAdmissionWebhook::new(webhooks.clone()))),
        ("NamespaceExists", Arc::new(NamespaceExists { lookup: lookup.clone() })),
        ("NamespaceLifecycle", Arc::new(NamespaceLifecycle { lookup: lookup.clone() })),
        (
            "OwnerReferencesPermissionEnforcement",
            Arc::new(OwnerReferencesPermissionEnforcement { authorizer: authorizer.clone(), mappings: view }),
        ),
        ("PersistentVolumeClaimResize", Arc::new(PersistentVolumeClaimResize { lookup: lookup.clone() })),
        ("PodNodeSelector", Arc::new(PodNodeSelector { lookup: lookup.clone(), cluster_selectors: BTreeMap::new() })),
        ("PodSecurity", Arc::new(pod_security)),
        ("PodTopologyLabels", Arc::new(PodTopologyLabels { lookup: lookup.clone() })),
        ("Priority", Arc::new(Priority { lookup: lookup.clone() })),
        ("ResourceQuota", Arc::new(ResourceQuota::new(lookup.clone(), quota_writer, env.clone()))),
        ("RuntimeClass", Arc::new(RuntimeClass { lookup: lookup.clone() })),
        ("ServiceAccount", Arc::new(ServiceAccount { lookup, env: env.clone() })),
        ("StorageObjectInUseProtection", Arc::new(StorageObjectInUseProtection)),
        ("TaintNodesByCondition", Arc::new(TaintNodesByCondition)),
        ("ValidatingAdmissionPolicy", Arc::new(policies)),
        ("ValidatingAdmissionWebhook", Arc::new(ValidatingAdmissionWebhook::new(webhooks))),
    ];
    enabled.retain(|name| available.iter().any(|(own, _)| own == name));
    let chain = Chain::new(&enabled, available).map_err(Error::msg)?;
    Ok(Arc::new(chain.followed_by("RoleEscalation", Arc::new(RoleEscalation { rbac: rbac.clone(), authorizer }))))
}
