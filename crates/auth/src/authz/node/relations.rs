//! What is related to which node: through the pods on it, and through the volumes of their claims.

use super::Place;
use crate::pod_refs::{config_map_names, secret_names};
use indexmap::IndexMap;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{Str, Value};

/// Where relations come from: group and resource.
pub const RESOURCES: &[(&str, &str)] = &[
    ("", "pods"),
    ("", "persistentvolumes"),
    ("storage.k8s.io", "volumeattachments"),
    ("resource.k8s.io", "resourceslices"),
];

/// What can be related to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Pod,
    Secret,
    ConfigMap,
    Claim,
    ServiceAccount,
    ResourceClaim,
    Volume,
    Attachment,
    Slice,
}

/// What an object contributes.
#[derive(Debug, Default)]
struct Contribution {
    /// Places related to a node directly.
    to_node: Option<(Str, Vec<Place>)>,
    /// Of a volume: the claim that has it, and the secrets that come with it.
    to_claim: Option<(Place, Vec<Place>)>,
}

/// The relations.
#[derive(Debug, Default)]
pub(super) struct Relations {
    /// By resource, namespace and name.
    contributions: IndexMap<(Str, Str, Str), Contribution>,
    /// The nodes of a place, each with how many contributions say so.
    nodes: IndexMap<Place, IndexMap<Str, usize>>,
    /// The claims through which a place is related to nodes, likewise.
    claims: IndexMap<Place, IndexMap<Place, usize>>,
}

impl Relations {
    pub(super) fn put(&mut self, resource: &str, object: &Value) {
        let (namespace, name) = (Str::new(object.namespace()), Str::new(object.name()));
        self.remove(resource, &namespace, &name);
        let contribution = match resource {
            "pods" => of_pod(object),
            "persistentvolumes" => of_volume(object),
            "volumeattachments" => {
                of_node(&object["spec"]["nodeName"], (Kind::Attachment, namespace.clone(), name.clone()))
            }
            "resourceslices" => of_node(&object["spec"]["nodeName"], (Kind::Slice, namespace.clone(), name.clone())),
            _ => None,
        };
        let Some(contribution) = contribution else { return };
        if let Some((node, places)) = &contribution.to_node {
            for place in places {
                *self.nodes.entry(place.clone()).or_default().entry(node.clone()).or_default() += 1;
            }
        }
        if let Some((claim, places)) = &contribution.to_claim {
            for place in places {
                *self.claims.entry(place.clone()).or_default().entry(claim.clone()).or_default() += 1;
            }
        }
        self.contributions.insert((Str::new(resource), namespace, name), contribution);
    }

    pub(super) fn remove(&mut self, resource: &str, namespace: &str, name: &str) {
        let key = (Str::new(resource), Str::new(namespace), Str::new(name));
        if let Some(contribution) = self.contributions.swap_remove(&key) {
            self.withdraw(&contribution);
        }
    }

    /// Forgets everything that comes from a resource.
    pub(super) fn clear(&mut self, resource: &str) {
        let (gone, kept) = std::mem::take(&mut self.contributions)
            .into_iter()
            .partition::<IndexMap<_, _>, _>(|((own, _, _), _)| own == resource);
        self.contributions = kept;
        for contribution in gone.values() {
            self.withdraw(contribution);
        }
    }

    fn withdraw(&mut self, contribution: &Contribution) {
        if let Some((node, places)) = &contribution.to_node {
            places.iter().for_each(|place| decrement(&mut self.nodes, place, node));
        }
        if let Some((claim, places)) = &contribution.to_claim {
            places.iter().for_each(|place| decrement(&mut self.claims, place, claim));
        }
    }

    pub(super) fn is_related(&self, kind: Kind, namespace: &str, name: &str, node: &str) -> bool {
        let place = (kind, Str::new(namespace), Str::new(name));
        let has_node = |place: &Place| self.nodes.get(place).is_some_and(|nodes| nodes.contains_key(node));
        has_node(&place) || self.claims.get(&place).is_some_and(|claims| claims.keys().any(has_node))
    }
}

fn decrement<T: std::hash::Hash + Eq>(counts: &mut IndexMap<Place, IndexMap<T, usize>>, place: &Place, what: &T) {
    let Some(of_place) = counts.get_mut(place) else { return };
    if let Some(count) = of_place.get_mut(what) {
        *count -= 1;
        if *count == 0 {
            of_place.swap_remove(what);
        }
    }
    if of_place.is_empty() {
        counts.swap_remove(place);
    }
}

