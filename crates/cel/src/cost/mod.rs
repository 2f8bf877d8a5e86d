//! What running an expression can cost at most, told beforehand from how large its input can grow.

mod calls;
mod range;

use crate::ast::{ACCUMULATOR, Call, Comprehension, Constant, Element, Entry, Expr, Kind, NodeId, OLD_ACCUMULATOR};
use crate::check::Checked;
use crate::eval::cost::{LIST, MAP, OBJECT};
use crate::types::Type;
use compact_str::CompactString;
use hashbrown::HashMap;
pub use range::Range;

/// Where a value comes from: a variable, then members by name and `@items`, `@values`, `@keys`.
pub type Path = Vec<CompactString>;

/// The most elements or characters that the value at a path can have; none if that is not known.
pub type Sizes<'s> = dyn Fn(&[CompactString]) -> Option<u64> + 's;

/// What running an expression can cost.
#[must_use]
pub fn estimate(checked: &Checked, sizes: &Sizes<'_>) -> Range {
    let mut estimator = Estimator {
        checked,
        sizes,
        paths: HashMap::new(),
        locals: Vec::new(),
        computed: HashMap::new(),
        entries: HashMap::new(),
    };
    estimator.cost(&checked.root)
}

/// The sizes of the keys and the values of a list or map.
#[derive(Debug, Clone, Copy)]
struct EntrySizes {
    is_list: bool,
    key: Range,
    value: Range,
}

impl EntrySizes {
    fn or(self, other: Self) -> Self {
        Self { is_list: self.is_list, key: self.key.or(other.key), value: self.value.or(other.value) }
    }
}

struct Local {
    name: CompactString,
    path: Path,
    size: Option<Range>,
    entries: Option<EntrySizes>,
}

struct Estimator<'e> {
    checked: &'e Checked,
    sizes: &'e Sizes<'e>,
    paths: HashMap<NodeId, Path>,
    locals: Vec<Local>,
    computed: HashMap<NodeId, Range>,
    entries: HashMap<NodeId, EntrySizes>,
}

impl<'e> Estimator<'e> {
    fn cost(&mut self, expr: &'e Expr) -> Range {
        match &expr.kind {
            Kind::Broken | Kind::Constant(_) => Range::ZERO,
            Kind::Ident(name) => {
                let path = match self.local(name) {
                    Some(local) => local.path.clone(),
                    None => vec![name.clone()],
                };
                self.paths.insert(expr.id, path);
                Range::fixed(1)
            }
            Kind::Select(select) => {
                let mut cost = self.cost(&select.operand);
                if select.is_test {
                    return cost;
                }
                if matches!(self.checked.type_of(select.operand.id), Type::Map(..) | Type::Object(_)) {
                    cost = cost.plus(Range::fixed(1));
                }
                self.step(expr.id, &select.operand, &select.field);
                cost
            }
            Kind::Call(call) => self.call(expr, call),
            Kind::List(elements) => self.list(expr, elements),
            Kind::Map(entries) => self.map(expr, entries),
            Kind::Struct(object) => {
                let fields = object.fields.iter().fold(Range::ZERO, |sum, field| sum.plus(self.cost(&field.value)));
                fields.plus(Range::fixed(OBJECT))
            }
            Kind::Comprehension(fold) if fold.is_binding() => self.binding(expr, fold),
            Kind::Comprehension(fold) => self.fold(expr, fold),
        }
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    fn path(&self, expr: &Expr) -> Path {
        if let Kind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&expr.id).cloned().unwrap_or_default()
    }

    /// Notes that a node is a part of another.
    fn step(&mut self, id: NodeId, of: &Expr, name: &str) {
        let mut path = self.path(of);
        path.push(name.into());
        self.paths.insert(id, path);
    }

