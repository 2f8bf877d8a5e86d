//! What an expression is once parsed: a tree whose nodes are numbered, so that places, types and chosen functions can
//! be kept beside it.

use compact_str::CompactString;
use std::sync::Arc;

/// The number of a node.
pub type NodeId = u32;

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// Its number.
    pub id: NodeId,
    /// What it is.
    pub kind: Kind,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Nothing: something was wrong here, and a fault says what.
    Broken,
    /// A constant.
    Constant(Constant),
    /// A name.
    Ident(CompactString),
    /// A member of something.
    Select(Box<Select>),
    /// A function applied.
    Call(Box<Call>),
    /// A list.
    List(Vec<Element>),
    /// A map.
    Map(Vec<Entry>),
    /// An object of a named type.
    Struct(Box<Struct>),
    /// A loop over a list or map, what macros become.
    Comprehension(Box<Comprehension>),
}

/// A constant.
#[derive(Debug, Clone, PartialEq)]
pub enum Constant {
    /// `null`.
    Null,
    /// A truth value.
    Bool(bool),
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    /// A floating-point number.
    Double(f64),
    /// Text.
    String(Arc<str>),
    /// Bytes.
    Bytes(Arc<[u8]>),
}

/// A member of something, or the question whether it is there.
#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    /// Whose member.
    pub operand: Expr,
    /// Its name.
    pub field: CompactString,
    /// Whether only its presence is asked.
    pub is_test: bool,
}

/// A function applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The function's name; operators are named `_+_` and the like.
    pub function: CompactString,
    /// What it is a method of, if it is written so.
    pub target: Option<Expr>,
    /// The arguments.
    pub args: Vec<Expr>,
}

/// An element of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Element {
    /// Whether it is an optional that adds an element only when it holds one.
    pub is_optional: bool,
    /// The element.
    pub value: Expr,
}

/// An entry of a map.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The entry's number.
    pub id: NodeId,
    /// Whether the value is an optional that adds an entry only when it holds one.
    pub is_optional: bool,
    /// The key.
    pub key: Expr,
    /// The value.
    pub value: Expr,
}

/// An object of a named type.
#[derive(Debug, Clone, PartialEq)]
pub struct Struct {
    /// The type's name.
    pub name: CompactString,
    /// The members.
    pub fields: Vec<FieldInit>,
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldInit {
    /// The member's number.
    pub id: NodeId,
    /// Its name.
    pub name: CompactString,
    /// Whether the value is an optional that sets the member only when it holds one.
    pub is_optional: bool,
    /// The value.
    pub value: Expr,
}

/// A loop over a list or map.
#[derive(Debug, Clone, PartialEq)]
pub struct Comprehension {
    /// What is looped over.
    pub range: Expr,
    /// The element or key; with two variables the index or key.
    pub var: CompactString,
    /// With two variables, the element or value.
    pub second: Option<CompactString>,
    /// The name of what is accumulated.
    pub accumulator: CompactString,
    /// What it is at first.
    pub init: Expr,
    /// Whether to go on.
    pub condition: Expr,
    /// What it becomes with each element.
    pub step: Expr,
    /// What the loop yields.
    pub result: Expr,
}

impl Comprehension {
    /// Whether this is no loop but a name given to a value: it runs over nothing and never goes on.
    #[must_use]
    pub fn is_binding(&self) -> bool {
        matches!(&self.range.kind, Kind::List(elements) if elements.is_empty())
            && matches!(self.condition.kind, Kind::Constant(Constant::Bool(false)))
    }
}

/// A parsed expression: the tree and where each node stands in the text.
#[derive(Debug, Clone)]
pub struct Ast {
    /// The tree.
    pub root: Expr,
    /// The offset of each node by its number, in code points; none for number zero.
    pub offsets: Vec<u32>,
}

/// The name of what macros accumulate. It cannot be written in an expression.
pub const ACCUMULATOR: &str = "@result";

/// The name macros accumulated under before; it may not be used for a loop variable.
pub const OLD_ACCUMULATOR: &str = "__result__";