fn of_node(node: &Value, place: Place) -> Option<Contribution> {
    let node = node.as_str().filter(|node| !node.is_empty())?;
    Some(Contribution { to_node: Some((Str::new(node), vec![place])), to_claim: None })
}

/// Node of a pod, and what the pod refers to. A mirror pod refers to nothing: the node itself wrote it.
fn of_pod(pod: &Value) -> Option<Contribution> {
    let spec = &pod["spec"];
    let node = spec["nodeName"].as_str().filter(|node| !node.is_empty())?;
    let namespace = Str::new(pod.namespace());
    let place = |kind: Kind, name: &str| (kind, namespace.clone(), Str::new(name));
    let mut places = vec![place(Kind::Pod, pod.name())];
    if pod.annotation("kubernetes.io/config.mirror").is_none() {
        let account = spec["serviceAccountName"].as_str().filter(|name| !name.is_empty());
        places.extend(account.map(|name| place(Kind::ServiceAccount, name)));
        places.extend(secret_names(spec).into_iter().map(|name| place(Kind::Secret, name)));
        places.extend(config_map_names(spec).into_iter().map(|name| place(Kind::ConfigMap, name)));
        for volume in spec["volumes"].items() {
            if let Some(claim) = volume["persistentVolumeClaim"]["claimName"].as_str() {
                places.push(place(Kind::Claim, claim));
            } else if !volume["ephemeral"].is_null() {
                places.push(place(Kind::Claim, &format!("{}-{}", pod.name(), volume["name"].str_or_empty())));
            }
        }
        places.extend(resource_claims(pod).into_iter().map(|name| place(Kind::ResourceClaim, name)));
    }
    Some(Contribution { to_node: Some((Str::new(node), places)), to_claim: None })
}

fn resource_claims(pod: &Value) -> Vec<&str> {
    let statuses = pod["status"]["resourceClaimStatuses"].items();
    let mut names = Vec::new();
    for claim in pod["spec"]["resourceClaims"].items() {
        let generated = statuses.iter().find(|status| status["name"] == claim["name"]);
        let generated = generated.and_then(|status| status["resourceClaimName"].as_str());
        names.extend(claim["resourceClaimName"].as_str().or(generated));
    }
    names.extend(pod.at("status.extendedResourceClaimStatus.resourceClaimName").as_str());
    names.retain(|name| !name.is_empty());
    names
}

/// Sources of volumes with a secret for the node: the source, the reference, and whether its namespace is that of the
/// claim where it says none.
const VOLUME_SECRETS: [(&str, &str, bool); 10] = [
    ("cephfs", "secretRef", true),
    ("cinder", "secretRef", false),
    ("flexVolume", "secretRef", true),
    ("rbd", "secretRef", true),
    ("scaleIO", "secretRef", true),
    ("iscsi", "secretRef", true),
    ("storageos", "secretRef", false),
    ("csi", "nodePublishSecretRef", false),
    ("csi", "nodeStageSecretRef", false),
    ("csi", "nodeExpandSecretRef", false),
];

/// The claim of a volume, and the secrets that a node needs to mount it.
fn of_volume(volume: &Value) -> Option<Contribution> {
    let spec = &volume["spec"];
    let claim = &spec["claimRef"];
    if claim.is_null() {
        return None;
    }
    let own_namespace = claim["namespace"].str_or_empty();
    let to = (Kind::Claim, Str::new(own_namespace), Str::new(claim["name"].str_or_empty()));
    let mut places = vec![(Kind::Volume, Str::default(), Str::new(volume.name()))];
    let mut add = |namespace: &str, name: &str, is_claims_by_default: bool| {
        let namespace = if namespace.is_empty() && is_claims_by_default { own_namespace } else { namespace };
        if !name.is_empty() {
            places.push((Kind::Secret, Str::new(namespace), Str::new(name)));
        }
    };
    let azure = &spec["azureFile"];
    add(azure["secretNamespace"].str_or_empty(), azure["secretName"].str_or_empty(), true);
    for (source, reference, is_claims_by_default) in VOLUME_SECRETS {
        let reference = &spec[source][reference];
        add(reference["namespace"].str_or_empty(), reference["name"].str_or_empty(), is_claims_by_default);
    }
    Some(Contribution { to_node: None, to_claim: Some((to, places)) })
}
