//! The variables of a policy: each is worked out when it is first asked for, and once.

use super::{Compiled, EXPRESSION_COST_MAX};
use compact_str::CompactString;
use pintle_apimachinery::field::go_quote;
use pintle_cel::eval::map::{Map, Members};
use pintle_cel::eval::{Eval, Failure, Val};
use std::cell::{Cell, RefCell};

/// A variable.
#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: CompactString,
    pub(super) compiled: Compiled,
}

/// The variables for one round of evaluation.
pub(super) struct Variables<'v> {
    variables: &'v [Variable],
    /// What they may speak of, beside each other.
    given: Vec<Val<'v>>,
    /// What they came to, by place.
    known: RefCell<Vec<Known<'v>>>,
    /// What working them out cost since it was last asked for.
    cost: Cell<u64>,
}

#[derive(Clone)]
enum Known<'v> {
    Not,
    /// Being worked out just now.
    Soon,
    Is(Eval<Val<'v>>),
}

impl<'v> Variables<'v> {
    pub(super) fn new(variables: &'v [Variable], given: Vec<Val<'v>>) -> Variables<'v> {
        let known = RefCell::new(vec![Known::Not; variables.len()]);
        Variables { variables, given, known, cost: Cell::new(0) }
    }

    /// As expressions see them.
    pub(super) fn value(&'v self) -> Val<'v> {
        Val::Map(Map::Lazy(self))
    }

    pub(super) fn take_cost(&self) -> u64 {
        self.cost.take()
    }

    fn work_out(&'v self, variable: &'v Variable) -> Eval<Val<'v>> {
        let name = go_quote(&variable.name);
        let program = match &variable.compiled.program {
            Ok(program) => program,
            Err(why) => return Err(Failure::text(format!("composited variable {name} fails to compile: {why}"))),
        };
        let mut given = self.given.clone();
        given.push(self.value());
        let outcome = program.run(&given, EXPRESSION_COST_MAX);
        self.cost.set(self.cost.get().saturating_add(outcome.cost));
        outcome.value.map_err(|why| Failure::text(format!("composited variable {name} fails to evaluate: {why}")))
    }

    fn set(&self, place: usize, known: Known<'v>) {
        if let Some(slot) = self.known.borrow_mut().get_mut(place) {
            *slot = known;
        }
    }
}

impl<'v> Members<'v> for Variables<'v> {
    fn member(&'v self, name: &str) -> Option<Eval<Val<'v>>> {
        // of several with one name the last one counts
        let place = self.variables.iter().rposition(|variable| variable.name == name)?;
        let variable = self.variables.get(place)?;
        let known = self.known.borrow().get(place).cloned()?;
        Some(match known {
            Known::Is(value) => value,
            Known::Soon => {
                let name = go_quote(name);
                Err(Failure::text(format!("composited variable {name} fails to evaluate: it refers to itself")))
            }
            Known::Not => {
                self.set(place, Known::Soon);
                let value = self.work_out(variable);
                self.set(place, Known::Is(value.clone()));
                value
            }
        })
    }
}
