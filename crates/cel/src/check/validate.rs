//! What is wrong with an expression whose types are right: constants that will not convert, patterns that are none,
//! lists and maps of several types, formats that do not fit their values.

use super::{Checked, walk};
use crate::ast::{Call, Constant, Entry, Expr, Kind, NodeId};
use crate::eval::Val;
use crate::library;
use crate::library::format_text::{self, Clause};
use crate::regexp::Regexp;
use crate::types::Type;

type Fault = (NodeId, String);

/// Finds the faults.
pub(super) fn validate(checked: &Checked) -> Vec<Fault> {
    let mut faults = Vec::new();
    walk(&checked.root, &mut |expr| constants(expr, &mut faults));
    same_types(checked, &checked.root, &mut faults);
    walk(&checked.root, &mut |expr| formats(checked, expr, &mut faults));
    faults
}

/// Constants that functions are applied to and that mean nothing to them.
fn constants(expr: &Expr, faults: &mut Vec<Fault>) {
    let Kind::Call(call) = &expr.kind else { return };
    let Some(Expr { id, kind: Kind::Constant(constant) }) = call.args.first() else { return };
    let is_fine = match (call.function.as_str(), constant) {
        (name @ ("duration" | "timestamp"), Constant::String(text)) => does_convert(name, Val::str(text)),
        (name @ ("duration" | "timestamp"), Constant::Int(value)) => does_convert(name, Val::Int(*value)),
        ("matches", Constant::String(text)) => Regexp::new(text).is_ok(),
        _ => return,
    };
    if !is_fine {
        faults.push((*id, format!("invalid {} argument", call.function)));
    }
}

fn does_convert(name: &str, value: Val<'_>) -> bool {
    library::native(name).is_some_and(|convert| convert(&mut [value]).is_ok())
}

/// Lists and maps whose parts are of several types, except within formats.
fn same_types(checked: &Checked, expr: &Expr, faults: &mut Vec<Fault>) {
    match &expr.kind {
        Kind::Call(call) if call.function == "format" => return,
        Kind::List(elements) => {
            let types = elements
                .iter()
                .map(|element| (element.value.id, unwrapped(checked.type_of(element.value.id), element.is_optional)));
            faults.extend(differing(types).into_iter().take(1));
        }
        Kind::Map(entries) => {
            let keys = entries.iter().map(|entry| (entry.key.id, checked.type_of(entry.key.id)));
            let value = |e: &Entry| e.value.id;
            let values =
                entries.iter().map(|entry| (value(entry), unwrapped(checked.type_of(value(entry)), entry.is_optional)));
            faults.extend(differing(keys));
            faults.extend(differing(values));
        }
        _ => {}
    }
    super::children(expr, &mut |child| same_types(checked, child, faults));
}

fn unwrapped(of: &Type, is_optional: bool) -> &Type {
    if is_optional { of.held().unwrap_or(of) } else { of }
}

fn differing<'t>(mut types: impl Iterator<Item = (NodeId, &'t Type)>) -> Vec<Fault> {
    let Some((_, expected)) = types.next() else { return Vec::new() };
    types
        .filter(|(_, found)| *found != expected)
        .map(|(id, found)| (id, format!("expected type '{expected}' but found '{found}'")))
        .collect()
}

/// Formats that do not fit their values, where both are written out.
fn formats(checked: &Checked, expr: &Expr, faults: &mut Vec<Fault>) {
    let Kind::Call(call) = &expr.kind else { return };
    let Call { function, target: Some(target), args } = call.as_ref() else { return };
    let (Kind::Constant(Constant::String(format)), [Expr { kind: Kind::List(elements), .. }]) =
        (&target.kind, args.as_slice())
    else {
        return;
    };
    if function != "format" {
        return;
    }
    let mut wrong = None;
    let filled = format_text::filled(format, elements.len(), false, |index, clause| {
        let Some(element) = elements.get(index) else { return Ok(String::new()) };
        match misfit(checked, clause, &element.value) {
            Some(id) => {
                wrong = Some(id);
                Err(clause.fault(checked.type_of(id).name()))
            }
            None => Ok(String::new()),
        }
    });
    let asked = format_text::count(format);
    if let Err(why) = filled {
        faults.push((wrong.unwrap_or(expr.id), why));
    } else if elements.len() > asked {
        let count = elements.len();
        let text = format!("too many arguments supplied to string.format (expected {asked}, got {count})");
        faults.push((expr.id, text));
    }
}

/// The part of an expression whose type the clause does not take.
fn misfit(checked: &Checked, clause: Clause, expr: &Expr) -> Option<NodeId> {
    let of = checked.type_of(expr.id);
    let fits = of.is_dyn()
        || match clause {
            Clause::String => matches!(
                of,
                Type::List(_)
                    | Type::Map(..)
                    | Type::Int
                    | Type::Uint
                    | Type::Double
                    | Type::Bool
                    | Type::String
                    | Type::Timestamp
                    | Type::Bytes
                    | Type::Duration
                    | Type::Meta(_)
                    | Type::Null
            ),
            Clause::Decimal | Clause::Octal => matches!(of, Type::Int | Type::Uint),
            Clause::Fixed(_) | Clause::Scientific(_) => matches!(of, Type::Double | Type::String),
            Clause::Binary => matches!(of, Type::Int | Type::Uint | Type::Bool),
            Clause::Hex(_) => matches!(of, Type::Int | Type::Uint | Type::String | Type::Bytes),
        };
    if !fits {
        return Some(expr.id);
    }
    if clause != Clause::String {
        return None;
    }
    match &expr.kind {
        Kind::List(elements) => elements.iter().find_map(|element| misfit(checked, clause, &element.value)),
        Kind::Map(entries) => entries
            .iter()
            .find_map(|entry| misfit(checked, clause, &entry.key).or_else(|| misfit(checked, clause, &entry.value))),
        _ => None,
    }
}
