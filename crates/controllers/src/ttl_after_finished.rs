//! Deletes jobs some time after they have ended (`ttlSecondsAfterFinished`).
//!
//! Follows: kubernetes/pkg/controller/ttlafterfinished (v1.35).

use crate::common::{after_seconds, until};
use crate::context::{Context, synced};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use pintle_apimachinery::env::Env;
use pintle_client::{Api, Client, Object as _, Result};
use pintle_informer::handler::enqueue_by;
use pintle_informer::workqueue::{Action, WorkQueue};
use pintle_informer::{Cached, Lister, ObjectName};

/// Starts the controller.
pub(crate) fn start(ctx: &Context) {
    let queue = WorkQueue::<ObjectName>::new("ttl_jobs_to_delete");
    let jobs = ctx.factory.informer::<Job>();
    jobs.add_event_handler(enqueue_by(&queue, |job: &Cached<Job>| {
        job.value_at(&["spec", "ttlSecondsAfterFinished"]).is_some().then(|| job.object_name())
    }));
    let (client, lister, env) = (ctx.client_of("ttl-after-finished-controller"), jobs.lister(), ctx.env().clone());
    ctx.work(queue, 1, synced!(jobs), move |name| sync(client.clone(), lister.clone(), env.clone(), name));
}

/// When an ended job is to go.
fn expires_at(job: &Job) -> Option<Timestamp> {
    let ttl = job.spec.as_ref()?.ttl_seconds_after_finished?;
    let mut conditions = job.status.as_ref()?.conditions.iter().flatten();
    let end = conditions.find(|c| matches!(c.type_.as_str(), "Complete" | "Failed") && c.status == "True")?;
    Some(after_seconds(end.last_transition_time.as_ref()?.0, i64::from(ttl)))
}

async fn sync(client: Client, jobs: Lister<Cached<Job>>, env: Env, name: ObjectName) -> Result<Action> {
    let Some(cached) = jobs.get_by_key(&name).filter(|job| !job.is_terminating()) else { return Ok(Action::Done) };
    let Some(at) = expires_at(cached.object()?.as_ref()) else { return Ok(Action::Done) };
    let pause = until(env.clock.now(), at);
    if !pause.is_zero() {
        return Ok(Action::RequeueAfter(pause));
    }
    // the time may have been changed just now: the job itself counts, not the cache
    let api = Api::<Job>::namespaced(&client, &name.namespace);
    let Some(fresh) = api.get_opt(&name.name).await?.filter(|fresh| fresh.uid() == cached.uid()) else {
        return Ok(Action::Done);
    };
    match expires_at(&fresh) {
        Some(at) if until(env.clock.now(), at).is_zero() => {
            let call = api.delete(&name.name).foreground().uid(fresh.uid());
            match call.resource_version(fresh.resource_version()).await {
                Err(error) if !error.is_not_found() => Err(error),
                _ => Ok(Action::Done),
            }
        }
        Some(at) => Ok(Action::RequeueAfter(until(env.clock.now(), at))),
        None => Ok(Action::Done),
    }
}
