use super::*;
use crate::api::{Api, Bind, Patch};
use crate::options::ListOptions;
use crate::watch::{Event, Watch as _};
use futures_util::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

fn pod(name: &str, app: &str) -> Pod {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"app": app}}, "spec": {"containers": []}}))
        .unwrap()
}

fn line(event: &Event<Pod>) -> String {
    let object = event.object().map(|pod| format!("{} at {}", pod.name(), pod.resource_version()));
    format!("{} {}", event.type_name(), object.unwrap_or_default())
}

#[tokio::test]
async fn the_life_of_an_object() {
    let server = FakeServer::new();
    let pods = Api::<Pod>::namespaced(&server.client(), "ns");
    let made = pods.create(&pod("a", "web")).await.unwrap();
    assert!(pods.create(&pod("a", "web")).await.unwrap_err().is_already_exists());
    assert!(pods.get("b").await.unwrap_err().is_not_found());

    let mut changed = made.clone();
    changed.metadata.finalizers = Some(vec!["example.org/hold".to_owned()]);
    let changed = pods.update(&changed).await.unwrap();
    assert!(pods.update(&made).await.unwrap_err().is_conflict());
    assert_eq!(changed.metadata.generation, Some(1), "the spec is the same");

    let mut with_status = changed.clone();
    with_status.status = Some(serde_json::from_value(json!({"phase": "Running"})).unwrap());
    with_status.spec = None;
    let with_status = pods.update_status(&with_status).await.unwrap();
    assert!(with_status.spec.is_some(), "a status update leaves the spec");

    pods.bind("a", Bind { node: "n1".to_owned(), ..Bind::default() }).await.unwrap();
    assert!(pods.bind("a", Bind::default()).await.unwrap_err().is_conflict());
    let on_node = pods.list().fields("spec.nodeName=n1,status.phase=Running").await.unwrap();
    assert_eq!(on_node.items.len(), 1);

    assert!(pods.delete("a").uid("another").await.unwrap_err().is_conflict());
    let waiting = pods.delete("a").await.unwrap().object().unwrap();
    assert!(waiting.is_terminating());
    pods.patch("a", &Patch::Merge(json!({"metadata": {"finalizers": null}}))).await.unwrap();
    assert!(pods.get("a").await.unwrap_err().is_not_found());
    expect_test::expect![[r#"
        create pods ns/
        create pods ns/
        update pods ns/a
        update pods ns/a
        update pods/status ns/a
        create pods/binding ns/a
        create pods/binding ns/a
        delete pods ns/a
        delete pods ns/a
        patch pods ns/a"#]]
    .assert_eq(&server.take_writes().join("\n"));
}

#[tokio::test]
async fn watches_select_resume_and_expire() {
    let server = FakeServer::new();
    let pods = Api::<Pod>::namespaced(&server.client(), "ns");
    pods.create(&pod("a", "web")).await.unwrap();
    let mut watch = pods.watch().labels("app=web").initial_events().await.unwrap();
    pods.create(&pod("b", "db")).await.unwrap();
    pods.patch("b", &Patch::Merge(json!({"metadata": {"labels": {"app": "web"}}}))).await.unwrap();
    pods.patch("b", &Patch::Merge(json!({"metadata": {"labels": {"app": "db"}}}))).await.unwrap();
    pods.delete("a").await.unwrap();
    let mut lines = Vec::new();
    for _ in 0..5 {
        lines.push(line(&watch.next().await.unwrap()));
    }
    expect_test::expect![[r#"
        ADDED a at 2
        BOOKMARK 
        ADDED b at 4
        DELETED b at 5
        DELETED a at 6"#]]
    .assert_eq(&lines.join("\n"));

    server.disconnect_watches();
    assert!(watch.next().await.is_none());
    let mut resumed = pods.watch().resource_version("4").await.unwrap();
    assert_eq!(line(&resumed.next().await.unwrap()), "MODIFIED b at 5");
    resumed.stop();
    assert!(resumed.next().await.is_none());
    server.compact();
    assert!(pods.watch().resource_version("4").await.unwrap_err().is_expired());
    assert!(pods.watch().resource_version("6").await.is_ok());
}

#[tokio::test]
async fn pages_scale_and_collections() {
    let server = FakeServer::new();
    let client = server.client();
    let pods = Api::<Pod>::all(&client);
    for name in ["a", "b", "c", "d", "e"] {
        server.add(&Pod { metadata: Object::meta(&pod(name, "x")).clone(), ..Pod::default() });
    }
    let all = pods.list_all(Default::default(), 2).await.unwrap();
    assert_eq!(all.iter().map(|pod| pod.name()).collect::<String>(), "abcde");
    assert_eq!(server.actions().len(), 3);
    pods.delete_collection().labels("app=x").await.unwrap();
    assert!(pods.list().await.unwrap().items.is_empty());

    let deployments = Api::<Deployment>::namespaced(&client, "ns");
    let deployment: Deployment = serde_json::from_value(
        json!({"metadata": {"name": "d"}, "spec": {"replicas": 2, "selector": {}, "template": {}}}),
    )
    .unwrap();
    deployments.create(&deployment).await.unwrap();
    let mut scale = deployments.get_scale("d").await.unwrap();
    assert_eq!(scale.spec.as_ref().unwrap().replicas, Some(2));
    scale.spec.as_mut().unwrap().replicas = Some(5);
    deployments.update_scale(&scale).await.unwrap();
    let scaled = deployments.get("d").await.unwrap();
    assert_eq!((scaled.spec.unwrap().replicas, scaled.metadata.generation), (Some(5), Some(2)));
}

#[tokio::test]
async fn reactors_answer_first() {
    let server = FakeServer::new();
    let pods = Api::<Pod>::namespaced(&server.client(), "ns");
    server.react("*", "pods", |action| match action.name.as_str() {
        "lost" => Reaction::Disconnect,
        _ => Reaction::Pass,
    });
    server.react("create", "*", |_| Reaction::fail(403, "Forbidden", "no"));
    assert!(pods.create(&pod("a", "x")).await.unwrap_err().is_forbidden());
    assert!(matches!(pods.delete("lost").await, Err(Error::Connection { .. })));
    server.clear_reactors();
    assert!(pods.create(&pod("a", "x")).await.is_ok());
}

#[tokio::test]
async fn pages_are_one_moment_or_everything_is_asked_for_again() {
    let server = FakeServer::new();
    let pods = Api::<Pod>::namespaced(&server.client(), "ns");
    for name in ["a", "b", "c", "d", "e"] {
        pods.create(&pod(name, "web")).await.unwrap();
    }
    let options = ListOptions { label_selector: "app=web".to_owned(), ..ListOptions::default() };
    let mut names = Vec::new();
    let changed = server.clone();
    let collect = |page: crate::ObjectList<Pod>| {
        names.push(page.iter().map(|pod| pod.name().to_owned()).collect::<Vec<_>>().join(" "));
        Ok(())
    };
    pods.each_page(&options, 2, collect).await.unwrap();
    assert_eq!(names, ["a b", "c d", "e"]);

    // everything is forgotten before the second page of each
    let n_lists = std::sync::atomic::AtomicUsize::new(0);
    server.react("list", "pods", move |_| {
        if n_lists.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 2 == 1 {
            changed.compact();
        }
        Reaction::Pass
    });
    let refused = pods.each_page(&options, 2, |_| Ok(())).await.unwrap_err();
    assert!(refused.is_expired());
    let all = pods.list_in_pages(&options, 2).await.unwrap();
    assert_eq!((all.items.len(), all.continue_token()), (5, None));
}
