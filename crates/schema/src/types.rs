//! What a schema is made of: types with fields, and shapes that say what a field holds.

use crate::lookup;
use pintle_apimachinery::Str;
use std::borrow::Cow;

/// Index of a [`Type`] in its [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(pub u32);

/// Index of a [`Shape`] in its [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShapeId(pub u32);

/// A run of consecutive entries in one of a schema's tables.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// The first entry.
    pub first: u32,
    /// How many.
    pub len: u32,
}

impl Range {
    fn of<T>(self, table: &[T]) -> &[T] {
        &table[self.first as usize..(self.first + self.len) as usize]
    }
}

/// The key fields of an associative list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Of a built-in kind.
    Static(&'static [&'static str]),
    /// Of a custom resource.
    Owned(Vec<Str>),
}

impl Keys {
    /// The names, in the schema's order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let (fixed, owned): (&[&str], &[Str]) = match self {
            Keys::Static(keys) => (keys, &[]),
            Keys::Owned(keys) => (&[], keys),
        };
        fixed.iter().copied().chain(owned.iter().map(Str::as_str))
    }
}

/// How the items of a list are told apart and owned (`x-kubernetes-list-type`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// The list is one value.
    Atomic,
    /// Each scalar is an item of its own.
    Set,
    /// Items are known by their key fields.
    Map(Keys),
}

/// What may stand in a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A boolean.
    Bool,
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// A number.
    Float,
    /// A string.
    String,
    /// Bytes, in JSON as base64.
    Bytes,
    /// `Quantity`.
    Quantity,
    /// `IntOrString`.
    IntOrString,
    /// `Time`: RFC 3339, seconds.
    Time,
    /// `MicroTime`: RFC 3339 with six digits of fraction.
    MicroTime,
    /// `RawExtension` or `JSON`: any document.
    Raw,
    /// `FieldsV1`: a set of fields.
    FieldsV1,
    /// `JSONSchemaPropsOrBool`.
    SchemaOrBool,
    /// `JSONSchemaPropsOrArray`.
    SchemaOrArray,
    /// `JSONSchemaPropsOrStringArray`.
    SchemaOrStrings,
    /// A list of strings that protobuf wraps in a message of its own (`ExtraValue`, `Verbs`).
    StringList,
    /// A struct.
    Struct {
        /// Which.
        id: TypeId,
        /// Whether it is owned as one value (`x-kubernetes-map-type: atomic`).
        is_atomic: bool,
    },
    /// A list.
    List {
        /// Of what.
        item: ShapeId,
        /// How items are told apart.
        kind: ListKind,
    },
    /// A map with string keys.
    Map {
        /// Of what.
        value: ShapeId,
        /// Whether it is owned as one value.
        is_atomic: bool,
    },
    /// Anything, with nothing known of it (preserved unknown fields of custom resources).
    Any,
}

/// A field of a type, as JSON sees it: fields of embedded structs stand among the others.
#[derive(Clone, Debug)]
pub struct Field {
    /// JSON name.
    pub name: Str,
    /// What it holds.
    pub shape: ShapeId,
    /// Whether absence and the zero value are told apart.
    pub is_pointer: bool,
    /// Go's `omitempty`.
    pub omit_empty: bool,
    /// Go's `omitzero`.
    pub omit_zero: bool,
    /// Required by the published schema.
    pub is_required: bool,
    /// Strategic merge patch: merge a list instead of replacing it.
    pub patch_merge: bool,
    /// Strategic merge patch: replace an object instead of merging it.
    pub patch_replace: bool,
    /// Strategic merge patch: drop what the patch does not name.
    pub patch_retain_keys: bool,
    /// Strategic merge patch: the key of list items; empty for none.
    pub patch_merge_key: &'static str,
    /// The published default as JSON; empty for none.
    pub default: Str,
    /// The published values of an enumeration.
    pub enumeration: &'static [&'static str],
    /// The published format, such as `int32`; empty for none.
    pub format: &'static str,
}

