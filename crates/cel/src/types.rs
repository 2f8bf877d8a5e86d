//! The types of the language: how they are written, and when a value of one may stand where another is expected.

use crate::decl::Decl;
use compact_str::CompactString;
use hashbrown::HashMap;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

/// A type.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the simple types are what they are named after")]
pub enum Type {
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    /// Anything: what it is shows only when the expression runs.
    Dyn,
    /// What something wrong has; a fault says what is wrong.
    Error,
    /// A list of elements of one type.
    List(Arc<Type>),
    /// A map from keys to values.
    Map(Arc<Type>, Arc<Type>),
    /// An object with declared members.
    Object(Object),
    /// A type known by its name alone, perhaps of other types.
    Opaque(CompactString, Arc<[Type]>),
    /// A type still to be found out.
    Param(CompactString),
    /// The type of a type.
    Meta(Option<Arc<Self>>),
}

/// The type of an object: its name, and where it is declared, what it consists of.
#[derive(Debug, Clone)]
pub struct Object {
    /// The name.
    pub name: CompactString,
    /// What it consists of; none for types that have functions only.
    pub decl: Option<Arc<Decl>>,
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Type {
    /// A list of elements of a type.
    #[must_use]
    pub fn list(of: Self) -> Self {
        Self::List(Arc::new(of))
    }

    /// A map from keys to values.
    #[must_use]
    pub fn map(key: Self, value: Self) -> Self {
        Self::Map(Arc::new(key), Arc::new(value))
    }

    /// An optional value of a type.
    #[must_use]
    pub fn optional(of: Self) -> Self {
        Self::Opaque("optional_type".into(), [of].into())
    }

    /// An object type that has functions only.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self::Object(Object { name: name.into(), decl: None })
    }

    /// What an optional holds.
    #[must_use]
    pub fn held(&self) -> Option<&Self> {
        match self {
            Self::Opaque(name, params) if name == "optional_type" => params.first(),
            _ => None,
        }
    }

    /// Whether this stands for anything.
    #[must_use]
    pub const fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn)
    }

    const fn is_dyn_or_error(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    /// Whether null may stand for it.
    const fn is_nullable(&self) -> bool {
        matches!(
            self,
            Self::Null
                | Self::Opaque(..)
                | Self::Object(_)
                | Self::Duration
                | Self::Timestamp
                | Self::Dyn
                | Self::Error
        )
    }

    /// The types it is made of.
    #[must_use]
    pub fn params(&self) -> Vec<&Self> {
        match self {
            Self::List(of) => vec![of],
            Self::Map(key, value) => vec![key, value],
            Self::Opaque(_, params) => params.iter().collect(),
            Self::Meta(Some(of)) => vec![of],
            _ => Vec::new(),
        }
    }

    /// The name it is declared by, which a program sees from `type(x)`.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Duration => "google.protobuf.Duration",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::Dyn => "dyn",
            Self::Error => "error",
            Self::List(_) => "list",
            Self::Map(..) => "map",
            Self::Object(object) => &object.name,
            Self::Opaque(name, _) | Self::Param(name) => name,
            Self::Meta(_) => "type",
        }
    }
}

/// A type as faults show it.
impl Display for Type {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Duration => "duration",
            Self::Timestamp => "timestamp",
            Self::Null => "null",
            Self::Error => "!error!",
            _ => self.name(),
        })?;
        let params = self.params();
        if !params.is_empty() {
            f.write_str("(")?;
            for (index, param) in params.into_iter().enumerate() {
                let comma = if index > 0 { ", " } else { "" };
                write!(f, "{comma}{param}")?;
            }
            f.write_str(")")?;
        }
        Ok(())
    }
}

/// What the types still to be found out were found to be.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    found: HashMap<CompactString, Type>,
}

impl Findings {
    fn get(&self, of: &Type) -> Option<&Type> {
        match of {
            Type::Param(name) => self.found.get(name),
            _ => None,
        }
    }

    fn set(&mut self, of: &Type, to: Type) {
        if let Type::Param(name) = of {
            self.found.insert(name.clone(), to);
        }
    }

    /// Says that one parameter stands for a type.
    pub fn insert(&mut self, name: &str, to: Type) {
        self.found.insert(name.into(), to);
    }

