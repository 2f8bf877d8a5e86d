//! Acting as somebody else: the `Impersonate-*` headers, who may use them, and who the request is from then on.
//!
//! Follows: apiserver/pkg/endpoints/filters/impersonation (v0.35).

use crate::authn::unescape_key;
use crate::authz::{Attributes, Authorizer};
use crate::user;
use http::{HeaderMap, HeaderName};
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{Status, Str};
use pintle_kinds::UserInfo;
use std::collections::BTreeMap;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA_PREFIX: &str = "impersonate-extra-";

/// The group of the resources `uids` and `userextras`.
const AUTHENTICATION: &str = "authentication.k8s.io";

/// One thing that the request wants to be.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    ServiceAccount { namespace: String, name: String },
    User(String),
    Group(String),
    Extra { key: String, value: String },
    Uid(String),
}

impl Part {
    /// As upstream prints the object reference that stands for it.
    fn printed(&self) -> String {
        let fields = match self {
            Part::ServiceAccount { namespace, name } => ["ServiceAccount", namespace, name, "", "", "", ""],
            Part::User(name) => ["User", "", name, "", "", "", ""],
            Part::Group(name) => ["Group", "", name, "", "", "", ""],
            Part::Extra { key, value } => ["UserExtra", "", value, "", "authentication.k8s.io/v1", "", key],
            Part::Uid(uid) => ["UID", "", uid, "", "authentication.k8s.io/v1", "", ""],
        };
        format!("{{{}}}", fields.join(" "))
    }
}

fn values<'h>(headers: &'h HeaderMap, name: &str) -> impl Iterator<Item = &'h str> {
    headers.get_all(name).iter().filter_map(|value| value.to_str().ok())
}

fn parts(headers: &HeaderMap) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    let requested = values(headers, USER).next().unwrap_or_default();
    if !requested.is_empty() {
        parts.push(match user::split_service_account(requested) {
            Some((namespace, name)) => Part::ServiceAccount { namespace: namespace.to_owned(), name: name.to_owned() },
            None => Part::User(requested.to_owned()),
        });
    }
    parts.extend(values(headers, GROUP).map(|group| Part::Group(group.to_owned())));
    for (name, value) in headers {
        if let (Some(key), Ok(value)) = (name.as_str().strip_prefix(EXTRA_PREFIX), value.to_str()) {
            parts.push(Part::Extra { key: unescape_key(key), value: value.to_owned() });
        }
    }
    let uid = values(headers, UID).next().unwrap_or_default();
    if !uid.is_empty() {
        parts.push(Part::Uid(uid.to_owned()));
    }
    if requested.is_empty() && !parts.is_empty() {
        let printed: Vec<String> = parts.iter().map(Part::printed).collect();
        let message = format!("requested [{}] without impersonating a user", printed.join(" "));
        return Err(Box::new(Status::bad_request(message)));
    }
    Ok(parts)
}

/// Who the request is from, if it wants to act as somebody else and `user` may do so. `None` when it does not want to.
///
/// # Errors
/// 400 when the headers lack a user, 403 when `user` may not act as one of the things asked for.
pub fn impersonate(headers: &HeaderMap, user: &UserInfo, authorizer: &dyn Authorizer) -> Result<Option<UserInfo>> {
    let parts = parts(headers)?;
    if parts.is_empty() {
        return Ok(None);
    }
    let has_groups = headers.contains_key(GROUP);
    let mut target = UserInfo::default();
    let mut extra: BTreeMap<Str, Vec<Str>> = BTreeMap::new();
    for part in &parts {
        check(part, user, authorizer)?;
        match part {
            Part::ServiceAccount { namespace, name } => {
                target.name = user::service_account_name(namespace, name);
                if !has_groups {
                    target.groups = user::service_account_groups(namespace);
                }
            }
            Part::User(name) => target.name = Str::new(name),
            Part::Group(group) => target.groups.push(Str::new(group)),
            Part::Extra { key, value } => extra.entry(Str::new(key)).or_default().push(Str::new(value)),
            Part::Uid(uid) => target.uid = Str::new(uid),
        }
    }
    target.extra = extra.into_iter().collect();
    let is_unauthenticated = user::is_member(&target, user::UNAUTHENTICATED);
    if target.name == user::ANONYMOUS {
        if !is_unauthenticated {
            target.groups.push(Str::const_new(user::UNAUTHENTICATED));
        }
    } else if !is_unauthenticated && !user::is_member(&target, user::AUTHENTICATED) {
        target.groups.push(Str::const_new(user::AUTHENTICATED));
    }
    Ok(Some(target))
}

