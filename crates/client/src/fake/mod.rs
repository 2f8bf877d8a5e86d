//! A server for tests, in memory and in this process: [`FakeServer`] is a [`Transport`](crate::transport::Transport).
//!
//! It keeps objects of any kind and has every verb, selectors, paging, watches that resume, optimistic concurrency,
//! finalizers, generated names and the status and scale subresources. It has no kinds: it does not default, validate
//! or convert, and no controller runs. Reactors answer in its place, to inject what tests need; every request is
//! recorded as an [`Action`].
//!
//! ```
//! # use k8s_openapi::api::core::v1::ConfigMap;
//! # use pintle_client::{Api, fake::{FakeServer, Reaction}, Object as _};
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> pintle_client::Result<()> {
//! let server = FakeServer::new();
//! let maps = Api::<ConfigMap>::namespaced(&server.client(), "default");
//! let mut map = ConfigMap::default();
//! map.metadata.generate_name = Some("map-".to_owned());
//! let made = maps.create(&map).await?;
//! assert!(made.name().starts_with("map-"));
//!
//! server.react("update", "configmaps", |_| Reaction::fail(503, "ServiceUnavailable", "not today"));
//! assert!(maps.update(&made).await.unwrap_err().is_service_unavailable());
//! assert_eq!(server.actions().len(), 2);
//! # Ok(())
//! # }
//! ```

mod log;
mod patch;
mod reaction;
mod route;
mod server;
mod tracker;

pub use reaction::{Action, Reaction};
pub use server::FakeServer;
