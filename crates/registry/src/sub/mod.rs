//! Subresources that do something of their own. Those that update the same object under other rules (status,
//! ephemeralcontainers, resize, approval, finalize) are updates like all others: see the strategy's `subresource`.

mod binding;
mod eviction;
mod scale;

pub use binding::bind;
pub use eviction::evict;
pub use scale::{ScaleWrite, read_scale, write_scale};
