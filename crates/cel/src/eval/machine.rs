//! Works out the steps of a program, and counts what that costs.

use super::compare::equal;
use super::cost::{CHARACTER, LIST, MAP, OBJECT, READ, scaled};
use super::map::{Key, Map};
use super::plan::{Apply, Attr, Fold, Node, Root, Step, StepKey};
use super::value::{Eval, Failure, Library, List, Val};
use crate::library;
use std::rc::Rc;

/// A run of a program.
pub(super) struct Machine<'m, 'v> {
    variables: &'m [Val<'v>],
    /// The loop variables, innermost last.
    locals: Vec<Eval<Val<'v>>>,
    cost: u64,
    cost_max: u64,
}

/// Where a way leads: to a value, or to nothing.
struct Reached<'v> {
    value: Val<'v>,
    /// Whether the way had an optional step, so that the value is an optional one.
    is_optional: bool,
}

impl<'m, 'v> Machine<'m, 'v> {
    /// A run with the values of the variables.
    pub(super) fn new(variables: &'m [Val<'v>], cost_max: u64) -> Self {
        Self { variables, locals: Vec::new(), cost: 0, cost_max }
    }

    /// What the run has cost.
    pub(super) const fn cost(&self) -> u64 {
        self.cost
    }

    fn charge(&mut self, amount: u64) -> Eval<()> {
        self.cost = self.cost.saturating_add(amount);
        if self.cost > self.cost_max { Err(Failure::CostExceeded) } else { Ok(()) }
    }

    /// Works out a step.
    pub(super) fn run(&mut self, node: &'v Node) -> Eval<Val<'v>> {
        match node {
            Node::Constant(constant) => Ok(constant.value()),
            Node::Attr(attr) => self.attr(attr),
            Node::Call(apply) => self.apply(apply),
            Node::OneOf(wanted, constants) => {
                let wanted = self.run(wanted)?;
                Ok(Val::Bool(constants.hold(&wanted)))
            }
            Node::Equals(pair, expected) => self.equals(pair, *expected),
            Node::Logic(pair, is_and) => self.logic(pair, *is_and),
            Node::Or(pair, is_value) => {
                let [optional, other] = pair.as_ref();
                match self.run(optional)? {
                    Val::Optional(Some(held)) if *is_value => Ok(held.as_ref().clone()),
                    Val::Optional(None) => self.run(other),
                    value => Ok(value),
                }
            }
            Node::List(elements) => {
                let made = self.list(elements);
                self.charge(LIST)?;
                made
            }
            Node::Map(entries) => {
                let made = self.map(entries);
                self.charge(MAP)?;
                made
            }
            Node::Object(fields) => {
                let made = self.object(fields);
                self.charge(OBJECT)?;
                made
            }
            Node::Fold(fold) => self.fold(fold),
            Node::Binding(init, result) => {
                let depth = self.locals.len();
                let value = match init {
                    Some(init) => self.run(init),
                    None => Ok(Val::Null),
                };
                if matches!(value, Err(Failure::CostExceeded)) {
                    return value;
                }
                self.locals.push(value);
                let result = self.run(result);
                self.locals.truncate(depth);
                result
            }
        }
    }

    fn attr(&mut self, attr: &'v Attr) -> Eval<Val<'v>> {
        let reached = self.resolve(attr);
        if !attr.is_test && !matches!(attr.root, Root::Either(..)) {
            self.charge(READ)?;
        }
        let Reached { value, is_optional } = reached?;
        Ok(match value {
            // Whether something is there at the end of an optional way.
            Val::Optional(held) if attr.is_test => Val::Bool(held.is_some()),
            value if attr.is_test || !is_optional => value,
            value => Val::some(value),
        })
    }

    /// Follows a way without counting that it began.
    fn resolve(&mut self, attr: &'v Attr) -> Eval<Reached<'v>> {
        let mut reached = match &attr.root {
            Root::Variable(place) => {
                let value = self.variables.get(*place).cloned();
                Reached { value: value.ok_or_else(|| Failure::text("no such attribute(s)"))?, is_optional: false }
            }
            Root::Local(slot) => {
                let value = self.locals.get(*slot).cloned();
                Reached { value: value.unwrap_or(Ok(Val::Null))?, is_optional: false }
            }
            Root::Of(node) => Reached { value: self.run(node)?, is_optional: false },
            Root::Either(condition, yes, no) => match self.run(condition)? {
                Val::Bool(true) => self.resolve(yes)?,
                Val::Bool(false) => self.resolve(no)?,
                _ => return Err(Failure::text("no such overload")),
            },
        };
        if attr.steps.is_empty() {
            return Ok(reached);
        }
        match reached.value {
            Val::Optional(None) if !reached.is_optional => return Ok(reached),
            Val::Optional(Some(held)) if !reached.is_optional => {
                reached = Reached { value: held.as_ref().clone(), is_optional: true };
            }
            _ => {}
        }
        let last = attr.steps.len() - 1;
        for (index, step) in attr.steps.iter().enumerate() {
            reached.is_optional |= step.is_optional;
            let is_test = attr.is_test && index == last;
            match self.step(step, &reached, is_test)? {
                Some(value) => reached.value = value,
                None => return Ok(Reached { value: Val::NONE, is_optional: false }),
            }
        }
        Ok(reached)
    }

    /// Takes one step; none if an optional step leads to nothing.
    fn step(&mut self, step: &'v Step, from: &Reached<'v>, is_test: bool) -> Eval<Option<Val<'v>>> {
        let constant;
        let key = match &step.key {
            StepKey::Constant(key) => {
                constant = key.value();
                &constant
            }
            StepKey::Attr(attr) => {
                let Reached { value, is_optional } = self.resolve(attr)?;
                constant = if is_optional { Val::some(value) } else { value };
                &constant
            }
        };
        let found = find(&from.value, key);
        if is_test {
            self.charge(READ)?;
            let is_found = found?.is_some();
            return Ok((is_found || !from.is_optional).then_some(Val::Bool(is_found)));
        }
        if from.is_optional {
            let found = found?;
            if found.is_some() {
                self.charge(READ)?;
            }
            return Ok(found);
        }
        self.charge(READ)?;
        match found? {
            Some(value) => Ok(Some(value)),
            None => Err(missing(&from.value, key)),
        }
    }

    fn apply(&mut self, apply: &'v Apply) -> Eval<Val<'v>> {
        // Nearly all functions take few arguments, and most of their values own nothing.
        let mut args: [Val<'v>; 4] = [const { Val::Null }; 4];
        let mut more = Vec::new();
        let args = if apply.args.len() <= args.len() {
            args.get_mut(..apply.args.len()).unwrap_or_default()
        } else {
            more.resize(apply.args.len(), Val::Null);
            more.as_mut_slice()
        };
        let mut failure = None;
        for (index, (node, slot)) in apply.args.iter().zip(args.iter_mut()).enumerate() {
            // What a loop appends to is taken, not copied, so that appending need not copy all of it.
            let taken = if index == 0 { self.taken(apply, node)? } else { None };
            let value = match taken {
                Some(value) => Ok(value),
                None => self.run(node),
            };
            match value {
                Ok(value) => *slot = value,
                Err(Failure::CostExceeded) => return Err(Failure::CostExceeded),
                Err(why) if apply.is_eager => failure = failure.or(Some(why)),
                Err(why) => return Err(why),
            }
        }
        if let Some(why) = failure {
            self.charge(READ)?;
            return Err(why);
        }
        let result = match &apply.pattern {
            Some(pattern) => library::regex::with_pattern(apply.name, pattern, args),
            None => (apply.native)(args),
        };
        self.charge(apply.charge.amount(args, result.as_ref().ok()))?;
        result.map_err(|why| match why {
            Failure::NoOverload => library::no_overload(apply.name, apply.pattern.is_some(), args),
            why => why,
        })
    }

    /// The list or map that a loop adds to, taken from its place.
    fn taken(&mut self, apply: &Apply, node: &Node) -> Eval<Option<Val<'v>>> {
        let Node::Attr(attr) = node else { return Ok(None) };
        let Attr { root: Root::Local(slot), steps, .. } = attr.as_ref() else { return Ok(None) };
        if !steps.is_empty() || !matches!(apply.name, "_+_" | "cel.@mapInsert") {
            return Ok(None);
        }
        match self.locals.get_mut(*slot) {
            Some(Ok(value @ (Val::List(List::Made(..)) | Val::Map(Map::Made(_))))) => {
                let value = std::mem::replace(value, Val::Null);
                self.charge(READ)?;
                Ok(Some(value))
            }
            _ => Ok(None),
        }
    }

    fn equals(&mut self, pair: &'v [Node; 2], expected: bool) -> Eval<Val<'v>> {
        let [one, other] = pair;
        let one = self.run(one);
        if one.as_ref().is_err_and(|why| *why == Failure::CostExceeded) {
            return one;
        }
        let other = self.run(other);
        let (one, other) = match (one, other) {
            (_, Err(Failure::CostExceeded)) => return Err(Failure::CostExceeded),
            (Ok(one), Ok(other)) => (one, other),
            (Err(why), other) => {
                self.charge(scaled(other.map_or(1, |other| other.size().min(1)), CHARACTER))?;
                return Err(why);
            }
            (Ok(one), Err(why)) => {
                self.charge(scaled(one.size().min(1), CHARACTER))?;
                return Err(why);
            }
        };
        let is_library = matches!(&one, Val::Library(library) if !matches!(library.as_ref(), Library::Authz(_)));
        let amount = if is_library { 1 } else { scaled(one.size().min(other.size()), CHARACTER) };
        let is_equal = equal(&one, &other);
        self.charge(amount)?;
        match is_equal {
            Ok(is_equal) => Ok(Val::Bool(is_equal == expected)),
            Err(_) if !expected => Ok(Val::Bool(true)),
            Err(Failure::NoOverload) => Err(Failure::text("no such overload")),
            Err(why) => Err(why),
        }
    }

    fn logic(&mut self, pair: &'v [Node; 2], is_and: bool) -> Eval<Val<'v>> {
        let mut failure = None;
        for term in pair {
            match self.run(term) {
                Ok(Val::Bool(value)) if value != is_and => return Ok(Val::Bool(value)),
                Ok(Val::Bool(_)) => {}
                Ok(_) => failure = failure.or_else(|| Some(Failure::text("no such overload"))),
                Err(Failure::CostExceeded) => return Err(Failure::CostExceeded),
                Err(why) => failure = failure.or(Some(why)),
            }
        }
        failure.map_or(Ok(Val::Bool(is_and)), Err)
    }

    fn list(&mut self, elements: &'v [(Node, bool)]) -> Eval<Val<'v>> {
        let mut values = Vec::with_capacity(elements.len());
        for (node, is_optional) in elements {
            match (self.run(node)?, *is_optional) {
                (Val::Optional(held), true) => values.extend(held.map(|held| held.as_ref().clone())),
                (value, true) => {
                    let shown = library::convert::shown(&value);
                    let text = format!("cannot initialize optional list element from non-optional value {shown}");
                    return Err(Failure::text(text));
                }
                (value, false) => values.push(value),
            }
        }
        Ok(Val::list(values))
    }

    fn map(&mut self, entries: &'v [(Node, Node, bool)]) -> Eval<Val<'v>> {
        let mut made = std::collections::BTreeMap::new();
        for (key, value, is_optional) in entries {
            let key = self.run(key)?;
            let value = self.run(value)?;
            let Some(known) = Key::of(&key) else { return Err(Failure::text("unsupported key type")) };
            match optional_entry(&key, value, *is_optional)? {
                Some(value) => made.insert(known, (key, value)),
                None => made.remove(&known),
            };
        }
        Ok(Val::Map(Map::Made(Rc::new(made))))
    }

    fn object(&mut self, fields: &'v [(compact_str::CompactString, Node, bool)]) -> Eval<Val<'v>> {
        let mut made = Vec::with_capacity(fields.len());
        for (name, value, is_optional) in fields {
            let key = Val::str(name);
            let value = self.run(value)?;
            if let Some(value) = optional_entry(&key, value, *is_optional)? {
                made.push((key, value));
            }
        }
        Ok(Map::made(made))
    }

    fn fold(&mut self, fold: &'v Fold) -> Eval<Val<'v>> {
        let range = self.run(&fold.range)?;
        let depth = self.locals.len();
        let init = self.run(&fold.init);
        if init.as_ref().is_err_and(|why| *why == Failure::CostExceeded) {
            return init;
        }
        self.locals.push(mutable(init));
        let looped = match &range {
            Val::List(list) => self.over_list(fold, list),
            Val::Map(map) => self.over_map(fold, map),
            other => {
                let name = library::convert::go_type(other);
                Err(Failure::text(if fold.is_two {
                    format!("unsupported comprehension range type: {name}")
                } else {
                    format!("got '{name}', expected iterable type")
                }))
            }
        };
        self.locals.truncate(depth + 1);
        let result = looped.and_then(|()| self.run(&fold.result));
        self.locals.truncate(depth);
        result
    }

    fn over_list(&mut self, fold: &'v Fold, list: &List<'v>) -> Eval<()> {
        for index in 0..list.len() {
            let element = list.get(index).map(|element| element.unwrap_or(Val::Null));
            let key = fold.is_two.then(|| Ok(Val::Int(i64::try_from(index).unwrap_or(i64::MAX))));
            if !self.turn(fold, key.into_iter().chain([element]))? {
                break;
            }
        }
        Ok(())
    }

    fn over_map(&mut self, fold: &'v Fold, map: &Map<'v>) -> Eval<()> {
        for key in map.keys() {
            let value = fold.is_two.then(|| map.find(&key).map(|value| value.unwrap_or(Val::Null)));
            if !self.turn(fold, std::iter::once(Ok(key)).chain(value))? {
                break;
            }
        }
        Ok(())
    }

    /// One turn of a loop; answers whether another may follow.
    fn turn(&mut self, fold: &'v Fold, variables: impl Iterator<Item = Eval<Val<'v>>>) -> Eval<bool> {
        self.locals.truncate(fold.slot + 1);
        self.locals.extend(variables);
        match self.run(&fold.condition) {
            Ok(Val::Bool(false)) => return Ok(false),
            Err(Failure::CostExceeded) => return Err(Failure::CostExceeded),
            _ => {}
        }
        let next = self.run(&fold.step);
        if next.as_ref().is_err_and(|why| *why == Failure::CostExceeded) {
            return Err(Failure::CostExceeded);
        }
        if let Some(accumulated) = self.locals.get_mut(fold.slot) {
            *accumulated = next;
        }
        Ok(true)
    }
}

/// An empty constant list or map as one that can be added to.
fn mutable(value: Eval<Val<'_>>) -> Eval<Val<'_>> {
    value.map(|value| match value {
        Val::List(list) if list.is_empty() => Val::list(Vec::new()),
        value => value,
    })
}

fn optional_entry<'v>(key: &Val<'v>, value: Val<'v>, is_optional: bool) -> Eval<Option<Val<'v>>> {
    match (value, is_optional) {
        (Val::Optional(held), true) => Ok(held.map(|held| held.as_ref().clone())),
        (value, true) => {
            let (key, value) = (library::convert::shown(key), library::convert::shown(&value));
            Err(Failure::text(format!("cannot initialize optional entry '{key}' from non-optional value {value}")))
        }
        (value, false) => Ok(Some(value)),
    }
}

/// What a key or index leads to; none if it leads to nothing.
fn find<'v>(from: &Val<'v>, key: &Val<'_>) -> Eval<Option<Val<'v>>> {
    match from {
        Val::Map(map) => map.find(key),
        Val::List(list) => match library::convert::index(key)? {
            Some(index) => list.get(index),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

fn missing(from: &Val<'_>, key: &Val<'_>) -> Failure {
    let key = library::convert::shown(key);
    Failure::text(match from {
        Val::List(_) => format!("index out of bounds: {key}"),
        _ => format!("no such key: {key}"),
    })
}
