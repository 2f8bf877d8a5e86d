//! One rule of a role: what it allows, what it covers, how it reads.

use crate::authz::Attributes;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::{Str, Value};
use std::fmt;

/// A rule: verbs on resources, or verbs on paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Verbs, or `*`.
    pub verbs: Vec<Str>,
    /// API groups, or `*`.
    pub api_groups: Vec<Str>,
    /// Resources (`pods`, `pods/log`, `*/scale`), or `*`.
    pub resources: Vec<Str>,
    /// Names the rule is narrowed to; empty for all.
    pub resource_names: Vec<Str>,
    /// Paths, a `*` at the end standing for the rest.
    pub non_resource_urls: Vec<Str>,
}

/// Everything: all verbs on all resources, and on all paths.
pub fn full_authority() -> [Rule; 2] {
    let star = || vec![Str::const_new("*")];
    [
        Rule { verbs: star(), api_groups: star(), resources: star(), ..Rule::default() },
        Rule { verbs: star(), non_resource_urls: star(), ..Rule::default() },
    ]
}

fn has(list: &[Str], item: &str) -> bool {
    list.iter().any(|i| i == item)
}

fn has_or_star(list: &[Str], item: &str) -> bool {
    list.iter().any(|i| i == "*" || i == item)
}

/// Whether the pattern (`/a`, `/a/*`, `*`) stands for the path.
fn path_matches(pattern: &str, path: &str) -> bool {
    pattern == path || (pattern.ends_with('*') && path.starts_with(pattern.trim_end_matches('*')))
}

impl Rule {
    /// The rule that a role's item spells.
    pub fn from_value(value: &Value) -> Rule {
        let strings = |field: &str| value[field].items().iter().map(|v| Str::new(v.str_or_empty())).collect();
        Rule {
            verbs: strings("verbs"),
            api_groups: strings("apiGroups"),
            resources: strings("resources"),
            resource_names: strings("resourceNames"),
            non_resource_urls: strings("nonResourceURLs"),
        }
    }

    /// The rules of a role.
    pub fn list_from(role: &Value) -> Vec<Rule> {
        role["rules"].items().iter().map(Rule::from_value).collect()
    }

    /// The rule as a role's item.
    pub fn to_value(&self) -> Value {
        let mut value = Value::object();
        value.set("verbs", self.verbs.clone());
        for (field, list) in [
            ("apiGroups", &self.api_groups),
            ("resources", &self.resources),
            ("resourceNames", &self.resource_names),
            ("nonResourceURLs", &self.non_resource_urls),
        ] {
            if !list.is_empty() {
                value.set(field, list.clone());
            }
        }
        value
    }

    /// Whether the rule allows the request.
    pub fn allows(&self, request: &Attributes<'_>) -> bool {
        if !has_or_star(&self.verbs, request.verb) {
            return false;
        }
        if !request.is_resource_request {
            return self.non_resource_urls.iter().any(|pattern| path_matches(pattern, request.path));
        }
        has_or_star(&self.api_groups, request.group)
            && self.resources.iter().any(|r| resource_matches(r, request.resource, request.subresource))
            && (self.resource_names.is_empty() || has(&self.resource_names, request.name))
    }

    /// The rules of one verb, resource, name or path each that this one is made of.
    fn atoms(&self) -> Vec<Rule> {
        let one = |item: &Str| vec![item.clone()];
        let mut atoms = Vec::new();
        for group in &self.api_groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let atom =
                        Rule { verbs: one(verb), api_groups: one(group), resources: one(resource), ..Rule::default() };
                    if self.resource_names.is_empty() {
                        atoms.push(atom);
                    } else {
                        atoms.extend(
                            self.resource_names.iter().map(|n| Rule { resource_names: one(n), ..atom.clone() }),
                        );
                    }
                }
            }
        }
        for url in &self.non_resource_urls {
            atoms.extend(self.verbs.iter().map(|verb| Rule {
                verbs: one(verb),
                non_resource_urls: one(url),
                ..Rule::default()
            }));
        }
        atoms
    }

    /// Whether this rule allows everything that the atom allows.
    fn covers_atom(&self, atom: &Rule) -> bool {
        atom.verbs.iter().all(|verb| has_or_star(&self.verbs, verb))
            && atom.api_groups.iter().all(|group| has_or_star(&self.api_groups, group))
            && atom.resources.iter().all(|resource| {
                has_or_star(&self.resources, resource)
                    || resource.split_once('/').is_some_and(|(_, sub)| has(&self.resources, &format!("*/{sub}")))
            })
            && atom.non_resource_urls.iter().all(|url| self.non_resource_urls.iter().any(|own| path_matches(own, url)))
            && (self.resource_names.is_empty()
                || (!atom.resource_names.is_empty()
                    && atom.resource_names.iter().all(|n| has(&self.resource_names, n))))
    }
}

