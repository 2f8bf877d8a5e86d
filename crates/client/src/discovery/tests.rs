use super::*;
use crate::config::Config;
use crate::transport::{Body, Transport};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request as HttpRequest, Response};
use parking_lot::Mutex;
use pintle_apimachinery::GroupKind;
use std::sync::Arc;

/// Serves documents by path and remembers what was asked.
#[derive(Debug)]
struct Documents {
    is_aggregated: bool,
    asked: Mutex<Vec<String>>,
}

const AGGREGATED: &str = r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[
  {"metadata":{"name":"apps"},"versions":[
    {"version":"v1","freshness":"Current","resources":[
      {"resource":"deployments","responseKind":{"group":"apps","version":"v1","kind":"Deployment"},"scope":"Namespaced",
       "singularResource":"deployment","verbs":["get","list"],"shortNames":["deploy"],"categories":["all"],
       "subresources":[{"subresource":"scale","verbs":["get"]},{"subresource":"status","verbs":["get"]}]}]},
    {"version":"v1beta1","freshness":"Stale","resources":[
      {"resource":"deployments","responseKind":{"kind":"Deployment"},"scope":"Namespaced","singularResource":"deployment","verbs":["get"]},
      {"resource":"olds","responseKind":{"kind":"Old"},"scope":"Cluster","singularResource":"old","verbs":["get"]}]}]},
  {"metadata":{"name":"metrics.k8s.io"},"versions":[{"version":"v1beta1","resources":[
      {"resource":"pods","responseKind":{"kind":"PodMetrics"},"scope":"Namespaced","singularResource":"","verbs":["get"]}]}]}]}"#;

const CORE: &str = r#"{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":""},"versions":[{"version":"v1","resources":[
  {"resource":"pods","responseKind":{"kind":"Pod"},"scope":"Namespaced","singularResource":"pod","verbs":["get"],"shortNames":["po"],"categories":["all"]}]}]}]}"#;

impl Documents {
    fn answer(&self, path: &str) -> Option<&'static str> {
        self.asked.lock().push(path.to_owned());
        Some(match (self.is_aggregated, path) {
            (true, "/apis") => AGGREGATED,
            (true, "/api") => CORE,
            (false, "/api") => r#"{"kind":"APIVersions","versions":["v1"]}"#,
            (false, "/apis") => {
                r#"{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}]},
                    {"name":"broken.example.org","versions":[{"groupVersion":"broken.example.org/v1","version":"v1"}]}]}"#
            }
            (false, "/api/v1") => {
                r#"{"kind":"APIResourceList","resources":[
                    {"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get"],"shortNames":["po"]},
                    {"name":"pods/log","singularName":"","namespaced":true,"kind":"Pod","verbs":["get"]}]}"#
            }
            (false, "/apis/apps/v1") => {
                r#"{"kind":"APIResourceList","resources":[
                    {"name":"deployments","singularName":"deployment","namespaced":true,"kind":"Deployment","verbs":["get"]}]}"#
            }
            _ => return None,
        })
    }
}

impl Transport for Documents {
    fn send(&self, request: HttpRequest<Bytes>) -> BoxFuture<'_, Result<Response<Body>>> {
        let answer = self.answer(request.uri().path());
        Box::pin(async move {
            let mut response = Response::new(Body::from_bytes(answer.unwrap_or("404 page not found")));
            if answer.is_none() {
                *response.status_mut() = http::StatusCode::NOT_FOUND;
            }
            Ok(response)
        })
    }
}

fn client(is_aggregated: bool) -> (Client, Arc<Documents>) {
    let documents = Arc::new(Documents { is_aggregated, asked: Mutex::default() });
    let transport: Arc<dyn Transport> = Arc::<Documents>::clone(&documents);
    (Client::with_transport(Config::new("http://h").unwrap(), transport).unwrap(), documents)
}

#[tokio::test(start_paused = true)]
async fn names_that_people_use() {
    let (client, documents) = client(true);
    let mapper = RestMapper::new(&client);
    let mut lines = String::new();
    for text in [
        "pods",
        "po",
        "Pod",
        "deploy",
        "deployments.apps",
        "deployments.v1beta1.apps",
        "deployment.ap",
        "pods.metrics.k8s.io",
        "olds",
        "nothing",
    ] {
        let found = mapper.resource_for(text).await;
        let shown = found.map_or_else(
            |error| error.to_string(),
            |found| format!("{} {:?}", found.resource.gvr(), found.subresources),
        );
        lines += &format!("{text}: {shown}\n");
    }
    expect_test::expect![[r#"
        pods: /v1, Resource=pods []
        po: /v1, Resource=pods []
        Pod: /v1, Resource=pods []
        deploy: apps/v1, Resource=deployments ["scale", "status"]
        deployments.apps: apps/v1, Resource=deployments ["scale", "status"]
        deployments.v1beta1.apps: apps/v1beta1, Resource=deployments []
        deployment.ap: apps/v1, Resource=deployments ["scale", "status"]
        pods.metrics.k8s.io: metrics.k8s.io/v1beta1, Resource=pods []
        olds: apps/v1beta1, Resource=olds []
        nothing: the server doesn't have a resource type "nothing"
    "#]]
    .assert_eq(&lines);
    assert_eq!(mapper.category("all").await.unwrap().len(), 2);
    assert_eq!(documents.asked.lock().len(), 2, "asked once for /api and /apis");
    tokio::time::advance(RELOADED).await;
    assert!(mapper.resource_for("nothing").await.is_err());
    assert_eq!(documents.asked.lock().len(), 4, "asked again for what is not known");
}

const RELOADED: std::time::Duration = std::time::Duration::from_secs(11);

#[tokio::test(start_paused = true)]
async fn kinds() {
    let (client, _) = client(true);
    let mapper = RestMapper::new(&client);
    let deployment = GroupKind::new("apps", "Deployment");
    assert_eq!(mapper.rest_mapping(&deployment, &[]).await.unwrap().version, "v1");
    assert_eq!(mapper.rest_mapping(&deployment, &["v2", "v1beta1"]).await.unwrap().version, "v1beta1");
    let error = mapper.rest_mapping(&GroupKind::new("apps", "Nothing"), &[]).await.unwrap_err();
    assert_eq!(error.to_string(), r#"no matches for kind "Nothing" in group "apps""#);
    let discovery = mapper.discovery().await.unwrap();
    assert!(discovery.version(&GroupVersion::new("apps", "v1beta1")).unwrap().is_stale);
}

#[tokio::test]
async fn a_server_without_the_aggregated_documents() {
    let (client, _) = client(false);
    let discovery = Discovery::run(&client).await.unwrap();
    let shown: Vec<String> =
        discovery.resources().map(|r| format!("{} {:?}", r.resource.gvr(), r.subresources)).collect();
    assert_eq!(shown, [r#"/v1, Resource=pods ["log"]"#, "apps/v1, Resource=deployments []"]);
    assert!(discovery.version(&GroupVersion::new("broken.example.org", "v1")).unwrap().is_stale);
}
