//! ConfigMaps.

use crate::{Strategy, UpdateStrategy};

/// The strategy of ConfigMaps.
#[derive(Debug)]
pub struct ConfigMap;

impl UpdateStrategy for ConfigMap {}
impl Strategy for ConfigMap {}
