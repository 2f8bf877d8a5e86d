//! The paths that are about no resource: versions, groups, their resources, the server itself.

use crate::builtin::{group_versions, prefix};
use crate::names::{capital, group_tag, group_word, meta};
use crate::operation::{Content, OBJECT_TYPES, Operation, Route};

fn route(path: &str, id: String, tag: String, about: &str, content: Content) -> Route {
    let operation = Operation {
        method: "get",
        id,
        tag,
        about: about.to_owned(),
        action: "",
        gvk: None,
        params: Vec::new(),
        body: None,
        consumes: OBJECT_TYPES,
        produces: OBJECT_TYPES,
        responses: vec![(200, content)],
    };
    Route { path: path.to_owned(), operations: vec![operation] }
}

/// The path that lists the resources of a group and version.
pub(crate) fn resources_of(group: &str, version: &str) -> Route {
    route(
        &format!("{}/", prefix(group, version)),
        format!("get{}{}APIResources", group_word(group), capital(version)),
        format!("{}_{version}", group_tag(group)),
        "get available resources",
        Content::of(meta("APIResourceList")),
    )
}

/// The route with other media types than objects have.
fn with_types(mut route: Route, consumes: &'static [&'static str], produces: &'static [&'static str]) -> Route {
    for operation in &mut route.operations {
        operation.consumes = consumes;
        operation.produces = produces;
    }
    route
}

/// The paths besides those of groups with versions, each with its document's name in the index of v3.
pub(crate) fn routes() -> Vec<(String, Route)> {
    let mut groups: Vec<&str> =
        group_versions().into_iter().map(|(group, _)| group).filter(|g| !g.is_empty()).collect();
    groups.dedup();
    let mut out = vec![
        (
            "api".to_owned(),
            route(
                "/api/",
                "getCoreAPIVersions".to_owned(),
                "core".to_owned(),
                "get available API versions",
                Content::of(meta("APIVersions")),
            ),
        ),
        (
            "apis".to_owned(),
            route(
                "/apis/",
                "getAPIVersions".to_owned(),
                "apis".to_owned(),
                "get available API versions",
                Content::of(meta("APIGroupList")),
            ),
        ),
        (
            "version".to_owned(),
            with_types(
                route(
                    "/version/",
                    "getCodeVersion".to_owned(),
                    "version".to_owned(),
                    "get the version information for this server",
                    Content::of("io.k8s.apimachinery.pkg.version.Info"),
                ),
                &["application/json"],
                &["application/json"],
            ),
        ),
        (
            ".well-known/openid-configuration".to_owned(),
            with_types(
                route(
                    "/.well-known/openid-configuration/",
                    "getServiceAccountIssuerOpenIDConfiguration".to_owned(),
                    "WellKnown".to_owned(),
                    "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'",
                    Content::Text,
                ),
                &[],
                &["application/json"],
            ),
        ),
        (
            "openid/v1/jwks".to_owned(),
            with_types(
                route(
                    "/openid/v1/jwks/",
                    "getServiceAccountIssuerOpenIDKeyset".to_owned(),
                    "openid".to_owned(),
                    "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)",
                    Content::Text,
                ),
                &[],
                &["application/jwk-set+json"],
            ),
        ),
    ];
    out.extend(groups.into_iter().map(|group| {
        let id = format!("get{}APIGroup", group_word(group));
        let content = Content::of(meta("APIGroup"));
        let name = format!("apis/{group}");
        let path = format!("/apis/{group}/");
        (name, route(&path, id, group_tag(group), "get information of a group", content))
    }));
    out
}
