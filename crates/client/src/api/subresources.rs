//! Subresources: scale, eviction, binding, tokens, logs, and any other by name.

use super::Api;
use crate::call::{Call, Decode};
use crate::client::decode_json;
use crate::error::{Error, Result};
use crate::options::{CreateOptions, GetOptions, PatchOptions, UpdateOptions};
use crate::request::Verb;
use crate::resource::Object;
use crate::transport::Body;
use bytes::Bytes;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::core::v1::{Binding, Namespace, ObjectReference, Pod, ServiceAccount};
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Puts a pod onto a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bind {
    /// The node.
    pub node: String,
    /// The uid that the pod must have.
    pub uid: Option<String>,
    /// Annotations for the pod.
    pub annotations: std::collections::BTreeMap<String, String>,
}

/// Asks a pod to go, if its disruption budget allows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evict {
    /// How to delete it.
    pub delete_options: Option<DeleteOptions>,
}

impl<K: Object> Api<K> {
    /// The number of replicas that are wanted and are there (`scale`).
    pub fn get_scale(&self, name: &str) -> Call<'_, GetOptions, Scale> {
        Call::new(self.client(), self.named(Verb::Get, name, "scale"), json_of())
    }

    /// Sets the number of replicas that are wanted.
    pub fn update_scale(&self, scale: &Scale) -> Call<'_, UpdateOptions, Scale> {
        let namespace = scale.metadata.namespace.as_deref().unwrap_or_default();
        let scoped = if self.namespace().is_empty() { self.in_namespace(namespace) } else { self.clone() };
        let request = scoped.named(Verb::Update, Object::name(scale), "scale");
        Call::new(self.client(), request.and_then(|request| request.json("Scale", scale)), json_of())
    }

    /// Changes parts of the scale.
    pub fn patch_scale<P: Serialize>(&self, name: &str, patch: &super::Patch<P>) -> Call<'_, PatchOptions, Scale> {
        let request = self.named(Verb::Patch, name, "scale").and_then(|request| patch.write(request));
        Call::new(self.client(), request, json_of())
    }

    /// Reads any subresource as `T`.
    pub fn subresource<T: DeserializeOwned + 'static>(&self, name: &str, subresource: &str) -> Call<'_, GetOptions, T> {
        Call::new(self.client(), self.named(Verb::Get, name, subresource), json_of())
    }

    /// Sends `body` to any subresource by POST and reads the answer as `T`.
    pub fn create_subresource<B: Serialize, T: DeserializeOwned + 'static>(
        &self,
        name: &str,
        subresource: &str,
        body: &B,
    ) -> Call<'_, CreateOptions, T> {
        let request = self.named(Verb::Create, name, subresource);
        Call::new(self.client(), request.and_then(|request| request.json("body", body)), json_of())
    }
}

impl Api<Pod> {
    /// Puts a pod onto a node. What schedulers do.
    pub fn bind(&self, name: &str, bind: Bind) -> Call<'_, CreateOptions, ()> {
        let binding = Binding {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(self.namespace().to_owned()),
                uid: bind.uid,
                annotations: (!bind.annotations.is_empty()).then_some(bind.annotations),
                ..ObjectMeta::default()
            },
            target: ObjectReference {
                kind: Some("Node".to_owned()),
                name: Some(bind.node),
                ..ObjectReference::default()
            },
        };
        let request = self.named(Verb::Create, name, "binding").and_then(|request| request.json("Binding", &binding));
        Call::new(self.client(), request, Box::new(|_| Ok(())))
    }

    /// Deletes a pod if its disruption budget allows it; else [`Error::is_too_many_requests`].
    pub fn evict(&self, name: &str, evict: Evict) -> Call<'_, CreateOptions, ()> {
        let eviction = Eviction {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(self.namespace().to_owned()),
                ..ObjectMeta::default()
            },
            delete_options: evict.delete_options,
        };
        let request =
            self.named(Verb::Create, name, "eviction").and_then(|request| request.json("Eviction", &eviction));
        Call::new(self.client(), request, Box::new(|_| Ok(())))
    }

    /// What a pod's containers have printed, as text.
    ///
    /// # Errors
    /// [`Error`]; [`Error::Decode`] when it is no UTF-8.
    pub async fn logs(&self, name: &str, options: &LogOptions) -> Result<String> {
        let body = self.log_stream(name, options).await?;
        let bytes = body.collect(crate::client::ANSWER_BYTES_MAX).await?;
        String::from_utf8(bytes.to_vec()).map_err(|error| Error::decode("log", error))
    }

    /// What a pod's containers print, as it comes.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn log_stream(&self, name: &str, options: &LogOptions) -> Result<Body> {
        // a followed log has no end, like a watch
        let verb = if options.is_following { Verb::Watch } else { Verb::Get };
        let mut request = self.named(verb, name, "log")?;
        request.accept = "*/*";
        options.write(&mut request);
        Ok(self.client().send(&request).await?.into_body())
    }
}

/// Which lines of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// The container; needed when there are several.
    pub container: String,
    /// Go on with what will be printed.
    pub is_following: bool,
    /// Of the container's last run instead of this one.
    pub is_previous: bool,
    /// Only the last so many lines.
    pub tail_lines: Option<u32>,
    /// Only what is no older than this.
    pub since_seconds: Option<u32>,
    /// With the time before each line.
    pub has_timestamps: bool,
}

impl LogOptions {
    fn write(&self, request: &mut crate::request::Request) {
        request.set_param("container", self.container.as_str());
        for (key, is_set) in
            [("follow", self.is_following), ("previous", self.is_previous), ("timestamps", self.has_timestamps)]
        {
            if is_set {
                request.set_param(key, "true");
            }
        }
        for (key, number) in [("tailLines", self.tail_lines), ("sinceSeconds", self.since_seconds)] {
            if let Some(number) = number {
                request.set_param(key, number.to_string());
            }
        }
    }
}

impl Api<ServiceAccount> {
    /// Makes a token for a service account.
    pub fn create_token(&self, name: &str, request: &TokenRequest) -> Call<'_, CreateOptions, TokenRequest> {
        self.create_subresource(name, "token", request)
    }
}

impl Api<Namespace> {
    /// Sets a namespace's finalizers.
    pub fn finalize(&self, namespace: &Namespace) -> Call<'_, UpdateOptions, Namespace> {
        self.update_subresource("finalize", namespace)
    }
}

fn json_of<T: DeserializeOwned + 'static>() -> Decode<T> {
    Box::new(|bytes: &Bytes| decode_json(bytes))
}