/// Whether the rule's resource (`pods`, `pods/log`, `*/log`, `*`) is that of the request.
fn resource_matches(rule: &str, resource: &str, subresource: &str) -> bool {
    if rule == "*" {
        return true;
    }
    if subresource.is_empty() {
        return rule == resource;
    }
    let is_of = |resource: &str| {
        rule.strip_prefix(resource).and_then(|rest| rest.strip_prefix('/')).is_some_and(|sub| sub == subresource)
    };
    is_of("*") || is_of(resource)
}

/// The atoms of `wanted` that none of `owned` covers, compacted: atoms on one resource that differ only in their verb
/// are one rule.
pub fn covers(owned: &[impl AsRef<Rule>], wanted: &[Rule]) -> Vec<Rule> {
    let mut missing: Vec<Rule> = Vec::new();
    for atom in wanted.iter().flat_map(Rule::atoms) {
        if owned.iter().any(|rule| rule.as_ref().covers_atom(&atom)) {
            continue;
        }
        let is_same = |rule: &&mut Rule| {
            atom.non_resource_urls.is_empty()
                && (&rule.api_groups, &rule.resources, &rule.resource_names)
                    == (&atom.api_groups, &atom.resources, &atom.resource_names)
        };
        match missing.iter_mut().find(is_same) {
            Some(rule) => rule.verbs.extend(atom.verbs),
            None => missing.push(atom),
        }
    }
    missing
}

impl AsRef<Rule> for Rule {
    fn as_ref(&self) -> &Rule {
        self
    }
}

/// A list as Go prints one of quoted strings: `["a" "b"]`.
pub(crate) fn quoted(list: &[Str]) -> String {
    let items: Vec<String> = list.iter().map(|item| go_quote(item)).collect();
    format!("[{}]", items.join(" "))
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ]
        .iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(name, list)| format!("{name}:{}", quoted(list)))
        .collect();
        write!(f, "{{{}}}", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user;
    use expect_test::expect;
    use pintle_apimachinery::json;

    fn rule(value: Value) -> Rule {
        Rule::from_value(&value)
    }

    #[test]
    fn what_a_rule_allows() {
        let jane = user::named("jane", &[]);
        let on =
            |resource, sub| Attributes::resource(&jane, "get", "apps", resource).at("ns", "x").with_subresource(sub);
        let cases = [
            (json!(["deployments"]), on("deployments", ""), true),
            (json!(["deployments"]), on("deployments", "scale"), false),
            (json!(["deployments/scale"]), on("deployments", "scale"), true),
            (json!(["deployments/scale"]), on("deployments", ""), false),
            (json!(["*/scale"]), on("deployments", "scale"), true),
            (json!(["*/scale"]), on("deployments", "status"), false),
            (json!(["*/scale"]), on("deployments", ""), false),
            (json!(["deployments/*"]), on("deployments", "scale"), false),
            (json!(["*"]), on("deployments", "scale"), true),
        ];
        for (resources, request, want) in cases {
            let rule = rule(json!({"verbs": ["get"], "apiGroups": ["apps"], "resources": resources}));
            assert_eq!(rule.allows(&request), want, "{rule} {request:?}");
        }
        let named = rule(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "resourceNames": ["a"]}));
        assert!(!named.allows(&on("deployments", "")));
        assert!(named.allows(&on("deployments", "").at("ns", "a")));
        let paths = rule(json!({"verbs": ["get"], "nonResourceURLs": ["/logs", "/x/*"]}));
        for (path, want) in [("/logs", true), ("/logs/a", false), ("/x/", true), ("/x/a/b", true), ("/x", false)] {
            assert_eq!(paths.allows(&Attributes::path(&jane, "get", path)), want, "{path}");
        }
    }

    #[test]
    fn what_is_missing() {
        let owned = [
            rule(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "*/scale"]})),
            rule(json!({"verbs": ["*"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"]})),
            rule(json!({"verbs": ["get"], "nonResourceURLs": ["/a/*"]})),
        ];
        let wanted = [
            rule(json!({"verbs": ["get", "list"], "apiGroups": ["", "apps"], "resources": ["pods", "rc/scale"]})),
            rule(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a", "b"]})),
            rule(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]})),
            rule(json!({"verbs": ["get", "post"], "nonResourceURLs": ["/a/b", "/c"]})),
        ];
        let missing: Vec<String> = covers(&owned, &wanted).iter().map(Rule::to_string).collect();
        expect![[r#"
            {APIGroups:[""], Resources:["pods"], Verbs:["list"]}
            {APIGroups:[""], Resources:["rc/scale"], Verbs:["list"]}
            {APIGroups:["apps"], Resources:["pods"], Verbs:["get" "list"]}
            {APIGroups:["apps"], Resources:["rc/scale"], Verbs:["get" "list"]}
            {APIGroups:[""], Resources:["secrets"], ResourceNames:["b"], Verbs:["get"]}
            {APIGroups:[""], Resources:["secrets"], Verbs:["get"]}
            {NonResourceURLs:["/a/b"], Verbs:["post"]}
            {NonResourceURLs:["/c"], Verbs:["get"]}
            {NonResourceURLs:["/c"], Verbs:["post"]}"#]]
        .assert_eq(&missing.join("\n"));
        assert_eq!(covers(&full_authority(), &wanted), []);
    }
}
