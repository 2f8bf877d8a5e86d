//! Makes something that can run of a checked expression: variables become places in a row, functions are looked up,
//! constants are worked out once, and patterns are compiled.

use super::cost::Charge;
use super::value::{Frozen, Val};
use super::{Native, Program};
use crate::ast::{Call, Comprehension, Constant, Element, Expr, Kind, NodeId, Struct};
use crate::check::{Checked, walk};
use crate::eval::map::Key;
use crate::functions;
use crate::library;
use crate::regexp::Regexp;
use crate::types::Type;
use compact_str::CompactString;
use hashbrown::HashSet;

/// A step of a program.
#[derive(Debug)]
pub(super) enum Node {
    /// A constant.
    Constant(Frozen),
    /// A variable and a way from it.
    Attr(Box<Attr>),
    /// A function.
    Call(Box<Apply>),
    /// Whether a value is one of some constants.
    OneOf(Box<Node>, Constants),
    /// `==`, or `!=`.
    Equals(Box<[Node; 2]>, bool),
    /// `&&`, or `||`.
    Logic(Box<[Node; 2]>, bool),
    /// What the first optional holds, or the second value; or the optional itself.
    Or(Box<[Node; 2]>, bool),
    /// A list; the flags mark optional elements.
    List(Vec<(Node, bool)>),
    /// A map; the flags mark optional entries.
    Map(Vec<(Node, Node, bool)>),
    /// An object.
    Object(Vec<(CompactString, Node, bool)>),
    /// A loop.
    Fold(Box<Fold>),
    /// A name for a value within another; no name if the value is not used.
    Binding(Option<Box<Node>>, Box<Node>),
}

/// Constants to look values up in.
#[derive(Debug, Default)]
pub(super) struct Constants {
    texts: HashSet<CompactString>,
    others: HashSet<Key>,
}

impl Constants {
    /// Whether a value is one of them.
    #[must_use]
    pub(super) fn hold(&self, value: &Val<'_>) -> bool {
        match value {
            Val::String(text) => self.texts.contains(text.as_str()),
            _ => Key::of(value).is_some_and(|key| self.others.contains(&key)),
        }
    }

    /// Adds a constant; answers whether it can be looked up.
    fn insert(&mut self, constant: &Frozen) -> bool {
        if let Frozen::String(text) = constant {
            self.texts.insert(text.as_ref().into());
            return true;
        }
        Key::of(&constant.value()).map(|key| self.others.insert(key)).is_some()
    }
}

/// A function applied.
#[derive(Debug)]
pub(super) struct Apply {
    /// The function's name.
    pub name: &'static str,
    /// What it does.
    pub native: Native,
    /// Its pattern, where that is constant.
    pub pattern: Option<Regexp>,
    /// What it costs.
    pub charge: Charge,
    /// Whether all arguments are worked out even if one of them fails.
    pub is_eager: bool,
    /// The arguments; a method's target first.
    pub args: Vec<Node>,
}

/// A value, and the members or elements that lead on from it.
#[derive(Debug)]
pub(super) struct Attr {
    /// Where it begins.
    pub root: Root,
    /// The way on.
    pub steps: Vec<Step>,
    /// Whether only the presence of the last member is asked.
    pub is_test: bool,
}

/// Where an [`Attr`] begins.
#[derive(Debug)]
pub(super) enum Root {
    /// A variable of the environment.
    Variable(usize),
    /// A variable of a loop.
    Local(usize),
    /// What something yields.
    Of(Node),
    /// One of two, by a condition.
    Either(Node, Box<Attr>, Box<Attr>),
}

/// A member or an element.
#[derive(Debug)]
pub(super) struct Step {
    /// Which one.
    pub key: StepKey,
    /// Whether its absence is no failure.
    pub is_optional: bool,
}

/// The name or index of a [`Step`].
#[derive(Debug)]
pub(super) enum StepKey {
    /// One known beforehand.
    Constant(Frozen),
    /// What another way leads to.
    Attr(Attr),
}

/// A loop.
#[derive(Debug)]
pub(super) struct Fold {
    /// What it runs over.
    pub range: Node,
    /// Whether it has a variable for the index or key beside the one for the element or value.
    pub is_two: bool,
    /// What is accumulated at first.
    pub init: Node,
    /// Whether to go on.
    pub condition: Node,
    /// What is accumulated next.
    pub step: Node,
    /// What it yields.
    pub result: Node,
    /// The place of what is accumulated; the loop's variables follow it.
    pub slot: usize,
}

/// Makes a program of a checked expression.
///
/// # Errors
/// When something that can be worked out beforehand fails.
pub fn plan(checked: &Checked) -> Result<Program, String> {
    let mut planner = Planner { checked, locals: Vec::new() };
    Ok(Program { root: planner.node(&checked.root)? })
}

struct Planner<'c> {
    checked: &'c Checked,
    /// The names of the loop variables, in the order of their places.
    locals: Vec<CompactString>,
}

type Planned = Result<Node, String>;

