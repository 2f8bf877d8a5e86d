//! The same schema as patches and server-side apply read it: types, fields and shapes of the kind catalogue, made at
//! run time. Metadata comes from the catalogue itself.

use super::{ListType, MapType, Structural, Type as NodeType};
use compact_str::CompactString as Str;
use pintle_schema::{Field, Keys, ListKind, Range, Schema, Shape, ShapeId, Type, TypeId, builtin, type_named};
use std::collections::BTreeMap;

/// The schema of whole objects, and the type in it that they have.
pub fn to_schema(root: &Structural) -> (Schema, TypeId) {
    let mut builder = Builder::default();
    let object = builder.object(root, true);
    let id = match &builder.shapes[object.0 as usize] {
        Shape::Struct { id, .. } => *id,
        // a root is always an object with metadata; nothing else comes out of `object` for it
        _ => TypeId(0),
    };
    (Schema::new(builder.types, builder.fields, builder.shapes), id)
}

#[derive(Default)]
struct Builder {
    types: Vec<Type>,
    fields: Vec<Field>,
    shapes: Vec<Shape>,
    /// Types of the catalogue that are copied already.
    copied: BTreeMap<TypeId, TypeId>,
    /// Shapes without parts, each made once.
    plain: Vec<ShapeId>,
}

fn next(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// A field of which only name, shape and default are known.
fn field(name: &str, shape: ShapeId) -> Field {
    Field {
        name: Str::new(name),
        shape,
        is_pointer: true,
        omit_empty: false,
        omit_zero: false,
        is_required: false,
        patch_merge: false,
        patch_retain_keys: false,
        patch_replace: false,
        patch_merge_key: "",
        default: Str::const_new(""),
        enumeration: &[],
        format: "",
    }
}

impl Builder {
    fn shape(&mut self, shape: Shape) -> ShapeId {
        let is_plain = !matches!(shape, Shape::Struct { .. } | Shape::List { .. } | Shape::Map { .. });
        let known = self.plain.iter().find(|id| is_plain && self.shapes[id.0 as usize] == shape);
        if let Some(id) = known {
            return *id;
        }
        self.shapes.push(shape);
        let id = ShapeId(next(self.shapes.len() - 1));
        if is_plain {
            self.plain.push(id);
        }
        id
    }

    fn node(&mut self, node: &Structural) -> ShapeId {
        let shape = match &node.ty {
            NodeType::Object => return self.object(node, false),
            NodeType::Array => self.list(node),
            NodeType::String => Shape::String,
            NodeType::Integer => Shape::Int64,
            NodeType::Number => Shape::Float,
            NodeType::Boolean => Shape::Bool,
            NodeType::Unset | NodeType::Other(_) if node.is_int_or_string => Shape::IntOrString,
            NodeType::Unset | NodeType::Other(_) => {
                if !node.properties.is_empty() {
                    return self.object(node, false);
                }
                Shape::Any
            }
        };
        self.shape(shape)
    }

    fn list(&mut self, node: &Structural) -> Shape {
        let item = match node.items.as_deref() {
            Some(items) => self.node(items),
            None => self.shape(Shape::Any),
        };
        let kind = match node.list_type {
            ListType::Unset | ListType::Atomic => ListKind::Atomic,
            ListType::Set => ListKind::Set,
            ListType::Map => ListKind::Map(Keys::Owned(node.list_map_keys.clone())),
        };
        Shape::List { item, kind }
    }

    fn object(&mut self, node: &Structural, is_root: bool) -> ShapeId {
        let is_atomic = node.map_type == MapType::Atomic;
        let has_meta = node.is_root_or_embedded(is_root);
        if !has_meta && node.properties.is_empty() {
            let shape = match node.additional.schema() {
                Some(additional) => Shape::Map { value: self.node(additional), is_atomic },
                None => Shape::Map { value: self.shape(Shape::Any), is_atomic },
            };
            return self.shape(shape);
        }
        let mut fields: BTreeMap<Str, Field> = BTreeMap::new();
        for (name, property) in &node.properties {
            let mut made = field(name, self.node(property));
            made.is_required = node.checks().required.contains(name);
            if let Some(default) = &property.default {
                made.default = Str::from(default.to_json_string());
            }
            fields.insert(name.clone(), made);
        }
        if has_meta {
            let string = self.shape(Shape::String);
            for name in ["apiVersion", "kind"] {
                fields.insert(Str::const_new(name), field(name, string));
            }
            if let Some(metadata) = type_named("meta/v1.ObjectMeta") {
                let shape = self.copy(metadata);
                fields.insert(Str::const_new("metadata"), field("metadata", shape));
            }
        }
        let others = node.preserves_unknown.then(|| self.shape(Shape::Any));
        let first = next(self.fields.len());
        let len = next(fields.len());
        self.fields.extend(fields.into_values());
        self.add_type(Range { first, len }, is_atomic, others)
    }

    fn add_type(&mut self, fields: Range, is_atomic: bool, others: Option<ShapeId>) -> ShapeId {
        let id = TypeId(next(self.types.len()));
        self.shapes.push(Shape::Struct { id, is_atomic });
        let shape = ShapeId(next(self.shapes.len() - 1));
        let message = Range { first: 0, len: 0 };
        self.types.push(Type { name: "", definition: "", fields, message, shape, is_atomic, others });
        shape
    }

    /// A type of the catalogue, copied with everything it needs.
    fn copy(&mut self, id: TypeId) -> ShapeId {
        if let Some(copied) = self.copied.get(&id) {
            return self.types[copied.0 as usize].shape;
        }
        let source = builtin().ty(id);
        // the place is taken before the fields are made, which may refer back to it
        let shape = self.add_type(Range { first: 0, len: 0 }, source.is_atomic, None);
        let copied = TypeId(next(self.types.len() - 1));
        self.copied.insert(id, copied);
        let mut fields = Vec::new();
        for field in builtin().fields(source) {
            fields.push(Field { shape: self.copy_shape(field.shape), ..field.clone() });
        }
        let range = Range { first: next(self.fields.len()), len: next(fields.len()) };
        self.fields.extend(fields);
        let ty = &mut self.types[copied.0 as usize];
        ty.fields = range;
        ty.name = source.name;
        shape
    }

    fn copy_shape(&mut self, id: ShapeId) -> ShapeId {
        let shape = match builtin().shape(id) {
            Shape::Struct { id, is_atomic } => {
                let copied = self.copy(*id);
                let Shape::Struct { id, .. } = self.shapes[copied.0 as usize] else { return copied };
                Shape::Struct { id, is_atomic: *is_atomic }
            }
            Shape::List { item, kind } => Shape::List { item: self.copy_shape(*item), kind: kind.clone() },
            Shape::Map { value, is_atomic } => Shape::Map { value: self.copy_shape(*value), is_atomic: *is_atomic },
            plain => plain.clone(),
        };
        self.shape(shape)
    }
}
