//! Starting the controllers.

use crate::context::{Context, Options};
use pintle_client::Client;
use pintle_informer::{CancellationToken, SharedInformerFactory};

/// A controller: upstream's name, whether it runs unless told otherwise, and how it starts.
struct Entry {
    name: &'static str,
    start: fn(&Context),
}

/// All controllers, in the order in which they start.
const CONTROLLERS: &[Entry] = &[
    Entry { name: "namespace-controller", start: crate::namespace::start },
    Entry { name: "serviceaccount-controller", start: crate::serviceaccount::start },
    Entry { name: "root-ca-certificate-publisher-controller", start: crate::root_ca::start },
    Entry { name: "deployment-controller", start: crate::deployment::start },
    Entry { name: "replicaset-controller", start: crate::replicaset::start },
    Entry { name: "statefulset-controller", start: crate::statefulset::start },
    Entry { name: "daemonset-controller", start: crate::daemonset::start },
    Entry { name: "job-controller", start: crate::job::start },
    Entry { name: "cronjob-controller", start: crate::cronjob::start },
    Entry { name: "endpoints-controller", start: crate::endpoints::start_endpoints },
    Entry { name: "endpointslice-controller", start: crate::endpoints::start_slices },
    Entry { name: "pod-garbage-collector-controller", start: crate::podgc::start },
    Entry { name: "ttl-after-finished-controller", start: crate::ttl_after_finished::start },
    Entry { name: "disruption-controller", start: crate::disruption::start },
    Entry { name: "clusterrole-aggregation-controller", start: crate::clusterrole_aggregation::start },
    Entry { name: "persistentvolumeclaim-protection-controller", start: crate::volume_protection::start_claims },
    Entry { name: "persistentvolume-protection-controller", start: crate::volume_protection::start_volumes },
    Entry { name: "garbage-collector-controller", start: crate::garbagecollector::start },
];

/// The names of all controllers.
pub fn names() -> impl Iterator<Item = &'static str> {
    CONTROLLERS.iter().map(|entry| entry.name)
}

/// Controllers that run.
#[derive(Debug)]
pub struct Controllers {
    ctx: Context,
}

impl Controllers {
    /// Starts the controllers that `options` enable. They run, in tasks of the current runtime, until `stop`.
    ///
    /// The client's user must be allowed what the controllers do: `system:kube-controller-manager` in the group
    /// `system:masters`, say. Its configuration should have no rate limit (`qps: None`) and a user agent that begins
    /// with `kube-controller-manager/`, which becomes the owner of the fields that are written.
    pub fn start(client: &Client, options: Options, stop: CancellationToken) -> Controllers {
        Controllers::start_with(client, &SharedInformerFactory::new(client), options, stop)
    }

    /// As [`Controllers::start`], with the informers of `factory`, which others in the program can share. Starts it.
    pub fn start_with(
        client: &Client,
        factory: &SharedInformerFactory,
        options: Options,
        stop: CancellationToken,
    ) -> Controllers {
        let ctx = Context::new(client.clone(), factory.clone(), options, stop);
        for entry in CONTROLLERS.iter().filter(|entry| ctx.options.controllers.has(entry.name)) {
            tracing::debug!(controller = entry.name, "starting");
            (entry.start)(&ctx);
        }
        ctx.start();
        Controllers { ctx }
    }

    /// Waits until everything has ended, after the `stop` given at the start.
    pub async fn shutdown(self) {
        self.ctx.shutdown().await;
    }
}

/// Runs the controllers until `stop`, and waits for their end.
pub async fn run_all(client: &Client, options: Options, stop: CancellationToken) {
    let controllers = Controllers::start(client, options, stop.clone());
    stop.cancelled().await;
    controllers.shutdown().await;
}
