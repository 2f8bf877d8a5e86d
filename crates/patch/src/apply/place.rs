//! A place in a schema as ownership sees it: which of scalar, list and object may stand there, and how each is owned.
//!
//! Follows: what upstream makes of its OpenAPI documents for structured-merge-diff (kube-openapi/pkg/schemaconv).
//! Quantities, times and raw documents have no type of their own there; an object without declared members may hold
//! anything; below an object that preserves unknown fields every object does.

use pintle_apimachinery::Value;
use pintle_schema::{Field, ListKind, Node, Shape, Type};
use std::cmp::Ordering;

/// A place in a schema.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'s> {
    /// The schema describes it.
    Known {
        node: Node<'s>,
        /// Whether an object around it preserves unknown fields.
        is_preserved: bool,
    },
    /// Nothing is known: objects are owned by member, lists as one value.
    Deduced,
    /// Nothing is known and what stands there is owned as one value.
    Opaque,
    /// A string.
    Text,
}

/// What scalars may stand in a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scalar {
    Numeric,
    Text,
    Boolean,
    Any,
}

/// A list in a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct List<'s> {
    pub(super) kind: &'s ListKind,
    pub(super) item: Place<'s>,
}

/// An object in a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Map<'s> {
    pub(super) is_atomic: bool,
    /// The struct, if it is one.
    declared: Option<(Node<'s>, &'s Type)>,
    /// What undeclared members hold; `None` where there may be none.
    others: Option<Place<'s>>,
    is_preserved: bool,
}

/// A member of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member<'s> {
    pub(super) place: Place<'s>,
    /// Whether it is a declared field (else an entry of a map, or preserved).
    pub(super) is_declared: bool,
}

/// What may stand in a place; at least one of the three.
#[derive(Clone, Copy, Debug)]
pub(super) struct Atom<'s> {
    pub(super) scalar: Option<Scalar>,
    pub(super) list: Option<List<'s>>,
    pub(super) map: Option<Map<'s>>,
}

static ATOMIC: ListKind = ListKind::Atomic;

impl<'s> Place<'s> {
    pub(super) fn root(node: Node<'s>) -> Place<'s> {
        Place::Known { node, is_preserved: false }
    }

    /// What may stand here.
    pub(super) fn atom(self) -> Atom<'s> {
        const NONE: Atom<'static> = Atom { scalar: None, list: None, map: None };
        let scalar = |scalar| Atom { scalar: Some(scalar), ..NONE };
        let anything = |item, others, is_atomic| Atom {
            scalar: Some(Scalar::Any),
            list: Some(List { kind: &ATOMIC, item }),
            map: Some(Map { is_atomic, declared: None, others: Some(others), is_preserved: false }),
        };
        let (node, is_preserved) = match self {
            Place::Known { node, is_preserved } => (node, is_preserved),
            Place::Deduced => return anything(Place::Opaque, Place::Deduced, false),
            Place::Opaque => return anything(Place::Opaque, Place::Opaque, true),
            Place::Text => return scalar(Scalar::Text),
        };
        let within = |shape| Place::Known { node: node.with(shape), is_preserved };
        match node.shape() {
            Shape::Bool => scalar(Scalar::Boolean),
            Shape::Int32 | Shape::Int64 | Shape::Float => scalar(Scalar::Numeric),
            Shape::String | Shape::Bytes => scalar(Scalar::Text),
            Shape::Quantity | Shape::Time | Shape::MicroTime => scalar(Scalar::Any),
            Shape::IntOrString => anything(Place::Opaque, Place::Deduced, false),
            Shape::Raw => anything(Place::Opaque, Place::Opaque, true),
            Shape::Any | Shape::SchemaOrBool | Shape::SchemaOrArray | Shape::SchemaOrStrings => {
                anything(Place::Opaque, Place::Deduced, false)
            }
            Shape::FieldsV1 => Atom {
                map: Some(Map { is_atomic: false, declared: None, others: Some(Place::Deduced), is_preserved }),
                ..NONE
            },
            Shape::StringList => Atom { list: Some(List { kind: &ATOMIC, item: Place::Text }), ..NONE },
            Shape::List { item, kind } => Atom { list: Some(List { kind, item: within(*item) }), ..NONE },
            Shape::Map { value, is_atomic } => Atom {
                map: Some(Map { is_atomic: *is_atomic, declared: None, others: Some(within(*value)), is_preserved }),
                ..NONE
            },
            Shape::Struct { id, is_atomic } => {
                let ty = node.schema.ty(*id);
                let is_preserved = is_preserved || ty.others.is_some();
                let others = (is_preserved || ty.fields.len == 0).then_some(Place::Deduced);
                let declared = Some((node, ty));
                Atom { map: Some(Map { is_atomic: *is_atomic, declared, others, is_preserved }), ..NONE }
            }
        }
    }

    /// The field of the struct here, for its default.
    pub(super) fn field(self, name: &str) -> Option<&'s Field> {
        match self {
            Place::Known { node, .. } => node.field(name),
            Place::Deduced | Place::Opaque | Place::Text => None,
        }
    }
}