impl Planner<'_> {
    fn node(&mut self, expr: &Expr) -> Planned {
        Ok(match &expr.kind {
            Kind::Broken => Node::Constant(Frozen::Null),
            Kind::Constant(constant) => Node::Constant(frozen(constant)),
            Kind::Ident(_) | Kind::Select(_) => self.attr_node(expr)?,
            Kind::Call(call) => self.call(expr, call)?,
            Kind::List(elements) => self.list(elements)?,
            Kind::Map(entries) => {
                let mut all = Vec::with_capacity(entries.len());
                for entry in entries {
                    all.push((self.node(&entry.key)?, self.node(&entry.value)?, entry.is_optional));
                }
                folded_map(all)
            }
            Kind::Struct(object) => self.object(object)?,
            Kind::Comprehension(fold) => self.comprehension(fold)?,
        })
    }

    fn attr_node(&mut self, expr: &Expr) -> Planned {
        let attr = self.attr(expr)?;
        Ok(match attr.root {
            Root::Of(constant @ Node::Constant(Frozen::Type(_))) if attr.steps.is_empty() => constant,
            _ => Node::Attr(Box::new(attr)),
        })
    }

    /// The type that a name stands for.
    fn type_node(&self, id: NodeId) -> Node {
        let of = self.checked.type_of(id);
        let of = if let Type::Meta(Some(of)) = of { of } else { of };
        Node::Constant(Frozen::Type(of.name().into()))
    }

    /// The way that a node is, or a way that begins with what the node yields.
    fn attr(&mut self, expr: &Expr) -> Result<Attr, String> {
        match &expr.kind {
            Kind::Ident(name) => {
                let root = match self.locals.iter().rposition(|local| local == name) {
                    Some(slot) => Root::Local(slot),
                    None => match self.checked.env.variable(name) {
                        Some((place, _)) => Root::Variable(place),
                        None => Root::Of(self.type_node(expr.id)),
                    },
                };
                Ok(Attr { root, steps: Vec::new(), is_test: false })
            }
            Kind::Select(select) => {
                let mut attr = self.attr(&select.operand)?;
                let key = StepKey::Constant(Frozen::String(select.field.as_str().into()));
                attr.steps.push(Step { key, is_optional: false });
                attr.is_test = select.is_test;
                Ok(attr)
            }
            Kind::Call(call) if call.target.is_none() => match (call.function.as_str(), call.args.as_slice()) {
                ("_[_]" | "_[?_]" | "_?._", [operand, index]) => {
                    let mut attr = self.attr(operand)?;
                    let key = match self.node(index)? {
                        Node::Constant(key) => StepKey::Constant(key),
                        Node::Attr(inner) => StepKey::Attr(*inner),
                        node => StepKey::Attr(Attr { root: Root::Of(node), steps: Vec::new(), is_test: false }),
                    };
                    attr.steps.push(Step { key, is_optional: call.function != "_[_]" });
                    Ok(attr)
                }
                ("_?_:_", [condition, yes, no]) => {
                    let condition = self.node(condition)?;
                    let (yes, no) = (Box::new(self.attr(yes)?), Box::new(self.attr(no)?));
                    Ok(Attr { root: Root::Either(condition, yes, no), steps: Vec::new(), is_test: false })
                }
                _ => self.begun(expr),
            },
            _ => self.begun(expr),
        }
    }

    fn begun(&mut self, expr: &Expr) -> Result<Attr, String> {
        Ok(Attr { root: Root::Of(self.node(expr)?), steps: Vec::new(), is_test: false })
    }

    fn call(&mut self, expr: &Expr, call: &Call) -> Planned {
        let name = call.function.as_str();
        if matches!(name, "_[_]" | "_[?_]" | "_?._" | "_?_:_") {
            return Ok(Node::Attr(Box::new(self.attr(expr)?)));
        }
        let mut args = Vec::with_capacity(call.args.len() + 1);
        for arg in call.target.iter().chain(&call.args) {
            args.push(self.node(arg)?);
        }
        let pair = match <[Node; 2]>::try_from(args) {
            Ok(pair) => pair,
            Err(args) => return self.apply(expr.id, call, args),
        };
        Ok(match (name, call.target.is_some()) {
            ("_&&_", _) => Node::Logic(Box::new(pair), true),
            ("_||_", _) => Node::Logic(Box::new(pair), false),
            ("_==_", _) => Node::Equals(Box::new(pair), true),
            ("_!=_", _) => Node::Equals(Box::new(pair), false),
            ("or", true) => Node::Or(Box::new(pair), false),
            ("orValue", true) => Node::Or(Box::new(pair), true),
            ("@in", _) if self.overload(expr.id) == Some("in_list") && is_known(&pair) => one_of(pair),
            _ => self.apply(expr.id, call, pair.into())?,
        })
    }

    /// The overload a call means, if that is known.
    fn overload(&self, id: NodeId) -> Option<&'static str> {
        match self.checked.overloads_of(id) {
            [one] => Some(one),
            _ => None,
        }
    }

    fn apply(&mut self, id: NodeId, call: &Call, args: Vec<Node>) -> Planned {
        let function = functions::find(&call.function);
        let Some((function, native)) = function.and_then(|function| Some((function, function.native?))) else {
            return Err(format!("no such overload: {}", call.function));
        };
        let overload = self.overload(id);
        let name = function.name;
        let pattern = match (name, args.get(1)) {
            ("matches" | "find" | "findAll", Some(Node::Constant(Frozen::String(pattern)))) => {
                Some(Regexp::new(pattern).map_err(|why| why.to_string())?)
            }
            _ => None,
        };
        let native = library::of_overload(overload).unwrap_or(native);
        if CONVERSIONS.contains(&name)
            && let [Node::Constant(arg)] = args.as_slice()
        {
            let value = native(&mut [arg.value()]).map_err(|why| why.to_string())?;
            if let Some(value) = Frozen::of(&value) {
                return Ok(Node::Constant(value));
            }
        }
        let is_eager = args.len() <= 2 && pattern.is_none();
        let charge = Charge::of(name, overload);
        Ok(Node::Call(Box::new(Apply { name, native, pattern, charge, is_eager, args })))
    }

    fn list(&mut self, elements: &[Element]) -> Planned {
        let mut all = Vec::with_capacity(elements.len());
        for element in elements {
            all.push((self.node(&element.value)?, element.is_optional));
        }
        let are_constant = all.iter().all(|(node, optional)| matches!(node, Node::Constant(_)) && !optional);
        if !are_constant {
            return Ok(Node::List(all));
        }
        let constants = all.into_iter().filter_map(|(node, _)| match node {
            Node::Constant(constant) => Some(constant),
            _ => None,
        });
        Ok(Node::Constant(Frozen::List(constants.collect())))
    }

    fn object(&mut self, object: &Struct) -> Planned {
        let mut all = Vec::with_capacity(object.fields.len());
        for field in &object.fields {
            all.push((field.name.clone(), self.node(&field.value)?, field.is_optional));
        }
        Ok(Node::Object(all))
    }

    fn comprehension(&mut self, fold: &Comprehension) -> Planned {
        let slot = self.locals.len();
        if fold.is_binding() {
            let init = self.node(&fold.init)?;
            self.locals.push(fold.accumulator.clone());
            let result = self.node(&fold.result);
            self.locals.truncate(slot);
            let mut is_used = false;
            walk(&fold.result, &mut |e| is_used |= matches!(&e.kind, Kind::Ident(name) if *name == fold.accumulator));
            return Ok(Node::Binding(is_used.then(|| Box::new(init)), Box::new(result?)));
        }
        let range = self.node(&fold.range)?;
        let init = self.node(&fold.init)?;
        self.locals.push(fold.accumulator.clone());
        self.locals.push(fold.var.clone());
        self.locals.extend(fold.second.clone());
        let condition = self.node(&fold.condition);
        let step = self.node(&fold.step);
        self.locals.truncate(slot + 1);
        let result = self.node(&fold.result);
        self.locals.truncate(slot);
        let is_two = fold.second.is_some();
        let fold = Fold { range, is_two, init, condition: condition?, step: step?, result: result?, slot };
        Ok(Node::Fold(Box::new(fold)))
    }
}

