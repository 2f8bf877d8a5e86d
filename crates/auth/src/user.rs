//! Names of users and groups that the system knows, and a user's wire form.

use pintle_apimachinery::{Object, Str, Value, json, names};
use pintle_kinds::UserInfo;

/// Who has not said who they are.
pub const ANONYMOUS: &str = "system:anonymous";
/// The group of everybody who has said so.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of everybody who has not.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// Members may do everything.
pub const MASTERS: &str = "system:masters";
/// The server itself.
pub const APISERVER: &str = "system:apiserver";
/// The group of all nodes.
pub const NODES: &str = "system:nodes";
/// What the user name of a node begins with.
pub const NODE_PREFIX: &str = "system:node:";
/// The group of all service accounts.
pub const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
/// What the group of a namespace's service accounts begins with.
pub const SERVICE_ACCOUNTS_PREFIX: &str = "system:serviceaccounts:";
/// What the user name of a service account begins with.
pub const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";
/// The extra key that names the credential of a request.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";
/// The extra key that names the pod a token is bound to.
pub const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
/// The extra key with that pod's uid.
pub const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
/// The extra key that names the node a token is bound to, or its pod runs on.
pub const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
/// The extra key with that node's uid.
pub const NODE_UID: &str = "authentication.kubernetes.io/node-uid";

/// The user of a request without credentials.
pub fn anonymous() -> UserInfo {
    UserInfo { name: Str::const_new(ANONYMOUS), groups: vec![Str::const_new(UNAUTHENTICATED)], ..UserInfo::default() }
}

/// The server itself, as it calls itself through the loopback.
pub fn apiserver() -> UserInfo {
    UserInfo {
        name: Str::const_new(APISERVER),
        groups: vec![Str::const_new(AUTHENTICATED), Str::const_new(MASTERS)],
        ..UserInfo::default()
    }
}

/// Whether the user is in `group`.
pub fn is_member(user: &UserInfo, group: &str) -> bool {
    user.groups.iter().any(|g| g == group)
}

/// The user name of a service account.
pub fn service_account_name(namespace: &str, name: &str) -> Str {
    compact_str::format_compact!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
}

/// The groups of a service account.
pub fn service_account_groups(namespace: &str) -> Vec<Str> {
    vec![Str::const_new(SERVICE_ACCOUNTS), compact_str::format_compact!("{SERVICE_ACCOUNTS_PREFIX}{namespace}")]
}

/// Whether `username` is that of the service account, without making its name.
pub fn is_service_account(username: &str, namespace: &str, name: &str) -> bool {
    username
        .strip_prefix(SERVICE_ACCOUNT_PREFIX)
        .and_then(|rest| rest.strip_prefix(namespace))
        .and_then(|rest| rest.strip_prefix(':'))
        .is_some_and(|rest| rest == name)
}

/// Namespace and name of the service account whose user name this is.
pub fn split_service_account(username: &str) -> Option<(&str, &str)> {
    let (namespace, name) = username.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    let is_valid =
        !name.contains(':') && names::dns1123_label(namespace).is_empty() && names::dns1123_subdomain(name).is_empty();
    is_valid.then_some((namespace, name))
}

/// The name of the node that this user is; `None` when it is none.
pub fn node_name(user: &UserInfo) -> Option<&str> {
    let name = user.name.strip_prefix(NODE_PREFIX)?;
    is_member(user, NODES).then_some(name)
}

/// The user as the `userInfo` of a review shows it.
pub fn to_value(user: &UserInfo) -> Value {
    let mut value = Value::object();
    for (key, text) in [("username", &user.name), ("uid", &user.uid)] {
        if !text.is_empty() {
            value.set(key, text);
        }
    }
    if !user.groups.is_empty() {
        value.set("groups", user.groups.clone());
    }
    if !user.extra.is_empty() {
        value.set("extra", Value::Object(user.extra.iter().map(|(k, v)| (k.clone(), v.clone())).collect::<Object>()));
    }
    value
}

/// The user that the members of `spec` of an access review name.
pub fn from_spec(spec: &Value) -> UserInfo {
    let strings = |list: &Value| list.items().iter().map(|v| Str::new(v.str_or_empty())).collect::<Vec<_>>();
    UserInfo {
        name: Str::new(spec["user"].str_or_empty()),
        uid: Str::new(spec["uid"].str_or_empty()),
        groups: strings(&spec["groups"]),
        extra: spec["extra"].entries().map(|(key, values)| (key.clone(), strings(values))).collect(),
    }
}

/// A user with this name and these groups.
pub fn named(name: &str, groups: &[&str]) -> UserInfo {
    UserInfo { name: Str::new(name), groups: groups.iter().map(Str::new).collect(), ..UserInfo::default() }
}

/// An `extra` of one value.
pub fn extra(key: &'static str, value: impl AsRef<str>) -> (Str, Vec<Str>) {
    (Str::const_new(key), vec![Str::new(value)])
}

/// The body of a `SelfSubjectReview`'s status.
pub fn review_status(user: &UserInfo) -> Value {
    json!({ "userInfo": to_value(user) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_account_names() {
        assert_eq!(service_account_name("ns", "robot"), "system:serviceaccount:ns:robot");
        assert!(is_service_account("system:serviceaccount:ns:robot", "ns", "robot"));
        assert!(!is_service_account("system:serviceaccount:ns:robot", "n", "s:robot"));
        assert_eq!(split_service_account("system:serviceaccount:ns:robot"), Some(("ns", "robot")));
        for bad in [
            "robot",
            "system:serviceaccount:ns",
            "system:serviceaccount:ns:a:b",
            "system:serviceaccount::a",
            "system:serviceaccount:NS:a",
        ] {
            assert_eq!(split_service_account(bad), None, "{bad}");
        }
    }

    #[test]
    fn nodes_need_their_group() {
        assert_eq!(node_name(&named("system:node:n1", &[NODES])), Some("n1"));
        assert_eq!(node_name(&named("system:node:n1", &[])), None);
        assert_eq!(node_name(&named("n1", &[NODES])), None);
    }

    #[test]
    fn wire_form() {
        let user = UserInfo {
            extra: vec![(Str::new("b"), vec![Str::new("1")]), (Str::new("a"), vec![])],
            ..named("u", &["g"])
        };
        assert_eq!(to_value(&user).to_json_string(), r#"{"extra":{"a":[],"b":["1"]},"groups":["g"],"username":"u"}"#);
    }
}