/// Finds the members of an object one after the other, their names ascending.
#[derive(Clone, Copy, Debug)]
pub(super) struct Members<'s> {
    map: Map<'s>,
    /// The declared fields that are still to come.
    fields: &'s [Field],
}

impl<'s> Members<'s> {
    /// What is known of a member; `None` when there may be no such member. Names must ascend from call to call.
    pub(super) fn next(&mut self, name: &str) -> Option<Member<'s>> {
        while let Some((field, rest)) = self.fields.split_first() {
            match field.name.as_str().cmp(name) {
                Ordering::Less => self.fields = rest,
                Ordering::Equal => return self.map.declared(field),
                Ordering::Greater => break,
            }
        }
        self.map.undeclared()
    }
}

impl<'s> Map<'s> {
    /// What is known of a member; `None` when there may be no such member.
    pub(super) fn member(self, name: &str) -> Option<Member<'s>> {
        let field = self.declared.and_then(|(node, ty)| node.schema.field(ty, name));
        field.and_then(|field| self.declared(field)).or_else(|| self.undeclared())
    }

    /// [`Map::member`] for names that ascend.
    pub(super) fn members(self) -> Members<'s> {
        Members { map: self, fields: self.declared.map_or(&[], |(node, ty)| node.schema.fields(ty)) }
    }

    fn declared(self, field: &'s Field) -> Option<Member<'s>> {
        let (node, _) = self.declared?;
        let place = Place::Known { node: node.with(field.shape), is_preserved: self.is_preserved };
        Some(Member { place, is_declared: true })
    }

    fn undeclared(self) -> Option<Member<'s>> {
        self.others.map(|place| Member { place, is_declared: false })
    }

    /// Whether nothing is declared and its members have no type, so that upstream keeps what is owned in it as it is.
    pub(super) fn is_deduced(self) -> bool {
        let has_fields = self.declared.is_some_and(|(_, ty)| ty.fields.len > 0);
        let is_untyped = match self.others {
            Some(Place::Deduced) => true,
            Some(Place::Known { node, .. }) => {
                matches!(node.shape(), Shape::Any | Shape::IntOrString | Shape::Time | Shape::MicroTime)
            }
            Some(Place::Opaque | Place::Text) | None => false,
        };
        is_untyped && !has_fields
    }
}

impl<'s> Atom<'s> {
    /// The part that is for a value of this type; everything where there is no such part, or no value.
    pub(super) fn deduced(self, value: Option<&Value>) -> Atom<'s> {
        let only = match value {
            None | Some(Value::Null) => return self,
            Some(Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_)) => {
                Atom { list: None, map: None, ..self }
            }
            Some(Value::Array(_)) => Atom { scalar: None, map: None, ..self },
            Some(Value::Object(_)) => Atom { scalar: None, list: None, ..self },
        };
        if only.parts() == (false, false, false) { self } else { only }
    }

    /// Which of scalar, list and object may stand here.
    pub(super) fn parts(self) -> (bool, bool, bool) {
        (self.scalar.is_some(), self.list.is_some(), self.map.is_some())
    }

    /// What a walk takes the value for: objects go before scalars, and those before lists.
    pub(super) fn form(self) -> Form<'s> {
        match (self.map, self.scalar, self.list) {
            (Some(map), _, _) => Form::Map(map),
            (None, Some(scalar), _) => Form::Scalar(scalar),
            (None, None, Some(list)) => Form::List(list),
            // atom() gives every place one of the three
            (None, None, None) => Form::Scalar(Scalar::Any),
        }
    }
}

/// What a walk takes a value for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form<'s> {
    Map(Map<'s>),
    Scalar(Scalar),
    List(List<'s>),
}

/// The form of one value.
pub(super) fn form_of<'s>(place: Place<'s>, value: &Value) -> Form<'s> {
    place.atom().deduced(Some(value)).form()
}

/// The forms of two values side by side (either may be absent): usually one, two when the type changed. The last one
/// is what stands there afterwards.
pub(super) fn forms_of<'s>(
    place: Place<'s>,
    left: Option<&Value>,
    right: Option<&Value>,
) -> (Option<Form<'s>>, Form<'s>) {
    let atom = place.atom();
    match (left, right) {
        (left, None) => (None, atom.deduced(left).form()),
        (None, right) => (None, atom.deduced(right).form()),
        (left, right) => {
            let (l, r) = (atom.deduced(left), atom.deduced(right));
            ((l.parts() != r.parts()).then(|| l.form()), r.form())
        }
    }
}

/// Whether two values are the same to ownership: numbers compare by value whatever their type.
pub(super) fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Int(_), Value::Float(_)) | (Value::Float(_), Value::Int(_)) => left.as_f64() == right.as_f64(),
        (Value::Array(l), Value::Array(r)) => l.len() == r.len() && l.iter().zip(r).all(|(l, r)| is_same(l, r)),
        (Value::Object(l), Value::Object(r)) => {
            l.len() == r.len() && l.iter().zip(r.iter()).all(|((lk, l), (rk, r))| lk == rk && is_same(l, r))
        }
        (left, right) => left == right,
    }
}
