//! Types declared by a schema: what the checker knows of a value's members, how large the value can grow, and how the
//! bare JSON of it becomes a value of the language.

use crate::types::{Object, Type};
use compact_str::{CompactString, format_compact};
use hashbrown::HashMap;
use std::sync::Arc;

/// The largest request, in bytes: nothing in an expression's input can be larger.
pub const REQUEST_SIZE_MAX: u64 = 3 * 1024 * 1024;

/// A type declared by a schema.
#[derive(Debug, Clone)]
pub struct Decl {
    /// What it is.
    pub shape: Shape,
    /// How many elements, entries, bytes or characters a value can have at most.
    pub elements_max: u64,
    /// The fewest bytes a value takes in JSON.
    pub size_min: u64,
    /// Whether null is allowed.
    pub is_nullable: bool,
}

/// What a declared type is.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the simple shapes are the formats they are named after")]
pub enum Shape {
    /// Anything, read as its JSON shows it.
    Dyn,
    /// A whole number or text.
    IntOrString,
    /// Something of no declared type that was preserved; it can be compared and no more.
    Preserved,
    Bool,
    Int,
    Double,
    String,
    Bytes,
    Duration,
    Date,
    DateTime,
    /// A list.
    List(Arc<Decl>, Keyed),
    /// A map from text to values.
    Map(Arc<Decl>),
    /// An object with members.
    Object(Members),
    /// A type of the function library.
    Library(Type),
}

/// How the elements of a list are told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keyed {
    /// By where they stand.
    Atomic,
    /// By what they are.
    Set,
    /// By some of their members.
    Map(Vec<CompactString>),
}

/// The members of an object.
#[derive(Debug, Clone, Default)]
pub struct Members {
    /// A name for the type that holds wherever it stands; types without one are named after where they stand.
    pub name: Option<CompactString>,
    /// The members by the names expressions use.
    pub declared: HashMap<CompactString, Arc<Decl>>,
    /// All members by the names JSON uses, those included that no expression can name.
    pub by_key: HashMap<CompactString, Arc<Decl>>,
}

impl Members {
    /// Adds a member under its name in JSON.
    pub fn insert(&mut self, key: &str, decl: Decl) {
        let decl = Arc::new(decl);
        if !matches!(decl.shape, Shape::Preserved)
            && let Some(name) = escape(key)
        {
            self.declared.insert(name, Arc::clone(&decl));
        }
        self.by_key.insert(key.into(), decl);
    }
}

impl Decl {
    /// A type of a shape, with the least size JSON allows and no elements.
    #[must_use]
    pub const fn new(shape: Shape) -> Self {
        let size_min = match shape {
            Shape::Bool => 4,
            Shape::String | Shape::Bytes | Shape::List(..) | Shape::Map(_) | Shape::Object(_) => 2,
            Shape::Duration => 3,
            Shape::Date => 12,
            Shape::DateTime => 21,
            Shape::Dyn | Shape::IntOrString | Shape::Preserved | Shape::Int | Shape::Double | Shape::Library(_) => 1,
        };
        Self { shape, elements_max: 0, size_min, is_nullable: false }
    }

    /// The type as the checker knows it, for a value called `name`.
    #[must_use]
    pub fn typed(self: &Arc<Self>, name: &str) -> Type {
        match &self.shape {
            Shape::Dyn | Shape::IntOrString | Shape::Preserved => Type::Dyn,
            Shape::Bool => Type::Bool,
            Shape::Int => Type::Int,
            Shape::Double => Type::Double,
            Shape::String => Type::String,
            Shape::Bytes => Type::Bytes,
            Shape::Duration => Type::Duration,
            Shape::Date | Shape::DateTime => Type::Timestamp,
            Shape::List(of, _) => Type::list(of.typed(&format_compact!("{name}.@idx"))),
            Shape::Map(of) => Type::map(Type::String, of.typed(&format_compact!("{name}.@elem"))),
            Shape::Object(members) => {
                let name = members.name.clone().unwrap_or_else(|| name.into());
                Type::Object(Object { name, decl: Some(Arc::clone(self)) })
            }
            Shape::Library(of) => of.clone(),
        }
    }

    /// What a member, an element, a value or a key (`@items`, `@values`, `@keys`) is declared as.
    #[must_use]
    pub fn part(&self, name: &str) -> Option<&Self> {
        match (&self.shape, name) {
            (Shape::List(of, _), "@items" | "@values") | (Shape::Map(of), "@items" | "@values") => Some(of),
            (Shape::Map(_), "@keys") => {
                const KEY: &Decl = &Decl::new(Shape::String);
                Some(KEY)
            }
            (Shape::Object(members), _) => members.declared.get(name).map(Arc::as_ref),
            _ => None,
        }
    }
}

impl Object {
    /// The type of a member, by the name expressions use.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<Type> {
        let Some(Decl { shape: Shape::Object(members), .. }) = self.decl.as_deref() else { return None };
        let decl = members.declared.get(name)?;
        Some(decl.typed(&format_compact!("{}.{name}", self.name)))
    }
}

/// Words of the language, which members may be called in JSON.
const WORDS: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The name an expression uses for a member of JSON; none if no expression can name it.
#[must_use]
pub fn escape(key: &str) -> Option<CompactString> {
    if key.is_empty() || key.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if WORDS.contains(&key) {
        return Some(format_compact!("__{key}__"));
    }
    let mut out = CompactString::with_capacity(key.len());
    let mut rest = key;
    while let Some(c) = rest.chars().next() {
        let (taken, written) = match c {
            _ if rest.starts_with("__") => (2, "__underscores__"),
            '.' => (1, "__dot__"),
            '-' => (1, "__dash__"),
            '/' => (1, "__slash__"),
            _ if c.is_ascii_alphanumeric() || c == '_' => (1, ""),
            _ => return None,
        };
        if written.is_empty() {
            out.push(c)
        } else {
            out.push_str(written)
        }
        rest = rest.get(taken..).unwrap_or_default();
    }
    Some(out)
}

/// The name of a member in JSON; none if the name is no name [`escape`] could have given.
#[must_use]
pub fn unescape(name: &str) -> Option<CompactString> {
    if !name.contains("__") {
        return Some(name.into());
    }
    let mut out = CompactString::with_capacity(name.len());
    let mut rest = name;
    while !rest.is_empty() {
        let escaped = rest.strip_prefix("__").and_then(|inner| {
            let end = inner.find('_')?;
            (end > 0 && inner.get(end..)?.starts_with("__")).then(|| inner.split_at(end))
        });
        if let Some((word, after)) = escaped {
            out.push_str(match word {
                "underscores" => "__",
                "dot" => ".",
                "dash" => "-",
                "slash" => "/",
                _ if WORDS.contains(&word) && word.len() + 4 == name.len() => word,
                _ => return None,
            });
            rest = after.get(2..).unwrap_or_default();
        } else {
            let width = rest.chars().next().map_or(1, char::len_utf8);
            out.push_str(rest.get(..width).unwrap_or_default());
            rest = rest.get(width..).unwrap_or_default();
        }
    }
    Some(out)
}
