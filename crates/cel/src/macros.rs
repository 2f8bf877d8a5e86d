//! What the macros of the language stand for: loops over lists and maps, tests of presence, work on optionals.

use crate::ast::{
    ACCUMULATOR, Call, Comprehension, Constant, Element, Entry, Expr, FieldInit, Kind, NodeId, OLD_ACCUMULATOR, Select,
    Struct,
};
use crate::parser::Parser;
use compact_str::CompactString;

/// The name of the loop variable of what is no loop.
const UNUSED: &str = "#unused";

/// The name that `sortBy` gives to the list it sorts.
const SORTED: &str = "@__sortBy_input__";

/// What a macro yields: its expansion, or where a fault is and what it says.
type Expansion = Result<Expr, (NodeId, String)>;

/// Expands a macro.
pub type Expand = fn(&mut Maker<'_, '_>, Option<Expr>, Vec<Expr>) -> Expansion;

/// The macro of a name, if there is one of this style and number of arguments.
#[must_use]
pub fn find(name: &str, is_method: bool, args: usize) -> Option<Expand> {
    Some(match (name, is_method, args) {
        ("has", false, 1) => has,
        ("all", true, 2 | 3) => all,
        ("exists", true, 2 | 3) => exists,
        ("exists_one", true, 2 | 3) | ("existsOne", true, 3) => exists_one,
        ("map", true, 2 | 3) => map,
        ("filter", true, 2) => filter,
        ("optMap", true, 2) => opt_map,
        ("optFlatMap", true, 2) => opt_flat_map,
        ("transformList", true, 3 | 4) => transform_list,
        ("transformMap", true, 3 | 4) => transform_map,
        ("transformMapEntry", true, 3 | 4) => transform_map_entry,
        ("sortBy", true, 2) => sort_by,
        _ => return None,
    })
}

/// `cel.bind(name, value, result)`.
pub const BIND: Expand = bind;

/// Expands a macro called at a node, or notes what is wrong with its arguments.
pub fn expand(expand: Expand, parser: &mut Parser<'_>, id: NodeId, target: Option<Expr>, args: Vec<Expr>) -> Expr {
    let offset = parser.offset(id);
    match expand(&mut Maker { parser, offset }, target, args) {
        Ok(expr) => expr,
        Err((id, text)) => {
            let offset = parser.offset(id);
            parser.fault(offset, text)
        }
    }
}

/// Makes nodes that stand where the macro was called.
#[derive(Debug)]
pub struct Maker<'p, 's> {
    parser: &'p mut Parser<'s>,
    offset: usize,
}

impl Maker<'_, '_> {
    fn node(&mut self, kind: Kind) -> Expr {
        Expr { id: self.parser.id(self.offset), kind }
    }

    fn bool(&mut self, value: bool) -> Expr {
        self.node(Kind::Constant(Constant::Bool(value)))
    }

    fn int(&mut self, value: i64) -> Expr {
        self.node(Kind::Constant(Constant::Int(value)))
    }

    fn ident(&mut self, name: &str) -> Expr {
        self.node(Kind::Ident(name.into()))
    }

    fn accumulator(&mut self) -> Expr {
        self.ident(ACCUMULATOR)
    }

    fn list(&mut self, values: Vec<Expr>) -> Expr {
        let elements = values.into_iter().map(|value| Element { is_optional: false, value }).collect();
        self.node(Kind::List(elements))
    }

    fn call(&mut self, function: &str, args: Vec<Expr>) -> Expr {
        self.node(Kind::Call(Box::new(Call { function: function.into(), target: None, args })))
    }

    fn method(&mut self, function: &str, target: Expr, args: Vec<Expr>) -> Expr {
        self.node(Kind::Call(Box::new(Call { function: function.into(), target: Some(target), args })))
    }

    /// `accumulator + [value]`.
    fn appended(&mut self, value: Expr) -> Expr {
        let accumulator = self.accumulator();
        let list = self.list(vec![value]);
        self.call("_+_", vec![accumulator, list])
    }