/// Functions whose value is worked out beforehand if their argument is constant.
const CONVERSIONS: [&str; 10] =
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

fn frozen(constant: &Constant) -> Frozen {
    match constant {
        Constant::Null => Frozen::Null,
        Constant::Bool(value) => Frozen::Bool(*value),
        Constant::Int(value) => Frozen::Int(*value),
        Constant::Uint(value) => Frozen::Uint(*value),
        Constant::Double(value) => Frozen::Double(*value),
        Constant::String(text) => Frozen::String(text.clone()),
        Constant::Bytes(bytes) => Frozen::Bytes(bytes.clone()),
    }
}

fn folded_map(entries: Vec<(Node, Node, bool)>) -> Node {
    let are_constant =
        entries.iter().all(|(key, value, _)| matches!((key, value), (Node::Constant(_), Node::Constant(_))));
    if !are_constant || entries.iter().any(|(.., optional)| *optional) {
        return Node::Map(entries);
    }
    let constants = entries.into_iter().filter_map(|(key, value, _)| match (key, value) {
        (Node::Constant(key), Node::Constant(value)) => Some((key, value)),
        _ => None,
    });
    Node::Constant(Frozen::Map(constants.collect()))
}

/// Whether a list holds constants alone, all of which can be looked up.
fn is_known(pair: &[Node; 2]) -> bool {
    let [_, Node::Constant(Frozen::List(constants))] = pair else { return false };
    let mut known = Constants::default();
    constants.iter().all(|constant| known.insert(constant))
}

/// Membership in a list of known constants as a lookup.
fn one_of(pair: [Node; 2]) -> Node {
    let [wanted, list] = pair;
    let mut known = Constants::default();
    if let Node::Constant(Frozen::List(constants)) = &list {
        if constants.is_empty() {
            return Node::Constant(Frozen::Bool(false));
        }
        constants.iter().for_each(|constant| {
            known.insert(constant);
        });
    }
    Node::OneOf(Box::new(wanted), known)
}
