//! Finds out what every node's type is, which overloads every call can mean, and what is wrong.

mod validate;

use crate::ast::{Call, Comprehension, Constant, Element, Entry, Expr, Kind, NodeId, Select, Struct};
use crate::env::{Env, type_named};
use crate::functions::{self, Function};
use crate::source::{Fault, Faults, Source};
use crate::types::{Findings, Type, more_general};
use compact_str::{CompactString, format_compact};
use std::fmt::Write;

/// A checked expression.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The tree. Names are the full names of what they stand for.
    pub root: Expr,
    /// The place of each variable among the variables of its environment, by name.
    pub env: Env,
    source: Source,
    offsets: Vec<u32>,
    types: Vec<Option<Type>>,
    overloads: Vec<Vec<&'static str>>,
}

impl Checked {
    /// The type of a node.
    #[must_use]
    pub fn type_of(&self, id: NodeId) -> &Type {
        self.types.get(id as usize).and_then(Option::as_ref).unwrap_or(&Type::Dyn)
    }

    /// The type of the whole expression.
    #[must_use]
    pub fn output(&self) -> &Type {
        self.type_of(self.root.id)
    }

    /// The overloads that a call can mean.
    #[must_use]
    pub fn overloads_of(&self, id: NodeId) -> &[&'static str] {
        self.overloads.get(id as usize).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether a variable is used.
    #[must_use]
    pub fn uses(&self, name: &str) -> bool {
        let mut found = false;
        walk(&self.root, &mut |expr| found |= matches!(&expr.kind, Kind::Ident(known) if known == name));
        found
    }

    fn fault(&self, id: NodeId, text: String) -> Fault {
        let offset = self.offsets.get(id as usize).copied().unwrap_or_default();
        Fault { place: self.source.place(offset as usize), text }
    }
}

/// Visits a node and everything below it.
pub fn walk<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    visit(expr);
    children(expr, &mut |child| walk(child, visit));
}

/// Visits the nodes right below a node.
fn children<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    match &expr.kind {
        Kind::Broken | Kind::Constant(_) | Kind::Ident(_) => {}
        Kind::Select(select) => visit(&select.operand),
        Kind::Call(call) => call.target.iter().chain(&call.args).for_each(visit),
        Kind::List(elements) => elements.iter().for_each(|e| visit(&e.value)),
        Kind::Map(entries) => {
            for entry in entries {
                visit(&entry.key);
                visit(&entry.value);
            }
        }
        Kind::Struct(object) => object.fields.iter().for_each(|f| visit(&f.value)),
        Kind::Comprehension(fold) => {
            [&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result].into_iter().for_each(visit);
        }
    }
}

/// Checks an expression.
///
/// # Errors
/// What is wrong with it.
pub fn check(env: &Env, source: Source, mut root: Expr, offsets: Vec<u32>) -> Result<Checked, Faults> {
    let count = offsets.len();
    let mut checker = Checker {
        env,
        locals: Vec::new(),
        findings: Findings::default(),
        unknowns: 0,
        types: vec![None; count],
        overloads: vec![Vec::new(); count],
        faults: Vec::new(),
    };
    checker.check(&mut root);
    let Checker { findings, mut types, overloads, faults, .. } = checker;
    types.iter_mut().flatten().for_each(|of| *of = findings.applied(of, true));
    let checked = Checked { root, env: env.clone(), source, offsets, types, overloads };
    let mut shown: Vec<Fault> = faults.into_iter().map(|(id, text)| checked.fault(id, text)).collect();
    if shown.is_empty() {
        shown = validate::validate(&checked).into_iter().map(|(id, text)| checked.fault(id, text)).collect();
    }
    if shown.is_empty() { Ok(checked) } else { Err(Faults::new(checked.source, shown)) }
}

struct Checker<'e> {
    env: &'e Env,
    locals: Vec<(CompactString, Type)>,
    findings: Findings,
    /// How many types were still to be found out so far.
    unknowns: usize,
    types: Vec<Option<Type>>,
    overloads: Vec<Vec<&'static str>>,
    faults: Vec<(NodeId, String)>,
}

