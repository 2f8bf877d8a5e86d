//! Runs expressions.

pub mod compare;
pub mod cost;
mod machine;
pub mod map;
mod plan;
pub mod value;

pub use plan::plan;
pub use value::{Eval, Failure, Val};

/// What a function does with its arguments, which it may take out of their places if it succeeds.
pub type Native = for<'v> fn(&mut [Val<'v>]) -> Eval<Val<'v>>;

/// An expression that is ready to run. It can run many times, also at the same time.
#[derive(Debug)]
pub struct Program {
    root: plan::Node,
}

/// What running an expression came to.
#[derive(Debug)]
pub struct Outcome<'v> {
    /// What it yielded.
    pub value: Eval<Val<'v>>,
    /// What it cost.
    pub cost: u64,
}

impl Program {
    /// Runs the expression with the values of its environment's variables, in the order they were declared. It stops
    /// when it costs more than `cost_max`.
    #[must_use]
    pub fn run<'v>(&'v self, variables: &[Val<'v>], cost_max: u64) -> Outcome<'v> {
        let mut machine = machine::Machine::new(variables, cost_max);
        let value = machine.run(&self.root);
        Outcome { value, cost: machine.cost() }
    }
}
