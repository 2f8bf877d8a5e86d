//! Paths into a schema, as `fieldPath` of rules and `selectableFields` write them: `.spec.a`, `['x.y']`.
//!
//! Follows: ValidFieldPath of apiextensions-apiserver/pkg/apiserver/schema/cel (v0.35).

use super::{Additional, Structural};
use std::fmt::Write as _;

/// A path that the schema knows.
#[derive(Debug)]
pub struct FoundField<'s> {
    /// The path as errors write it: `spec.a[key]`.
    pub path: String,
    /// The first name of it.
    pub root: String,
    /// What stands there; `None` below a map of anything.
    pub schema: Option<&'s Structural>,
}

/// Follows `path` through `schema`. Without `allows_brackets`, only dots may stand between names.
///
/// # Errors
/// Upstream's text when the path is malformed or leads nowhere.
pub fn find<'s>(path: &str, schema: &'s Structural, allows_brackets: bool) -> Result<FoundField<'s>, String> {
    let mut tokens = Tokens { rest: path };
    let mut found = FoundField { path: String::new(), root: String::new(), schema: Some(schema) };
    let unexpected_end = || "unexpected end of JSON path".to_owned();
    while let Some(token) = tokens.next() {
        match token {
            "[" if !allows_brackets => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let token = tokens.next().ok_or_else(unexpected_end)?;
                let quoted = token.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                let Some(quoted) = quoted else {
                    return Err(format!("expected single quoted string but got {token}"));
                };
                found.step(&unescape(quoted)?)?;
                match tokens.next().ok_or_else(unexpected_end)? {
                    "]" => {}
                    other => return Err(format!("expected ] but got {other}")),
                }
            }
            "." => {
                let name = tokens.next().ok_or_else(unexpected_end)?;
                found.step(name)?;
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        }
    }
    Ok(found)
}

impl FoundField<'_> {
    fn step(&mut self, name: &str) -> Result<(), String> {
        const NOWHERE: &str = "does not refer to a valid field";
        let schema = self.schema.ok_or(NOWHERE)?;
        if self.root.is_empty() {
            name.clone_into(&mut self.root);
        }
        if !schema.properties.is_empty() {
            let dot = if self.path.is_empty() { "" } else { "." };
            write!(self.path, "{dot}{name}").expect("writing to a String cannot fail");
            self.schema = Some(schema.property(name).ok_or(NOWHERE)?);
            return Ok(());
        }
        match &schema.additional {
            Additional::Unset => return Err(NOWHERE.to_owned()),
            additional => self.schema = additional.schema(),
        }
        write!(self.path, "[{name}]").expect("writing to a String cannot fail");
        Ok(())
    }
}

/// Splits a path at dots and brackets outside of quotes; delimiters are tokens of their own.
struct Tokens<'t> {
    rest: &'t str,
}

impl<'t> Tokens<'t> {
    fn next(&mut self) -> Option<&'t str> {
        let len = if self.rest.starts_with('\'') {
            let bytes = self.rest.as_bytes();
            let end = (1..bytes.len()).find(|idx| bytes[*idx] == b'\'' && bytes[idx - 1] != b'\\');
            end.map_or(self.rest.len(), |end| end + 1)
        } else {
            match self.rest.find(['.', '[', ']']) {
                Some(0) => 1,
                Some(at) => at,
                None => self.rest.len(),
            }
        };
        let (token, rest) = self.rest.split_at(len);
        self.rest = rest;
        (!token.is_empty()).then_some(token)
    }
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some(same @ ('\'' | '\\')) => same,
            Some(other) => return Err(format!("invalid string literal: invalid escape char \\{other}")),
            None => '\\',
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::json;

    #[test]
    fn paths_through_a_schema() {
        let schema = Structural::compile(&json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"a": {"type": "string"}, "x.y": {"type": "string"}}},
            "m": {"type": "object", "additionalProperties": {"type": "object", "properties": {"b": {"type": "string"}}}}
        }}))
        .unwrap();
        let told = |path: &str| match find(path, &schema, true) {
            Ok(found) => found.path,
            Err(why) => format!("! {why}"),
        };
        for (path, want) in [
            (".spec.a", "spec.a"),
            (".spec['x.y']", "spec.x.y"),
            (".m['k'].b", "m[k].b"),
            (".m.k", "m[k]"),
            (".nothing", "! does not refer to a valid field"),
            (".spec.a.b", "! does not refer to a valid field"),
            ("spec", "! expected [ or . but got: spec"),
            (".spec.", "! unexpected end of JSON path"),
            (".spec[a]", "! expected single quoted string but got a"),
            (".spec['a'.", "! expected ] but got ."),
        ] {
            assert_eq!(told(path), want, "{path}");
        }
        assert_eq!(find(".spec['a']", &schema, false).unwrap_err(), "array notation is not allowed");
    }
}
