//! Transcripts of rules: variants of an object, and what creating or updating to each of them says.

use crate::{RequestInfo, UserInfo, strategy_for};
use pintle_apimachinery::meta::set_meta;
use pintle_apimachinery::{ErrorList, GroupVersion, Str, Value, json};
use std::fmt::Write as _;

/// Group, version and resource of `v1/services` or `apps/v1/deployments`.
fn resource(text: &str) -> &'static pintle_schema::Resource {
    let (group_version, plural) = text.rsplit_once('/').unwrap();
    let gv = GroupVersion::parse(group_version).unwrap();
    pintle_schema::resource(&gv.group, &gv.version, plural, "").unwrap()
}

fn with_info<T>(run: impl FnOnce(RequestInfo<'_>) -> T) -> T {
    let user = UserInfo {
        name: Str::new("jane"),
        uid: Str::new("7"),
        groups: vec![Str::new("dev")],
        extra: vec![(Str::new("team"), vec![Str::new("blue")])],
    };
    let now = "2026-03-04T05:06:07Z".parse().unwrap();
    run(RequestInfo { namespace: "ns", subresource: "", user: &user, now })
}

/// The object as the server sees it after decoding: complete, defaulted, with server's metadata.
fn decoded(resource: &pintle_schema::Resource, object: &Value) -> Value {
    let kind = pintle_schema::kind(resource.kind_group, resource.kind_version, resource.kind).unwrap();
    let parsed = pintle_schema::decode_value(object, kind.id).unwrap();
    assert_eq!(parsed.issues, Default::default(), "{object}");
    let mut object = parsed.value;
    strategy_for(resource.group, resource.plural).set_defaults(&mut object);
    if object["metadata"]["name"].is_null() {
        set_meta(&mut object, "name", "a");
    }
    set_meta(&mut object, "namespace", if resource.is_namespaced { "ns" } else { "" });
    object
}

/// `target` with an RFC 7396 patch applied.
fn patched(target: &Value, patch: &Value) -> Value {
    let Some(members) = patch.as_object() else { return patch.clone() };
    let mut result = if target.as_object().is_some() { target.clone() } else { Value::object() };
    for (key, member) in members.iter() {
        if member.is_null() {
            result.remove(key);
        } else {
            let inner = patched(&result[key.as_str()], member);
            result.set(key, inner);
        }
    }
    result
}

fn tell(out: &mut String, variant: &Value, errors: &ErrorList, warnings: &[String]) {
    writeln!(out, "{variant}").unwrap();
    errors.iter().for_each(|error| writeln!(out, "    {error}").unwrap());
    warnings.iter().for_each(|warning| writeln!(out, "    warning: {warning}").unwrap());
}

/// What creating `base` says when each of `variants` is merged into it.
pub(crate) fn creates(of: &str, base: &Value, variants: &[Value]) -> String {
    let resource = resource(of);
    let strategy = strategy_for(resource.group, resource.plural);
    let mut out = String::new();
    for variant in variants {
        let mut object = decoded(resource, &patched(base, variant));
        let (errors, warnings) = with_info(|info| {
            strategy.prepare_for_create(info, &mut object);
            (strategy.validate(info, &object), strategy.warnings_on_create(info, &object))
        });
        tell(&mut out, variant, &errors, if errors.is_empty() { &warnings } else { &[] });
    }
    out
}

/// What updating `base` says when each of `variants` is merged into it; through a subresource if that is not empty.
pub(crate) fn updates(of: &str, subresource: &str, base: &Value, variants: &[Value]) -> String {
    let resource = resource(of);
    let strategy = strategy_for(resource.group, resource.plural);
    let mut old = decoded(resource, base);
    set_meta(&mut old, "resourceVersion", "1");
    let rules = match subresource {
        "" => strategy as &dyn crate::UpdateStrategy,
        name => strategy.subresource(name).unwrap(),
    };
    let mut out = String::new();
    for variant in variants {
        let mut object = decoded(resource, &patched(&old, variant));
        let (errors, warnings) = with_info(|info| {
            rules.prepare_for_update(info, &mut object, &old);
            (rules.validate_update(info, &object, &old), rules.warnings_on_update(info, &object, &old))
        });
        tell(&mut out, variant, &errors, if errors.is_empty() { &warnings } else { &[] });
    }
    out
}

/// What is made of `object` before it is validated.
pub(crate) fn prepared(of: &str, object: &Value) -> Value {
    let resource = resource(of);
    let mut object = decoded(resource, object);
    with_info(|info| strategy_for(resource.group, resource.plural).prepare_for_create(info, &mut object));
    object
}

#[test]
fn patching() {
    let base = json!({"a": {"b": 1, "c": 2}});
    assert_eq!(patched(&base, &json!({"a": {"b": null, "d": 3}})), json!({"a": {"c": 2, "d": 3}}));
}
