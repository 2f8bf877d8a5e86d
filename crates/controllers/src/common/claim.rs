//! Which objects belong to a controller: those it controls, those it may adopt, those it must release.
//!
//! Follows: kubernetes/pkg/controller/controller_ref_manager.go (v1.35).

use super::owner::controller_ref;
use k8s_openapi::Resource;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use pintle_apimachinery::Status;
use pintle_apimachinery::labels::Selector;
use pintle_client::{Api, Error, Object, Patch, Result};
use pintle_informer::Cached;
use serde_json::json;
use tokio::sync::OnceCell;

/// What an object is to a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Its own.
    Keep,
    /// Nobody's, and the selector matches: to be adopted.
    Adopt,
    /// Its own, and the selector does not match any more: to be released.
    Release,
    /// None of its business.
    Ignore,
}

/// What an object is to the owner of this uid. `is_owner_terminating`: the owner takes and gives nothing any more.
pub(crate) fn claim_of<K>(object: &Cached<K>, uid: &str, matches: bool, is_owner_terminating: bool) -> Claim {
    match object.controller_ref() {
        Some(owner) if owner.uid != uid => Claim::Ignore,
        Some(_) if matches => Claim::Keep,
        Some(_) if is_owner_terminating => Claim::Ignore,
        Some(_) => Claim::Release,
        None if is_owner_terminating || !matches || object.is_terminating() => Claim::Ignore,
        None => Claim::Adopt,
    }
}

/// A controller that claims objects.
pub(crate) struct Claimant<'a, O> {
    owner: &'a O,
    owners: Api<O>,
    selector: &'a Selector,
    reference: OwnerReference,
    finalizers: &'a [&'a str],
    /// Whether the owner was asked for anew and may adopt.
    may_adopt: OnceCell<()>,
}

impl<'a, O: Object + Resource> Claimant<'a, O> {
    /// `owners` is the collection that `owner` is in.
    pub(crate) fn new(owner: &'a O, owners: Api<O>, selector: &'a Selector) -> Claimant<'a, O> {
        let reference = controller_ref(owner);
        Claimant { owner, owners, selector, reference, finalizers: &[], may_adopt: OnceCell::new() }
    }

    /// What is adopted gets these finalizers.
    pub(crate) fn with_finalizers(mut self, finalizers: &'a [&'a str]) -> Claimant<'a, O> {
        self.finalizers = finalizers;
        self
    }

    /// Adopts and releases, and gives the objects that are the owner's now. `accepts` restricts what may be its own.
    ///
    /// # Errors
    /// The first failure of the server, after every object was tried.
    pub(crate) async fn claim<K: Object>(
        &self,
        objects: Vec<Cached<K>>,
        api: &Api<K>,
        accepts: impl Fn(&Cached<K>) -> bool,
    ) -> Result<Vec<Cached<K>>> {
        let mut claimed = Vec::new();
        let mut failure = None;
        for object in objects {
            let matches = self.selector.matches(&object) && accepts(&object);
            let result = match claim_of(&object, self.owner.uid(), matches, self.owner.is_terminating()) {
                Claim::Keep => Ok(Some(object)),
                Claim::Ignore => Ok(None),
                Claim::Adopt => self.adopt(&object, api).await.map(|()| Some(object)),
                Claim::Release => self.release(&object, api).await.map(|()| None),
            };
            match result {
                Ok(object) => claimed.extend(object),
                // whoever is gone meanwhile is nobody's
                Err(error) if error.is_not_found() => {}
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(claimed), Err)
    }

    async fn adopt<K: Object>(&self, object: &Cached<K>, api: &Api<K>) -> Result<()> {
        self.may_adopt.get_or_try_init(|| self.check_owner()).await?;
        let mut metadata = json!({"uid": object.uid(), "ownerReferences": [self.reference]});
        if !self.finalizers.is_empty() {
            metadata["finalizers"] = json!(self.finalizers);
        }
        let patch = Patch::Strategic(json!({ "metadata": metadata }));
        api.in_namespace(object.namespace()).patch(object.name(), &patch).await?;
        Ok(())
    }

    /// Looks at the owner itself, not its cached state: it may be going away, or be another one of the same name.
    async fn check_owner(&self) -> Result<()> {
        let fresh = self.owners.get(self.owner.name()).await?;
        if fresh.uid() == self.owner.uid() && !fresh.is_terminating() {
            return Ok(());
        }
        let (namespace, name) = (self.owner.namespace(), self.owner.name());
        let why = if fresh.is_terminating() { "has just been deleted" } else { "is gone: another one has its name" };
        Err(Error::from(Status::failure(409, "Conflict", format!("can't adopt: {} {namespace}/{name} {why}", O::KIND))))
    }

    async fn release<K: Object>(&self, object: &Cached<K>, api: &Api<K>) -> Result<()> {
        let mut metadata = json!({
            "uid": object.uid(),
            "ownerReferences": [{"$patch": "delete", "uid": self.owner.uid()}],
        });
        if !self.finalizers.is_empty() {
            metadata["$deleteFromPrimitiveList/finalizers"] = json!(self.finalizers);
        }
        let patch = Patch::Strategic(json!({ "metadata": metadata }));
        match api.in_namespace(object.namespace()).patch(object.name(), &patch).await {
            Ok(_) => Ok(()),
            // the uid is another one, or the reference is gone already
            Err(error) if error.is_not_found() || error.is_invalid() => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;

    #[test]
    fn every_case() {
        let pod = |owner: &str, is_terminating: bool| {
            let owners = if owner.is_empty() {
                json!([])
            } else {
                json!([{"apiVersion": "v1", "kind": "X", "name": "x", "uid": owner, "controller": true}])
            };
            let mut metadata = json!({"name": "a", "ownerReferences": owners});
            if is_terminating {
                metadata["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            }
            let raw = serde_json::to_vec(&json!({ "metadata": metadata })).unwrap();
            Cached::<Pod>::from_json(raw).unwrap()
        };
        let mut seen = String::new();
        for (owner, is_terminating) in [("me", false), ("me", true), ("you", false), ("", false), ("", true)] {
            for matches in [true, false] {
                for is_owner_terminating in [false, true] {
                    let claim = claim_of(&pod(owner, is_terminating), "me", matches, is_owner_terminating);
                    seen.push_str(&format!("{claim:?} "));
                }
            }
            seen.push('\n');
        }
        expect_test::expect![[r#"
            Keep Keep Release Ignore 
            Keep Keep Release Ignore 
            Ignore Ignore Ignore Ignore 
            Adopt Ignore Ignore Ignore 
            Ignore Ignore Ignore Ignore 
        "#]]
        .assert_eq(&seen);
    }
}
