//! `/openapi/v2` and `/openapi/v3`: made when they are asked for, told apart by hashes that need no document.

use crate::handle::Incoming;
use crate::reply::{self, Reply};
use http::{HeaderValue, Method, header};
use pintle_apimachinery::value::parse;
use pintle_apimachinery::{GroupResource, Status, Value};
use pintle_openapi::{CustomResource, V2_PROTOBUF, V2_PROTOBUF_ASKED, V3_PROTOBUF, V3_PROTOBUF_ASKED, v2, v3};
use pintle_storage::{At, ListRequest};

/// How long a document whose URL names its hash may be kept, in seconds: a year.
const HASHED_MAX_AGE: &str = "public, max-age=31536000, immutable";

/// The encodings of a document.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Json,
    Protobuf,
}

/// Answers a path under `/openapi`.
pub(crate) async fn serve(incoming: &Incoming<'_>) -> Reply {
    if !matches!(incoming.parts.method, Method::GET | Method::HEAD) {
        return reply::status(&Status::method_not_allowed(), incoming.accept());
    }
    let path = incoming.info.path.as_str();
    let definitions = definitions(incoming).await;
    let paths: Vec<Vec<&str>> = definitions.iter().flat_map(selectable_fields).collect();
    let custom = custom_resources(&definitions, &paths);
    match path {
        "/openapi/v2" => v2_reply(incoming, &custom),
        "/openapi/v3" | "/openapi/v3/" => reply::bytes(200, "text/plain; charset=utf-8", v3::index(&custom)),
        _ => match path.strip_prefix("/openapi/v3/") {
            Some(name) => v3_reply(incoming, name.trim_end_matches('/'), &custom),
            None => reply::page_not_found(),
        },
    }
}

fn v2_reply(incoming: &Incoming<'_>, custom: &[CustomResource<'_>]) -> Reply {
    let Some(encoding) = encoding(incoming.accept(), &[V2_PROTOBUF, V2_PROTOBUF_ASKED]) else {
        return not_acceptable();
    };
    let tag = v2::etag(custom);
    if is_known(incoming, &tag) {
        return not_modified(&tag);
    }
    let document = v2::document(custom);
    let (content_type, body) = match encoding {
        Encoding::Json => ("application/json", document.to_json()),
        Encoding::Protobuf => (V2_PROTOBUF, pintle_openapi::v2_protobuf(&document)),
    };
    tagged(reply::bytes(200, content_type, body), &tag)
}

fn v3_reply(incoming: &Incoming<'_>, name: &str, custom: &[CustomResource<'_>]) -> Reply {
    let Some(entry) = v3::entries(custom).into_iter().find(|entry| entry.path == name) else {
        return reply::empty(404);
    };
    let Some(encoding) = encoding(incoming.accept(), &[V3_PROTOBUF, V3_PROTOBUF_ASKED]) else {
        return not_acceptable();
    };
    let asked = crate::options::Params::of(incoming.query).get("hash").map(str::to_owned);
    if let Some(asked) = &asked
        && *asked != entry.hash
    {
        let mut reply = reply::empty(301);
        if let Ok(location) = HeaderValue::from_str(&format!("/openapi/v3/{name}?hash={}", entry.hash)) {
            reply.headers_mut().insert(header::LOCATION, location);
        }
        return reply;
    }
    if is_known(incoming, &entry.hash) {
        return not_modified(&entry.hash);
    }
    let Some(json) = v3::document(name, custom) else { return reply::empty(404) };
    let (content_type, body) = match encoding {
        Encoding::Json => ("application/json", json),
        Encoding::Protobuf => {
            let document = parse(&json).unwrap_or_default();
            (V3_PROTOBUF, pintle_openapi::v3_protobuf(&document))
        }
    };
    let mut reply = tagged(reply::bytes(200, content_type, body), &entry.hash);
    if asked.is_some() {
        reply.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(HASHED_MAX_AGE));
    }
    reply
}

