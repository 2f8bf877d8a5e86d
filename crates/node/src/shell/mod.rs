//! A shell that runs nothing: it reads the commands that containers of examples and tests usually have (`echo`, `sleep`,
//! `exit`, loops) and tells what they would print, when, and how they would end.
//!
//! [`Script::parse`] compiles a command line, [`Machine`] runs it in simulated time, as far as it is asked to. What it
//! does not know it leaves to the caller ([`Event::Unknown`]).

mod machine;
mod parse;
mod words;

pub use machine::{Event, Machine, Output, STEPS_MAX};
pub use parse::{ParseError, Script};
pub use words::Variables;

#[cfg(test)]
mod tests;
