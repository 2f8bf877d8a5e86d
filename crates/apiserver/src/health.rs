//! `/healthz`, `/livez`, `/readyz`: all checks, single ones, and what to leave out.

use crate::options::Params;
use crate::reply::{self, Reply};
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// A check: its name, and what answers it.
pub struct Check {
    name: String,
    run: Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>,
    /// Which of the endpoints ask it.
    on: &'static [&'static str],
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Check({})", self.name)
    }
}

/// The checks of a server.
#[derive(Debug, Default)]
pub struct Health {
    checks: Vec<Check>,
}

const ALL: &[&str] = &["healthz", "livez", "readyz"];

/// Hooks that upstream runs after start and that monitoring asks for by name. They are done before this server listens.
const START_HOOKS: &[&str] = &[
    "start-apiserver-admission-initializer",
    "generic-apiserver-start-informers",
    "priority-and-fairness-config-consumer",
    "priority-and-fairness-filter",
    "storage-object-count-tracker-hook",
    "start-apiextensions-informers",
    "start-apiextensions-controllers",
    "crd-informer-synced",
    "start-system-namespaces-controller",
    "start-cluster-authentication-info-controller",
    "start-kube-apiserver-identity-lease-controller",
    "start-kube-apiserver-identity-lease-garbage-collector",
    "start-legacy-token-tracking-controller",
    "start-service-ip-repair-controllers",
    "rbac/bootstrap-roles",
    "scheduling/bootstrap-system-priority-classes",
    "priority-and-fairness-config-producer",
    "bootstrap-controller",
    "start-kubernetes-service-cidr-controller",
    "aggregator-reload-proxy-client-cert",
    "start-kube-aggregator-informers",
    "apiservice-status-local-available-controller",
    "apiservice-status-remote-available-controller",
    "apiservice-registration-controller",
    "apiservice-discovery-controller",
    "kube-apiserver-autoregistration",
    "autoregister-completion",
    "apiservice-openapi-controller",
    "apiservice-openapiv3-controller",
];

fn ready() -> BoxFuture<'static, Result<(), String>> {
    Box::pin(std::future::ready(Ok(())))
}

impl Health {
    /// The checks that every server has. `storage` asks the back end, `stopping` tells whether the server stops.
    pub fn new(
        storage: impl Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync + 'static,
        stopping: tokio::sync::watch::Receiver<bool>,
    ) -> Health {
        let storage: Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync> = Arc::new(storage);
        let mut checks = vec![
            Check { name: "ping".to_owned(), run: Arc::new(ready), on: ALL },
            Check { name: "log".to_owned(), run: Arc::new(ready), on: ALL },
            Check { name: "etcd".to_owned(), run: storage.clone(), on: ALL },
            Check { name: "etcd-readiness".to_owned(), run: storage, on: &["readyz"] },
            Check { name: "informer-sync".to_owned(), run: Arc::new(ready), on: &["readyz"] },
        ];
        for hook in START_HOOKS {
            checks.push(Check { name: format!("poststarthook/{hook}"), run: Arc::new(ready), on: ALL });
        }
        let shutdown = move || -> BoxFuture<'static, Result<(), String>> {
            let is_stopping = *stopping.borrow();
            Box::pin(std::future::ready(if is_stopping { Err("process is shutting down".to_owned()) } else { Ok(()) }))
        };
        checks.push(Check { name: "shutdown".to_owned(), run: Arc::new(shutdown), on: &["readyz"] });
        Health { checks }
    }

    /// Answers a path such as `/readyz` or `/livez/ping`.
    pub async fn reply(&self, path: &str, query: &str) -> Reply {
        let path = path.trim_matches('/');
        let (endpoint, single) = path.split_once('/').unwrap_or((path, ""));
        let asked = self.checks.iter().filter(|check| check.on.contains(&endpoint));
        if !single.is_empty() {
            let Some(check) = asked.into_iter().find(|check| check.name == single) else {
                return reply::page_not_found();
            };
            return match (check.run)().await {
                Ok(()) => reply::text(200, "ok"),
                Err(why) => reply::text(500, format!("internal server error: {why}\n")),
            };
        }
        let params = Params::of(query);
        let excluded: Vec<&str> = params.all("exclude").collect();
        let mut report = String::new();
        let mut failed = Vec::new();
        for check in asked {
            if excluded.contains(&check.name.as_str()) {
                report += &format!("[+]{} excluded: ok\n", check.name);
                continue;
            }
            match (check.run)().await {
                Ok(()) => report += &format!("[+]{} ok\n", check.name),
                Err(why) => {
                    tracing::warn!(check = check.name, %why, "health check failed");
                    report += &format!("[-]{} failed: reason withheld\n", check.name);
                    failed.push(check.name.as_str());
                }
            }
        }
        let unknown: Vec<&str> =
            excluded.iter().copied().filter(|name| !self.checks.iter().any(|check| check.name == *name)).collect();
        if !unknown.is_empty() {
            let quoted: Vec<String> = unknown.iter().map(|n| format!("{n:?}")).collect();
            report += &format!("warn: some health checks cannot be excluded: no matches for {}\n", quoted.join(", "));
        }
        if !failed.is_empty() {
            return reply::text(500, format!("{report}{endpoint} check failed\n"));
        }
        if params.get("verbose").is_none() {
            return reply::text(200, "ok");
        }
        reply::text(200, format!("{report}{endpoint} check passed\n"))
    }
}