/// A type: a Go struct, or an object of a custom resource's schema.
#[derive(Clone, Debug)]
pub struct Type {
    /// The Go type, as `core/v1.PodSpec`; empty for custom resources.
    pub name: &'static str,
    /// The OpenAPI definition, as `io.k8s.api.core.v1.PodSpec`; empty where there is none.
    pub definition: &'static str,
    /// The fields, sorted by JSON name.
    pub fields: Range,
    /// The fields of the protobuf message, sorted by number.
    pub message: Range,
    /// The shape of this type where nothing else is said of it.
    pub shape: ShapeId,
    /// Whether it is owned as one value unless a field says otherwise.
    pub is_atomic: bool,
    /// What members beside the fields hold, where such may stand (an object of a custom resource that preserves unknown
    /// fields); `None` where every member is a field.
    pub others: Option<ShapeId>,
}

impl Type {
    /// `v1.PodSpec` of `core/v1.PodSpec`: how Go prints the type.
    pub fn go_name(&self) -> &'static str {
        self.name.rsplit_once('/').map_or(self.name, |(_, name)| name)
    }

    /// Where the table of its fields' names lies in [`Schema::lookup`].
    fn lookup_range(&self) -> std::ops::Range<usize> {
        let first = self.fields.first as usize * lookup::TABLE_BYTES_PER_FIELD;
        first..first + lookup::table_len(self.fields.len as usize)
    }

    /// `PodSpec` of `core/v1.PodSpec`.
    pub fn struct_name(&self) -> &'static str {
        self.name.rsplit_once('.').map_or(self.name, |(_, name)| name)
    }
}

/// A field of a protobuf message.
#[derive(Clone, Copy, Debug)]
pub struct MessageField {
    /// Its number.
    pub number: u32,
    /// Its place among the fields as upstream declares them, which is the order of upstream's JSON.
    pub declared: u16,
    /// What it is in JSON.
    pub slot: Slot,
}

/// What a protobuf field is in JSON.
#[derive(Clone, Copy, Debug)]
pub enum Slot {
    /// A field: its index in [`Schema::fields`].
    Field(u32),
    /// A struct whose fields stand in the JSON of the struct around it.
    Embedded {
        /// Which.
        id: TypeId,
        /// Whether it may be absent.
        is_pointer: bool,
    },
}

/// A set of types that refer to each other by index.
#[derive(Clone, Debug)]
pub struct Schema {
    pub(crate) types: Cow<'static, [Type]>,
    pub(crate) fields: Cow<'static, [Field]>,
    pub(crate) shapes: Cow<'static, [Shape]>,
    pub(crate) message_fields: Cow<'static, [MessageField]>,
    /// See [`Schema::lookup_tables`].
    pub(crate) lookup: Cow<'static, [u8]>,
}

impl Schema {
    /// A schema made at run time (of a custom resource). Indices in the tables must stay within them; each type's
    /// fields must be sorted by name.
    pub fn new(types: Vec<Type>, fields: Vec<Field>, shapes: Vec<Shape>) -> Schema {
        let mut schema = Schema {
            types: Cow::Owned(types),
            fields: Cow::Owned(fields),
            shapes: Cow::Owned(shapes),
            message_fields: Cow::Borrowed(&[]),
            lookup: Cow::Borrowed(&[]),
        };
        schema.lookup = Cow::Owned(schema.lookup_tables());
        schema.check();
        schema
    }

    /// The field comments above, executed.
    pub(crate) fn check(&self) {
        for ty in self.types.iter() {
            debug_assert!(
                self.fields(ty).is_sorted_by(|a, b| a.name < b.name),
                "{}: fields are sorted by name",
                ty.name
            );
            debug_assert!((ty.shape.0 as usize) < self.shapes.len());
        }
    }

    /// The tables by which [`Schema::field`] finds fields.
    fn lookup_tables(&self) -> Vec<u8> {
        let mut tables = vec![0; self.fields.len() * lookup::TABLE_BYTES_PER_FIELD];
        for ty in self.types.iter() {
            let table = &mut tables[ty.lookup_range()];
            // types may share their fields
            table.fill(0);
            lookup::fill(table, ty.fields.of(&self.fields).iter().map(|field| field.name.as_str()));
        }
        tables
    }

