//! CEL, the expression language of Kubernetes, and the parts of Go's library that it and schemas speak of: regular
//! expressions, URLs, IP addresses, durations, each with Go's error texts.
//!
//! A text becomes something that can run in three steps: [`parser`] reads it into a tree ([`ast`]), [`check`] finds the
//! types and the functions that its parts mean ([`env::Env`] says what it can speak of), and [`eval::plan`] makes a
//! [`eval::Program`]. [`cost`] says beforehand what running it can cost at most. A program is made once and runs over
//! JSON where it is, without copying it.
//!
//! What is not here: which expressions an API object may have and what they see. That is said by those who use the
//! language (custom resources, admission, device classes).

pub mod ast;
pub mod authz;
pub mod check;
pub mod cost;
pub mod decl;
pub mod env;
pub mod eval;
pub mod functions;
pub mod golang;
pub mod lexer;
pub mod library;
mod literal;
pub mod macros;
pub mod parser;
pub mod regexp;
pub mod source;
pub mod strfmt;
pub mod syntax;
pub mod time;
pub mod types;

#[cfg(test)]
mod tests;