    /// `filter ? step : accumulator`, or the step alone without a filter.
    fn filtered(&mut self, filter: Option<Expr>, step: Expr) -> Expr {
        let Some(filter) = filter else { return step };
        let accumulator = self.accumulator();
        self.call("_?_:_", vec![filter, step, accumulator])
    }

    fn fold(&mut self, over: Over, init: Expr, condition: Expr, step: Expr, result: Expr) -> Expr {
        let Over { range, var, second } = over;
        let accumulator = ACCUMULATOR.into();
        let fold = Comprehension { range, var, second, accumulator, init, condition, step, result };
        self.node(Kind::Comprehension(Box::new(fold)))
    }

    /// Gives a name to a value within a result.
    fn binding(&mut self, name: &str, value: Expr, result: Expr) -> Expr {
        let fold = Comprehension {
            range: self.list(Vec::new()),
            var: UNUSED.into(),
            second: None,
            accumulator: name.into(),
            init: value,
            condition: self.bool(false),
            step: self.ident(name),
            result,
        };
        self.node(Kind::Comprehension(Box::new(fold)))
    }

    /// The same nodes under new numbers.
    fn copied(&mut self, expr: &Expr) -> Expr {
        let id = self.parser.id(self.parser.offset(expr.id));
        Expr { id, kind: self.copied_kind(&expr.kind) }
    }

    fn copied_kind(&mut self, kind: &Kind) -> Kind {
        match kind {
            Kind::Broken | Kind::Constant(_) | Kind::Ident(_) => kind.clone(),
            Kind::Select(select) => {
                Kind::Select(Box::new(Select { operand: self.copied(&select.operand), ..select.as_ref().clone() }))
            }
            Kind::Call(call) => {
                let args = call.args.iter().map(|arg| self.copied(arg)).collect();
                let target = call.target.as_ref().map(|target| self.copied(target));
                Kind::Call(Box::new(Call { function: call.function.clone(), target, args }))
            }
            Kind::List(elements) => Kind::List(
                elements.iter().map(|e| Element { is_optional: e.is_optional, value: self.copied(&e.value) }).collect(),
            ),
            Kind::Map(entries) => Kind::Map(
                entries
                    .iter()
                    .map(|entry| Entry {
                        id: self.parser.id(self.parser.offset(entry.id)),
                        is_optional: entry.is_optional,
                        key: self.copied(&entry.key),
                        value: self.copied(&entry.value),
                    })
                    .collect(),
            ),
            Kind::Struct(object) => {
                let fields = object
                    .fields
                    .iter()
                    .map(|field| FieldInit {
                        id: self.parser.id(self.parser.offset(field.id)),
                        value: self.copied(&field.value),
                        ..field.clone()
                    })
                    .collect();
                Kind::Struct(Box::new(Struct { name: object.name.clone(), fields }))
            }
            Kind::Comprehension(fold) => Kind::Comprehension(Box::new(Comprehension {
                range: self.copied(&fold.range),
                init: self.copied(&fold.init),
                condition: self.copied(&fold.condition),
                step: self.copied(&fold.step),
                result: self.copied(&fold.result),
                ..fold.as_ref().clone()
            })),
        }
    }
}

/// What a loop runs over, and its variables.
struct Over {
    range: Expr,
    var: CompactString,
    second: Option<CompactString>,
}

/// Splits the arguments of a loop macro into its variables and the rest.
fn over(
    target: Option<Expr>,
    args: Vec<Expr>,
    variables: usize,
    not_a_name: &str,
) -> Result<(Over, std::vec::IntoIter<Expr>), (NodeId, String)> {
    let mut args = args.into_iter();
    let mut names: Vec<(NodeId, CompactString)> = Vec::with_capacity(2);
    for arg in args.by_ref().take(variables) {
        let Kind::Ident(name) = arg.kind else { return Err((arg.id, not_a_name.to_owned())) };
        names.push((arg.id, name));
    }
    if let [(_, first), (id, second)] = names.as_slice()
        && first == second
    {
        return Err((*id, format!("duplicate variable name: {first}")));
    }
    if let Some((id, _)) = names.iter().find(|(_, name)| *name == ACCUMULATOR || *name == OLD_ACCUMULATOR) {
        return Err((*id, "iteration variable overwrites accumulator variable".to_owned()));
    }
    let mut names = names.into_iter().map(|(_, name)| name);
    let range = target.unwrap_or(Expr { id: 0, kind: Kind::Broken });
    Ok((Over { range, var: names.next().unwrap_or_default(), second: names.next() }, args))
}

