use super::*;
use crate::record::{EventType, Recorder, reference};
use k8s_openapi::api::core::v1::Pod;
use pintle_client::fake::{FakeServer, Reaction};
use std::sync::atomic::{AtomicUsize, Ordering};

fn pod() -> Pod {
    let mut pod = Pod::default();
    pod.metadata.name = Some("web-0".to_owned());
    pod.metadata.namespace = Some("prod".to_owned());
    pod
}

async fn settle() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

#[tokio::test(start_paused = true)]
async fn repeated_events_are_counted_at_the_server() {
    let server = FakeServer::new();
    let broadcaster = EventBroadcaster::new(Env::seeded(1));
    let recorder = broadcaster.recorder("test-controller").on_host("host-1");
    broadcaster.start_recording_to_sink(&server.client(), CancellationToken::new());
    for _ in 0..3 {
        recorder.record(&pod(), EventType::Warning, "BackOff", "Back-off restarting failed container");
    }
    settle().await;
    assert_eq!(server.take_writes().len(), 3);
    let events = Api::<Event>::namespaced(&server.client(), "prod").list().await.unwrap();
    let event = &events.items[0];
    assert_eq!((events.items.len(), event.count, event.type_.as_deref()), (1, Some(3), Some("Warning")));
    assert_eq!(event.reporting_component.as_deref(), Some("test-controller"));
    assert_eq!(event.involved_object.kind.as_deref(), Some("Pod"));

    // gone there, it is made again
    Api::<Event>::namespaced(&server.client(), "prod").delete_collection().await.unwrap();
    recorder.event(&reference(&pod()), EventType::Warning, "BackOff", "Back-off restarting failed container");
    settle().await;
    let events = Api::<Event>::namespaced(&server.client(), "prod").list().await.unwrap();
    assert_eq!(events.items[0].count, Some(4));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_reached_is_tried_again() {
    let server = FakeServer::new();
    let n_tried = Arc::new(AtomicUsize::new(0));
    let tried = Arc::clone(&n_tried);
    server.react("create", "events", move |_| {
        if tried.fetch_add(1, Ordering::Relaxed) < 3 { Reaction::Disconnect } else { Reaction::Pass }
    });
    let broadcaster = EventBroadcaster::new(Env::seeded(1));
    broadcaster.start_recording_to_sink(&server.client(), CancellationToken::new());
    broadcaster.recorder("c").record(&pod(), EventType::Normal, "Started", "it runs");
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(n_tried.load(Ordering::Relaxed), 4);
    assert_eq!(Api::<Event>::all(&server.client()).list().await.unwrap().items.len(), 1);

    server.react("create", "events", |_| Reaction::fail(403, "Forbidden", "no"));
    broadcaster.recorder("c").record(&pod(), EventType::Normal, "Stopped", "refused events are not tried again");
    settle().await;
    broadcaster.shutdown().await;
    broadcaster.recorder("c").record(&pod(), EventType::Normal, "Late", "nobody listens");
    assert_eq!(server.take_writes().iter().filter(|line| line.starts_with("create events")).count(), 5);
}
