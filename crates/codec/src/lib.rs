//! Wire forms of objects beside JSON: protobuf and YAML. Everything here is pure; media types are negotiated elsewhere.

pub mod protobuf;
pub mod yaml;
