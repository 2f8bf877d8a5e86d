//! The built-in control loops.
