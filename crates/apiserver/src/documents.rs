//! Paths that name no object: discovery, version, health, metrics, OpenAPI, OpenID.

use crate::discovery;
use crate::handle::Incoming;
use crate::negotiate::{Allowed, Form, Output, output};
use crate::reply::{self, Reply};
use bytes::Bytes;
use http::{HeaderValue, Method, header};
use pintle_apimachinery::{Status, Value, json};
use pintle_registry::decode::Media;

/// The version of Kubernetes whose API this is.
pub const KUBERNETES_MINOR: &str = "35";
/// The version that clients see.
pub const GIT_VERSION: &str = "v1.35.4";

/// Answers a request that names no object.
pub async fn serve<B>(incoming: &Incoming<'_>, _body: B) -> Reply {
    let path = incoming.info.path.as_str();
    let served = incoming.state.catalog.served().clone();
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match parts[..] {
        ["healthz" | "livez" | "readyz", ..] => incoming.state.health.reply(path, incoming.query).await,
        ["version"] if incoming.parts.method == Method::GET => document(incoming, version()),
        ["version"] => reply::status(&Status::method_not_allowed(), incoming.accept()),
        ["metrics"] | ["metrics", "slis"] => incoming.state.metrics.reply(),
        ["api"] if !is_read(incoming) => reply::status(&Status::method_not_allowed(), incoming.accept()),
        ["api" | "apis"] => groups(incoming, &served, parts[0] == "api"),
        ["api", version] | ["apis", _, version] if !is_read(incoming) => {
            let group = if parts[0] == "api" { "" } else { parts[1] };
            match discovery::resource_list(&served, group, version) {
                Some(_) => reply::status(&Status::method_not_allowed(), incoming.accept()),
                None => not_found(incoming, &served, group),
            }
        }
        ["api", version] => match discovery::resource_list(&served, "", version) {
            Some(list) => document(incoming, list),
            None => not_found(incoming, &served, ""),
        },
        ["apis", group] => match discovery::group(&served, group) {
            Some(group) => document(incoming, group),
            None => reply::page_not_found(),
        },
        ["apis", group, version] => match discovery::resource_list(&served, group, version) {
            Some(list) => document(incoming, list),
            None => not_found(incoming, &served, group),
        },
        ["openapi", ..] => crate::openapi::serve(incoming).await,
        [".well-known", "openid-configuration"] | ["openid", "v1", "jwks"] => crate::openid::serve(incoming),
        [""] => document(incoming, root_paths(&served)),
        _ => reply::page_not_found(),
    }
}

fn is_read(incoming: &Incoming<'_>) -> bool {
    matches!(incoming.parts.method, Method::GET | Method::HEAD)
}

/// An unknown version of a known group is a Status; an unknown group is no path at all.
fn not_found(incoming: &Incoming<'_>, served: &pintle_registry::Served, group: &str) -> Reply {
    let is_known = discovery::groups(served).iter().any(|(g, _)| g == group);
    let is_builtin = pintle_schema::resources().iter().any(|r| r.group == group);
    if is_known && is_builtin {
        reply::status(&Status::not_found_path(), incoming.accept())
    } else {
        reply::page_not_found()
    }
}

/// A document in the encoding that the client accepts.
pub(crate) fn document(incoming: &Incoming<'_>, value: Value) -> Reply {
    let allowed = Allowed { protobuf: true, transforms: false, watch: false, watchable: false };
    match output(incoming.accept(), allowed) {
        Err(status) => reply::status(&status, "application/json"),
        Ok(output) => match crate::declared::encode(&value, &incoming.laid_out(output)) {
            Ok(body) => reply::bytes(200, output.content_type(), body),
            Err(_) => reply::bytes(200, "application/json", value.to_json()),
        },
    }
}

fn version() -> Value {
    json!({
        "major": "1", "minor": KUBERNETES_MINOR, "gitVersion": GIT_VERSION, "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, arch()),
        "emulationMajor": "1", "emulationMinor": KUBERNETES_MINOR,
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "34",
    })
}

