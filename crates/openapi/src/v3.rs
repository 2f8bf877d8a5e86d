//! OpenAPI v3: an index, and one document for each group and version.

use crate::custom::{CustomResource, Form};
use crate::definitions::{Definitions, packed};
use crate::operation::Route;
use crate::{builtin, hash, meta};
use pintle_apimachinery::value::write_json_string;
use pintle_apimachinery::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A document of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Such as `apis/apps/v1`: what stands behind `/openapi/v3/`.
    pub path: String,
    /// Changes with the document. It is the document's ETag, too.
    pub hash: String,
}

/// The documents that there are, sorted by path.
pub fn entries(custom: &[CustomResource<'_>]) -> Vec<Entry> {
    let meta_paths = meta::routes().into_iter().map(|(name, _)| name);
    let builtin_paths = builtin::group_versions().into_iter().map(|(group, version)| path_of(group, version));
    let custom_paths = custom.iter().map(|c| path_of(c.group, c.version));
    let paths: BTreeSet<String> = meta_paths.chain(builtin_paths).chain(custom_paths).collect();
    paths.into_iter().map(|path| Entry { hash: hash_of(&path, custom), path }).collect()
}

/// The hash of the document at `path`: of what it is made from, so that nobody needs to make it.
fn hash_of(path: &str, custom: &[CustomResource<'_>]) -> String {
    let own = custom.iter().filter(|c| path_of(c.group, c.version) == path);
    let own: Vec<[u8; 16]> = own.map(|c| c.hash().to_le_bytes()).collect();
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    let parts: Vec<&[u8]> =
        [version, path.as_bytes(), packed()].into_iter().chain(own.iter().map(<[u8; 16]>::as_slice)).collect();
    hash::text(hash::of(&parts))
}

fn path_of(group: &str, version: &str) -> String {
    builtin::prefix(group, version).trim_start_matches('/').to_owned()
}

/// The document at `/openapi/v3`.
pub fn index(custom: &[CustomResource<'_>]) -> Vec<u8> {
    let paths = entries(custom).into_iter().map(|entry| {
        let url = format!("/openapi/v3/{}?hash={}", entry.path, entry.hash);
        (entry.path, json!({"serverRelativeURL": url}))
    });
    json!({"paths": (Value::Object(paths.collect()))}).to_json()
}

/// The document at `/openapi/v3/PATH` as JSON; `None` when there is none.
pub fn document(path: &str, custom: &[CustomResource<'_>]) -> Option<Vec<u8>> {
    let own: Vec<&CustomResource<'_>> = custom.iter().filter(|c| path_of(c.group, c.version) == path).collect();
    let mut routes: Vec<Route> =
        meta::routes().into_iter().filter(|(name, _)| name == path).map(|(_, route)| route).collect();
    if let Some((group, version)) = builtin::group_versions().into_iter().find(|(g, v)| path_of(g, v) == path) {
        routes.push(meta::resources_of(group, version));
        routes.extend(builtin::routes(group, version));
    }
    let is_custom = routes.is_empty();
    routes.extend(own.iter().flat_map(|c| c.routes()));
    if routes.is_empty() {
        return None;
    }
    let schemas: BTreeMap<String, Value> = own.iter().flat_map(|c| c.schemas(Form::V3)).collect();
    Some(write(&routes, &schemas, is_custom))
}

/// Writes a document: the definitions of built-in types go into it as they are packed.
fn write(routes: &[Route], schemas: &BTreeMap<String, Value>, is_custom: bool) -> Vec<u8> {
    let mut roots: BTreeSet<String> = routes.iter().flat_map(Route::definitions).map(str::to_owned).collect();
    if !schemas.is_empty() {
        roots.extend(["ObjectMeta", "ListMeta"].map(crate::names::meta));
    }
    let definitions = Definitions::unpack();
    let needed = definitions.needed(roots);
    let own: BTreeMap<&str, Vec<u8>> = schemas.iter().map(|(name, schema)| (name.as_str(), schema.to_json())).collect();
    let builtin = needed.iter().map(|d| (d.name, d.json.as_bytes()));
    let all: BTreeMap<&str, &[u8]> = builtin.chain(own.iter().map(|(name, json)| (*name, json.as_slice()))).collect();

    let mut out = Vec::with_capacity(all.values().map(|json| json.len() + 80).sum::<usize>() * 2);
    out.extend_from_slice(b"{\"components\":{");
    if !all.is_empty() {
        out.extend_from_slice(b"\"schemas\":{");
        for (idx, (name, json)) in all.into_iter().enumerate() {
            if idx > 0 {
                out.push(b',');
            }
            write_json_string(&mut out, name);
            out.push(b':');
            out.extend_from_slice(json);
        }
        out.extend_from_slice(if is_custom { b"}" } else { b"}," });
    }
    if !is_custom {
        out.extend_from_slice(b"\"securitySchemes\":");
        let scheme = json!({"type": "apiKey", "description": "Bearer Token authentication", "name": "authorization", "in": "header"});
        out.extend_from_slice(&json!({"BearerToken": scheme}).to_json());
    }
    let info = match is_custom {
        true => json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}),
        false => crate::info(),
    };
    out.extend_from_slice(b"},\"info\":");
    out.extend_from_slice(&info.to_json());
    out.extend_from_slice(b",\"openapi\":\"3.0.0\",\"paths\":");
    let paths: Value = Value::Object(routes.iter().map(|route| (route.path.as_str(), route.v3())).collect());
    out.extend_from_slice(&paths.to_json());
    out.push(b'}');
    out
}
