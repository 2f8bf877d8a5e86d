//! CEL, the expression language of Kubernetes, and the parts of Go's library that it and schemas speak of: regular
//! expressions, URLs, IP addresses, durations, each with Go's error texts.

pub mod golang;
pub mod regexp;
