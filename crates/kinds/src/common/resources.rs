//! Resource names and amounts: which names may stand where, what an amount may be, requests within limits.

use super::At;
use super::checks::{NEGATIVE, dns1123_label};
use pintle_apimachinery::quantity::Quantity;
use pintle_apimachinery::{ErrorList, FieldError, Value, names};
use std::collections::BTreeSet;

const HUGE_PAGES: &str = "hugepages-";
const REQUESTS: &str = "requests.";

/// Resources that everybody knows and that are counted in pieces.
const INTEGER: &[&str] = &[
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// The other resources that everybody knows.
const MEASURED: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "storage",
    "requests.storage",
];

/// The amount that a decoded value holds; zero when there is none.
pub fn quantity(value: &Value) -> Quantity {
    value.as_str().and_then(|text| Quantity::parse(text).ok()).unwrap_or(Quantity::ZERO)
}

/// Whether the name is of huge pages of some size.
pub fn is_huge_pages(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

/// Whether the name is known to every cluster (`cpu`, `requests.storage`, `pods`, huge pages ...).
pub fn is_standard(name: &str) -> bool {
    INTEGER.contains(&name) || MEASURED.contains(&name) || is_quota_huge_pages(name)
}

/// Whether a quota knows the name: every standard one but bare `storage`.
pub fn is_standard_for_quota(name: &str) -> bool {
    is_standard(name) && name != "storage"
}

fn is_quota_huge_pages(name: &str) -> bool {
    is_huge_pages(name) || name.strip_prefix(REQUESTS).is_some_and(is_huge_pages)
}

/// Whether a container may ask for the name without a prefix.
pub fn is_standard_for_containers(name: &str) -> bool {
    matches!(name, "cpu" | "memory" | "ephemeral-storage") || is_huge_pages(name)
}

/// Whether the name belongs to Kubernetes itself: no prefix, or one of kubernetes.io.
pub fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether the name is of a resource that others brought in.
pub fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with(REQUESTS) && names::qualified_name(&format!("{REQUESTS}{name}")).is_empty()
}

/// Whether requests may be lower than limits.
pub fn is_overcommit_allowed(name: &str) -> bool {
    is_native(name) && !is_huge_pages(name)
}

/// Whether amounts of it are whole numbers.
pub fn is_integer(name: &str) -> bool {
    INTEGER.contains(&name) || is_extended(name)
}

/// A resource name wherever one may stand; the message names the place `at`. Answers whether it is well-formed.
pub fn validate_resource_name(name: &str, at: &At<'_>, errors: &mut ErrorList) -> bool {
    let n_before = errors.len();
    errors.extend(names::qualified_name(name).into_iter().map(|fault| at.invalid_showing(name, fault)));
    if errors.len() == n_before && !name.contains('/') && !is_standard(name) {
        errors.push(at.invalid_showing(name, "must be a standard resource type or fully qualified"));
    }
    errors.len() == n_before
}

/// A resource name of a container.
pub fn validate_container_resource_name(name: &str, at: &At<'_>, errors: &mut ErrorList) {
    // quick for the two that nearly every container has
    if matches!(name, "cpu" | "memory") {
        return;
    }
    validate_resource_name(name, at, errors);
    if !name.contains('/') {
        if !is_standard_for_containers(name) {
            errors.push(at.invalid_showing(name, "must be a standard resource for containers"));
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.push(at.invalid_showing(name, "doesn't follow extended resource name standard"));
    }
}

/// The resources that a pod as a whole may ask for, besides huge pages.
pub fn is_supported_for_pods(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge_pages(name)
}

fn validate_pod_resource_name(name: &str, at: &At<'_>, errors: &mut ErrorList) {
    if validate_resource_name(name, at, errors) && !is_supported_for_pods(name) {
        errors.push(FieldError::not_supported(at.path(), name, &["cpu", "hugepages-", "memory"]));
    }
}

/// An amount that must not be negative.
pub fn validate_nonnegative_quantity(at: &At<'_>, errors: &mut ErrorList) {
    if quantity(at.value()).sign() < 0 {
        errors.push(at.invalid(NEGATIVE));
    }
}

/// An amount of the resource `name`: not negative, whole where the resource is counted.
pub fn validate_resource_quantity(name: &str, at: &At<'_>, errors: &mut ErrorList) {
    let amount = quantity(at.value());
    if amount.sign() < 0 {
        errors.push(at.invalid(NEGATIVE));
    }
    if amount.milli_value() % 1000 != 0 && is_integer(name) {
        errors.push(at.invalid("must be an integer"));
    }
}

/// Whose requirements they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirer {
    /// A container's, or a pod's overhead.
    Container,
    /// A pod's as a whole.
    Pod,
}