    /// How large the value of a node is; none if that is not known.
    fn size(&mut self, expr: &Expr) -> Option<Range> {
        if let Some(size) = self.computed.get(&expr.id).copied().or_else(|| written_size(expr)) {
            return Some(size);
        }
        if let Some(size) = self.size_at(&self.path(expr)) {
            self.computed.insert(expr.id, size);
            return Some(size);
        }
        if is_scalar(self.checked.type_of(expr.id)) {
            return Some(Range::fixed(1));
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    fn size_at(&self, path: &[CompactString]) -> Option<Range> {
        if path.is_empty() {
            return None;
        }
        (self.sizes)(path).map(|max| Range { min: 0, max })
    }

    fn size_or_unknown(&mut self, expr: &Expr) -> Range {
        self.size(expr).unwrap_or(Range::UNKNOWN)
    }

    fn set_size(&mut self, id: NodeId, size: Option<Range>) {
        if let Some(size) = size {
            self.computed.insert(id, size);
        }
    }

    fn entry_sizes(&self, expr: &Expr) -> Option<EntrySizes> {
        self.entries.get(&expr.id).copied().or_else(|| match &expr.kind {
            Kind::Ident(name) => self.local(name)?.entries,
            _ => None,
        })
    }

    fn set_entry_sizes(&mut self, id: NodeId, sizes: Option<EntrySizes>) {
        if let Some(sizes) = sizes {
            self.entries.insert(id, sizes);
        }
    }

    fn list(&mut self, expr: &Expr, elements: &'e [Element]) -> Range {
        let mut sum = Range::fixed(LIST);
        let mut value = nothing_yet(elements.is_empty());
        for element in elements {
            sum = sum.plus(self.cost(&element.value));
            value = value.or(self.size_or_unknown(&element.value));
        }
        self.entries.insert(expr.id, EntrySizes { is_list: true, key: Range::fixed(1), value });
        sum
    }

    fn map(&mut self, expr: &Expr, entries: &'e [Entry]) -> Range {
        let mut sum = Range::fixed(MAP);
        let mut key = nothing_yet(entries.is_empty());
        let mut value = key;
        for entry in entries {
            sum = sum.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
            key = key.or(self.size_or_unknown(&entry.key));
            value = value.or(self.size_or_unknown(&entry.value));
        }
        self.entries.insert(expr.id, EntrySizes { is_list: false, key, value });
        sum
    }

    /// Names what a loop accumulates, or what a binding binds.
    fn name_value(&mut self, name: &CompactString, value: &Expr) {
        let local = Local {
            name: name.clone(),
            path: self.path(value),
            size: self.size(value),
            entries: self.entry_sizes(value),
        };
        self.locals.push(local);
    }

    fn binding(&mut self, expr: &Expr, fold: &'e Comprehension) -> Range {
        let sum = self.cost(&fold.range).plus(self.cost(&fold.init));
        self.name_value(&fold.accumulator, &fold.init);
        let sum = sum.plus(self.cost(&fold.result));
        self.locals.pop();
        let (size, entries) = (self.size(&fold.result), self.entry_sizes(&fold.result));
        self.set_size(expr.id, size);
        self.set_entry_sizes(expr.id, entries);
        sum
    }

    fn fold(&mut self, expr: &Expr, fold: &'e Comprehension) -> Range {
        let mut sum = self.cost(&fold.range).plus(self.cost(&fold.init));
        self.name_value(&fold.accumulator, &fold.init);
        let outside = self.locals.len();
        self.name_variables(fold);
        let turn = self.cost(&fold.condition).plus(self.cost(&fold.step));
        self.locals.truncate(outside);
        sum = sum.plus(self.cost(&fold.result));
        self.locals.pop();
        let turns = self.size_or_unknown(&fold.range);
        match &fold.init.kind {
            Kind::Constant(_) => {
                let size = self.size(&fold.init);
                self.set_size(expr.id, size);
            }
            Kind::List(_) | Kind::Map(_) => {
                self.computed.insert(expr.id, turns);
                let entries = self.entry_sizes(&fold.step);
                self.set_entry_sizes(expr.id, entries);
            }
            _ => {}
        }
        sum.plus(turns.times(turn))
    }

    fn name_variables(&mut self, fold: &Comprehension) {
        let entries = self.entry_sizes(&fold.range);
        let is_list = match entries {
            Some(entries) => entries.is_list,
            None => matches!(self.checked.type_of(fold.range.id), Type::List(_)),
        };
        let (key, value) = (entries.map(|sizes| sizes.key), entries.map(|sizes| sizes.value));
        let (keys, values) = if is_list { ("@indices", "@items") } else { ("@keys", "@values") };
        let mut variables = match &fold.second {
            Some(second) => vec![(&fold.var, keys, key), (second, values, value)],
            None if is_list => vec![(&fold.var, values, value)],
            None => vec![(&fold.var, keys, key)],
        };
        let range = self.path(&fold.range);
        self.locals.extend(variables.drain(..).map(|(name, part, size)| {
            let mut path = range.clone();
            path.push(part.into());
            Local { name: name.clone(), path, size, entries: None }
        }));
    }

    fn call(&mut self, expr: &'e Expr, call: &'e Call) -> Range {
        if let ("dyn", [arg]) = (call.function.as_str(), call.args.as_slice()) {
            let cost = self.cost(arg).plus(Range::fixed(1));
            let (size, entries) = (self.size(arg), self.entry_sizes(arg));
            self.set_size(expr.id, size);
            self.set_entry_sizes(expr.id, entries);
            return cost;
        }
        let mut costs = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            costs.push(self.cost(arg));
            // The sizes are settled while the variables of loops still mean what they do here.
            let _ = self.size(arg);
        }
        let checked = self.checked;
        let overloads = checked.overloads_of(expr.id);
        if overloads.is_empty() {
            return Range::ZERO;
        }
        let target = call.target.as_ref().map_or(Range::ZERO, |target| {
            let cost = self.cost(target);
            let _ = self.size(target);
            cost
        });
        let mut all = Range { min: u64::MAX, max: 0 };
        let mut size: Option<Range> = None;
        for overload in overloads {
            let (cost, made) = self.overload(expr, call, overload, &costs);
            all = all.or(cost);
            size = match (size, made) {
                (Some(before), Some(made)) => Some(before.or(made)),
                (before, made) => before.or(made),
            };
            if let ("index_list" | "index_map", [of, _]) = (*overload, call.args.as_slice()) {
                size = self.entry_sizes(of).map(|sizes| sizes.value);
                self.step(expr.id, of, if *overload == "index_list" { "@items" } else { "@values" });
            }
            if size.is_none() {
                size = self.size(expr);
            }
        }
        self.set_size(expr.id, size);
        target.plus(all)
    }

    /// Where a node's value comes from, unless that is a place where something is accumulated.
    fn source(&self, expr: &Expr) -> Path {
        let path = self.path(expr);
        match path.first() {
            Some(first) if *first == ACCUMULATOR || *first == OLD_ACCUMULATOR => Path::new(),
            _ => path,
        }
    }
}

/// The size of something of which no part was seen.
const fn nothing_yet(is_empty: bool) -> Range {
    if is_empty { Range::ZERO } else { Range { min: u64::MAX, max: 0 } }
}

/// The size of what is written out.
fn written_size(expr: &Expr) -> Option<Range> {
    let size = match &expr.kind {
        Kind::Constant(Constant::String(text)) => text.chars().count(),
        Kind::Constant(Constant::Bytes(bytes)) => bytes.len(),
        Kind::Constant(_) => 1,
        Kind::List(elements) => elements.len(),
        Kind::Map(entries) => entries.len(),
        _ => return None,
    };
    Some(Range::fixed(size as u64))
}

fn is_scalar(of: &Type) -> bool {
    match of {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        _ => of.held().is_some_and(is_scalar),
    }
}
