//! Carrying events to a server.

use super::correlator::{Correlated, CorrelatorOptions, EventCorrelator};
use super::recorder::EventRecorder;
use crate::backoff::jittered;
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Event;
use pintle_apimachinery::env::Env;
use pintle_client::watch::{BroadcastWatch, Broadcaster, FullChannelBehavior};
use pintle_client::{Api, Client, Error, Patch, Result};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Events that wait to be sent; further ones are lost.
pub const QUEUED_EVENTS_MAX: usize = 1000;

/// Times an event is tried while the server cannot be reached; then it is lost.
pub const TRIES_PER_EVENT_MAX: u32 = 12;

/// How long to wait between tries.
const RETRY_DELAY: Duration = Duration::from_secs(10);

/// Takes events from recorders and gives them to whoever listens. Cheap to clone.
#[derive(Clone, Debug)]
pub struct EventBroadcaster {
    events: Broadcaster<Arc<Event>>,
    options: CorrelatorOptions,
    env: Env,
}

impl EventBroadcaster {
    /// A broadcaster to which nobody listens yet.
    pub fn new(env: Env) -> EventBroadcaster {
        EventBroadcaster::with_options(env, CorrelatorOptions::default())
    }

    /// A broadcaster that holds events back as told.
    pub fn with_options(env: Env, options: CorrelatorOptions) -> EventBroadcaster {
        let events = Broadcaster::new(QUEUED_EVENTS_MAX, FullChannelBehavior::DropIfChannelFull);
        EventBroadcaster { events, options, env }
    }

    /// A recorder in the name of a component.
    pub fn recorder(&self, component: &str) -> EventRecorder {
        EventRecorder::new(component, self.events.clone(), self.env.clone())
    }

    /// Writes every event that is recorded from now on to the log, in a task of its own, until `stop`.
    pub fn start_logging(&self, stop: CancellationToken) {
        let Ok(events) = self.events.watch() else { return };
        tokio::spawn(async move { stop.run_until_cancelled(log_all(events)).await });
    }

    /// Sends every event that is recorded from now on to a server, in a task of its own, until `stop`.
    pub fn start_recording_to_sink(&self, client: &Client, stop: CancellationToken) {
        let Ok(events) = self.events.watch() else { return };
        let (this, api) = (self.clone(), Api::<Event>::all(client));
        tokio::spawn(async move { stop.run_until_cancelled(this.send_all(events, api)).await });
    }

    async fn send_all(&self, mut events: BroadcastWatch<Arc<Event>>, api: Api<Event>) {
        let mut correlator = EventCorrelator::new(self.options.clone(), self.env.clone());
        while let Some(event) = events.next().await {
            if let Some(event) = event.into_object() {
                let correlated = correlator.correlate(&event);
                self.send(&api, correlated, &mut correlator).await;
            }
        }
    }

    /// Ends every listener once it has heard what was recorded.
    pub async fn shutdown(&self) {
        self.events.shutdown().await;
    }

    async fn send(&self, api: &Api<Event>, correlated: Correlated, correlator: &mut EventCorrelator) {
        let (mut event, patch) = match correlated {
            Correlated::Skip => return,
            Correlated::Create(event) => (*event, None),
            Correlated::Patch(event, patch) => (*event, Some(patch)),
        };
        for n_tried in 1..=TRIES_PER_EVENT_MAX {
            let error = match send_once(api, &mut event, patch.as_ref()).await {
                Ok(sent) => return correlator.update_state(&sent),
                Err(error) => error,
            };
            if error.status().is_some() || error.is_unsent() && !matches!(error, Error::Connect { .. }) {
                // the event itself is at fault, or its namespace is going away
                tracing::debug!(%error, reason = event.reason, "the server does not take an event");
                return;
            }
            if n_tried == TRIES_PER_EVENT_MAX {
                tracing::warn!(%error, reason = event.reason, "an event is lost: the server cannot be reached");
                return;
            }
            // the first pause is of random length, so that all clients do not come back together
            let pause = if n_tried == 1 { random_part(RETRY_DELAY, &self.env) } else { RETRY_DELAY };
            tokio::time::sleep(pause).await;
        }
    }
}

async fn log_all(mut events: BroadcastWatch<Arc<Event>>) {
    while let Some(event) = events.next().await {
        if let Some(event) = event.into_object() {
            let about = &event.involved_object;
            tracing::info!(
                kind = about.kind,
                namespace = about.namespace,
                name = about.name,
                event_type = event.type_,
                reason = event.reason,
                "{}",
                event.message.as_deref().unwrap_or_default()
            );
        }
    }
}

fn random_part(of: Duration, env: &Env) -> Duration {
    jittered(of, 1.0, env.ids.as_ref()) - of
}

async fn send_once(api: &Api<Event>, event: &mut Event, patch: Option<&serde_json::Value>) -> Result<Event> {
    let namespace = event.metadata.namespace.clone().unwrap_or_default();
    let api = api.in_namespace(&namespace);
    if let Some(patch) = patch {
        let name = event.metadata.name.clone().unwrap_or_default();
        match api.patch(&name, &Patch::Strategic(patch)).await {
            Err(error) if error.is_not_found() => {}
            other => return other,
        }
    }
    event.metadata.resource_version = None;
    api.create(event).await
}

#[cfg(test)]
mod tests;
