//! Follows a resource that is named on the command line, whatever it is:
//! `cargo run --example dynamic_watcher -- deployments.apps`
#![expect(clippy::print_stdout, reason = "an example that shows what it does")]

use pintle_client::discovery::RestMapper;
use pintle_client::{Client, DynamicObject};
use pintle_informer::{Cached, CancellationToken, Deleted, ResourceEventHandlerFuncs, SharedInformerFactory};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "pods".to_owned());
    let client = Client::try_default()?;
    let found = RestMapper::new(&client).resource_for(&name).await?;
    println!("following {} ({})", found.resource.gvr(), found.resource.kind);

    let factory = SharedInformerFactory::new(&client);
    let informer = factory.dynamic(&found.resource);
    informer.add_event_handler(
        ResourceEventHandlerFuncs::new()
            .on_add(|object: &Cached<DynamicObject>| println!("+ {object:?} {}", labels(object)))
            .on_update(|_, new| println!("~ {new:?} {}", labels(new)))
            .on_delete(|deleted: &Deleted<Cached<DynamicObject>>| println!("- {:?}", deleted.object())),
    );
    let stop = CancellationToken::new();
    factory.start(&stop);
    factory.wait_for_cache_sync().await;
    println!("= {} objects", informer.lister().len());
    tokio::signal::ctrl_c().await?;
    stop.cancel();
    factory.shutdown().await;
    Ok(())
}

/// Labels are at hand without decoding the object.
fn labels(object: &Cached<DynamicObject>) -> String {
    object.labels().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}
