//! Prints a document: `document v2`, `document v2.pb`, `document index`, `document PATH`, `document PATH.pb`. With
//! `--custom FILE` the custom resource definitions in that file (a JSON list) are published, too.

use pintle_apimachinery::{Value, value};
use pintle_openapi::{CustomResource, v2, v2_protobuf, v3, v3_protobuf};
use std::io::Write as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let crds = match args.iter().position(|a| a == "--custom") {
        Some(at) => value::parse(&std::fs::read(&args[at + 1])?)?,
        None => Value::array(),
    };
    let fields: Vec<(&Value, &Value, Vec<&str>)> = crds
        .items()
        .iter()
        .flat_map(|crd| crd.at("spec.versions").items().iter().map(move |version| (crd, version)))
        .map(|(crd, version)| {
            let fields = version["selectableFields"].items().iter().map(|f| f["jsonPath"].str_or_empty());
            (crd, version, fields.collect())
        })
        .collect();
    let custom: Vec<CustomResource<'_>> = fields
        .iter()
        .map(|(crd, version, selectable_fields)| CustomResource {
            group: crd.at("spec.group").str_or_empty(),
            version: version["name"].str_or_empty(),
            kind: crd.at("spec.names.kind").str_or_empty(),
            list_kind: crd.at("spec.names.listKind").str_or_empty(),
            plural: crd.at("spec.names.plural").str_or_empty(),
            is_namespaced: crd.at("spec.scope").as_str() == Some("Namespaced"),
            has_status: version.at("subresources").has("status"),
            has_scale: version.at("subresources").has("scale"),
            preserves_unknown_fields: crd.at("spec.preserveUnknownFields").is_true(),
            schema: version.at("schema.openAPIV3Schema"),
            selectable_fields,
        })
        .collect();
    let bytes = match args.first().map(String::as_str) {
        Some("v2") => v2::document(&custom).to_json(),
        Some("v2.pb") => v2_protobuf(&v2::document(&custom)),
        Some("index") => v3::index(&custom),
        Some(path) => match path.strip_suffix(".pb") {
            Some(path) => v3_protobuf(&value::parse(&v3::document(path, &custom).ok_or("no such document")?)?),
            None => v3::document(path, &custom).ok_or("no such document")?,
        },
        None => return Err("which document?".into()),
    };
    std::io::stdout().write_all(&bytes)?;
    Ok(())
}