impl Checker<'_> {
    fn fault(&mut self, id: NodeId, text: String) {
        self.faults.push((id, text));
    }

    fn set(&mut self, id: NodeId, of: Type) {
        if let Some(slot) = self.types.get_mut(id as usize) {
            *slot = Some(of);
        }
    }

    fn get(&self, id: NodeId) -> Type {
        self.types.get(id as usize).cloned().flatten().unwrap_or(Type::Error)
    }

    fn unknown(&mut self) -> Type {
        let name = format_compact!("_var{}", self.unknowns);
        self.unknowns += 1;
        Type::Param(name)
    }

    fn undeclared(&mut self, id: NodeId, name: &str) {
        self.fault(id, format!("undeclared reference to '{name}' (in container '')"));
        self.set(id, Type::Error);
    }

    fn mismatch(&mut self, id: NodeId, expected: &Type, found: &Type) {
        self.fault(id, format!("expected type '{expected}' but found '{found}'"));
    }

    /// What a name stands for.
    fn look_up(&self, name: &str) -> Option<Type> {
        let local = self.locals.iter().rev().find(|(known, _)| known == name).map(|(_, of)| of);
        if let Some(of) = local.or_else(|| self.env.variable(name).map(|(_, of)| of)) {
            return Some(of.clone());
        }
        let object = || Some(Type::Meta(Some(Type::Object(self.env.object(name)?.clone()).into())));
        type_named(name).or_else(object)
    }

    fn check(&mut self, expr: &mut Expr) {
        let id = expr.id;
        match &mut expr.kind {
            Kind::Broken => self.set(id, Type::Error),
            Kind::Constant(constant) => self.set(id, type_of(constant)),
            Kind::Ident(name) => match self.look_up(name.trim_start_matches('.')) {
                Some(of) => {
                    *name = name.trim_start_matches('.').into();
                    self.set(id, of);
                }
                None => self.undeclared(id, name),
            },
            Kind::Select(select) => {
                if let Some(name) = qualified(select)
                    && let Some(of) = self.look_up(&name)
                {
                    self.set(id, of);
                    expr.kind = Kind::Ident(name);
                    return;
                }
                let of = self.select(id, &mut select.operand, &select.field, false);
                let of = if select.is_test { Type::Bool } else { self.findings.applied(&of, false) };
                self.set(id, of);
            }
            Kind::Call(call) => self.call(id, call),
            Kind::List(elements) => self.list(id, elements),
            Kind::Map(entries) => self.map(id, entries),
            Kind::Struct(object) => self.object(id, object),
            Kind::Comprehension(fold) => self.comprehension(id, fold),
        }
    }

    fn select(&mut self, id: NodeId, operand: &mut Expr, field: &str, is_optional: bool) -> Type {
        self.check(operand);
        let operand = self.findings.applied(&self.get(operand.id), false);
        let held = operand.held();
        let of = self.member(id, held.unwrap_or(&operand), field);
        if held.is_some() || is_optional { Type::optional(of) } else { of }
    }

    fn member(&mut self, id: NodeId, target: &Type, field: &str) -> Type {
        match target {
            Type::Map(_, value) => value.as_ref().clone(),
            Type::Object(object) if object.decl.is_none() => {
                self.fault(id, format!("unexpected failed resolution of '{}'", object.name));
                Type::Error
            }
            Type::Object(object) => object.member(field).unwrap_or_else(|| {
                self.fault(id, format!("undefined field '{field}'"));
                Type::Error
            }),
            Type::Param(_) => {
                self.findings.accepts(&Type::Dyn, target);
                Type::Dyn
            }
            Type::Dyn | Type::Error => Type::Dyn,
            _ => {
                self.fault(id, format!("type '{target}' does not support field selection"));
                Type::Dyn
            }
        }
    }

    fn call(&mut self, id: NodeId, call: &mut Call) {
        if call.function == "_?._" {
            return self.optional_select(id, call);
        }
        call.args.iter_mut().for_each(|arg| self.check(arg));
        if let Some(bare) = call.function.strip_prefix('.') {
            call.function = bare.into();
        }
        let Some(target) = &mut call.target else {
            let Some(function) = functions::find(&call.function) else {
                return self.undeclared(id, &call.function.clone());
            };
            return self.resolve(id, function, None, &call.args);
        };
        let full = match &target.kind {
            Kind::Ident(name) => Some(name.trim_start_matches('.').into()),
            Kind::Select(select) => qualified(select),
            _ => None,
        };
        if let Some(name) = full.map(|prefix: CompactString| format_compact!("{prefix}.{}", call.function))
            && let Some(function) = functions::find(&name)
        {
            call.function = name;
            call.target = None;
            return self.resolve(id, function, None, &call.args);
        }
        self.check(target);
        match functions::find(&call.function) {
            Some(function) => self.resolve(id, function, call.target.as_ref(), &call.args),
            None => self.undeclared(id, &call.function.clone()),
        }
    }

    fn optional_select(&mut self, id: NodeId, call: &mut Call) {
        let [operand, field] = call.args.as_mut_slice() else { return };
        let Kind::Constant(Constant::String(name)) = &field.kind else { return };
        let of = self.select(id, operand, name, true);
        let of = self.findings.applied(&of, false);
        self.set(id, of);
        self.set(field.id, Type::String);
        self.choose(id, vec!["select_optional_field"]);
    }

    fn choose(&mut self, id: NodeId, overloads: Vec<&'static str>) {
        if let Some(slot) = self.overloads.get_mut(id as usize) {
            *slot = overloads;
        }
    }

    /// Finds the overloads that fit the arguments.
    fn resolve(&mut self, id: NodeId, function: &'static Function, target: Option<&Expr>, args: &[Expr]) {
        let given: Vec<Type> = target.into_iter().chain(args).map(|arg| self.get(arg.id)).collect();
        let given: Vec<&Type> = given.iter().collect();
        let mut chosen = Vec::new();
        let mut result: Option<Type> = None;
        for overload in function.overloads.iter().filter(|o| o.is_method == target.is_some()) {
            if matches!(function.name, "_&&_" | "_||_") {
                return self.logic(id, overload.id, args);
            }
            let mut fresh = Findings::default();
            for param in &overload.params {
                let unknown = self.unknown();
                fresh.insert(param, unknown);
            }
            let expected: Vec<Type> = overload.args.iter().map(|arg| fresh.applied(arg, false)).collect();
            if !self.findings.accept(&given, &expected) {
                continue;
            }
            chosen.push(overload.id);
            let yields = self.findings.applied(&fresh.applied(&overload.result, false), false);
            result = Some(match result {
                None => yields,
                Some(before) if before.is_dyn() || before == yields => before,
                Some(_) => Type::Dyn,
            });
        }
        match result {
            Some(result) => {
                self.set(id, result);
                self.choose(id, chosen);
            }
            None => self.no_overload(id, function.name, &given, target.is_some()),
        }
    }

    fn no_overload(&mut self, id: NodeId, name: &str, given: &[&Type], is_method: bool) {
        let mut given = given.iter().map(|of| self.findings.applied(of, true));
        let mut signature = String::new();
        if is_method && let Some(target) = given.next() {
            let _ = write!(signature, "{target}.");
        }
        signature.push('(');
        for (index, of) in given.enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            let _ = write!(signature, "{comma}{of}");
        }
        signature.push(')');
        self.fault(id, format!("found no matching overload for '{name}' applied to '{signature}'"));
        self.set(id, Type::Error);
    }

    fn logic(&mut self, id: NodeId, overload: &'static str, args: &[Expr]) {
        let mut fits = true;
        for arg in args {
            let of = self.get(arg.id);
            if !self.findings.accepts(&of, &Type::Bool) {
                self.mismatch(arg.id, &Type::Bool, &of);
                fits = false;
            }
        }
        if fits {
            self.choose(id, vec![overload]);
        }
        self.set(id, if fits { Type::Bool } else { Type::Error });
    }

    /// What an optional element or entry adds.
    fn unwrapped(&mut self, id: NodeId, of: Type, is_optional: bool) -> Type {
        if !is_optional {
            return of;
        }
        if let Some(held) = of.held() {
            return held.clone();
        }
        if !of.is_dyn() {
            self.mismatch(id, &Type::optional(of.clone()), &of);
        }
        of
    }

    fn joined(&mut self, before: Option<Type>, of: Type) -> Type {
        match before {
            None => of,
            Some(before) if self.findings.accepts(&before, &of) => more_general(&before, &of).clone(),
            Some(_) => Type::Dyn,
        }
    }

    fn list(&mut self, id: NodeId, elements: &mut [Element]) {
        let mut of = None;
        for Element { is_optional, value } in elements {
            self.check(value);
            let element = self.get(value.id);
            let element = self.unwrapped(value.id, element, *is_optional);
            of = Some(self.joined(of, element));
        }
        let of = of.unwrap_or_else(|| self.unknown());
        self.set(id, Type::list(of));
    }

    fn map(&mut self, id: NodeId, entries: &mut [Entry]) {
        let mut of: Option<(Type, Type)> = None;
        for Entry { is_optional, key, value, .. } in entries {
            self.check(key);
            let key = self.get(key.id);
            let (keys, values) = of.unzip();
            let keys = self.joined(keys, key);
            self.check(value);
            let found = self.get(value.id);
            let found = self.unwrapped(value.id, found, *is_optional);
            of = Some((keys, self.joined(values, found)));
        }
        let (key, value) = of.unwrap_or_else(|| (self.unknown(), self.unknown()));
        self.set(id, Type::map(key, value));
    }

    fn object(&mut self, id: NodeId, object: &mut Struct) {
        if let Some(bare) = object.name.strip_prefix('.') {
            object.name = bare.into();
        }
        let of = match self.look_up(&object.name) {
            None => return self.undeclared(id, &object.name.clone()),
            Some(Type::Meta(Some(of))) if matches!(*of, Type::Object(_)) => of.as_ref().clone(),
            Some(Type::Meta(_)) => {
                self.fault(id, format!("'{}' is not a message type", object.name));
                Type::Error
            }
            Some(of) => {
                self.fault(id, format!("'{}' is not a type", of.name()));
                Type::Error
            }
        };
        self.set(id, of.clone());
        for field in &mut object.fields {
            self.check(&mut field.value);
            let expected = match &of {
                Type::Object(_) => self.member(field.id, &of, &field.name),
                _ => Type::Error,
            };
            let found = self.get(field.value.id);
            let found = self.unwrapped(field.value.id, found, field.is_optional);
            if !self.findings.accepts(&expected, &found) {
                let name = &field.name;
                self.fault(
                    field.id,
                    format!("expected type of field '{name}' is '{expected}' but provided type is '{found}'"),
                );
            }
        }
    }

    fn comprehension(&mut self, id: NodeId, fold: &mut Comprehension) {
        self.check(&mut fold.range);
        self.check(&mut fold.init);
        let range = self.findings.applied(&self.get(fold.range.id), false);
        let accumulated = self.get(fold.init.id);
        let outside = self.locals.len();
        self.locals.push((fold.accumulator.clone(), accumulated.clone()));
        let (first, second) = match &range {
            Type::List(of) => (Type::Int, of.as_ref().clone()),
            Type::Map(key, value) => (key.as_ref().clone(), value.as_ref().clone()),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.findings.accepts(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            _ => {
                let text = format!(
                    "expression of type '{range}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.fault(fold.range.id, text);
                (Type::Error, Type::Error)
            }
        };
        match &fold.second {
            Some(name) => {
                self.locals.push((fold.var.clone(), first));
                self.locals.push((name.clone(), second));
            }
            None => {
                let single = if matches!(range, Type::List(_)) { second } else { first };
                self.locals.push((fold.var.clone(), single));
            }
        }
        self.check(&mut fold.condition);
        self.assert(fold.condition.id, &Type::Bool);
        self.check(&mut fold.step);
        self.assert(fold.step.id, &accumulated);
        self.locals.truncate(outside + 1);
        self.check(&mut fold.result);
        self.locals.truncate(outside);
        let result = self.findings.applied(&self.get(fold.result.id), false);
        self.set(id, result);
    }

    fn assert(&mut self, id: NodeId, expected: &Type) {
        let found = self.get(id);
        if !self.findings.accepts(expected, &found) {
            self.mismatch(id, expected, &found);
        }
    }
}

const fn type_of(constant: &Constant) -> Type {
    match constant {
        Constant::Null => Type::Null,
        Constant::Bool(_) => Type::Bool,
        Constant::Int(_) => Type::Int,
        Constant::Uint(_) => Type::Uint,
        Constant::Double(_) => Type::Double,
        Constant::String(_) => Type::String,
        Constant::Bytes(_) => Type::Bytes,
    }
}

/// The dotted name that a chain of members spells, if it is one.
fn qualified(select: &Select) -> Option<CompactString> {
    if select.is_test {
        return None;
    }
    let prefix = match &select.operand.kind {
        Kind::Ident(name) => name.trim_start_matches('.').into(),
        Kind::Select(inner) => qualified(inner)?,
        _ => return None,
    };
    Some(format_compact!("{prefix}.{}", select.field))
}
