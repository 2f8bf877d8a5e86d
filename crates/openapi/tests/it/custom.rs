//! The custom resources of the fixtures.

use pintle_apimachinery::{Value, value};
use pintle_openapi::CustomResource;

/// A definition whose schema has every construct, one without a schema to speak of, and one of cluster scope.
const DEFINITIONS: &str = include_str!("../fixtures/definitions.json");

/// Calls `with` with the versions of the definitions.
pub(crate) fn with_custom<T>(with: impl FnOnce(&[CustomResource<'_>]) -> T) -> T {
    let definitions = value::parse(DEFINITIONS.as_bytes()).unwrap();
    let versions: Vec<(&Value, &Value, Vec<&str>)> = definitions
        .items()
        .iter()
        .flat_map(|definition| definition.at("spec.versions").items().iter().map(move |version| (definition, version)))
        .map(|(definition, version)| {
            let fields = version["selectableFields"].items().iter().map(|f| f["jsonPath"].str_or_empty());
            (definition, version, fields.collect())
        })
        .collect();
    let custom: Vec<CustomResource<'_>> = versions
        .iter()
        .map(|(definition, version, selectable_fields)| {
            let text = |path: &str| definition.at(path).str_or_empty();
            CustomResource {
                group: text("spec.group"),
                version: version["name"].str_or_empty(),
                kind: text("spec.names.kind"),
                list_kind: text("spec.names.listKind"),
                plural: text("spec.names.plural"),
                is_namespaced: text("spec.scope") == "Namespaced",
                has_status: version["subresources"].has("status"),
                has_scale: version["subresources"].has("scale"),
                preserves_unknown_fields: false,
                schema: version.at("schema.openAPIV3Schema"),
                selectable_fields,
            }
        })
        .collect();
    with(&custom)
}
