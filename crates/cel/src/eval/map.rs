//! Maps: objects of the input, maps that were made, and members that are worked out when they are asked for.

use super::value::{Eval, Failure, Val};
use crate::decl::{Decl, Shape, escape, unescape};
use pintle_apimachinery::value::Object;
use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::rc::Rc;
use std::sync::Arc;

/// A map.
#[derive(Clone)]
pub enum Map<'v> {
    /// An object of the input, with what it is declared as.
    Json(&'v Object, Option<&'v Decl>),
    /// A map that was made.
    Made(Rc<BTreeMap<Key, (Val<'v>, Val<'v>)>>),
    /// Members that are worked out when they are asked for.
    Lazy(&'v dyn Members<'v>),
}

/// Members that are worked out when they are asked for.
pub trait Members<'v> {
    /// The member of a name; none if there is none.
    fn member(&'v self, name: &str) -> Option<Eval<Val<'v>>>;
}

/// A key of a map. Numbers that are equal are equal keys whatever their types.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// A text.
    String(Arc<str>),
    /// Any other number, by its bits.
    Double(u64),
}

impl Debug for Map<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(object, _) => object.fmt(f),
            Self::Made(entries) => entries.values().collect::<Vec<_>>().fmt(f),
            Self::Lazy(_) => f.write_str("{..}"),
        }
    }
}

impl Key {
    /// The key that a value is; none for values that are no keys.
    #[must_use]
    pub fn of(value: &Val<'_>) -> Option<Self> {
        Some(match value {
            Val::Bool(value) => Self::Bool(*value),
            Val::Int(value) => Self::Int(i128::from(*value)),
            Val::Uint(value) => Self::Int(i128::from(*value)),
            Val::Double(value) if value.fract() == 0.0 && value.abs() < 1e19 => Self::Int(*value as i128),
            Val::Double(value) => Self::Double(value.to_bits()),
            Val::String(text) => Self::String(text.as_str().into()),
            _ => return None,
        })
    }
}

impl<'v> Map<'v> {
    /// A map of some entries.
    #[must_use]
    pub fn made(entries: impl IntoIterator<Item = (Val<'v>, Val<'v>)>) -> Val<'v> {
        let entries = entries.into_iter().filter_map(|(key, value)| Some((Key::of(&key)?, (key, value))));
        Val::Map(Self::Made(Rc::new(entries.collect())))
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Json(object, _) => object.len(),
            Self::Made(entries) => entries.len(),
            Self::Lazy(_) => 0,
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a text key; none if there is none.
    ///
    /// # Errors
    /// When the value is none of its declared type.
    pub fn find_str(&self, key: &str) -> Eval<Option<Val<'v>>> {
        match self {
            Self::Json(object, None) => Ok(object.get(key).map(Val::json)),
            Self::Json(object, Some(decl)) => declared(object, decl, key),
            Self::Made(entries) => Ok(entries.get(&Key::String(key.into())).map(|(_, value)| value.clone())),
            Self::Lazy(members) => members.member(key).transpose(),
        }
    }

    /// The value of a key; none if there is none.
    ///
    /// # Errors
    /// When the key is none such a map can have, or the value is none of its declared type.
    pub fn find(&self, key: &Val<'_>) -> Eval<Option<Val<'v>>> {
        match (self, key) {
            (Self::Made(entries), _) => {
                Ok(Key::of(key).and_then(|key| entries.get(&key)).map(|(_, value)| value.clone()))
            }
            (_, Val::String(text)) => self.find_str(text.as_str()),
            (Self::Json(_, Some(_)), _) => Err(Failure::text("no such overload")),
            _ => Ok(None),
        }
    }

    /// The keys.
    #[must_use]
    pub fn keys(&self) -> Vec<Val<'v>> {
        match self {
            Self::Json(object, None) => object.keys().map(|key| Val::str(key)).collect(),
            Self::Json(object, Some(decl)) => object.keys().filter_map(|key| declared_key(key, decl)).collect(),
            Self::Made(entries) => entries.values().map(|(key, _)| key.clone()).collect(),
            Self::Lazy(_) => Vec::new(),
        }
    }

    /// The map with one more entry.
    ///
    /// # Errors
    /// When the key is there already, or cannot be one.
    pub fn inserted(self, key: Val<'v>, value: Val<'v>) -> Eval<Self> {
        let mut entries = match self {
            Self::Made(entries) => entries,
            other => {
                let mut all = BTreeMap::new();
                for key in other.keys() {
                    let value = other.find(&key)?.unwrap_or(Val::Null);
                    if let Some(known) = Key::of(&key) {
                        all.insert(known, (key, value));
                    }
                }
                Rc::new(all)
            }
        };
        let Some(known) = Key::of(&key) else { return Err(Failure::text("unsupported key type")) };
        if entries.contains_key(&known) {
            let key = crate::library::convert::shown(&key);
            return Err(Failure::text(format!("insert failed: key {key} already exists")));
        }
        Rc::make_mut(&mut entries).insert(known, (key, value));
        Ok(Self::Made(entries))
    }
}

fn declared<'v>(object: &'v Object, decl: &'v Decl, name: &str) -> Eval<Option<Val<'v>>> {
    match &decl.shape {
        Shape::Map(of) => object.get(name).map(|value| Val::declared(value, of)).transpose(),
        Shape::Object(members) => {
            let Some(key) = unescape(name) else { return Ok(None) };
            let Some(value) = object.get(&key).filter(|value| !value.is_null()) else { return Ok(None) };
            members.by_key.get(&key).map(|of| Val::declared(value, of)).transpose()
        }
        _ => Ok(object.get(name).map(Val::json)),
    }
}

fn declared_key<'v>(key: &'v str, decl: &'v Decl) -> Option<Val<'v>> {
    match &decl.shape {
        Shape::Object(members) => {
            members.by_key.get(key)?;
            let escaped = escape(key).filter(|escaped| escaped != key);
            Some(escaped.map_or_else(|| Val::str(key), |escaped| Val::text(escaped.as_str())))
        }
        _ => Some(Val::str(key)),
    }
}
