//! The graph of owners and dependents, and what each change of it asks for. Pure.
//!
//! Follows: kubernetes/pkg/controller/garbagecollector/graph_builder.go (v1.35).

use super::absent::AbsentOwners;
use pintle_apimachinery::Str;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The version and kind of an object; shared by all of a kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    pub(super) api_version: Str,
    pub(super) kind: Str,
}

/// Which object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    pub(super) kind: Arc<Kind>,
    /// Empty outside namespaces.
    pub(super) namespace: Str,
    pub(super) name: Str,
    pub(super) uid: Str,
}

impl Identity {
    /// Whether an owner reference means this object: namespaces apart, all of it must fit.
    fn is_meant_by(&self, owner: &Owner) -> bool {
        owner.uid == self.uid && owner.name == self.name && owner.kind == self.kind
    }
}

/// An owner reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) kind: Arc<Kind>,
    pub(super) name: Str,
    pub(super) uid: Str,
    /// `blockOwnerDeletion`.
    pub(super) blocks: bool,
}

/// An object as it was seen.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) identity: Identity,
    pub(super) owners: Vec<Owner>,
    pub(super) is_terminating: bool,
    pub(super) has_orphan_finalizer: bool,
    pub(super) has_foreground_finalizer: bool,
}

/// Invariants: `dependents` of a node are exactly the nodes with an owner of its uid, but for those whose owner came
/// into the graph after they left; a virtual node has no owners.
#[derive(Clone, Debug)]
struct Node {
    identity: Identity,
    owners: Vec<Owner>,
    dependents: BTreeSet<Str>,
    /// Known from references alone.
    is_virtual: bool,
    is_terminating: bool,
    /// Its dependents are being deleted before it.
    is_deleting_dependents: bool,
    /// Whether the two transitions below were seen.
    was_orphaning: bool,
    was_foreground: bool,
}

/// What a change asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Look whether the object is to be deleted. `is_virtual`: it was known from references alone.
    AttemptToDelete { uid: Str, is_virtual: bool },
    /// The same, but not at once.
    AttemptToDeleteLater { uid: Str },
    /// Take the object out of its dependents' references.
    AttemptToOrphan { uid: Str },
    /// A reference means an object in another namespace: tell people.
    OwnerInOtherNamespace { dependent: Identity, owner: Owner },
}

/// What a worker needs to know of a node.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) identity: Identity,
    pub(super) owners: Vec<Owner>,
    pub(super) is_virtual: bool,
    pub(super) is_terminating: bool,
    pub(super) is_deleting_dependents: bool,
    pub(super) dependents: Vec<Dependent>,
}

/// A dependent of a node.
#[derive(Clone, Debug)]
pub(super) struct Dependent {
    pub(super) identity: Identity,
    pub(super) is_deleting_dependents: bool,
    /// Whether its reference blocks the owner's deletion.
    pub(super) blocks: bool,
}

/// The graph.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: BTreeMap<Str, Node>,
    kinds: BTreeSet<Arc<Kind>>,
    absent: AbsentOwners,
}

impl Graph {
    /// The one copy of a kind.
    pub(super) fn kind(&mut self, api_version: &str, kind: &str) -> Arc<Kind> {
        let kind = Kind { api_version: Str::new(api_version), kind: Str::new(kind) };
        if let Some(known) = self.kinds.get(&kind) {
            return Arc::clone(known);
        }
        let kind = Arc::new(kind);
        self.kinds.insert(Arc::clone(&kind));
        kind
    }

    /// How many objects it knows.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Owners known not to exist.
    pub(super) fn absent(&mut self) -> &mut AbsentOwners {
        &mut self.absent
    }

    /// A node as it is now.
    pub(super) fn view(&self, uid: &str) -> Option<View> {
        let node = self.nodes.get(uid)?;
        let dependent = |dependent: &Node| Dependent {
            identity: dependent.identity.clone(),
            is_deleting_dependents: dependent.is_deleting_dependents,
            blocks: dependent.owners.iter().any(|owner| owner.uid == uid && owner.blocks),
        };
        Some(View {
            identity: node.identity.clone(),
            owners: node.owners.clone(),
            is_virtual: node.is_virtual,
            is_terminating: node.is_terminating,
            is_deleting_dependents: node.is_deleting_dependents,
            dependents: node.dependents.iter().filter_map(|uid| self.nodes.get(uid)).map(dependent).collect(),
        })
    }

