//! Gives every namespace its `default` service account.
//!
//! Follows: kubernetes/pkg/controller/serviceaccount/serviceaccounts_controller.go (v1.35).

use crate::context::{Context, synced};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use pintle_client::{Api, Client, Result};
use pintle_informer::handler::{enqueue, enqueue_by};
use pintle_informer::workqueue::{Action, WorkQueue};
use pintle_informer::{Cached, ListWatch, Lister, ObjectName};

/// The service account that every namespace has.
const DEFAULT: &str = "default";

/// Starts the controller.
pub(crate) fn start(ctx: &Context) {
    let queue = WorkQueue::<ObjectName>::new("serviceaccount");
    let namespaces = ctx.factory.informer::<Namespace>();
    namespaces.add_event_handler(enqueue(&queue));
    let source = ListWatch::new(Api::<ServiceAccount>::all(&ctx.client));
    let accounts = ctx.private_informer(source.fields(format_args!("metadata.name={DEFAULT}")));
    accounts.add_event_handler(enqueue_by(&queue, |account: &Cached<ServiceAccount>| {
        Some(ObjectName::cluster(account.namespace()))
    }));
    let client = ctx.client_of("service-account-controller");
    let listers = (namespaces.lister(), accounts.lister());
    ctx.work(queue, 1, synced!(namespaces, accounts), move |name| {
        sync(client.clone(), listers.0.clone(), listers.1.clone(), name)
    });
}

async fn sync(
    client: Client,
    namespaces: Lister<Cached<Namespace>>,
    accounts: Lister<Cached<ServiceAccount>>,
    name: ObjectName,
) -> Result<Action> {
    let Some(namespace) = namespaces.get_by_key(&name) else { return Ok(Action::Done) };
    let is_active = namespace.text_at(&["status", "phase"]).as_deref() == Some("Active");
    if !is_active || accounts.namespace(namespace.name()).get(DEFAULT).is_some() {
        return Ok(Action::Done);
    }
    let mut account = ServiceAccount::default();
    account.metadata.name = Some(DEFAULT.to_owned());
    match Api::namespaced(&client, namespace.name()).create(&account).await {
        Ok(_) => Ok(Action::Done),
        Err(error) if error.is_already_exists() || error.is_namespace_terminating() => Ok(Action::Done),
        Err(error) => Err(error),
    }
}
