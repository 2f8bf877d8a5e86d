//! What a cache costs: memory per object, CPU until synced, CPU per later event, against a live server.
//!
//! ```text
//! cache_cost seed N        makes N pods of about 5.6 KB in namespace `cache-cost`
//! cache_cost run N M       caches them, then lets another process change M of them, and prints the costs
//! cache_cost touch M       changes M of them
//! ```
#![expect(clippy::print_stdout, reason = "it prints what it measures")]

use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use pintle_client::{Api, Client, Object as _, Patch};
use pintle_informer::{CancellationToken, ListWatch, ResourceEventHandlerFuncs, SharedInformer};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const NAMESPACE: &str = "cache-cost";
const REQUESTS_AT_ONCE: usize = 32;

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |idx: usize| args.get(idx).and_then(|text| text.parse().ok()).unwrap_or(1000);
    let client = Client::try_default()?;
    match args.first().map(String::as_str) {
        Some("seed") => seed(&client, number(1)).await,
        Some("touch") => touch(&client, number(1)).await,
        Some("run") => run(&client, number(2)).await,
        _ => Err("seed N | run N M | touch M".into()),
    }
}

async fn seed(client: &Client, n_pods: usize) -> Outcome {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(NAMESPACE.to_owned());
    if let Err(error) = Api::<Namespace>::all(client).create(&namespace).await
        && !error.is_already_exists()
    {
        return Err(error.into());
    }
    let pods = Api::<Pod>::namespaced(client, NAMESPACE);
    let mut creating = stream::iter(0..n_pods)
        .map(|n| {
            let pods = pods.clone();
            async move { pods.create(&pod(n)).await }
        })
        .buffer_unordered(REQUESTS_AT_ONCE);
    while let Some(made) = creating.next().await {
        if let Err(error) = made
            && !error.is_already_exists()
        {
            return Err(error.into());
        }
    }
    let bytes = serde_json::to_vec(&pods.get(&name(0)).await?)?.len();
    println!("{n_pods} pods of {bytes} bytes");
    Ok(())
}

fn name(n: usize) -> String {
    format!("web-6d5f9c7b8-{n:05}")
}

/// A pod as a real deployment has it.
fn pod(n: usize) -> Pod {
    let env: Vec<_> =
        (0..4).map(|i| json!({"name": format!("SETTING_{i}"), "value": format!("value-of-setting-{i}")})).collect();
    let container = |name: &str| {
        json!({
            "name": name, "image": format!("registry.example.org/team/{name}:v1.24.7"), "env": env,
            "ports": [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9090}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}},
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10},
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 5},
        })
    };
    let pod = json!({
        "metadata": {
            "name": name(n), "namespace": NAMESPACE,
            "labels": {"app": "web", "tier": "front", "pod-template-hash": "6d5f9c7b8", "shard": format!("{}", n % 100)},
            "annotations": {"example.org/config-hash": "8d969eef6ecad3c29a3a629280e686cf0c3f5d5a86aff3ca12020c923adc6c92"},
        },
        "spec": {
            "automountServiceAccountToken": false,
            "nodeName": format!("node-{}", n % 50),
            "containers": [container("web"), container("sidecar")],
        },
    });
    serde_json::from_value(pod).unwrap_or_default()
}

async fn touch(client: &Client, n_pods: usize) -> Outcome {
    let pods = Api::<Pod>::namespaced(client, NAMESPACE);
    let patching = stream::iter(0..n_pods).map(|n| {
        let pods = pods.clone();
        let patch = Patch::Merge(
            json!({"metadata": {"annotations": {"example.org/touched": format!("{}", std::process::id())}}}),
        );
        async move { pods.patch(&name(n), &patch).await.map(|_| ()) }
    });
    let results: Vec<_> = patching.buffer_unordered(REQUESTS_AT_ONCE).collect().await;
    results.into_iter().collect::<Result<(), _>>()?;
    Ok(())
}

async fn run(client: &Client, n_events: usize) -> Outcome {
    let (memory_before, cpu_before) = (memory("VmRSS"), cpu_seconds());
    let informer = SharedInformer::new(ListWatch::new(Api::<Pod>::namespaced(client, NAMESPACE)));
    let (n_adds, n_updates) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let count = |counter: &Arc<AtomicUsize>| {
        let counter = Arc::clone(counter);
        move || {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    };
    let (added, updated) = (count(&n_adds), count(&n_updates));
    let handler = ResourceEventHandlerFuncs::new().on_add(move |_| added()).on_update(move |_, _| updated());
    let registration = informer.add_event_handler(handler);
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let (informer, stop) = (informer.clone(), stop.clone());
        async move { informer.run(stop).await }
    });
    registration.synced().await;
    let (cpu_synced, memory_synced, memory_peak) = (cpu_seconds(), memory("VmRSS"), memory("VmHWM"));
    let n_pods = informer.lister().len();
    let n_bytes: usize = informer.lister().list().iter().map(|pod| pod.raw().len()).sum();
    let per_pod = |bytes: usize| bytes as f64 / n_pods.max(1) as f64 / 1000.0;
    println!("pods                     {n_pods}, {:.2} KB of JSON each", per_pod(n_bytes));
    println!("memory per pod           {:.2} KB", per_pod(memory_synced.saturating_sub(memory_before)));
    println!("memory per pod, peak     {:.2} KB", per_pod(memory_peak.saturating_sub(memory_before)));
    println!("CPU until synced         {:.3} s", cpu_synced - cpu_before);

    let cpu_before = cpu_seconds();
    let mut toucher =
        std::process::Command::new(std::env::current_exe()?).args(["touch", &n_events.to_string()]).spawn()?;
    while n_updates.load(Ordering::Relaxed) < n_events {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    toucher.wait()?;
    println!("CPU per later event      {:.0} us", (cpu_seconds() - cpu_before) / n_events as f64 * 1e6);
    let first = informer.lister().list().into_iter().next().ok_or("no pod")?;
    println!("one decoded              {}", first.object()?.name());
    stop.cancel();
    running.await?;
    Ok(())
}

/// A line of `/proc/self/status`, in bytes.
fn memory(field: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<usize>().ok()).unwrap_or_default() * 1024
}

/// CPU time of this process so far.
fn cpu_seconds() -> f64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |idx: usize| fields.get(idx).and_then(|text| text.parse::<f64>().ok()).unwrap_or_default();
    (ticks(11) + ticks(12)) / TICKS_PER_SECOND
}