    /// All types.
    pub fn types(&self) -> &[Type] {
        &self.types
    }

    /// A type.
    pub fn ty(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }

    /// A shape.
    pub fn shape(&self, id: ShapeId) -> &Shape {
        &self.shapes[id.0 as usize]
    }

    /// The fields of a type, sorted by JSON name.
    pub fn fields(&self, ty: &Type) -> &[Field] {
        ty.fields.of(&self.fields)
    }

    /// The field that a protobuf slot names.
    pub fn field_at(&self, idx: u32) -> &Field {
        &self.fields[idx as usize]
    }

    /// The protobuf message of a type, sorted by number.
    pub fn message(&self, ty: &Type) -> &[MessageField] {
        ty.message.of(&self.message_fields)
    }

    /// The field of a type by its JSON name.
    pub fn field(&self, ty: &Type, name: &str) -> Option<&Field> {
        let fields = self.fields(ty);
        let table = &self.lookup[ty.lookup_range()];
        let found = match table.is_empty() {
            true => fields.binary_search_by(|f| f.name.as_str().cmp(name)).ok(),
            false => lookup::find(table, name, |idx| fields[idx].name == name),
        };
        found.map(|idx| &fields[idx])
    }

    /// Whether Go's encoder writes the field even when it is zero: neither omitempty (which does nothing to structs)
    /// nor omitzero. A pointer is written as `null` then.
    pub fn is_always_written(&self, field: &Field) -> bool {
        if field.omit_zero || (field.omit_empty && field.is_pointer) {
            return false;
        }
        !field.omit_empty
            || matches!(
                self.shape(field.shape),
                Shape::Struct { .. }
                    | Shape::Time
                    | Shape::MicroTime
                    | Shape::Quantity
                    | Shape::IntOrString
                    | Shape::Raw
                    | Shape::FieldsV1
            )
    }

    /// Whether Go's encoder leaves the field out when it is zero (`null`, `false`, `0`, `""`, `[]`, `{}`). An
    /// omitzero struct is not among these: it goes when none of its members is left.
    pub fn is_dropped_when_empty(&self, field: &Field) -> bool {
        !field.is_pointer
            && (field.omit_empty || field.omit_zero)
            && !self.is_always_written(field)
            && !matches!(self.shape(field.shape), Shape::Struct { .. })
    }

    /// The place where a document of type `id` begins.
    pub fn root(&self, id: TypeId) -> Node<'_> {
        Node { schema: self, shape: self.ty(id).shape }
    }
}

/// A place in a schema: what a walk over a document and its schema carries along.
#[derive(Clone, Copy, Debug)]
pub struct Node<'s> {
    /// The schema.
    pub schema: &'s Schema,
    /// What may stand here.
    pub shape: ShapeId,
}

impl<'s> Node<'s> {
    /// What may stand here.
    pub fn shape(self) -> &'s Shape {
        self.schema.shape(self.shape)
    }

    /// The same schema at another shape.
    pub fn with(self, shape: ShapeId) -> Node<'s> {
        Node { shape, ..self }
    }

    /// The type, if a struct stands here.
    pub fn ty(self) -> Option<&'s Type> {
        match self.shape() {
            Shape::Struct { id, .. } => Some(self.schema.ty(*id)),
            _ => None,
        }
    }

    /// The field `name`, if a struct stands here that has it.
    pub fn field(self, name: &str) -> Option<&'s Field> {
        self.schema.field(self.ty()?, name)
    }

    /// The place of a member: a struct's field (or what stands beside its fields) or a map's value.
    pub fn child(self, name: &str) -> Option<Node<'s>> {
        match self.shape() {
            Shape::Struct { id, .. } => {
                let others = self.schema.ty(*id).others;
                self.field(name).map(|f| f.shape).or(others).map(|shape| self.with(shape))
            }
            Shape::Map { value, .. } => Some(self.with(*value)),
            _ => None,
        }
    }

    /// The place of a list's items.
    pub fn item(self) -> Option<Node<'s>> {
        match self.shape() {
            Shape::List { item, .. } => Some(self.with(*item)),
            _ => None,
        }
    }
}
