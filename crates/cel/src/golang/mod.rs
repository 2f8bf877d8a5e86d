//! Readers of Go's standard library, with its error texts: clients see them through CEL and through formats.

pub mod base64;
pub mod duration;
pub mod ip;
pub mod quote;
pub mod url;