fn check(part: &Part, user: &UserInfo, authorizer: &dyn Authorizer) -> Result<()> {
    let on = |group, resource| Attributes::resource(user, "impersonate", group, resource);
    let attributes = match part {
        Part::ServiceAccount { namespace, name } => on("", "serviceaccounts").at(namespace, name),
        Part::User(name) => on("", "users").at("", name),
        Part::Group(name) => on("", "groups").at("", name),
        Part::Extra { key, value } => on(AUTHENTICATION, "userextras").at("", value).with_subresource(key),
        Part::Uid(uid) => on(AUTHENTICATION, "uids").at("", uid),
    };
    let verdict = authorizer.authorize(&attributes);
    if verdict.is_allowed() { Ok(()) } else { Err(Box::new(attributes.forbidden(&verdict.reason))) }
}

/// Takes the headers out, so that nothing behind acts on them again.
pub fn clear_headers(headers: &mut HeaderMap) {
    for name in [USER, GROUP, UID] {
        headers.remove(name);
    }
    let extras: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with(EXTRA_PREFIX)).cloned().collect();
    for name in extras {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authz::{AlwaysAllow, AlwaysDeny};
    use expect_test::{Expect, expect};
    use http::HeaderValue;

    fn check(authorizer: &dyn Authorizer, lines: &[(&'static str, &'static str)], expect: Expect) {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        let text = match impersonate(&headers, &user::named("admin", &[]), authorizer) {
            Ok(None) => "nobody".to_owned(),
            Ok(Some(user)) => user::to_value(&user).to_json_string(),
            Err(status) => format!("{} {}", status.code, status.message),
        };
        expect.assert_eq(&text);
        clear_headers(&mut headers);
        assert!(headers.is_empty());
    }

    #[test]
    fn who_the_request_is_from() {
        let any = &AlwaysAllow;
        check(any, &[], expect!["nobody"]);
        check(any, &[("impersonate-user", "")], expect!["nobody"]);
        check(
            any,
            &[("impersonate-user", "jane")],
            expect![[r#"{"groups":["system:authenticated"],"username":"jane"}"#]],
        );
        check(
            any,
            &[
                ("impersonate-user", "jane"),
                ("impersonate-group", "dev"),
                ("impersonate-uid", "u-1"),
                ("impersonate-extra-a%2fb", "x"),
                ("impersonate-extra-a%2fb", "y"),
            ],
            expect![[
                r#"{"extra":{"a/b":["x","y"]},"groups":["dev","system:authenticated"],"uid":"u-1","username":"jane"}"#
            ]],
        );
        check(
            any,
            &[("impersonate-user", "system:serviceaccount:ns:robot")],
            expect![[
                r#"{"groups":["system:serviceaccounts","system:serviceaccounts:ns","system:authenticated"],"username":"system:serviceaccount:ns:robot"}"#
            ]],
        );
        check(
            any,
            &[("impersonate-user", "system:anonymous")],
            expect![[r#"{"groups":["system:unauthenticated"],"username":"system:anonymous"}"#]],
        );
        check(
            any,
            &[("impersonate-user", "x"), ("impersonate-group", "system:unauthenticated")],
            expect![[r#"{"groups":["system:unauthenticated"],"username":"x"}"#]],
        );
    }

    #[test]
    fn faults() {
        let any = &AlwaysAllow;
        check(
            any,
            &[("impersonate-group", "g")],
            expect!["400 requested [{Group  g    }] without impersonating a user"],
        );
        check(
            any,
            &[("impersonate-uid", "g")],
            expect!["400 requested [{UID  g  authentication.k8s.io/v1  }] without impersonating a user"],
        );
        check(
            any,
            &[("impersonate-extra-scopes", "g")],
            expect!["400 requested [{UserExtra  g  authentication.k8s.io/v1  scopes}] without impersonating a user"],
        );
        check(
            &AlwaysDeny,
            &[("impersonate-user", "jane")],
            expect![[
                r#"403 users "jane" is forbidden: User "admin" cannot impersonate resource "users" in API group "" at the cluster scope: Everything is forbidden."#
            ]],
        );
    }
}
