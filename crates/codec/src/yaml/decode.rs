//! Nodes as a [`Value`]: aliases and merge keys followed, keys made strings, duplicates told.

use super::nodes::{Content, Node, NodeId, Tree};
use super::scalar::{self, Scalar};
use super::{Parsed, YamlError};
use base64::Engine as _;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::value::{NESTING_DEPTH_MAX, go_float};
use pintle_apimachinery::{Object, Str, Value};
use std::collections::BTreeSet;

/// Duplicate keys reported per document; further ones are not told.
const DUPLICATES_MAX: usize = 100;

pub(super) fn decode(tree: &Tree<'_>) -> Result<Parsed, YamlError> {
    let mut decoder =
        Decoder { tree, duplicates: Vec::new(), budget: Budget::default(), depth: 0, following: BTreeSet::new() };
    let value = match tree.root {
        Some(root) => decoder.node(root)?,
        None => Value::Null,
    };
    Ok(Parsed { value, duplicates: decoder.duplicates })
}

/// A float as a value: whole ones are integers.
pub(super) fn number(f: f64) -> Value {
    const I64_WHOLE_MAX: f64 = 9_223_372_036_854_774_784.0;
    #[expect(clippy::cast_possible_truncation, reason = "the guard holds the value within i64's range")]
    if f.fract() == 0.0 && f.abs() <= I64_WHOLE_MAX { Value::Int(f as i64) } else { Value::Float(f) }
}

/// How much of the work is done for aliases: what makes a billion laughs from a few lines.
#[derive(Default)]
struct Budget {
    n_nodes: u32,
    n_by_alias: u32,
    alias_depth: u32,
}

impl Budget {
    /// Counts a node. A small document may consist of aliases almost wholly, a large one less and less.
    fn spend(&mut self) -> Result<(), YamlError> {
        const RANGE_LOW: f64 = 400_000.0;
        const RANGE_HIGH: f64 = 4_000_000.0;
        self.n_nodes += 1;
        self.n_by_alias += u32::from(self.alias_depth > 0);
        let n_nodes = f64::from(self.n_nodes);
        let allowed = 0.99 - 0.89 * ((n_nodes - RANGE_LOW) / (RANGE_HIGH - RANGE_LOW)).clamp(0.0, 1.0);
        if self.n_by_alias > 100 && self.n_nodes > 1000 && f64::from(self.n_by_alias) / n_nodes > allowed {
            return Err(YamlError("yaml: document contains excessive aliasing".to_owned()));
        }
        Ok(())
    }
}

/// A key, as it is told and compared: `1` and `"1"` are two keys until they become strings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// Go's `%#v`.
    shown: String,
    name: Str,
}

struct Decoder<'t> {
    tree: &'t Tree<'t>,
    duplicates: Vec<String>,
    budget: Budget,
    depth: usize,
    /// Anchored nodes whose aliases are being followed.
    following: BTreeSet<NodeId>,
}

/// The members of a mapping so far; later ones count.
#[derive(Default)]
struct Members {
    entries: Vec<(Str, Value)>,
    seen: BTreeSet<Key>,
}

impl Decoder<'_> {
    fn node(&mut self, id: NodeId) -> Result<Value, YamlError> {
        self.budget.spend()?;
        let tree = self.tree;
        let node = &tree.nodes[id];
        match &node.content {
            Content::Scalar { text, is_plain } => scalar_value(node, text, *is_plain),
            Content::Alias(target) => self.alias(*target, |decoder| decoder.node(*target)),
            Content::Sequence(items) => {
                self.deeper()?;
                let items = items.iter().map(|item| self.node(*item)).collect::<Result<_, _>>()?;
                self.depth -= 1;
                Ok(Value::Array(items))
            }
            Content::Mapping(children) => {
                let mut members = Members::default();
                self.mapping(children, &mut members)?;
                Ok(Value::Object(Object::from_unsorted(members.entries)))
            }
        }
    }

    fn deeper(&mut self) -> Result<(), YamlError> {
        self.depth += 1;
        if self.depth > NESTING_DEPTH_MAX {
            return Err(YamlError(format!("yaml: exceeded max depth of {NESTING_DEPTH_MAX}")));
        }
        Ok(())
    }

    fn alias<T>(
        &mut self,
        target: NodeId,
        follow: impl FnOnce(&mut Self) -> Result<T, YamlError>,
    ) -> Result<T, YamlError> {
        if !self.following.insert(target) {
            let name = self.tree.anchor_names.get(&target).map_or("", String::as_str);
            return Err(YamlError(format!("yaml: anchor '{name}' value contains itself")));
        }
        self.budget.alias_depth += 1;
        let followed = follow(self)?;
        self.budget.alias_depth -= 1;
        self.following.remove(&target);
        Ok(followed)
    }

    fn mapping(&mut self, children: &[NodeId], members: &mut Members) -> Result<(), YamlError> {
        self.deeper()?;
        for pair in children.chunks_exact(2) {
            let [key, value] = [pair[0], pair[1]];
            if is_merge(&self.tree.nodes[key]) {
                self.merge(value, members)?;
                continue;
            }
            let key = self.key(key)?;
            let line = self.tree.nodes[value].line;
            let value = self.node(value)?;
            if !members.seen.insert(key.clone()) && self.duplicates.len() < DUPLICATES_MAX {
                self.duplicates.push(format!("line {line}: key {} already set in map", key.shown));
            }
            members.entries.push((key.name, value));
        }
        self.depth -= 1;
        Ok(())
    }

    /// `<<`: the members of another mapping, or of several, of which the first counts most.
    fn merge(&mut self, id: NodeId, members: &mut Members) -> Result<(), YamlError> {
        let tree = self.tree;
        match &tree.nodes[id].content {
            Content::Sequence(items) => items.iter().rev().try_for_each(|item| self.merge_one(*item, members)),
            Content::Mapping(_) | Content::Alias(_) | Content::Scalar { .. } => self.merge_one(id, members),
        }
    }

    fn merge_one(&mut self, id: NodeId, members: &mut Members) -> Result<(), YamlError> {
        self.budget.spend()?;
        let tree = self.tree;
        match &tree.nodes[id].content {
            Content::Mapping(children) => self.mapping(children, members),
            Content::Alias(target) if matches!(tree.nodes[*target].content, Content::Mapping(_)) => {
                self.alias(*target, |decoder| decoder.merge_one(*target, members))
            }
            Content::Alias(_) | Content::Scalar { .. } | Content::Sequence(_) => {
                Err(YamlError("yaml: map merge requires map or sequence of maps as the value".to_owned()))
            }
        }
    }

    fn key(&mut self, id: NodeId) -> Result<Key, YamlError> {
        self.budget.spend()?;
        let tree = self.tree;
        let node = &tree.nodes[id];
        match &node.content {
            Content::Alias(target) => self.alias(*target, |decoder| decoder.key(*target)),
            Content::Scalar { text, is_plain } => scalar_key(node, text, *is_plain),
            Content::Sequence(_) | Content::Mapping(_) => {
                let shown = self.node(id)?;
                Err(YamlError(format!("yaml: invalid map key: {shown}")))
            }
        }
    }
}

