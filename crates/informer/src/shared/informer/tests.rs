//! The promises of the informer one by one; all of them at once under chaos are in `testing::simulation`.

use super::*;
use crate::handler::{FilteringResourceEventHandler, ResourceEventHandlerFuncs};
use crate::shared::SharedInformerFactory;
use crate::testing::{FakeControllerSource, HistoryHandler};
use crate::{ListWatch, ObjectName, transform};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use pintle_client::fake::FakeServer;
use pintle_client::{Api, ApiResource};

fn map(name: &str, label: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map.metadata.namespace = Some("ns".to_owned());
    map.metadata.uid = Some(format!("uid-{name}"));
    map.metadata.labels = Some([("app".to_owned(), label.to_owned())].into());
    map
}

fn start(informer: &SharedInformer<ConfigMap>) -> CancellationToken {
    let stop = CancellationToken::new();
    let (informer, token) = (informer.clone(), stop.clone());
    tokio::spawn(async move { informer.run(token).await });
    stop
}

/// Lets everything that can happen now happen.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

#[tokio::test(start_paused = true)]
async fn handlers_early_and_late() {
    let source = FakeControllerSource::new();
    source.add(map("a", "x"));
    let informer = SharedInformer::new(source.clone());
    let (early, early_heard) = HistoryHandler::new();
    let early = informer.add_event_handler(early);
    assert!(!informer.has_synced() && !early.has_synced());
    let stop = start(&informer);
    informer.synced().await;
    early.synced().await;
    source.modify(map("a", "y"));
    source.add(map("b", "x"));
    settle().await;
    let (late, late_heard) = HistoryHandler::new();
    let late = informer.add_event_handler(late);
    late.synced().await;
    source.delete(&ObjectName::new("ns", "a"));
    settle().await;
    expect_test::expect![[r#"
        add ns/a@1 (initial)
        update ns/a@2 from 1
        add ns/b@3
        delete ns/a@4"#]]
    .assert_eq(&early_heard.lines().join("\n"));
    expect_test::expect![[r#"
        add ns/a@2 (initial)
        add ns/b@3 (initial)
        delete ns/a@4"#]]
    .assert_eq(&late_heard.lines().join("\n"));

    informer.remove_event_handler(&late);
    informer.remove_event_handler(&late);
    source.add(map("c", "x"));
    settle().await;
    assert_eq!(late_heard.lines().len(), 3, "it hears nothing more");
    assert_eq!(early_heard.lines().len(), 5);
    assert_eq!(informer.last_sync_resource_version(), "5");
    stop.cancel();
    settle().await;
    assert!(informer.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn resyncs_are_for_those_who_want_them() {
    let source = FakeControllerSource::new();
    source.add(map("a", "x"));
    let informer = SharedInformer::new(source.clone());
    let mut heard = Vec::new();
    for period in [None, Some(Duration::from_secs(10)), Some(Duration::from_secs(25))] {
        let (handler, history) = HistoryHandler::new();
        informer.add_event_handler_with_resync_period(handler, period);
        heard.push(history);
    }
    let _stop = start(&informer);
    tokio::time::sleep(Duration::from_secs(61)).await;
    let n_updates: Vec<usize> = heard.iter().map(|history| history.lines().len() - 1).collect();
    assert_eq!(n_updates, [0, 6, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_missed_deletion_is_told_with_the_last_state_known() {
    let source = FakeControllerSource::new();
    source.add(map("a", "x"));
    source.add(map("b", "x"));
    let informer = SharedInformer::new(source.clone());
    let (handler, heard) = HistoryHandler::new();
    informer.add_event_handler(handler);
    let _stop = start(&informer);
    informer.synced().await;
    source.delete_drop_watch(&ObjectName::new("ns", "a"));
    let mut again = map("b", "y");
    again.metadata.uid = Some("another".to_owned());
    source.delete_drop_watch(&ObjectName::new("ns", "b"));
    source.modify_drop_watch(again);
    source.compact();
    source.reset_watch();
    tokio::time::sleep(Duration::from_secs(5)).await;
    expect_test::expect![[r#"
        add ns/a@1 (initial)
        add ns/b@2 (initial)
        delete ns/a@1 (final state unknown)
        update ns/b@5 from 2"#]]
    .assert_eq(&heard.lines().join("\n"));
    assert_eq!(heard.violations(), []);
}

#[tokio::test(start_paused = true)]
async fn a_slow_or_panicking_handler_is_its_own_problem() {
    let source = FakeControllerSource::new();
    let informer = SharedInformer::new(source.clone());
    informer.add_event_handler(ResourceEventHandlerFuncs::new().on_add(|map: &Cached<ConfigMap>| {
        assert_ne!(map.name(), "b", "this handler panics");
    }));
    let (handler, heard) = HistoryHandler::new();
    informer.add_event_handler(handler);
    let _stop = start(&informer);
    informer.synced().await;
    for name in ["a", "b", "c"] {
        source.add(map(name, "x"));
    }
    settle().await;
    assert_eq!(heard.lines().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn filters_turn_changes_into_comings_and_goings() {
    let source = FakeControllerSource::new();
    let informer = SharedInformer::new(source.clone());
    let (handler, heard) = HistoryHandler::new();
    let filter = |map: &Cached<ConfigMap>| map.label("app").as_deref() == Some("web");
    informer.add_event_handler(FilteringResourceEventHandler { filter, handler });
    let _stop = start(&informer);
    informer.synced().await;
    for label in ["db", "web", "web", "db", "web"] {
        source.modify(map("a", label));
    }
    source.delete(&ObjectName::new("ns", "a"));
    settle().await;
    expect_test::expect![[r#"
        add ns/a@2
        update ns/a@3 from 2
        delete ns/a@3
        add ns/a@5
        delete ns/a@6"#]]
    .assert_eq(&heard.lines().join("\n"));
}

#[tokio::test(start_paused = true)]
async fn one_informer_for_each_kind_selected_and_transformed() {
    let server = FakeServer::new();
    server.add(&map("a", "web"));
    server.add(&map("b", "db"));
    let factory = SharedInformerFactory::new(&server.client());
    let maps = factory.informer::<ConfigMap>();
    maps.add_index("app", |map| map.label("app").map(Str::from).into_iter().collect());
    let nodes = factory.informer::<Node>();
    let dynamic = factory.dynamic(&ApiResource::of::<ConfigMap>());
    let stop = CancellationToken::new();
    factory.start(&stop);
    factory.start(&stop);
    factory.wait_for_cache_sync().await;
    assert_eq!(factory.informer::<ConfigMap>().lister().len(), 2, "the same one");
    assert!(nodes.lister().is_empty());
    assert_eq!(maps.lister().by_index("app", "db").unwrap()[0].name(), "b");
    assert_eq!(dynamic.lister().namespace("ns").get("a").unwrap().object().unwrap().kind, "ConfigMap");
    assert_eq!(
        format!("{factory:?}"),
        r#"["/v1, Resource=configmaps", "/v1, Resource=configmaps", "/v1, Resource=nodes"]"#
    );
    stop.cancel();
    factory.shutdown().await;

    let api = Api::<ConfigMap>::namespaced(&server.client(), "ns");
    let list_watch =
        ListWatch::new(api.clone()).labels("app=web").transform(transform::typed(|map: &mut ConfigMap| {
            map.data = Some([("seen".to_owned(), "yes".to_owned())].into());
        }));
    let informer = SharedInformer::new(list_watch);
    let _stop = start(&informer);
    informer.synced().await;
    let cached = informer.lister().list();
    assert_eq!(cached.len(), 1);
    assert_eq!(cached[0].object().unwrap().data.as_ref().unwrap()["seen"], "yes");
    api.create(&map("c", "web")).await.unwrap();
    settle().await;
    assert_eq!(informer.lister().namespace("ns").get("c").unwrap().text_at(&["data", "seen"]).as_deref(), Some("yes"));
}

#[tokio::test(start_paused = true)]
async fn managed_fields_are_cut_out() {
    let mut with_fields = map("a", "x");
    with_fields.metadata.managed_fields = Some(vec![Default::default()]);
    let server = FakeServer::new();
    server.add(&with_fields);
    let api = Api::<ConfigMap>::all(&server.client());
    let informer = SharedInformer::new(ListWatch::new(api).transform(transform::without_managed_fields()));
    let _stop = start(&informer);
    informer.synced().await;
    let cached = &informer.lister().list()[0];
    let object = cached.object().unwrap();
    assert_eq!(object.metadata.managed_fields, None);
    assert_eq!(object.metadata.labels, with_fields.metadata.labels);
}
