//! A load generator that says how fast an API server really is.