    /// The type with everything that was found put in. What was not found becomes `dyn` when `finally` is set.
    #[must_use]
    pub fn applied(&self, to: &Type, finally: bool) -> Type {
        match to {
            Type::Param(_) => match self.get(to) {
                Some(found) => self.applied(&found.clone(), finally),
                None if finally => Type::Dyn,
                None => to.clone(),
            },
            Type::List(of) => Type::list(self.applied(of, finally)),
            Type::Map(key, value) => Type::map(self.applied(key, finally), self.applied(value, finally)),
            Type::Opaque(name, params) => {
                Type::Opaque(name.clone(), params.iter().map(|p| self.applied(p, finally)).collect())
            }
            Type::Meta(Some(of)) => Type::Meta(Some(Arc::new(self.applied(of, finally)))),
            _ => to.clone(),
        }
    }

    /// Whether a value of each of some types may stand where each of others is expected. What that tells of types
    /// still to be found out is kept if all may.
    pub fn accept(&mut self, values: &[&Type], expected: &[Type]) -> bool {
        if values.len() != expected.len() {
            return false;
        }
        let mut tried = self.clone();
        let fits = values.iter().zip(expected).all(|(value, expected)| tried.fits(value, expected));
        if fits {
            *self = tried;
        }
        fits
    }

    /// Whether a value of one type may stand where another is expected, see [`Self::accept`].
    pub fn accepts(&mut self, one: &Type, other: &Type) -> bool {
        self.accept(&[one], std::slice::from_ref(other))
    }

    fn fits(&mut self, one: &Type, other: &Type) -> bool {
        if matches!(other, Type::Param(_)) {
            match self.stands_for(one, other) {
                Standing::Yes => return true,
                Standing::Other => return false,
                Standing::Circular => {}
            }
        }
        if matches!(one, Type::Param(_)) {
            return matches!(self.stands_for(other, one), Standing::Yes);
        }
        if one.is_dyn_or_error() || other.is_dyn_or_error() {
            return true;
        }
        match (one, other) {
            (Type::Null, null) | (null, Type::Null) => null.is_nullable(),
            (Type::Meta(_), Type::Meta(_)) => true,
            (Type::List(a), Type::List(b)) => self.fits(&a.clone(), &b.clone()),
            (Type::Map(a, x), Type::Map(b, y)) => {
                self.fits(&a.clone(), &b.clone()) && self.fits(&x.clone(), &y.clone())
            }
            (Type::Opaque(a, x), Type::Opaque(b, y)) => {
                a == b && x.len() == y.len() && x.iter().zip(y.iter()).all(|(x, y)| self.fits(x, y))
            }
            _ => one == other,
        }
    }

    /// Whether a parameter may stand for a type.
    fn stands_for(&mut self, of: &Type, param: &Type) -> Standing {
        if of == param {
            return Standing::Yes;
        }
        if let Some(found) = self.get(param).cloned() {
            if *of == found {
                return Standing::Yes;
            }
            if !self.fits(of, &found) {
                return Standing::Other;
            }
            let general = more_general(of, &found).clone();
            if self.is_free_of(param, &general) {
                self.set(param, general);
            }
            return Standing::Yes;
        }
        if !self.is_free_of(param, of) {
            return Standing::Circular;
        }
        self.set(param, of.clone());
        Standing::Yes
    }

    /// Whether a parameter does not occur in a type.
    fn is_free_of(&self, param: &Type, within: &Type) -> bool {
        if param == within {
            return false;
        }
        match within {
            Type::Param(_) => self.get(within).is_none_or(|found| self.is_free_of(param, found)),
            _ => within.params().into_iter().all(|part| self.is_free_of(param, part)),
        }
    }
}

enum Standing {
    Yes,
    /// It stands for something else already.
    Other,
    /// It would stand for something that holds itself.
    Circular,
}

/// The more general of two types that fit together.
#[must_use]
pub fn more_general<'t>(one: &'t Type, other: &'t Type) -> &'t Type {
    if is_as_general(one, other) { one } else { other }
}

fn is_as_general(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (Type::Dyn | Type::Param(_), _) => true,
        (_, Type::Dyn | Type::Param(_)) => false,
        (Type::Meta(_), Type::Meta(_)) => true,
        (Type::List(a), Type::List(b)) => is_as_general(a, b),
        (Type::Map(a, x), Type::Map(b, y)) => is_as_general(a, b) && is_as_general(x, y),
        (Type::Opaque(a, x), Type::Opaque(b, y)) => {
            a == b && x.len() == y.len() && x.iter().zip(y.iter()).all(|(x, y)| is_as_general(x, y))
        }
        _ => one == other,
    }
}