/// The definitions of custom resources that are established.
async fn definitions(incoming: &Incoming<'_>) -> Vec<Value> {
    let resource = GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions");
    let Some(resource) = incoming.state.catalog.served().of_group_resource(&resource).cloned() else {
        return Vec::new();
    };
    let request = ListRequest { prefix: resource.store.root.clone(), start: None, limit: 0, at: At::Any };
    // a document without custom resources is better than none while the store is away
    let Ok(listing) = resource.store.storage.list(request).await else { return Vec::new() };
    let objects = listing.records.iter().filter_map(|record| parse(resource.store.head(record).bytes()).ok());
    objects.filter(|object| pintle_apiextensions::conditions::is_condition_true(object, "Established")).collect()
}

/// The selectable fields of each served version, in the order of [`custom_resources`].
fn selectable_fields(definition: &Value) -> Vec<Vec<&str>> {
    let versions = definition["spec"]["versions"].items().iter().filter(|v| v["served"].is_true());
    versions.map(|v| v["selectableFields"].items().iter().map(|f| f["jsonPath"].str_or_empty()).collect()).collect()
}

fn custom_resources<'d>(definitions: &'d [Value], fields: &'d [Vec<&'d str>]) -> Vec<CustomResource<'d>> {
    let served = definitions.iter().flat_map(|definition| {
        let versions = definition["spec"]["versions"].items().iter().filter(|v| v["served"].is_true());
        versions.map(move |version| (definition, version))
    });
    let custom = served.zip(fields).map(|((definition, version), fields)| {
        let (spec, names) = (&definition["spec"], definition.at("status.acceptedNames"));
        CustomResource {
            group: spec["group"].str_or_empty(),
            version: version["name"].str_or_empty(),
            kind: names["kind"].str_or_empty(),
            list_kind: names["listKind"].str_or_empty(),
            plural: names["plural"].str_or_empty(),
            is_namespaced: spec["scope"].as_str() == Some("Namespaced"),
            has_status: !version.at("subresources.status").is_null(),
            has_scale: !version.at("subresources.scale").is_null(),
            preserves_unknown_fields: spec["preserveUnknownFields"].is_true(),
            schema: version.at("schema.openAPIV3Schema"),
            selectable_fields: fields,
        }
    });
    custom.collect()
}

/// The encoding that an `Accept` header asks for; `None` when it takes none that there is.
fn encoding(accept: &str, protobuf: &[&str]) -> Option<Encoding> {
    if accept.trim().is_empty() {
        return Some(Encoding::Json);
    }
    accept.split(',').map(|range| range.split(';').next().unwrap_or_default().trim()).find_map(|range| match range {
        "application/json" | "application/*" | "*/*" => Some(Encoding::Json),
        range if protobuf.contains(&range) => Some(Encoding::Protobuf),
        _ => None,
    })
}

fn not_acceptable() -> Reply {
    reply::empty(406)
}

fn is_known(incoming: &Incoming<'_>, tag: &str) -> bool {
    let known = incoming.parts.headers.get(header::IF_NONE_MATCH).and_then(|v| v.to_str().ok()).unwrap_or_default();
    known.split(',').any(|known| known.trim().trim_matches('"') == tag)
}

fn not_modified(tag: &str) -> Reply {
    tagged(reply::empty(304), tag)
}

fn tagged(mut reply: Reply, tag: &str) -> Reply {
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{tag}\"")) {
        reply.headers_mut().insert(header::ETAG, tag);
    }
    reply.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings() {
        let protobuf = [V2_PROTOBUF, V2_PROTOBUF_ASKED];
        assert!(encoding("", &protobuf) == Some(Encoding::Json));
        assert!(encoding("text/html", &protobuf).is_none());
        assert!(encoding(V2_PROTOBUF_ASKED, &protobuf) == Some(Encoding::Protobuf));
        assert!(encoding("application/json;q=0.8, */*", &protobuf) == Some(Encoding::Json));
    }
}