const SIMPLE_NAME: &str = "argument must be a simple name";
const IDENTIFIER: &str = "argument is not an identifier";

fn next(args: &mut impl Iterator<Item = Expr>) -> Expr {
    args.next().unwrap_or(Expr { id: 0, kind: Kind::Broken })
}

fn has(make: &mut Maker<'_, '_>, _: Option<Expr>, args: Vec<Expr>) -> Expansion {
    let arg = next(&mut args.into_iter());
    match arg.kind {
        Kind::Select(select) => Ok(make.node(Kind::Select(Box::new(Select { is_test: true, ..*select })))),
        _ => Err((arg.id, "invalid argument to has() macro".to_owned())),
    }
}

fn all(make: &mut Maker<'_, '_>, target: Option<Expr>, args: Vec<Expr>) -> Expansion {
    let variables = args.len() - 1;
    let (over, mut rest) = over(target, args, variables, SIMPLE_NAME)?;
    let init = make.bool(true);
    let so_far = make.accumulator();
    let condition = make.call("@not_strictly_false", vec![so_far]);
    let so_far = make.accumulator();
    let step = make.call("_&&_", vec![so_far, next(&mut rest)]);
    let result = make.accumulator();
    Ok(make.fold(over, init, condition, step, result))
}

fn exists(make: &mut Maker<'_, '_>, target: Option<Expr>, args: Vec<Expr>) -> Expansion {
    let variables = args.len() - 1;
    let (over, mut rest) = over(target, args, variables, SIMPLE_NAME)?;
    let init = make.bool(false);
    let so_far = make.accumulator();
    let not_yet = make.call("!_", vec![so_far]);
    let condition = make.call("@not_strictly_false", vec![not_yet]);
    let so_far = make.accumulator();
    let step = make.call("_||_", vec![so_far, next(&mut rest)]);
    let result = make.accumulator();
    Ok(make.fold(over, init, condition, step, result))
}

fn exists_one(make: &mut Maker<'_, '_>, target: Option<Expr>, args: Vec<Expr>) -> Expansion {
    let variables = args.len() - 1;
    let (over, mut rest) = over(target, args, variables, SIMPLE_NAME)?;
    let init = make.int(0);
    let condition = make.bool(true);
    let so_far = make.accumulator();
    let one = make.int(1);
    let more = make.call("_+_", vec![so_far, one]);
    let step = make.filtered(Some(next(&mut rest)), more);
    let count = make.accumulator();
    let one = make.int(1);
    let result = make.call("_==_", vec![count, one]);
    Ok(make.fold(over, init, condition, step, result))
}

fn map(make: &mut Maker<'_, '_>, target: Option<Expr>, args: Vec<Expr>) -> Expansion {
    collect(make, target, args, 1, IDENTIFIER)
}

fn transform_list(make: &mut Maker<'_, '_>, target: Option<Expr>, args: Vec<Expr>) -> Expansion {
    collect(make, target, args, 2, SIMPLE_NAME)
}

fn collect(
    make: &mut Maker<'_, '_>,
    target: Option<Expr>,
    args: Vec<Expr>,
    variables: usize,
    not_a_name: &str,
) -> Expansion {
    let (over, mut rest) = over(target, args, variables, not_a_name)?;
    let filter = (rest.len() == 2).then(|| next(&mut rest));
    let init = make.list(Vec::new());
    let condition = make.bool(true);
    let step = make.appended(next(&mut rest));
    let step = make.filtered(filter, step);
    let result = make.accumulator();
    Ok(make.fold(over, init, condition, step, result))
}

fn filter(make: &mut Maker<'_, '_>, target: Option<Expr>, args: Vec<Expr>) -> Expansion {
    let element = args.first().cloned().unwrap_or(Expr { id: 0, kind: Kind::Broken });
    let (over, mut rest) = over(target, args, 1, IDENTIFIER)?;
    let init = make.list(Vec::new());
    let condition = make.bool(true);
    let step = make.appended(element);
    let step = make.filtered(Some(next(&mut rest)), step);
    let result = make.accumulator();
    Ok(make.fold(over, init, condition, step, result))
}

