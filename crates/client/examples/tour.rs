//! Every verb once, against the server of the current kubeconfig: `cargo run --example tour`.
#![expect(clippy::print_stdout, reason = "an example that shows what it does")]

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
use pintle_client::{Api, ApiResource, Client, DynamicObject, Object as _, Patch};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::try_default()?;
    let version: serde_json::Value = client.get("/version").await?;
    println!("server   {} at {}", version["gitVersion"], client.server());

    let maps = Api::<ConfigMap>::namespaced(&client, "default");
    let mut watch = maps.watch_one("tour").await?;

    let mut map = ConfigMap::default();
    map.metadata.name = Some("tour".to_owned());
    map.data = Some([("greeting".to_owned(), "hello".to_owned())].into());
    let mut made = maps.create(&map).field_manager("tour").await?;
    println!("create   {} at version {}", made.name(), made.resource_version());
    let again = maps.create(&map).await;
    println!("again    {}", again.err().filter(pintle_client::Error::is_already_exists).ok_or("created twice")?);

    made.data.get_or_insert_default().insert("greeting".to_owned(), "good morning".to_owned());
    let updated = maps.update(&made).await?;
    println!("update   {}", updated.resource_version());
    println!(
        "stale    {}",
        maps.update(&made).await.err().filter(pintle_client::Error::is_conflict).ok_or("no conflict")?
    );

    maps.patch("tour", &Patch::Merge(json!({"data": {"merge": "yes"}}))).await?;
    maps.patch("tour", &Patch::Json(json!([{"op": "remove", "path": "/data/merge"}]))).await?;
    let fields = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"applied": "yes"}});
    let applied = maps.apply("tour", "tour-apply", &fields).force().await?;
    println!("apply    {:?}", applied.data.unwrap_or_default());

    let listed = maps.list().fields("metadata.name=tour").limit(10).await?;
    println!("list     {} object at version {}", listed.items.len(), listed.resource_version());
    let everywhere = Api::<Namespace>::all(&client).list_all(Default::default(), 2).await?;
    println!("pages    {:?}", everywhere.iter().map(|namespace| namespace.name()).collect::<Vec<_>>());
    println!("nodes    {}", Api::<Node>::all(&client).list().await?.items.len());

    let dynamic: Api<DynamicObject> = Api::dynamic(&client, &ApiResource::of::<ConfigMap>(), "default");
    let object = dynamic.get("tour").await?;
    println!("dynamic  {} {} {:?}", object.api_version, object.kind, object.pointer("/data/greeting"));

    maps.delete("tour").await?;
    println!("gone     {:?}", maps.get_opt("tour").await?.map(|map| map.name().to_owned()));
    while let Some(event) = watch.next().await {
        println!("watched  {} at {:?}", event.type_name(), event.object().map(|map| map.resource_version()));
        if matches!(event, pintle_client::watch::Event::Deleted(_)) {
            break;
        }
    }
    Ok(())
}
