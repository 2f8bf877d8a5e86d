//! What every cluster holds from its first moment: roles and bindings, namespaces, priority classes, the `kubernetes`
//! service, and what the server tells extension servers.
//!
//! Not here: flow control's objects (kinds), writing (the server does that at start, and again at every start:
//! [`reconcile`] says what there is to do).

mod objects;
mod policy;
mod reconcile;
mod server;

pub use objects::{
    KubernetesService, RequestHeader, extension_apiserver_authentication, kubernetes_service, legacy_token_tracking,
    namespaces, priority_classes,
};
pub use policy::policy;
pub use reconcile::{Action, reconcile};
pub use server::{IDENTITY_RENEWAL, api_services, identity, identity_lease, identity_spec, service_cidr};

use pintle_apimachinery::Value;

/// An object that must be there.
#[derive(Clone, Debug, PartialEq)]
pub struct Seed {
    /// Its API group.
    pub group: &'static str,
    /// The version that the object is written in.
    pub version: &'static str,
    /// Its resource.
    pub resource: &'static str,
    /// The object.
    pub object: Value,
}