fn transform_map(make: &mut Maker<'_, '_>, target: Option<Expr>, args: Vec<Expr>) -> Expansion {
    let (over, mut rest) = over(target, args, 2, SIMPLE_NAME)?;
    let filter = (rest.len() == 2).then(|| next(&mut rest));
    let so_far = make.accumulator();
    let key = make.ident(&over.var);
    let step = make.call("cel.@mapInsert", vec![so_far, key, next(&mut rest)]);
    inserted(make, over, filter, step)
}

fn transform_map_entry(make: &mut Maker<'_, '_>, target: Option<Expr>, args: Vec<Expr>) -> Expansion {
    let (over, mut rest) = over(target, args, 2, SIMPLE_NAME)?;
    let filter = (rest.len() == 2).then(|| next(&mut rest));
    let so_far = make.accumulator();
    let step = make.call("cel.@mapInsert", vec![so_far, next(&mut rest)]);
    inserted(make, over, filter, step)
}

fn inserted(make: &mut Maker<'_, '_>, over: Over, filter: Option<Expr>, step: Expr) -> Expansion {
    let step = make.filtered(filter, step);
    let init = make.node(Kind::Map(Vec::new()));
    let condition = make.bool(true);
    let result = make.accumulator();
    Ok(make.fold(over, init, condition, step, result))
}

fn opt_map(make: &mut Maker<'_, '_>, target: Option<Expr>, args: Vec<Expr>) -> Expansion {
    let (present, value) = opt_value(make, target, args, "optMap")?;
    let some = make.call("optional.of", vec![value]);
    let none = make.call("optional.none", Vec::new());
    Ok(make.call("_?_:_", vec![present, some, none]))
}

fn opt_flat_map(make: &mut Maker<'_, '_>, target: Option<Expr>, args: Vec<Expr>) -> Expansion {
    let (present, value) = opt_value(make, target, args, "optFlatMap")?;
    let none = make.call("optional.none", Vec::new());
    Ok(make.call("_?_:_", vec![present, value, none]))
}

/// Whether an optional holds a value, and what becomes of the value.
fn opt_value(
    make: &mut Maker<'_, '_>,
    target: Option<Expr>,
    args: Vec<Expr>,
    name: &str,
) -> Result<(Expr, Expr), (NodeId, String)> {
    let mut args = args.into_iter();
    let var = next(&mut args);
    let Kind::Ident(var) = &var.kind else {
        return Err((var.id, format!("{name}() variable name must be a simple identifier")));
    };
    let target = target.unwrap_or(Expr { id: 0, kind: Kind::Broken });
    let again = make.copied(&target);
    let present = make.method("hasValue", target, Vec::new());
    let value = make.method("value", again, Vec::new());
    let result = make.binding(var, value, next(&mut args));
    Ok((present, result))
}

fn sort_by(make: &mut Maker<'_, '_>, target: Option<Expr>, args: Vec<Expr>) -> Expansion {
    let target = target.unwrap_or(Expr { id: 0, kind: Kind::Broken });
    if matches!(target.kind, Kind::Constant(_) | Kind::Map(_) | Kind::Struct(_) | Kind::Broken) {
        let text = "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
        return Err((target.id, text.to_owned()));
    }
    let input = make.ident(SORTED);
    let keys = map(make, Some(input), args)?;
    let input = make.ident(SORTED);
    let sorted = make.method("@sortByAssociatedKeys", input, vec![keys]);
    Ok(make.binding(SORTED, target, sorted))
}

fn bind(make: &mut Maker<'_, '_>, _: Option<Expr>, args: Vec<Expr>) -> Expansion {
    let mut args = args.into_iter();
    let var = next(&mut args);
    let Kind::Ident(name) = &var.kind else {
        return Err((var.id, "cel.bind() variable names must be simple identifiers".to_owned()));
    };
    let value = next(&mut args);
    let result = next(&mut args);
    Ok(make.binding(name, value, result))
}