/// `limits`, `requests` and `claims` of a container or pod. `claim_names` are the names in `spec.resourceClaims`.
pub fn validate_requirements(
    at: &At<'_>,
    requirer: Requirer,
    claim_names: &BTreeSet<&str>,
    allow_indivisible_huge_pages: bool,
    errors: &mut ErrorList,
) {
    let (limits, requests) = (at.child("limits"), at.child("requests"));
    let validate_name = match requirer {
        Requirer::Container => validate_container_resource_name,
        Requirer::Pod => validate_pod_resource_name,
    };
    let mut has_huge_pages = false;
    let mut has_cpu_or_memory = false;
    for (idx, list) in [limits, requests].iter().enumerate() {
        for (name, amount) in list.each_entry() {
            validate_name(name, &amount, errors);
            validate_resource_quantity(name, &amount, errors);
            if idx == 1 {
                validate_request_within_limit(name, &amount, &limits, &requests, errors);
            }
            if is_huge_pages(name) {
                has_huge_pages = true;
                if !allow_indivisible_huge_pages && !is_divisible_by_page_size(name, quantity(amount.value())) {
                    let shown = amount.text();
                    errors.push(amount.invalid(format!("{shown} is not positive integer multiple of {name}")));
                }
            }
            has_cpu_or_memory |= matches!(name.as_str(), "cpu" | "memory");
        }
    }
    if has_huge_pages && !has_cpu_or_memory {
        errors.push(at.forbidden("HugePages require cpu or memory"));
    }
    validate_claims(&at.child("claims"), claim_names, errors);
}

fn validate_request_within_limit(
    name: &str,
    request: &At<'_>,
    limits: &At<'_>,
    requests: &At<'_>,
    errors: &mut ErrorList,
) {
    let limit = &limits[name];
    let is_overcommit_allowed = is_overcommit_allowed(name);
    if limit.is_null() {
        if !is_overcommit_allowed {
            errors.push(limits.required("Limit must be set for non overcommitable resources"));
        }
        return;
    }
    if request.value() == limit {
        return;
    }
    let (amount, most) = (quantity(request.value()), quantity(limit));
    let told = |rule: &str| {
        requests.invalid_showing(request.text(), format!("must be {rule} {name} limit of {}", limit.str_or_empty()))
    };
    if amount != most && !is_overcommit_allowed {
        errors.push(told("equal to"));
    } else if amount > most {
        errors.push(told("less than or equal to"));
    }
}

/// Whether an amount of huge pages is a whole number of pages.
pub fn is_divisible_by_page_size(name: &str, amount: Quantity) -> bool {
    let Some(Ok(page)) = name.strip_prefix(HUGE_PAGES).map(Quantity::parse) else { return false };
    page.sign() > 0 && page.milli_value() % 1000 == 0 && amount.value() % page.value() == 0
}

fn validate_claims(claims: &At<'_>, claim_names: &BTreeSet<&str>, errors: &mut ErrorList) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for claim in claims.each() {
        let (name, request) = (claim.value()["name"].str_or_empty(), claim.value()["request"].str_or_empty());
        if name.is_empty() {
            errors.push(claim.required(""));
            continue;
        }
        let duplicate = |shown: &str| FieldError::duplicate(claim.path(), shown);
        if seen.contains(&(name, "")) {
            errors.push(duplicate(name));
        } else {
            if !request.is_empty() {
                dns1123_label(&claim.child("request"), errors);
            }
            if seen.contains(&(name, request)) {
                errors.push(duplicate(&format!("{name}/{request}")));
            } else if request.is_empty() {
                errors.extend(seen.iter().filter(|(other, _)| *other == name).map(|_| duplicate(name)));
            }
            seen.push((name, request));
        }
        if !claim_names.contains(name) {
            let told = if claim_names.is_empty() {
                " which is empty".to_owned()
            } else {
                format!(": {}", claim_names.iter().copied().collect::<Vec<_>>().join(", "))
            };
            errors.push(FieldError {
                detail: format!("must be one of the names in pod.spec.resourceClaims{told}"),
                ..FieldError::not_found(claim.path(), name)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use pintle_apimachinery::json;

    fn check(requirements: &Value, requirer: Requirer, expected: Expect) {
        let object = json!({"resources": (requirements.clone())});
        let mut errors = ErrorList::new();
        let claims = BTreeSet::from(["gpu"]);
        validate_requirements(&At::top(&object, "resources"), requirer, &claims, false, &mut errors);
        expected.assert_eq(&errors.iter().map(|e| format!("{e}\n")).collect::<String>());
    }

    #[test]
    fn requirements() {
        check(
            &json!({
                "limits": {"cpu": "1", "memory": "-1", "example.com/gpu": "1500m", "pods": "1", "x": "1", "hugepages-2Mi": "3Mi"},
                "requests": {"cpu": "2", "example.com/gpu": "1", "example.com/other": "1"},
                "claims": [{"name": "gpu"}, {"name": "gpu", "request": "a"}, {"name": "none"}, {}],
            }),
            Requirer::Container,
            expect![[r#"
                resources.limits[example.com/gpu]: Invalid value: "1500m": must be an integer
                resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi
                resources.limits[memory]: Invalid value: "-1": must be greater than or equal to 0
                resources.limits[pods]: Invalid value: "pods": must be a standard resource for containers
                resources.limits[x]: Invalid value: "x": must be a standard resource type or fully qualified
                resources.limits[x]: Invalid value: "x": must be a standard resource for containers
                resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1
                resources.requests: Invalid value: "1": must be equal to example.com/gpu limit of 1500m
                resources.limits: Required value: Limit must be set for non overcommitable resources
                resources.claims[1]: Duplicate value: "gpu"
                resources.claims[2]: Not found: "none": must be one of the names in pod.spec.resourceClaims: gpu
                resources.claims[3]: Required value
            "#]],
        );
    }
}
