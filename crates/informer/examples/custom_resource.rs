//! A custom resource with a Rust type: installs its definition, makes one, and keeps its status up to date.
//! `cargo run --example custom_resource`
#![expect(clippy::print_stdout, reason = "an example that shows what it does")]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use pintle_client::{Api, Client, Object as _, watch};
use pintle_informer::workqueue::{Action, WorkQueue, run_workers};
use pintle_informer::{Cached, CancellationToken, Lister, ObjectName, SharedInformerFactory, handler::enqueue};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct WebsiteSpec {
    host: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct WebsiteStatus {
    url: String,
}

pintle_client::custom_resource! {
    /// A website.
    struct Website {
        group: "example.org", version: "v1", plural: "websites", scope: Namespaced,
        spec: WebsiteSpec, status: WebsiteStatus,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::try_default()?;
    install(&client).await?;

    let queue = WorkQueue::<ObjectName>::new("websites");
    let factory = SharedInformerFactory::new(&client);
    let informer = factory.informer::<Website>();
    informer.add_event_handler(enqueue(&queue));
    let stop = CancellationToken::new();
    factory.start(&stop);
    factory.wait_for_cache_sync().await;

    let api = Api::<Website>::namespaced(&client, "default");
    let lister = informer.lister();
    let workers = tokio::spawn({
        let (queue, api) = (queue.clone(), api.clone());
        async move { run_workers(&queue, 2, move |name| reconcile(api.clone(), lister.clone(), name)).await }
    });

    api.create(&Website::new("home", WebsiteSpec { host: "example.org".to_owned() })).await?;
    let is_ready = |site: Option<&Website>| site.is_some_and(|site| site.status.is_some());
    let ready = watch::until(&api, "home", Duration::from_secs(10), is_ready).await?;
    println!("ready: {:?}", ready.and_then(|site| site.status));
    api.delete("home").await?;

    queue.shut_down();
    workers.await?;
    stop.cancel();
    factory.shutdown().await;
    Api::<CustomResourceDefinition>::all(&client).delete("websites.example.org").await?;
    Ok(())
}

/// Sets the status that the spec asks for.
async fn reconcile(
    api: Api<Website>,
    lister: Lister<Cached<Website>>,
    name: ObjectName,
) -> pintle_client::Result<Action> {
    let Some(cached) = lister.get_by_key(&name) else { return Ok(Action::Done) };
    let mut site = cached.to_owned_object()?;
    let wanted = WebsiteStatus { url: format!("https://{}/", site.spec.host) };
    if site.status.as_ref() != Some(&wanted) {
        site.status = Some(wanted);
        api.update_status(&site).await?;
    }
    Ok(Action::Done)
}

/// Tells the server what a website is, and waits until it serves them.
async fn install(client: &Client) -> Result<(), Box<dyn std::error::Error>> {
    let text = |name: &str| json!({ "type": "object", "properties": { name: { "type": "string" } } });
    let schema = json!({ "type": "object", "properties": { "spec": text("host"), "status": text("url") } });
    let definition: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": { "name": "websites.example.org" },
        "spec": {
            "group": "example.org",
            "names": { "kind": "Website", "plural": "websites", "singular": "website" },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema }, "subresources": { "status": {} },
            }],
        },
    }))?;
    let api = Api::<CustomResourceDefinition>::all(client);
    if let Err(error) = api.create(&definition).await
        && !error.is_already_exists()
    {
        return Err(error.into());
    }
    let is_established = |definition: Option<&CustomResourceDefinition>| {
        let conditions = definition.and_then(|d| d.status.as_ref()?.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Established" && c.status == "True"))
    };
    let definition = watch::until(&api, "websites.example.org", Duration::from_secs(10), is_established).await?;
    println!("serving {}", definition.map(|d| d.name().to_owned()).unwrap_or_default());
    Ok(())
}
