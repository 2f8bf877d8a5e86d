//! The request as the registry sees it: who asks for which object, at what time, and what the world around offers.

use crate::admit::Admission;
use crate::options::{Caller, Warnings};
use jiff::Timestamp;
use parking_lot::Mutex;
use pintle_apimachinery::env::Env;
use pintle_apimachinery::status::Result;
use pintle_kinds::RequestInfo;
use std::sync::Arc;

/// What all requests share.
#[derive(Clone, Debug)]
pub struct World {
    /// Clock and dice.
    pub env: Env,
    /// The admission chain.
    pub admission: Arc<dyn Admission>,
}

/// One request.
#[derive(Debug)]
pub struct Call<'a> {
    /// What all requests share.
    pub world: &'a World,
    /// Who asks.
    pub caller: &'a Caller,
    /// The namespace in the path; empty for none.
    pub namespace: &'a str,
    /// The name in the path; empty for none.
    pub name: &'a str,
    /// The subresource in the path; empty for none.
    pub subresource: &'a str,
    /// When the request came.
    pub now: Timestamp,
    /// Warnings for the client.
    pub warnings: &'a Mutex<Warnings>,
    /// Answers whether the caller may create the object, for updates and patches that would.
    pub may_create: &'a (dyn MayCreate + 'a),
}

/// Answers whether a caller that may update may also create.
pub trait MayCreate: Send + Sync + std::fmt::Debug {
    /// Whether it may.
    ///
    /// # Errors
    /// 403 when it may not.
    fn check(&self) -> Result<()>;
}

/// Lets everything be created: for the server's own writes.
#[derive(Debug)]
pub struct MayAlwaysCreate;

impl MayCreate for MayAlwaysCreate {
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

impl<'a> Call<'a> {
    /// What strategies may know.
    pub fn info(&self) -> RequestInfo<'a> {
        RequestInfo { namespace: self.namespace, subresource: self.subresource, user: &self.caller.user, now: self.now }
    }

    /// Adds a warning.
    pub fn warn(&self, text: impl Into<String>) {
        self.warnings.lock().add(text);
    }

    /// The name under which fields are owned: the one the request gives, else the user agent's.
    pub fn manager<'m>(&'m self, asked: &'m str) -> &'m str {
        if asked.is_empty() { &self.caller.default_manager } else { asked }
    }
}
