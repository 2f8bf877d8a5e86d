//! What the encoder reads: a [`Value`], or the bytes of a stored object that nobody needs as a value.

use pintle_apimachinery::Value;
use std::borrow::Cow;

/// A place in a JSON document.
pub(super) trait Document<'d>: Copy {
    /// Whether nothing stands here.
    fn is_null(self) -> bool;
    /// The boolean, if one stands here.
    fn as_bool(self) -> Option<bool>;
    /// The integer, if one stands here.
    fn as_i64(self) -> Option<i64>;
    /// The number, if one stands here.
    fn as_f64(self) -> Option<f64>;
    /// The string, if one stands here.
    fn as_text(self) -> Option<Cow<'d, str>>;
    /// The items, if a list stands here.
    fn as_items(self) -> Option<impl Iterator<Item = Self>>;
    /// The members, if an object stands here; sorted by key in canonical documents.
    fn as_members(self) -> Option<impl Iterator<Item = (Cow<'d, str>, Self)>>;
    /// The document as JSON.
    fn json(self) -> Cow<'d, [u8]>;
    /// Where nothing stands.
    const NULL: Self;
}

static NULL: Value = Value::Null;

impl<'d> Document<'d> for &'d Value {
    const NULL: &'d Value = &NULL;

    fn is_null(self) -> bool {
        Value::is_null(self)
    }

    fn as_bool(self) -> Option<bool> {
        Value::as_bool(self)
    }

    fn as_i64(self) -> Option<i64> {
        Value::as_i64(self)
    }

    fn as_f64(self) -> Option<f64> {
        Value::as_f64(self)
    }

    fn as_text(self) -> Option<Cow<'d, str>> {
        self.as_str().map(Cow::Borrowed)
    }

    fn as_items(self) -> Option<impl Iterator<Item = &'d Value>> {
        self.as_array().map(|items| items.iter())
    }

    fn as_members(self) -> Option<impl Iterator<Item = (Cow<'d, str>, &'d Value)>> {
        let members = self.as_object()?.iter();
        Some(members.map(|(key, member)| (Cow::Borrowed(key.as_str()), member)))
    }

    fn json(self) -> Cow<'d, [u8]> {
        Cow::Owned(self.to_json())
    }
}
