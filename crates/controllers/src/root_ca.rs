//! Publishes the server's certificate authority into every namespace, as ConfigMap `kube-root-ca.crt`.
//!
//! Follows: kubernetes/pkg/controller/certificates/rootcacertpublisher/publisher.go (v1.35).

use crate::context::{Context, synced};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use pintle_client::{Api, Client, Result};
use pintle_informer::handler::{enqueue, enqueue_by};
use pintle_informer::workqueue::{Action, WorkQueue};
use pintle_informer::{Cached, ListWatch, Lister, ObjectName};
use std::collections::BTreeMap;
use std::sync::Arc;

const NAME: &str = "kube-root-ca.crt";
const DESCRIPTION_ANNOTATION: &str = "kubernetes.io/description";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
    endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
    distributions of Kubernetes clusters.";

/// Starts the controller, if it was told what to publish.
pub(crate) fn start(ctx: &Context) {
    let Some(root_ca) = ctx.options.root_ca.clone() else {
        tracing::info!("no root CA is published: none was given");
        return;
    };
    let queue = WorkQueue::<ObjectName>::new("root_ca_cert_publisher");
    let namespaces = ctx.factory.informer::<Namespace>();
    namespaces.add_event_handler(enqueue(&queue));
    let source = ListWatch::new(Api::<ConfigMap>::all(&ctx.client));
    let maps = ctx.private_informer(source.fields(format_args!("metadata.name={NAME}")));
    maps.add_event_handler(enqueue_by(&queue, |map: &Cached<ConfigMap>| Some(ObjectName::cluster(map.namespace()))));
    let publisher = Arc::new(Publisher {
        client: ctx.client_of("root-ca-cert-publisher"),
        namespaces: namespaces.lister(),
        maps: maps.lister(),
        data: BTreeMap::from([("ca.crt".to_owned(), root_ca)]),
    });
    ctx.work(queue, 1, synced!(namespaces, maps), move |name| {
        let publisher = Arc::clone(&publisher);
        async move { publisher.sync(&name).await }
    });
}

struct Publisher {
    client: Client,
    namespaces: Lister<Cached<Namespace>>,
    maps: Lister<Cached<ConfigMap>>,
    data: BTreeMap<String, String>,
}

impl Publisher {
    async fn sync(&self, name: &ObjectName) -> Result<Action> {
        let Some(namespace) = self.namespaces.get_by_key(name) else { return Ok(Action::Done) };
        if namespace.text_at(&["status", "phase"]).as_deref() != Some("Active") {
            return Ok(Action::Done);
        }
        let api = Api::<ConfigMap>::namespaced(&self.client, namespace.name());
        let result = match self.maps.namespace(namespace.name()).get(NAME) {
            None => {
                let mut map = ConfigMap::default();
                map.metadata.name = Some(NAME.to_owned());
                self.fill(&mut map);
                api.create(&map).await
            }
            Some(cached) => {
                let mut map = cached.to_owned_object()?;
                if map.data.as_ref() == Some(&self.data) && cached.annotation(DESCRIPTION_ANNOTATION).is_some() {
                    return Ok(Action::Done);
                }
                self.fill(&mut map);
                api.update(&map).await
            }
        };
        match result {
            Ok(_) => Ok(Action::Done),
            Err(error) if error.is_not_found() || error.is_namespace_terminating() => Ok(Action::Done),
            Err(error) => Err(error),
        }
    }

    fn fill(&self, map: &mut ConfigMap) {
        map.data = Some(self.data.clone());
        let annotations = map.metadata.annotations.get_or_insert_default();
        annotations.insert(DESCRIPTION_ANNOTATION.to_owned(), DESCRIPTION.to_owned());
    }
}
