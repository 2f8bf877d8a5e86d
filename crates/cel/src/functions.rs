//! The declared functions, by name.

use crate::eval::Native;
use crate::library;
use crate::library::signatures::SIGNATURES;
use crate::types::Type;
use compact_str::CompactString;
use hashbrown::HashMap;
use std::sync::{Arc, OnceLock};

/// A declared function.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// What it can be applied to.
    pub overloads: Vec<Overload>,
    /// What it does; none where the evaluator knows the function itself.
    pub native: Option<Native>,
}

/// One way to apply a function.
#[derive(Debug)]
pub struct Overload {
    /// The identifier.
    pub id: &'static str,
    /// Whether it is a method.
    pub is_method: bool,
    /// What it takes; a method's target first.
    pub args: Vec<Type>,
    /// What it yields.
    pub result: Type,
    /// The types that the others are made of, to be found out where it is applied.
    pub params: Vec<CompactString>,
}

/// The function of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Function> {
    static TABLE: OnceLock<HashMap<&'static str, Function>> = OnceLock::new();
    TABLE.get_or_init(table).get(name)
}

fn table() -> HashMap<&'static str, Function> {
    let mut table: HashMap<&'static str, Function> = HashMap::new();
    for line in SIGNATURES.lines() {
        let Some((name, signature)) = line.split_once(' ') else { continue };
        let Some(overload) = overload(signature) else { continue };
        let new = || Function { name, overloads: Vec::new(), native: library::native(name) };
        table.entry(name).or_insert_with(new).overloads.push(overload);
    }
    table
}

fn overload(signature: &'static str) -> Option<Overload> {
    let (head, result) = signature.split_once(" -> ")?;
    let (id, args) = head.split_once('(')?;
    let mut rest = args;
    let mut all = Vec::new();
    while !rest.is_empty() && !rest.starts_with(')') {
        all.push(read(&mut rest));
        rest = rest.trim_start_matches([',', ' ']);
    }
    let result = read(&mut { result });
    let mut params = Vec::new();
    all.iter().chain([&result]).for_each(|of| parameters(of, &mut params));
    let is_method = id.starts_with('.');
    Some(Overload { id: id.trim_start_matches('.'), is_method, args: all, result, params })
}

/// Reads a type from the front of a signature.
fn read(rest: &mut &str) -> Type {
    let end = rest.find(['(', ')', ',']).unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    *rest = after;
    let mut params = Vec::new();
    if let Some(inner) = rest.strip_prefix('(') {
        *rest = inner;
        while !rest.starts_with(')') && !rest.is_empty() {
            params.push(read(rest));
            *rest = rest.trim_start_matches([',', ' ']);
        }
        *rest = rest.strip_prefix(')').unwrap_or(rest);
    }
    named(name, params)
}

fn named(name: &str, params: Vec<Type>) -> Type {
    let mut params = params.into_iter();
    let mut next = || params.next().unwrap_or(Type::Dyn);
    match name {
        "null_type" => Type::Null,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "dyn" => Type::Dyn,
        "list" => Type::list(next()),
        "map" => {
            let key = next();
            Type::map(key, next())
        }
        "type" => Type::Meta(Some(Arc::new(next()))),
        "optional_type" => Type::optional(next()),
        "net.IP" | "net.CIDR" => Type::Opaque(name.into(), Arc::from([])),
        _ if name.len() == 1 => Type::Param(name.into()),
        _ => Type::named(name),
    }
}

fn parameters(of: &Type, out: &mut Vec<CompactString>) {
    match of {
        Type::Param(name) if !out.contains(name) => out.push(name.clone()),
        Type::List(of) | Type::Meta(Some(of)) => parameters(of, out),
        Type::Map(key, value) => {
            parameters(key, out);
            parameters(value, out);
        }
        Type::Opaque(_, params) => params.iter().for_each(|p| parameters(p, out)),
        _ => {}
    }
}
