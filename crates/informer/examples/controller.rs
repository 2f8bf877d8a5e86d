//! A controller: every Namespace labelled `example.org/greet=yes` gets a ConfigMap `greeting`, and gets it back when
//! somebody deletes it. `cargo run --example controller`
#![expect(clippy::print_stdout, reason = "an example that shows what it does")]

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use pintle_client::{Api, Client};
use pintle_informer::handler::{enqueue, enqueue_by};
use pintle_informer::workqueue::{Action, WorkQueue, run_workers};
use pintle_informer::{Cached, CancellationToken, Lister, ObjectName, SharedInformerFactory};

const NAME: &str = "greeting";

#[tokio::main(flavor = "current_thread")]
async fn main() -> pintle_client::Result<()> {
    let client = Client::try_default()?;
    let queue = WorkQueue::<ObjectName>::new("greetings");
    let factory = SharedInformerFactory::new(&client);

    let namespaces = factory.informer::<Namespace>();
    namespaces.add_event_handler(enqueue(&queue));
    let maps = factory.informer::<ConfigMap>();
    maps.add_event_handler(enqueue_by(&queue, |map: &Cached<ConfigMap>| {
        (map.name() == NAME).then(|| ObjectName::cluster(map.namespace()))
    }));

    let stop = CancellationToken::new();
    factory.start(&stop);
    factory.wait_for_cache_sync().await;
    println!("{} namespaces, {} config maps", namespaces.lister().len(), maps.lister().len());

    let (namespaces, maps) = (namespaces.lister(), maps.lister());
    let work = run_workers(&queue, 4, move |name| reconcile(client.clone(), namespaces.clone(), maps.clone(), name));
    tokio::select! {
        () = work => {}
        _ = tokio::signal::ctrl_c() => stop.cancel(),
    }
    factory.shutdown().await;
    Ok(())
}

/// Makes one namespace as it should be, whatever it is like now.
async fn reconcile(
    client: Client,
    namespaces: Lister<Cached<Namespace>>,
    maps: Lister<Cached<ConfigMap>>,
    name: ObjectName,
) -> pintle_client::Result<Action> {
    let Some(namespace) = namespaces.get_by_key(&name) else { return Ok(Action::Done) };
    let is_wanted = namespace.label("example.org/greet").as_deref() == Some("yes") && !namespace.is_terminating();
    if !is_wanted || maps.namespace(namespace.name()).get(NAME).is_some() {
        return Ok(Action::Done);
    }
    let mut map = ConfigMap::default();
    map.metadata.name = Some(NAME.to_owned());
    map.data = Some([("text".to_owned(), format!("hello {}", namespace.name()))].into());
    match Api::namespaced(&client, namespace.name()).create(&map).await {
        Ok(map) => println!("greeted {} at version {}", namespace.object_name(), Cached::of(&map)?.resource_version()),
        Err(error) if error.is_already_exists() => {}
        Err(error) => return Err(error),
    }
    Ok(Action::Done)
}
