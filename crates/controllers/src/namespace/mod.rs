//! Empties namespaces that are being deleted, and lets them go.
//!
//! Everything that the server can list and delete in the namespace is deleted, pods first; what remains is told in the
//! namespace's conditions; when nothing remains, the finalizer `kubernetes` is taken off.
//!
//! Follows: kubernetes/pkg/controller/namespace (v1.35). Differs: a namespace whose content is not gone yet is looked
//! at again sooner at first (upstream waits half of the estimate).

mod conditions;
mod content;

use crate::context::{Context, synced};
use content::{Remaining, remove_content};
use k8s_openapi::api::core::v1::Namespace;
use pintle_client::discovery::Discovery;
use pintle_client::{Api, Client, Object as _, Result};
use pintle_informer::handler::enqueue_by;
use pintle_informer::workqueue::{Action, WorkQueue};
use pintle_informer::{Cached, Lister, ObjectName};
use std::sync::Arc;
use std::time::Duration;

/// The finalizer of `spec.finalizers` that is this controller's.
const FINALIZER: &str = "kubernetes";

/// Namespaces emptied at once.
const WORKERS: usize = 4;

/// A write that meets a newer version is tried so many times at once; then the queue brings the namespace again.
const CONFLICTS_MAX: usize = 5;

/// Content that is going away by itself is looked at again after this long.
const RECHECK: Duration = Duration::from_secs(1);

/// Starts the controller.
pub(crate) fn start(ctx: &Context) {
    let queue = WorkQueue::<ObjectName>::new("namespace");
    let namespaces = ctx.factory.informer::<Namespace>();
    namespaces.add_event_handler(enqueue_by(&queue, |namespace: &Cached<Namespace>| {
        namespace.is_terminating().then(|| namespace.object_name())
    }));
    let controller = Arc::new(NamespaceController {
        client: ctx.client_of("namespace-controller"),
        namespaces: namespaces.lister(),
        env: ctx.env().clone(),
    });
    ctx.work(queue, WORKERS, synced!(namespaces), move |name| {
        let controller = Arc::clone(&controller);
        async move { controller.sync(&name).await }
    });
}

struct NamespaceController {
    client: Client,
    namespaces: Lister<Cached<Namespace>>,
    env: pintle_apimachinery::env::Env,
}

impl NamespaceController {
    async fn sync(&self, name: &ObjectName) -> Result<Action> {
        if self.namespaces.get_by_key(name).is_none_or(|namespace| !namespace.is_terminating()) {
            return Ok(Action::Done);
        }
        let api = Api::<Namespace>::all(&self.client);
        let Some(namespace) = api.get_opt(&name.name).await?.filter(Namespace::is_terminating) else {
            return Ok(Action::Done);
        };
        let Some(namespace) = self.mark_terminating(&api, namespace).await? else { return Ok(Action::Done) };
        if finalizers(&namespace).is_empty() {
            return Ok(Action::Done);
        }
        let discovery = Discovery::run(&self.client).await;
        let now = self.env.clock.now();
        let outcome = remove_content(&self.client, &namespace, discovery, now).await;
        let conditions = outcome.conditions(now);
        if let Some(changed) = conditions::with_conditions(&namespace, conditions)
            && let Err(error) = api.update_status(&changed).await
            && !error.is_not_found()
        {
            tracing::debug!(namespace = %name, %error, "the conditions of a namespace could not be written");
        }
        match outcome.remaining() {
            Remaining::Nothing => self.finalize(&api, &name.name).await,
            Remaining::Failure(error) => Err(error),
            Remaining::Content { estimate } => {
                let began = namespace.metadata.deletion_timestamp.as_ref().map_or(now, |at| at.0);
                let pause = crate::common::until(began, now) / 2;
                Ok(Action::RequeueAfter(pause.clamp(RECHECK, estimate.max(RECHECK))))
            }
        }
    }

    /// Sees to it that the phase is `Terminating`. `None` when the namespace is gone.
    async fn mark_terminating(&self, api: &Api<Namespace>, mut namespace: Namespace) -> Result<Option<Namespace>> {
        let uid = namespace.uid().to_owned();
        for _ in 0..CONFLICTS_MAX {
            if namespace.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Terminating") {
                return Ok(Some(namespace));
            }
            namespace.status.get_or_insert_default().phase = Some("Terminating".to_owned());
            match api.update_status(&namespace).await {
                Ok(updated) => return Ok(Some(updated)),
                Err(error) if error.is_not_found() => return Ok(None),
                Err(error) if error.is_conflict() => match api.get_opt(namespace.name()).await? {
                    Some(fresh) if fresh.uid() == uid => namespace = fresh,
                    _ => return Ok(None),
                },
                Err(error) => return Err(error),
            }
        }
        Ok(Some(namespace))
    }

    /// Takes the finalizer off.
    async fn finalize(&self, api: &Api<Namespace>, name: &str) -> Result<Action> {
        for _ in 0..CONFLICTS_MAX {
            let Some(mut namespace) = api.get_opt(name).await?.filter(Namespace::is_terminating) else {
                return Ok(Action::Done);
            };
            let mut kept: Vec<String> = finalizers(&namespace).iter().filter(|f| *f != FINALIZER).cloned().collect();
            kept.sort();
            kept.dedup();
            namespace.spec.get_or_insert_default().finalizers = Some(kept);
            match api.finalize(&namespace).await {
                Ok(_) => return Ok(Action::Done),
                Err(error) if error.is_not_found() => return Ok(Action::Done),
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Action::RequeueAfter(RECHECK))
    }
}

fn finalizers(namespace: &Namespace) -> &[String] {
    namespace.spec.as_ref().and_then(|spec| spec.finalizers.as_deref()).unwrap_or_default()
}