    /// An object is new or has changed.
    pub(super) fn seen(&mut self, seen: Seen) -> Vec<Effect> {
        let mut effects = Vec::new();
        let uid = seen.identity.uid.clone();
        let (added, removed, unblocked) = match self.nodes.get(&uid) {
            None => (seen.owners.clone(), Vec::new(), Vec::new()),
            Some(node) => {
                if node.is_virtual {
                    self.materialize(&seen.identity, &mut effects);
                }
                self.nodes.get(&uid).map(|node| differences(&node.owners, &seen.owners)).unwrap_or_default()
            }
        };
        let is_deleting_dependents = seen.is_terminating && seen.has_foreground_finalizer;
        let is_orphaning = seen.is_terminating && seen.has_orphan_finalizer;
        let node = self.nodes.entry(uid.clone()).or_insert_with(|| Node {
            identity: seen.identity,
            owners: Vec::new(),
            dependents: BTreeSet::new(),
            is_virtual: false,
            is_terminating: false,
            is_deleting_dependents: false,
            was_orphaning: false,
            was_foreground: false,
        });
        node.owners = seen.owners;
        node.is_terminating |= seen.is_terminating;
        let begins_orphaning = is_orphaning && !node.was_orphaning;
        let begins_foreground = is_deleting_dependents && !node.was_foreground;
        (node.was_orphaning, node.was_foreground) = (is_orphaning, is_deleting_dependents);
        if begins_foreground && !begins_orphaning {
            node.is_deleting_dependents = true;
        }
        let dependents = node.dependents.clone();
        for owner in unblocked {
            // it may be waiting for this object no longer
            effects.extend(self.attempt(&owner));
        }
        for owner in &removed {
            if let Some(owner) = self.nodes.get_mut(&owner.uid) {
                owner.dependents.remove(&uid);
            }
        }
        self.add_to_owners(&uid, &added, &mut effects);
        if begins_orphaning {
            effects.push(Effect::AttemptToOrphan { uid });
        } else if begins_foreground {
            effects.extend(dependents.iter().filter_map(|dependent| self.attempt(dependent)));
            effects.extend(self.attempt(&uid));
        }
        effects
    }

    fn attempt(&self, uid: &Str) -> Option<Effect> {
        let node = self.nodes.get(uid)?;
        Some(Effect::AttemptToDelete { uid: uid.clone(), is_virtual: node.is_virtual })
    }

    /// A node known from references turns out to be this object. Those who meant another one are looked at again.
    fn materialize(&mut self, identity: &Identity, effects: &mut Vec<Effect>) {
        let Some(node) = self.nodes.get_mut(&identity.uid) else { return };
        node.is_virtual = false;
        if node.identity == *identity {
            return;
        }
        node.identity = identity.clone();
        let dependents = node.dependents.clone();
        for dependent in dependents.iter().filter_map(|uid| self.nodes.get(uid)) {
            let (_, is_other) = how_meant(dependent, identity);
            if is_other {
                effects.extend(in_other_namespace(dependent, identity));
                let (uid, is_virtual) = (dependent.identity.uid.clone(), dependent.is_virtual);
                effects.push(Effect::AttemptToDelete { uid, is_virtual });
            }
        }
    }

    /// Enters an object with its owners, who become virtual nodes if they are not known.
    fn add_to_owners(&mut self, uid: &Str, owners: &[Owner], effects: &mut Vec<Effect>) {
        let Some(node) = self.nodes.get(uid).map(|node| node.identity.clone()) else { return };
        let mut is_suspicious = false;
        for owner in owners {
            match self.nodes.get_mut(&owner.uid) {
                None => {
                    let identity = Identity {
                        kind: Arc::clone(&owner.kind),
                        namespace: node.namespace.clone(),
                        name: owner.name.clone(),
                        uid: owner.uid.clone(),
                    };
                    self.nodes.insert(
                        owner.uid.clone(),
                        Node {
                            identity,
                            owners: Vec::new(),
                            dependents: BTreeSet::from([uid.clone()]),
                            is_virtual: true,
                            is_terminating: false,
                            is_deleting_dependents: false,
                            was_orphaning: false,
                            was_foreground: false,
                        },
                    );
                    effects.push(Effect::AttemptToDelete { uid: owner.uid.clone(), is_virtual: true });
                }
                Some(known) => {
                    known.dependents.insert(uid.clone());
                    let is_elsewhere = known.identity.namespace != node.namespace;
                    let is_namespaced = !known.identity.namespace.is_empty();
                    if is_namespaced && is_elsewhere && !known.is_virtual && !is_suspicious {
                        effects.push(Effect::OwnerInOtherNamespace { dependent: node.clone(), owner: owner.clone() });
                    }
                    is_suspicious |= if is_namespaced && is_elsewhere {
                        true
                    } else {
                        !known.identity.is_meant_by(owner) || (is_elsewhere && known.is_virtual)
                    };
                }
            }
        }
        if is_suspicious {
            effects.extend(self.attempt(uid));
        }
    }

    /// An object is gone.
    pub(super) fn gone(&mut self, uid: &str) -> Vec<Effect> {
        let Some(identity) = self.nodes.get(uid).map(|node| node.identity.clone()) else { return Vec::new() };
        self.remove(identity)
    }

    fn remove(&mut self, identity: Identity) -> Vec<Effect> {
        let Some(node) = self.nodes.remove(&identity.uid) else { return Vec::new() };
        let mut effects = Vec::new();
        for owner in &node.owners {
            if let Some(owner) = self.nodes.get_mut(&owner.uid) {
                owner.dependents.remove(&identity.uid);
            }
        }
        if !node.dependents.is_empty() {
            self.absent.add(identity);
        }
        effects.extend(node.dependents.iter().filter_map(|dependent| self.attempt(dependent)));
        // an owner that waits for this object may go now
        let waiting = |owner: &&Owner| self.nodes.get(&owner.uid).is_some_and(|owner| owner.is_deleting_dependents);
        effects.extend(node.owners.iter().filter(waiting).filter_map(|owner| self.attempt(&owner.uid)));
        effects
    }

