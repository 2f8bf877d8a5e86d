//! The documents with which others verify service account tokens.

use crate::handle::Incoming;
use crate::reply::{self, Reply};

/// Answers `/.well-known/openid-configuration` and `/openid/v1/jwks`.
pub(crate) fn serve(incoming: &Incoming<'_>) -> Reply {
    let _ = incoming;
    reply::page_not_found()
}
