//! From a request's method and path to what it is about.

use pintle_apimachinery::{GroupResource, Str};

/// What a request asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) verb: &'static str,
    pub(super) group: Str,
    pub(super) version: Str,
    pub(super) resource: Str,
    pub(super) subresource: Str,
    pub(super) namespace: Str,
    pub(super) name: Str,
    pub(super) query: Query,
}

impl Route {
    /// Reads a request; `None` when the path is not about a resource.
    pub(super) fn read(method: &http::Method, uri: &http::Uri) -> Option<Route> {
        let segments: Vec<Str> = uri.path().split('/').skip(1).map(decode).collect();
        let mut rest = segments.iter();
        let mut route = Route { query: Query::read(uri.query().unwrap_or_default()), ..Route::default() };
        match rest.next()?.as_str() {
            "api" => {}
            "apis" => route.group = rest.next()?.clone(),
            _ => return None,
        }
        route.version = rest.next()?.clone();
        let mut rest: Vec<Str> = rest.cloned().collect();
        // `namespaces/x/pods` is about pods; `namespaces/x` and `namespaces/x/status` about a namespace
        let is_namespaced = rest.len() >= 3
            && rest[0] == "namespaces"
            && !(route.group.is_empty() && matches!(rest[2].as_str(), "status" | "finalize"));
        if is_namespaced {
            route.namespace = rest[1].clone();
            rest.drain(..2);
        }
        let mut rest = rest.into_iter();
        route.resource = rest.next()?;
        route.name = rest.next().unwrap_or_default();
        route.subresource = rest.next().unwrap_or_default();
        route.verb = verb(method, &route)?;
        Some(route)
    }

    pub(super) fn group_resource(&self) -> GroupResource {
        GroupResource::new(&self.group, &self.resource)
    }
}

fn verb(method: &http::Method, route: &Route) -> Option<&'static str> {
    let is_named = !route.name.is_empty();
    Some(match method.as_str() {
        "GET" if route.query.is_true("watch") => "watch",
        "GET" if is_named => "get",
        "GET" => "list",
        "POST" => "create",
        "PUT" if is_named => "update",
        "PATCH" if is_named => "patch",
        "DELETE" if is_named => "delete",
        "DELETE" => "deletecollection",
        _ => return None,
    })
}

/// The parameters of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Query(Vec<(Str, Str)>);

impl Query {
    fn read(text: &str) -> Query {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        Query(
            pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(k, v)| (decode(k), decode(v))).collect(),
        )
    }

    /// The value of a parameter, or `""`.
    pub(super) fn get(&self, key: &str) -> &str {
        self.0.iter().find(|(k, _)| k == key).map_or("", |(_, value)| value)
    }

    pub(super) fn is_true(&self, key: &str) -> bool {
        matches!(self.get(key), "true" | "1")
    }
}

fn decode(text: &str) -> Str {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let hex = (byte == b'%').then(|| after.get(..2)).flatten();
        match hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()) {
            Some(decoded) => {
                bytes.push(decoded);
                rest = &after[2..];
            }
            None => bytes.push(byte),
        }
    }
    Str::from_utf8_lossy(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes() {
        let read = |method: &str, path: &str| {
            let route = Route::read(&method.parse().unwrap(), &path.parse().unwrap());
            route.map(|r| {
                format!("{} {}|{}|{}|{} in {}", r.verb, r.group, r.resource, r.name, r.subresource, r.namespace)
            })
        };
        let show = |method: &str, path: &str| read(method, path).unwrap_or_else(|| "none".to_owned());
        assert_eq!(show("GET", "/api/v1/namespaces/a/pods"), "list |pods|| in a");
        assert_eq!(show("GET", "/api/v1/pods?watch=true"), "watch |pods|| in ");
        assert_eq!(show("PUT", "/api/v1/namespaces/a/status"), "update |namespaces|a|status in ");
        assert_eq!(show("GET", "/api/v1/namespaces/a"), "get |namespaces|a| in ");
        assert_eq!(
            show("PATCH", "/apis/apps/v1/namespaces/a/deployments/b/scale"),
            "patch apps|deployments|b|scale in a"
        );
        assert_eq!(
            show("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterroles/a%3Ab"),
            "delete rbac.authorization.k8s.io|clusterroles|a:b| in "
        );
        assert_eq!(show("GET", "/version"), "none");
    }
}
