//! A Kubernetes client: configuration, one HTTP layer, a typed and a dynamic [`Api`], watches, discovery.
//!
//! It works against any Kubernetes API server. The parts, in the order in which a program meets them:
//!
//! * [`Config`] says where the server is and who we are: [`Config::infer`], a kubeconfig, or a pod's service account.
//! * [`Client`] sends requests: connections, credentials, rate limit, retries.
//! * [`Api`] has the verbs on one kind of objects: `Api::<Pod>::namespaced(&client, "default").get("web-0").await?`.
//!   Each verb gives a [`Call`], onto which options are chained before it is awaited.
//! * [`watch`] follows changes; caches of what is watched are in the crate `pintle-informer`.
//! * [`discovery`] finds out what a server serves.
//!
//! Not here: kinds (they are `k8s_openapi`'s), caches and work queues (`pintle-informer`).

pub mod api;
mod call;
mod client;
pub mod config;
mod credentials;
pub mod discovery;
pub mod error;
mod exec_plugin;
pub mod fake;
mod list;
pub mod options;
mod rate_limit;
mod request;
mod resource;
pub mod transport;
pub mod watch;
pub mod wire;

pub use api::{Api, Deletion, Patch};
pub use call::Call;
pub use client::{Client, RETRIES_MAX, RETRY_AFTER_MAX};
pub use config::{Config, ConfigError};
pub use error::{Error, Result};
pub use list::ObjectList;
pub use rate_limit::RateLimiter;
pub use request::{Request, Verb};
pub use resource::{ApiResource, DynamicObject, Object, ObjectScope, PartialObjectMetadata};

pub use k8s_openapi;
pub use pintle_apimachinery as apimachinery;
pub use serde;
