//! `/openapi/v2` and `/openapi/v3`.

use crate::handle::Incoming;
use crate::reply::{self, Reply};

/// Answers a path under `/openapi`.
pub(crate) fn serve(incoming: &Incoming<'_>) -> Reply {
    let _ = incoming;
    reply::page_not_found()
}
