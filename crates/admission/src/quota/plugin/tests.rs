use super::*;
use crate::plugins::testing::Script;
use expect_test::expect;
use pintle_apimachinery::{Status, json};
use pintle_auth::StaticLookup;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Writes into a lookup; the first writes fail as if the quota had changed meanwhile.
#[derive(Debug)]
struct Writer {
    lookup: Arc<dyn Lookup>,
    shown: Arc<StaticLookup>,
    n_failures: AtomicUsize,
}

#[async_trait]
impl QuotaWriter for Writer {
    async fn update_status(&self, quota: &Value) -> Result<Value> {
        if self.n_failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok() {
            return Err(Box::new(Status::stale(
                &pintle_apimachinery::GroupResource::new("", "resourcequotas"),
                quota.name(),
            )));
        }
        let current = self.lookup.get("", "resourcequotas", "ns", quota.name()).await.unwrap();
        let mut quota = quota.clone();
        quota["metadata"].set("resourceVersion", (version(&current) + 1).to_string());
        self.shown.put("", "resourcequotas", quota.clone());
        Ok(quota)
    }
}

struct World {
    script: Script,
    shown: Arc<StaticLookup>,
}

fn world(quotas: &[Value], n_failures: usize) -> World {
    let shown = Arc::new(StaticLookup::default());
    for quota in quotas {
        shown.put("", "resourcequotas", quota.clone());
    }
    let writer = Writer { lookup: shown.clone(), shown: shown.clone(), n_failures: AtomicUsize::new(n_failures) };
    let plugin = ResourceQuota::new(shown.clone(), Arc::new(writer), Env::seeded(1));
    World { script: Script::new(|_| Arc::new(plugin)), shown }
}

fn quota(name: &str, spec: Value, hard: Value, used: Value) -> Value {
    json!({"metadata": {"namespace": "ns", "name": name, "resourceVersion": "1"}, "spec": spec, "status": {"hard": hard, "used": used}})
}

fn pod(name: &str, requests: Value, limits: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "resources": {"requests": requests, "limits": limits}}]}})
}

impl World {
    async fn used(&self, name: &str) -> String {
        self.shown.get("", "resourcequotas", "ns", name).await.unwrap()["status"]["used"].to_json_string()
    }
}

#[tokio::test]
async fn pods_are_counted() {
    let world = world(&[quota("q", json!({}), json!({"pods": "2"}), json!({"pods": "1"}))], 2);
    let bare = |name: &str| pod(name, json!({}), json!({}));
    world.script.create("pods ns", bare("a")).await.ok();
    assert_eq!(world.used("q").await, r#"{"pods":"2"}"#);
    world.script.create("pods ns", bare("b")).await.refused(expect![[
        r#"403 pods "b" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"#
    ]]);
    world.script.create("pods other", bare("b")).await.ok();
    world.script.create("configmaps ns", bare("b")).await.ok();
}

#[tokio::test]
async fn amounts_are_added_up_and_must_be_given() {
    let hard = json!({"requests.cpu": "1", "limits.memory": "2Gi"});
    let world = world(&[quota("q", json!({}), hard, json!({"requests.cpu": "0", "limits.memory": "0"}))], 0);
    world.script.create("pods ns", pod("a", json!({}), json!({}))).await.refused(expect![[
        r#"403 pods "a" is forbidden: failed quota: q: must specify limits.memory for: c; requests.cpu for: c"#
    ]]);
    let half = || pod("a", json!({"cpu": "500m", "memory": "1Gi"}), json!({"memory": "1Gi"}));
    world.script.create("pods ns", half()).await.ok();
    assert_eq!(world.used("q").await, r#"{"limits.memory":"1Gi","requests.cpu":"500m"}"#);
    world.script.create("pods ns", pod("b", json!({"cpu": "1"}), json!({"memory": "2Gi"}))).await.refused(expect![[r#"403 pods "b" is forbidden: exceeded quota: q, requested: limits.memory=2Gi,requests.cpu=1, used: limits.memory=1Gi,requests.cpu=500m, limited: limits.memory=2Gi,requests.cpu=1"#]]);
    world.script.create("pods ns", half()).await.ok();
    assert_eq!(world.used("q").await, r#"{"limits.memory":"2Gi","requests.cpu":"1"}"#);
}

#[tokio::test]
async fn updates_are_charged_with_what_they_add() {
    let world = world(
        &[quota(
            "q",
            json!({}),
            json!({"services.nodeports": "1", "services": "5"}),
            json!({"services.nodeports": "0", "services": "1"}),
        )],
        0,
    );
    let service = |kind: &str| json!({"metadata": {"name": "s", "resourceVersion": "5"}, "spec": {"type": kind, "ports": [{"port": 80}]}});
    world.script.update("services ns", service("ClusterIP"), service("NodePort")).await.ok();
    assert_eq!(world.used("q").await, r#"{"services":"1","services.nodeports":"1"}"#);
    world.script.update("services ns", service("ClusterIP"), service("NodePort")).await.refused(expect![[r#"403 services "s" is forbidden: exceeded quota: q, requested: services.nodeports=1, used: services.nodeports=1, limited: services.nodeports=1"#]]);
    world.script.update("services ns", service("NodePort"), service("ClusterIP")).await.ok();
}

#[tokio::test]
async fn quotas_that_are_not_counted_yet() {
    let world = world(
        &[quota("q", json!({}), json!({"pods": "2"}), json!({})), quota("r", json!({}), json!({}), json!({}))],
        0,
    );
    world
        .script
        .create("pods ns", pod("a", json!({}), json!({})))
        .await
        .refused(expect![[r#"403 pods "a" is forbidden: status unknown for quota: q, resources: pods"#]]);
}

#[tokio::test]
async fn a_quota_that_keeps_changing_is_a_conflict() {
    let world = world(&[quota("q", json!({}), json!({"pods": "2"}), json!({"pods": "0"}))], QUOTA_TRIES_MAX);
    world.script.create("pods ns", pod("a", json!({}), json!({}))).await.refused(expect![[r#"409 Operation cannot be fulfilled on resourcequotas "q": the object has been modified; please apply your changes to the latest version and try again"#]]);
}
