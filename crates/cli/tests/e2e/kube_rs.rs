//! kube, the Rust client that is not ours: typed and dynamic calls, watchers of both kinds, a reflector.

use crate::server::Server;
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Client, Config, ResourceExt as _};
use std::collections::BTreeMap;

async fn client(server: &Server) -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.expect("a config");
    Client::try_from(config).expect("a client")
}

fn map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map.metadata.labels = Some(BTreeMap::from([("by".to_owned(), "kube".to_owned())]));
    map
}

#[tokio::test(flavor = "multi_thread")]
async fn calls() {
    let server = Server::start("kube-calls");
    let client = client(&server).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let made = maps.create(&PostParams::default(), &map("a")).await.expect("created");
    let mut stale = made.clone();
    let patch = serde_json::json!({ "data": { "x": "1" } });
    let patched = maps.patch("a", &PatchParams::default(), &Patch::Merge(&patch)).await.expect("patched");
    assert_eq!(patched.data.expect("data")["x"], "1");
    stale.data = Some(BTreeMap::from([("x".to_owned(), "2".to_owned())]));
    let refused = maps.replace("a", &PostParams::default(), &stale).await.expect_err("its version is old");
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 409), "a conflict");

    let applied = serde_json::json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "y": "1" } });
    let applied = maps.patch("a", &PatchParams::apply("e2e"), &Patch::Apply(&applied)).await.expect("applied");
    assert!(applied.managed_fields().iter().any(|entry| entry.manager.as_deref() == Some("e2e")));

    for name in ["b", "c", "d"] {
        maps.create(&PostParams::default(), &map(name)).await.expect("created");
    }
    let mut names = Vec::new();
    let mut params = ListParams::default().labels("by=kube").limit(3);
    loop {
        let page = maps.list(&params).await.expect("a page");
        names.extend(page.items.iter().map(kube::ResourceExt::name_any));
        let Some(token) = page.metadata.continue_.filter(|token| !token.is_empty()) else { break };
        params = params.continue_token(&token);
    }
    assert_eq!(names, ["a", "b", "c", "d"]);

    let kind = GroupVersionKind::gvk("", "v1", "ConfigMap");
    let (resource, _) = kube::discovery::pinned_kind(&client, &kind).await.expect("discovered");
    let dynamic: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
    assert_eq!(dynamic.get("b").await.expect("there").labels()["by"], "kube");
    maps.delete_collection(&DeleteParams::default(), &ListParams::default().labels("by=kube")).await.expect("deleted");
    assert!(maps.get_opt("a").await.expect("an answer").is_none());

    let pods: Api<Pod> = Api::default_namespaced(client);
    let refused = pods.create(&PostParams::default(), &Pod::default()).await.expect_err("it has no containers");
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 422), "invalid");
}

/// Reflects while objects come, change and go; both ways to begin.
#[tokio::test(flavor = "multi_thread")]
async fn reflectors() {
    let server = Server::start("kube-watch");
    let client = client(&server).await;
    for (idx, config) in
        [watcher::Config::default(), watcher::Config::default().streaming_lists()].into_iter().enumerate()
    {
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let selected = config.labels("by=kube");
        let (first, second) = (format!("first-{idx}"), format!("second-{idx}"));
        maps.create(&PostParams::default(), &map(&first)).await.expect("created");
        let (store, writer) = reflector::store();
        let mut events = Box::pin(reflector(writer, watcher(maps.clone(), selected)).touched_objects());
        let told = events.next().await.expect("an event").expect("no failure");
        assert_eq!(told.name_any(), first);
        maps.create(&PostParams::default(), &map(&second)).await.expect("created");
        let told = events.next().await.expect("an event").expect("no failure");
        assert_eq!(told.name_any(), second);
        store.wait_until_ready().await.expect("ready");
        for name in [&first, &second] {
            maps.delete(name, &DeleteParams::default()).await.expect("deleted");
            let told = events.next().await.expect("an event").expect("no failure");
            assert_eq!(&told.name_any(), name);
        }
        assert!(store.state().is_empty());
    }
}
