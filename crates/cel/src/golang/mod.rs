//! Readers of Go's standard library, with its error texts: clients see them through CEL and through formats.

pub mod duration;
pub mod ip;
pub mod url;