    /// The server was asked and has no such object.
    pub(super) fn verified_absent(&mut self, absent: &Identity) -> Vec<Effect> {
        let Some(node) = self.nodes.get(&absent.uid) else { return Vec::new() };
        let (mut matching, mut others) = (Vec::new(), Vec::new());
        for dependent in node.dependents.iter().filter_map(|uid| self.nodes.get(uid)) {
            let (is_meant, is_other) = how_meant(dependent, absent);
            if is_meant {
                matching.push(dependent.identity.uid.clone());
            }
            if is_other {
                others.push(dependent);
            }
        }
        let is_all = if node.is_virtual { others.is_empty() } else { node.identity == *absent };
        if is_all {
            return self.remove(absent.clone());
        }
        let replacement = if node.is_virtual && node.identity == *absent { alternate(&others, absent) } else { None };
        let mut effects: Vec<Effect> = matching.iter().filter_map(|uid| self.attempt(uid)).collect();
        if !matching.is_empty() {
            self.absent.add(absent.clone());
        }
        if let Some(replacement) = replacement
            && let Some(node) = self.nodes.get_mut(&absent.uid)
        {
            // somebody means another object by this uid: that one is looked for next
            node.identity = replacement;
            effects.push(Effect::AttemptToDeleteLater { uid: absent.uid.clone() });
        }
        effects
    }

    /// The invariants of [`Node`], executed. For tests.
    #[cfg(test)]
    pub(super) fn check(&self) {
        for (uid, node) in &self.nodes {
            assert_eq!(*uid, node.identity.uid);
            for owner in &node.owners {
                let owner = self.nodes.get(&owner.uid);
                assert!(owner.is_none_or(|owner| owner.dependents.contains(uid)), "an owner does not know {uid}");
            }
            for dependent in &node.dependents {
                let dependent = &self.nodes[dependent];
                assert!(dependent.owners.iter().any(|owner| owner.uid == *uid), "{uid} knows a stranger");
            }
            assert!(!node.is_virtual || node.owners.is_empty());
        }
    }
}

/// Owners that are new, that are not there any more or have changed, and the uids of those no longer blocked.
fn differences(old: &[Owner], new: &[Owner]) -> (Vec<Owner>, Vec<Owner>, Vec<Str>) {
    let find = |list: &[Owner], uid: &Str| list.iter().find(|owner| owner.uid == *uid).cloned();
    let added = new.iter().filter(|owner| find(old, &owner.uid).is_none()).cloned().collect();
    let removed: Vec<Owner> = old.iter().filter(|owner| find(new, &owner.uid).is_none()).cloned().collect();
    let is_unblocked = |owner: &&Owner| owner.blocks && find(new, &owner.uid).is_none_or(|now| !now.blocks);
    let unblocked = old.iter().filter(is_unblocked).map(|owner| owner.uid.clone()).collect();
    (added, removed, unblocked)
}

/// Whether a dependent means this object, and whether it means another one by the same uid.
fn how_meant(dependent: &Node, identity: &Identity) -> (bool, bool) {
    if !identity.namespace.is_empty() && identity.namespace != dependent.identity.namespace {
        return (false, true);
    }
    let of_uid = || dependent.owners.iter().filter(|owner| owner.uid == identity.uid);
    (of_uid().any(|owner| identity.is_meant_by(owner)), of_uid().any(|owner| !identity.is_meant_by(owner)))
}

fn in_other_namespace(dependent: &Node, owner: &Identity) -> Option<Effect> {
    if owner.namespace.is_empty() || owner.namespace == dependent.identity.namespace {
        return None;
    }
    let reference = dependent.owners.iter().find(|reference| reference.uid == owner.uid)?;
    Some(Effect::OwnerInOtherNamespace { dependent: dependent.identity.clone(), owner: reference.clone() })
}

/// The next object that dependents may mean by the uid of one that is not there: the first after it in a fixed order,
/// else the first of all.
fn alternate(dependents: &[&Node], absent: &Identity) -> Option<Identity> {
    let mut candidates = BTreeSet::new();
    for dependent in dependents {
        for owner in dependent.owners.iter().filter(|owner| owner.uid == absent.uid) {
            let is_reachable = absent.namespace.is_empty() || absent.namespace == dependent.identity.namespace;
            if absent.is_meant_by(owner) && is_reachable {
                continue;
            }
            let is_cluster_kind = absent.namespace.is_empty() && owner.kind == absent.kind;
            let namespace = if is_cluster_kind { Str::default() } else { dependent.identity.namespace.clone() };
            let kind = Arc::clone(&owner.kind);
            candidates.insert(Identity { kind, namespace, name: owner.name.clone(), uid: owner.uid.clone() });
        }
    }
    candidates.remove(absent);
    candidates.range(absent.clone()..).next().or_else(|| candidates.first()).cloned()
}

#[cfg(test)]
mod tests;
