//! `AlwaysAdmit` and `AlwaysDeny`: for trying things out.

use crate::attributes::Attributes;
use crate::chain::Plugin;
use crate::errors::forbidden;
use async_trait::async_trait;
use pintle_apimachinery::Value;
use pintle_apimachinery::status::Result;

/// Refuses nothing.
#[derive(Debug)]
pub struct AlwaysAdmit;

#[async_trait]
impl Plugin for AlwaysAdmit {
    fn wants(&self, _: &Attributes<'_>) -> bool {
        false
    }
}

/// Refuses everything.
#[derive(Debug)]
pub struct AlwaysDeny;

const TEXT: &str = "admission control is denying all modifications";

#[async_trait]
impl Plugin for AlwaysDeny {
    fn wants(&self, _: &Attributes<'_>) -> bool {
        true
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<()> {
        Err(forbidden(attributes, Some(object), TEXT))
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
        Err(forbidden(attributes, object, TEXT))
    }
}
