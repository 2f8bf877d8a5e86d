//! IPAddresses.

use crate::{Strategy, UpdateStrategy};

/// The strategy of IPAddresses.
#[derive(Debug)]
pub struct IpAddress;

impl UpdateStrategy for IpAddress {}
impl Strategy for IpAddress {}
