//! What a pod spec may hold besides what is well-formed today: what the object before the update held already.
//!
//! Follows: pkg/api/pod/util.go, GetValidationOptionsFromPodSpecAndMeta (v1.35).

use super::CONTAINER_LISTS;
use super::resources::is_sidecar;
use super::security::{host_sysctl_fault, validate_local_path};
use crate::common::At;
use crate::common::resources::{is_divisible_by_page_size, is_huge_pages, quantity};
use crate::common::selectors::{SelectorOptions, has_invalid_value, is_invalid, validate_label_keys};
use pintle_apimachinery::{ErrorList, Path, Value};

/// Switches of pod spec validation. All off is what a new pod template meets.
#[derive(Clone, Copy, Debug, Default)]
pub struct PodOptions {
    /// The spec is a pod's own, not a template's.
    pub is_pod: bool,
    pub(super) allow_invalid_deletion_cost: bool,
    pub(super) allow_invalid_values_in_selector: bool,
    pub(super) allow_invalid_values_in_node_affinity: bool,
    pub(super) allow_indivisible_huge_pages: bool,
    pub(super) allow_invalid_spread_selector: bool,
    pub(super) old_has_invalid_label_keys: bool,
    pub(super) allow_non_local_token_path: bool,
    pub(super) allow_namespaced_sysctls: bool,
    pub(super) allow_any_selinux_change_policy: bool,
    pub(super) allow_comparison_operators: bool,
    pub(super) allow_restart_all_containers: bool,
    pub(super) allow_volume_devices_in_user_namespace: bool,
    pub(super) allow_host_network_in_user_namespace: bool,
}

impl PodOptions {
    /// What a new pod may hold.
    pub const POD: PodOptions = PodOptions { is_pod: true, ..PodOptions::TEMPLATE };

    /// What a new template may hold.
    pub const TEMPLATE: PodOptions = PodOptions {
        is_pod: false,
        allow_invalid_deletion_cost: false,
        allow_invalid_values_in_selector: false,
        allow_invalid_values_in_node_affinity: false,
        allow_indivisible_huge_pages: false,
        allow_invalid_spread_selector: false,
        old_has_invalid_label_keys: false,
        allow_non_local_token_path: false,
        allow_namespaced_sysctls: false,
        allow_any_selinux_change_policy: false,
        allow_comparison_operators: false,
        allow_restart_all_containers: false,
        allow_volume_devices_in_user_namespace: false,
        allow_host_network_in_user_namespace: false,
    };

    /// What a pod may hold that replaces `old`.
    pub fn of_pod(old: &Value) -> PodOptions {
        PodOptions { is_pod: true, ..PodOptions::of_template(old) }
    }

    /// What a template (metadata and spec) may hold that replaces `old`.
    pub fn of_template(old: &Value) -> PodOptions {
        let spec = &old["spec"];
        let has_user_namespace = spec["hostUsers"].as_bool() == Some(false);
        PodOptions {
            is_pod: false,
            allow_invalid_deletion_cost: !has_valid_deletion_cost(&old["metadata"]["annotations"]),
            allow_invalid_values_in_selector: has_invalid_affinity_selector(&spec["affinity"]),
            allow_invalid_values_in_node_affinity: has_invalid_node_affinity(&spec["affinity"]),
            allow_indivisible_huge_pages: has_indivisible_huge_pages(spec),
            allow_invalid_spread_selector: spec["topologySpreadConstraints"]
                .items()
                .iter()
                .any(|constraint| is_invalid(&constraint["labelSelector"], SelectorOptions::default())),
            old_has_invalid_label_keys: spec["topologySpreadConstraints"].items().iter().any(has_invalid_label_keys),
            allow_non_local_token_path: has_non_local_token_path(spec),
            allow_namespaced_sysctls: spec["securityContext"]["sysctls"]
                .items()
                .iter()
                .any(|sysctl| host_sysctl_fault(spec, sysctl["name"].str_or_empty()).is_some()),
            allow_any_selinux_change_policy: !spec["securityContext"]["seLinuxChangePolicy"].is_null(),
            allow_comparison_operators: spec["tolerations"]
                .items()
                .iter()
                .any(|toleration| matches!(toleration["operator"].str_or_empty(), "Lt" | "Gt")),
            allow_restart_all_containers: restarts_all_containers(spec),
            allow_volume_devices_in_user_namespace: has_user_namespace
                && containers(spec).any(|container| !container["volumeDevices"].items().is_empty()),
            allow_host_network_in_user_namespace: has_user_namespace && spec["hostNetwork"].is_true(),
        }
    }

