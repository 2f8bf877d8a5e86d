//! Metrics, under the names that kube-apiserver uses.

use crate::reply::{self, Reply};
use crate::request_info::RequestInfo;
use http::Method;
use parking_lot::Mutex;
use pintle_apimachinery::Str;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::time::Instant;

/// Upper bounds of the buckets of request durations, in seconds.
const BUCKETS: [f64; 14] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 5.0, 15.0, 60.0];

/// Different series of requests that are counted; further ones are counted together. Clients choose paths, so their
/// number must have a bound.
const SERIES_MAX: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Labels {
    verb: &'static str,
    group: Str,
    version: Str,
    resource: Str,
    subresource: Str,
    scope: &'static str,
}

#[derive(Debug, Default)]
struct Series {
    by_code: BTreeMap<u16, u64>,
    buckets: [u64; BUCKETS.len()],
    n: u64,
    seconds: f64,
}

/// What was counted.
#[derive(Debug, Default)]
pub struct Metrics {
    requests: Mutex<BTreeMap<Labels, Series>>,
    inflight: Arc<Inflight>,
    /// More lines, asked for when metrics are read.
    more: Mutex<Vec<Source>>,
}

#[derive(Debug, Default)]
struct Inflight {
    reading: AtomicI64,
    mutating: AtomicI64,
}

/// Writes further metrics in text form.
#[derive(Clone)]
struct Source(Arc<dyn Fn(&mut String) + Send + Sync>);

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Source")
    }
}

/// A request that is being measured.
#[derive(Debug)]
pub struct Measured<'m> {
    metrics: &'m Metrics,
    labels: Labels,
    begun: Instant,
    is_mutating: bool,
}

impl Metrics {
    /// Adds a source of further metrics, in Prometheus' text form.
    pub fn add_source(&self, write: impl Fn(&mut String) + Send + Sync + 'static) {
        self.more.lock().push(Source(Arc::new(write)));
    }

    /// A request begins.
    pub fn begin(&self, info: &RequestInfo, method: &Method) -> Measured<'_> {
        let is_mutating = !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        self.count(is_mutating).fetch_add(1, Ordering::Relaxed);
        Measured { metrics: self, labels: labels_of(info, method), begun: Instant::now(), is_mutating }
    }

    fn count(&self, is_mutating: bool) -> &AtomicI64 {
        if is_mutating { &self.inflight.mutating } else { &self.inflight.reading }
    }

    /// All metrics.
    pub fn reply(&self) -> Reply {
        let mut out = String::with_capacity(64 * 1024);
        self.write_requests(&mut out);
        let sources = self.more.lock().clone();
        for source in sources {
            (source.0)(&mut out);
        }
        reply::bytes(200, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores", out)
    }

    fn write_requests(&self, out: &mut String) {
        let requests = self.requests.lock();
        head(out, "apiserver_request_total", "counter", "Requests, by verb, resource and answer.");
        for (labels, series) in requests.iter() {
            for (code, n) in &series.by_code {
                line(
                    out,
                    "apiserver_request_total",
                    &format!("code=\"{code}\",component=\"apiserver\",dry_run=\"\",{}", labels.text()),
                    n,
                );
            }
        }
        head(out, "apiserver_request_duration_seconds", "histogram", "How long requests took, by verb and resource.");
        for (labels, series) in requests.iter() {
            let text = format!("component=\"apiserver\",dry_run=\"\",{}", labels.text());
            let mut n_below = 0;
            for (bound, n) in BUCKETS.iter().zip(series.buckets) {
                n_below += n;
                line(out, "apiserver_request_duration_seconds_bucket", &format!("{text},le=\"{bound}\""), &n_below);
            }
            line(out, "apiserver_request_duration_seconds_bucket", &format!("{text},le=\"+Inf\""), &series.n);
            line(out, "apiserver_request_duration_seconds_sum", &text, &series.seconds);
            line(out, "apiserver_request_duration_seconds_count", &text, &series.n);
        }
        head(out, "apiserver_current_inflight_requests", "gauge", "Requests being worked on.");
        for (kind, is_mutating) in [("readOnly", false), ("mutating", true)] {
            let n = self.count(is_mutating).load(Ordering::Relaxed);
            line(out, "apiserver_current_inflight_requests", &format!("request_kind=\"{kind}\""), &n);
        }
    }
}

/// Writes the head of a metric.
pub fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("writing to a String cannot fail");
}

/// Writes a line of a metric. `labels` may be empty.
pub fn line(out: &mut String, name: &str, labels: &str, value: &dyn std::fmt::Display) {
    if labels.is_empty() {
        writeln!(out, "{name} {value}").expect("writing to a String cannot fail");
    } else {
        writeln!(out, "{name}{{{labels}}} {value}").expect("writing to a String cannot fail");
    }
}

impl Labels {
    fn text(&self) -> String {
        format!(
            "group=\"{}\",resource=\"{}\",scope=\"{}\",subresource=\"{}\",verb=\"{}\",version=\"{}\"",
            self.group, self.resource, self.scope, self.subresource, self.verb, self.version
        )
    }
}

fn labels_of(info: &RequestInfo, method: &Method) -> Labels {
    let verb = match info.verb {
        "list" => "LIST",
        "watch" => "WATCH",
        "deletecollection" => "DELETECOLLECTION",
        "patch" if info.is_resource => "PATCH",
        _ => match *method {
            Method::GET | Method::HEAD => "GET",
            Method::POST => "POST",
            Method::PUT => "PUT",
            Method::PATCH => "PATCH",
            Method::DELETE => "DELETE",
            _ => "OTHER",
        },
    };
    if !info.is_resource {
        // only the first parts of a path count: the rest is the client's to invent
        let head: Vec<&str> = info.path.trim_matches('/').split('/').take(1).collect();
        return Labels {
            verb,
            group: Str::default(),
            version: Str::default(),
            resource: Str::default(),
            subresource: Str::from(format!("/{}", head.join("/"))),
            scope: "",
        };
    }
    let scope = if !info.name.is_empty() || verb == "POST" {
        "resource"
    } else if !info.namespace.is_empty() {
        "namespace"
    } else {
        "cluster"
    };
    Labels {
        verb,
        group: Str::new(&info.group),
        version: Str::new(&info.version),
        resource: Str::new(&info.resource),
        subresource: Str::new(&info.subresource),
        scope,
    }
}

impl Measured<'_> {
    /// The request is answered.
    pub fn end(self, code: u16) {
        self.metrics.count(self.is_mutating).fetch_sub(1, Ordering::Relaxed);
        let seconds = self.begun.elapsed().as_secs_f64();
        let mut requests = self.metrics.requests.lock();
        let is_known = requests.contains_key(&self.labels);
        let labels = if is_known || requests.len() < SERIES_MAX {
            self.labels
        } else {
            Labels {
                verb: self.labels.verb,
                group: Str::default(),
                version: Str::default(),
                resource: Str::const_new("other"),
                subresource: Str::default(),
                scope: "",
            }
        };
        let series = requests.entry(labels).or_default();
        *series.by_code.entry(code).or_default() += 1;
        series.n += 1;
        series.seconds += seconds;
        if let Some(idx) = BUCKETS.iter().position(|bound| seconds <= *bound) {
            series.buckets[idx] += 1;
        }
    }
}
