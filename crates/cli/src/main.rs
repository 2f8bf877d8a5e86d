//! The `pintle` binary: the only composition root.

fn main() {}
