//! What a path and a method ask for.
//!
//! Follows: apiserver/pkg/endpoints/request/requestinfo.go (v0.35).

use http::Method;

/// A request's path, taken apart. Path segments are as they were sent, percent escapes resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// Whether the path names a resource (else it is a document, such as `/version` or `/apis`).
    pub is_resource: bool,
    /// The path.
    pub path: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, `proxy`; for other paths the
    /// method in lower case.
    pub verb: &'static str,
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Namespace; empty for none.
    pub namespace: String,
    /// Resource's plural; empty when the path ends before it.
    pub resource: String,
    /// Subresource; empty for none.
    pub subresource: String,
    /// Name; empty for none.
    pub name: String,
    /// Path segments from the resource on (`exec` paths and proxies look behind the subresource).
    pub parts: Vec<String>,
    /// Whether the deprecated `/watch/` prefix was used.
    pub is_watch_prefix: bool,
}

/// Namespaces' own subresources: under them no other resource can be meant.
const NAMESPACE_SUBRESOURCES: &[&str] = &["status", "finalize"];

impl RequestInfo {
    /// Takes a request apart. `path` has its percent escapes resolved already; `query` is raw.
    pub fn of(method: &Method, path: &str, query: &str) -> RequestInfo {
        let mut info = RequestInfo { path: path.to_owned(), verb: lower(method), ..RequestInfo::default() };
        let mut parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        if parts.len() < 3 || !matches!(parts[0], "api" | "apis") {
            return info;
        }
        let is_grouped = parts[0] == "apis";
        parts.remove(0);
        if is_grouped {
            if parts.len() < 3 {
                return info;
            }
            info.group = parts.remove(0).to_owned();
        }
        info.is_resource = true;
        info.version = parts.remove(0).to_owned();
        if matches!(parts[0], "proxy" | "watch") && parts.len() > 1 {
            info.is_watch_prefix = parts[0] == "watch";
            info.verb = if info.is_watch_prefix { "watch" } else { "proxy" };
            parts.remove(0);
        } else {
            info.verb = match *method {
                Method::POST => "create",
                Method::GET | Method::HEAD => "get",
                Method::PUT => "update",
                Method::PATCH => "patch",
                Method::DELETE => "delete",
                _ => "",
            };
        }
        if parts[0] == "namespaces" && parts.len() > 1 {
            info.namespace = parts[1].to_owned();
            if parts.len() > 2 && !NAMESPACE_SUBRESOURCES.contains(&parts[2]) {
                parts.drain(..2);
            }
        }
        info.parts = parts.iter().map(|p| (*p).to_owned()).collect();
        info.resource = parts[0].to_owned();
        if let Some(name) = parts.get(1) {
            info.name = (*name).to_owned();
        }
        if let Some(subresource) = parts.get(2) {
            info.subresource = (*subresource).to_owned();
        }
        if info.resource == "namespaces" {
            info.namespace = info.name.clone();
        }
        if info.name.is_empty() && info.verb == "get" {
            info.verb = if is_watch(query) { "watch" } else { "list" };
            if let Some(name) = pinned_name(query) {
                // a list or watch narrowed to one name is authorised by that name
                info.name = name;
            }
        } else if info.name.is_empty() && info.verb == "delete" {
            info.verb = "deletecollection";
        }
        info
    }

    /// Whether the request may go on for as long as its client likes: watches, logs, and what is connected through.
    pub fn is_long_running(&self) -> bool {
        matches!(self.verb, "watch" | "proxy")
            || matches!(&*self.subresource, "log" | "exec" | "attach" | "portforward" | "proxy")
    }

    /// Whether nothing is written.
    pub fn is_read_only(&self) -> bool {
        matches!(self.verb, "get" | "list" | "watch" | "head" | "options")
    }

    /// The name in the path itself (a selector may have set [`RequestInfo::name`] for authorisation).
    pub fn path_name(&self) -> &str {
        self.parts.get(1).map_or("", String::as_str)
    }
}