/// The machine's architecture by Go's name, which clients compare with.
fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn root_paths(served: &pintle_registry::Served) -> Value {
    let mut paths = vec![
        "/.well-known/openid-configuration".to_owned(),
        "/api".to_owned(),
        "/api/v1".to_owned(),
        "/apis".to_owned(),
        "/apis/".to_owned(),
    ];
    let mut groups: Vec<String> = Vec::new();
    for (group, versions) in discovery::groups(served).iter().filter(|(g, _)| !g.is_empty()) {
        groups.push(format!("/apis/{group}"));
        groups.extend(versions.iter().map(|v| format!("/apis/{group}/{v}")));
    }
    groups.sort();
    paths.extend(groups);
    paths.extend(
        [
            "/healthz",
            "/healthz/etcd",
            "/healthz/ping",
            "/livez",
            "/livez/etcd",
            "/livez/ping",
            "/metrics",
            "/metrics/slis",
            "/openapi/v2",
            "/openapi/v3",
            "/openapi/v3/",
            "/openid/v1/jwks",
            "/readyz",
            "/readyz/etcd",
            "/readyz/informer-sync",
            "/readyz/ping",
            "/readyz/shutdown",
            "/version",
        ]
        .map(str::to_owned),
    );
    json!({ "paths": paths })
}

/// `/api` and `/apis`, aggregated where the client asks for it.
fn groups(incoming: &Incoming<'_>, served: &pintle_registry::Served, is_core: bool) -> Reply {
    let (output, is_aggregated) = match discovery_output(incoming.accept(), is_core) {
        Ok(chosen) => chosen,
        Err(status) => return reply::status(&status, "application/json"),
    };
    if !is_aggregated {
        let address = incoming.parts.uri.authority().map_or("", |a| a.as_str());
        let value = if is_core { discovery::core_versions(address) } else { discovery::group_list(served) };
        return match crate::declared::encode(&value, &output) {
            Ok(body) => reply::bytes(200, output.content_type(), body),
            Err(status) => reply::status(&status, "application/json"),
        };
    }
    let (content_type, number) = match output.media {
        Media::Protobuf => {
            ("application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", 0)
        }
        Media::Json | Media::Yaml => ("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", 1),
    };
    // a body and its tag for each encoding of either document
    let key = 4 * number + 2 * u32::from(is_core);
    let body = served.document(key, || {
        let value = discovery::aggregated(served, is_core);
        match output.media {
            Media::Protobuf => crate::declared::encode(&value, &output),
            Media::Json | Media::Yaml => Ok(Bytes::from(value.to_json())),
        }
    });
    let body = match body {
        Ok(body) => body,
        Err(status) => return reply::status(&status, "application/json"),
    };
    let tag =
        served.document(key + 1, || Ok::<_, std::convert::Infallible>(Bytes::from(format!("\"{}\"", etag(&body)))));
    let tag = tag.unwrap_or_default();
    let is_known = incoming.parts.headers.get(header::IF_NONE_MATCH).is_some_and(|v| v.as_bytes() == tag);
    let mut reply = if is_known {
        let mut reply = reply::bytes(304, content_type, Bytes::new());
        reply.headers_mut().remove(header::CONTENT_TYPE);
        reply
    } else {
        reply::bytes(200, content_type, body)
    };
    if let Ok(tag) = HeaderValue::from_bytes(&tag) {
        reply.headers_mut().insert(header::ETAG, tag);
    }
    reply.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    reply.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
    reply
}

/// The encoding of a discovery document, and whether it is to be aggregated.
fn discovery_output(accept: &str, is_core: bool) -> pintle_apimachinery::status::Result<(Output, bool)> {
    for part in accept.split(',').map(str::trim) {
        let mut pieces = part.split(';').map(str::trim);
        let media = match pieces.next() {
            Some("application/json") => Media::Json,
            Some("application/vnd.kubernetes.protobuf") => Media::Protobuf,
            _ => continue,
        };
        let params: Vec<&str> = pieces.collect();
        let has = |param: &str| params.contains(&param);
        if has("as=APIGroupDiscoveryList") && has("g=apidiscovery.k8s.io") && has("v=v2") {
            return Ok((Output { media, form: Form::Object, pretty: false }, true));
        }
    }
    let allowed = Allowed { protobuf: true, transforms: false, watch: false, watchable: false };
    match output(accept, allowed) {
        Ok(output) => Ok((output, false)),
        // the older path is routed as resources are
        Err(status) if is_core => Err(status),
        Err(_) => Err(Box::new(Status::not_acceptable(
            "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        ))),
    }
}

/// A document's tag: its SHA-256.
fn etag(body: &[u8]) -> String {
    ring::digest::digest(&ring::digest::SHA256, body).as_ref().iter().map(|b| format!("{b:02X}")).collect()
}
