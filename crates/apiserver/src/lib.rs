//! The HTTP side: TLS, request info, authentication, authorisation, content negotiation, handlers. Knows HTTP; knows no
//! kind by name but for subresources that do something of their own, and no back end.

mod body;
mod component_statuses;
mod compress;
pub mod connect;
mod declared;
mod discovery;
pub mod documents;
mod encode;
pub mod handle;
pub mod health;
pub mod inflight;
mod list;
pub mod metrics;
mod negotiate;
mod openapi;
pub mod openid;
mod options;
mod query;
mod reply;
mod request_info;
mod resources;
pub mod server;
pub mod state;
mod subresources;
mod virtual_resources;
mod watch;
mod websocket;

pub use body::ResponseBody;
pub use request_info::RequestInfo;
pub use server::serve;
pub use state::State;