fn lower(method: &Method) -> &'static str {
    match *method {
        Method::GET => "get",
        Method::HEAD => "head",
        Method::POST => "post",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        Method::OPTIONS => "options",
        _ => "",
    }
}

/// Whether the query asks for a watch. As upstream, anything but a false value counts.
pub(crate) fn is_watch(query: &str) -> bool {
    crate::query::pairs(query)
        .find(|(key, _)| key == "watch")
        .is_some_and(|(_, value)| !matches!(value.as_ref(), "0" | "false" | "f" | "F" | "False" | "FALSE"))
}

fn pinned_name(query: &str) -> Option<String> {
    let (_, selector) = crate::query::pairs(query).find(|(key, _)| key == "fieldSelector")?;
    let selector = pintle_apimachinery::fieldselector::FieldSelector::parse(&selector).ok()?;
    let name = selector.requires_exact("metadata.name")?;
    pintle_apimachinery::names::path_segment(name, false).is_empty().then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn show(method: &str, target: &str) -> String {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let i = RequestInfo::of(&method.parse().unwrap(), path, query);
        if !i.is_resource {
            return format!("{method} {target}: {}\n", i.verb);
        }
        format!(
            "{method} {target}: {} group={} version={} ns={} resource={} name={} sub={}\n",
            i.verb, i.group, i.version, i.namespace, i.resource, i.name, i.subresource
        )
    }

    #[test]
    fn paths() {
        let mut out = String::new();
        for (method, target) in [
            ("GET", "/version"),
            ("GET", "/api/v1"),
            ("GET", "/apis/apps/v1"),
            ("GET", "/api/v1/pods"),
            ("GET", "/api/v1/namespaces/a/pods?watch=true"),
            ("GET", "/api/v1/namespaces/a/pods?watch=0"),
            ("GET", "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dx"),
            ("DELETE", "/api/v1/namespaces/a/pods"),
            ("GET", "/api/v1/namespaces"),
            ("GET", "/api/v1/namespaces/a"),
            ("PUT", "/api/v1/namespaces/a/finalize"),
            ("GET", "/apis/apps/v1/namespaces/a/deployments/d/status"),
            ("GET", "/api/v1/watch/namespaces/a/pods/x"),
            ("POST", "/api/v1/namespaces/a/pods/x/proxy/some/path"),
        ] {
            out += &show(method, target);
        }
        expect![[r#"
            GET /version: get
            GET /api/v1: get
            GET /apis/apps/v1: get
            GET /api/v1/pods: list group= version=v1 ns= resource=pods name= sub=
            GET /api/v1/namespaces/a/pods?watch=true: watch group= version=v1 ns=a resource=pods name= sub=
            GET /api/v1/namespaces/a/pods?watch=0: list group= version=v1 ns=a resource=pods name= sub=
            GET /api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dx: list group= version=v1 ns=a resource=pods name=x sub=
            DELETE /api/v1/namespaces/a/pods: deletecollection group= version=v1 ns=a resource=pods name= sub=
            GET /api/v1/namespaces: list group= version=v1 ns= resource=namespaces name= sub=
            GET /api/v1/namespaces/a: get group= version=v1 ns=a resource=namespaces name=a sub=
            PUT /api/v1/namespaces/a/finalize: update group= version=v1 ns=a resource=namespaces name=a sub=finalize
            GET /apis/apps/v1/namespaces/a/deployments/d/status: get group=apps version=v1 ns=a resource=deployments name=d sub=status
            GET /api/v1/watch/namespaces/a/pods/x: watch group= version=v1 ns=a resource=pods name=x sub=
            POST /api/v1/namespaces/a/pods/x/proxy/some/path: create group= version=v1 ns=a resource=pods name=x sub=proxy
        "#]]
        .assert_eq(&out);
    }
}