fn is_merge(node: &Node<'_>) -> bool {
    matches!(&node.content, Content::Scalar { text, is_plain } if text == "<<" && (*is_plain || node.tag == "!!merge"))
}

/// What a scalar is by its tag, its quotes and its text.
fn meaning(node: &Node<'_>, text: &str, is_plain: bool) -> Result<Scalar, YamlError> {
    let resolved = match node.tag.as_str() {
        "" if is_plain => scalar::resolve(text),
        "!!bool" | "!!int" | "!!float" | "!!null" | "!!timestamp" => scalar::resolve(text),
        _ => return Ok(Scalar::Text),
    };
    let (name, is_fit) = match &resolved {
        Scalar::Null => ("!!null", node.tag == "!!null"),
        Scalar::Bool(_) => ("!!bool", node.tag == "!!bool"),
        Scalar::Int(_) | Scalar::Unsigned(_) => ("!!int", matches!(node.tag.as_str(), "!!int" | "!!float")),
        Scalar::Float(_) => ("!!float", node.tag == "!!float"),
        Scalar::Timestamp => ("!!timestamp", node.tag == "!!timestamp"),
        Scalar::Text => ("!!str", false),
    };
    if node.tag.is_empty() || is_fit {
        return Ok(resolved);
    }
    Err(YamlError(format!("yaml: cannot decode {name} `{text}` as a {}", node.tag)))
}

fn scalar_value(node: &Node<'_>, text: &str, is_plain: bool) -> Result<Value, YamlError> {
    if node.tag == "!!binary" {
        let bytes = base64::engine::general_purpose::STANDARD.decode(text.replace([' ', '\n'], ""));
        let bytes = bytes.map_err(|_| YamlError("yaml: !!binary value contains invalid base64 data".to_owned()))?;
        return Ok(Value::from(String::from_utf8_lossy(&bytes).into_owned()));
    }
    let scalar = meaning(node, text, is_plain)?;
    scalar::value(&scalar, text).ok_or_else(|| {
        let shown = match scalar {
            Scalar::Float(f) if f.is_nan() => "NaN",
            Scalar::Float(f) if f < 0.0 => "-Inf",
            _ => "+Inf",
        };
        YamlError(format!("json: unsupported value: {shown}"))
    })
}

fn scalar_key(node: &Node<'_>, text: &str, is_plain: bool) -> Result<Key, YamlError> {
    let (shown, name) = match meaning(node, text, is_plain)? {
        Scalar::Text | Scalar::Timestamp => (go_quote(text), Str::new(text)),
        Scalar::Int(i) => (i.to_string(), Str::from(i.to_string())),
        Scalar::Unsigned(u) => (u.to_string(), Str::from(u.to_string())),
        Scalar::Bool(b) => (b.to_string(), Str::from(b.to_string())),
        Scalar::Float(f) if f.is_nan() => ("NaN".to_owned(), Str::const_new(".nan")),
        Scalar::Float(f) if f.is_infinite() => {
            let name = if f < 0.0 { "-.inf" } else { ".inf" };
            (name.to_owned(), Str::const_new(name))
        }
        Scalar::Float(f) => (go_float(f), Str::from(go_float(f))),
        Scalar::Null => {
            return Err(YamlError("unsupported map key of type: %!s(<nil>), key: <nil>".to_owned()));
        }
    };
    Ok(Key { shown, name })
}