    /// With invalid label values allowed in the selectors of affinities if `is_allowed`.
    #[must_use]
    pub fn with_invalid_values_in_selector(self, is_allowed: bool) -> PodOptions {
        let allow_invalid_values_in_selector = self.allow_invalid_values_in_selector || is_allowed;
        PodOptions { allow_invalid_values_in_selector, ..self }
    }

    /// Whether label values in selectors may be malformed.
    pub fn allows_invalid_values_in_selector(&self) -> bool {
        self.allow_invalid_values_in_selector
    }
}

fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    CONTAINER_LISTS.iter().flat_map(|list| spec[list].items())
}

/// Whether the deletion cost that a pod's annotations tell, if any, is a number of 32 bits.
pub(super) fn has_valid_deletion_cost(annotations: &Value) -> bool {
    let Some(cost) = annotations["controller.kubernetes.io/pod-deletion-cost"].as_str() else { return true };
    let starts_well = cost == "0" || cost.starts_with(['-', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    starts_well && cost.parse::<i32>().is_ok()
}

fn has_invalid_affinity_selector(affinity: &Value) -> bool {
    let is_bad = |term: &Value| {
        ["labelSelector", "namespaceSelector"].iter().any(|s| is_invalid(&term[s], SelectorOptions::default()))
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let of_kind = &affinity[kind];
        let required = of_kind["requiredDuringSchedulingIgnoredDuringExecution"].items();
        let preferred = of_kind["preferredDuringSchedulingIgnoredDuringExecution"].items();
        required.iter().any(is_bad) || preferred.iter().any(|term| is_bad(&term["podAffinityTerm"]))
    })
}

fn has_invalid_node_affinity(affinity: &Value) -> bool {
    let required = &affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    required["nodeSelectorTerms"].items().iter().any(has_invalid_value)
}

fn has_indivisible_huge_pages(spec: &Value) -> bool {
    let is_bad = |list: &Value| {
        list.entries().any(|(name, amount)| is_huge_pages(name) && !is_divisible_by_page_size(name, quantity(amount)))
    };
    let mut of_containers = containers(spec).map(|container| &container["resources"]);
    of_containers.any(|resources| is_bad(&resources["limits"]) || is_bad(&resources["requests"]))
        || is_bad(&spec["overhead"])
}

fn has_invalid_label_keys(constraint: &Value) -> bool {
    let mut errors = ErrorList::new();
    validate_label_keys(&At::new(constraint, Path::ROOT), &mut errors);
    !errors.is_empty()
}

fn has_non_local_token_path(spec: &Value) -> bool {
    let mut sources = spec["volumes"].items().iter().flat_map(|volume| volume["projected"]["sources"].items());
    sources.any(|source| {
        let mut errors = ErrorList::new();
        validate_local_path(&At::new(&source["serviceAccountToken"]["path"], Path::ROOT), &mut errors);
        !errors.is_empty()
    })
}

fn restarts_all_containers(spec: &Value) -> bool {
    let has_action = |container: &Value| {
        container["restartPolicyRules"]
            .items()
            .iter()
            .any(|rule| rule["action"].as_str() == Some("RestartAllContainers"))
    };
    let has_rules = |container: &Value| !container["restartPolicyRules"].items().is_empty();
    spec["containers"].items().iter().any(has_action)
        || spec["initContainers"].items().iter().any(|c| has_action(c) || (is_sidecar(c) && has_rules(c)))
}
