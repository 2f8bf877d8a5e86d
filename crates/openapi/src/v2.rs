//! OpenAPI v2: one document for everything.

use crate::custom::{CustomResource, Form};
use crate::definitions::{Definitions, packed};
use crate::operation::{Route, SharedParams, V2_PREFIX, V3_PREFIX};
use crate::{builtin, hash, meta};
use pintle_apimachinery::{Value, json, value};

/// The hash of the document: its ETag.
pub fn etag(custom: &[CustomResource<'_>]) -> String {
    let own: Vec<[u8; 16]> = custom.iter().map(|c| c.hash().to_le_bytes()).collect();
    let parts: Vec<&[u8]> = [env!("CARGO_PKG_VERSION").as_bytes(), packed()]
        .into_iter()
        .chain(own.iter().map(<[u8; 16]>::as_slice))
        .collect();
    hash::text(hash::of(&parts))
}

/// The document.
pub fn document(custom: &[CustomResource<'_>]) -> Value {
    let mut routes: Vec<Route> = meta::routes().into_iter().map(|(_, route)| route).collect();
    for (group, version) in builtin::group_versions() {
        routes.push(meta::resources_of(group, version));
        routes.extend(builtin::routes(group, version));
    }
    routes.extend(custom.iter().flat_map(CustomResource::routes));
    let mut params = SharedParams::default();
    let paths = Value::Object(routes.iter().map(|route| (route.path.clone(), route.v2(&mut params))).collect());

    let unpacked = Definitions::unpack();
    let builtin =
        unpacked.iter().map(|d| (d.name.to_owned(), to_v2(value::parse(d.json.as_bytes()).unwrap_or_default())));
    let definitions = builtin.chain(custom.iter().flat_map(|c| c.schemas(Form::V2)));
    json!({
        "swagger": "2.0",
        "info": (crate::info()),
        "paths": paths,
        "definitions": (Value::Object(definitions.collect())),
        "parameters": (params.finish()),
        "securityDefinitions": {
            "BearerToken": {"type": "apiKey", "description": "Bearer Token authentication", "name": "authorization", "in": "header"},
        },
        "security": [{"BearerToken": []}],
    })
}

/// A built-in definition in the words of v2: references stand beside other members, defaults are not told, and what
/// has several types has one.
fn to_v2(schema: Value) -> Value {
    match schema {
        Value::Object(members) => {
            let mut out = Value::object();
            for (key, member) in members {
                match (key.as_str(), member) {
                    ("default", _) => {}
                    ("$ref", target) => out.set("$ref", target.str_or_empty().replace(V3_PREFIX, V2_PREFIX)),
                    ("allOf", all) => {
                        let target = all.items().first().map_or("", |first| first["$ref"].str_or_empty());
                        out.set("$ref", target.replace(V3_PREFIX, V2_PREFIX));
                    }
                    // amounts, and numbers that may be texts
                    ("oneOf", _) => out.set("type", "string"),
                    ("properties", Value::Object(properties)) => {
                        let properties = properties.into_iter().map(|(name, property)| (name, to_v2(property)));
                        out.set("properties", Value::Object(properties.collect()));
                    }
                    ("items" | "additionalProperties", child) => out.set(&key, to_v2(child)),
                    (_, member) => out.set(&key, member),
                }
            }
            out
        }
        other => other,
    }
}
