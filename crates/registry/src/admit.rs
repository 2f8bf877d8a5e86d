//! Admission as the registry calls it: once to change what is to be written, once to refuse it.

pub use pintle_admission::{Admission, AdmitAll, Attributes, Operation};
