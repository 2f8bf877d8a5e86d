//! Ownership of `replicas` between a resource and its scale subresource.
//!
//! A scale shows the owners of the replicas field of its resource as owners of `spec.replicas`; what a write through it
//! makes of them goes back into the resource's entries. Entries that come back this way carry no time, and owners by
//! Update come back apart from their other fields, as upstream has it.

use super::managed::{Entry, Trust, decode, encode};
use super::set::FieldSet;
use super::update::path_of;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{Str, Value};

/// Where each version of a resource keeps its replicas: `apiVersion`, and the path (`None` where a version has no scale
/// subresource).
pub type ReplicasPaths<'a> = [(&'a str, Option<&'a [&'a str]>)];

const SCALE_VERSION: &str = "autoscaling/v1";
const SCALE_PATH: &[&str] = &["spec", "replicas"];

/// The path in a version; the outer `None` for a version that is not known.
fn path_in<'a>(paths: &'a ReplicasPaths<'_>, version: &str) -> Option<Option<&'a [&'a str]>> {
    paths.iter().find(|(v, _)| *v == version).map(|(_, path)| *path)
}

fn has(owner: &Entry, path: &[&str]) -> bool {
    owner.fields.has(&path_of(path))
}

fn owners(object: &Value, trust: Trust) -> Result<Vec<Entry>, String> {
    decode(object.metadata()["managedFields"].clone(), trust)
}

/// The managedFields of the scale of an object; `null` for none.
///
/// # Errors
/// What is wrong with the object's managedFields.
pub fn to_scale(object: &Value, paths: &ReplicasPaths<'_>) -> Result<Value, String> {
    let owners = owners(object, Trust::Stored)?.into_iter().filter_map(|owner| {
        let path = path_in(paths, &owner.api_version)??;
        has(&owner, path).then(|| Entry {
            api_version: Str::const_new(SCALE_VERSION),
            fields: FieldSet::of_paths(&[SCALE_PATH]),
            ..owner
        })
    });
    Ok(encode(owners.collect()))
}

/// The managedFields of an object (as it was before) after a write through its scale, which is `scale` now; `null` for
/// none. `version`: the `apiVersion` of the object.
///
/// # Errors
/// What is wrong with the managedFields of one of the two.
pub fn to_parent(object: &Value, scale: &Value, version: &str, paths: &ReplicasPaths<'_>) -> Result<Value, String> {
    let mut of_scale = owners(scale, Trust::FromClient)?;
    let mut kept: Vec<(String, Entry)> = Vec::new();
    for mut owner in owners(object, Trust::Stored)? {
        // entries of versions that are not known go
        let Some(path) = path_in(paths, &owner.api_version) else { continue };
        if let Some(path) = path.filter(|path| has(&owner, path)) {
            match of_scale.iter().position(|other| other.is_same_owner(&owner)) {
                Some(idx) => drop(of_scale.remove(idx)),
                None => owner.fields.remove(&FieldSet::of_paths(&[path])),
            }
        }
        if !owner.fields.is_empty() {
            kept.push((owner.identifier(), owner));
        }
    }
    for owner in of_scale.into_iter().filter(|owner| has(owner, SCALE_PATH)) {
        let identifier = owner.identifier();
        let path = path_in(paths, version).flatten().unwrap_or_default();
        let earlier_time = kept.iter().find(|(id, _)| *id == identifier).map(|(_, e)| e.time.clone());
        kept.retain(|(id, _)| *id != identifier);
        let entry = Entry {
            api_version: Str::new(version),
            time: earlier_time.unwrap_or_default(),
            fields: FieldSet::of_paths(&[path]),
            ..owner
        };
        kept.push((identifier, entry));
    }
    Ok(encode(kept.into_iter().map(|(_, owner)| owner).collect()))
}
