//! What the schema says of a member of a strategic merge patch, and the words for what it cannot say.

use super::Fault;
use pintle_apimachinery::field::go_quote;
use pintle_schema::{Field, Node, Shape, Type};

/// What is known of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListMeta<'s> {
    /// Describes the items; `None` where the schema knows nothing.
    pub(super) item: Option<Node<'s>>,
    /// Whether items are merged (else the list is replaced).
    pub(super) is_merged: bool,
    /// The member that tells items apart; empty for scalars.
    pub(super) merge_key: &'s str,
}

/// What is known of an object in an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct StructMeta<'s> {
    /// Describes the object; `None` where the schema knows nothing.
    pub(super) node: Option<Node<'s>>,
    /// Whether it is replaced (else it is merged).
    pub(super) is_replaced: bool,
}

/// What is known of the object `key` in the object at `node`.
pub(super) fn struct_meta<'s>(node: Option<Node<'s>>, key: &str) -> Result<StructMeta<'s>, Fault> {
    let Some(node) = node else { return Ok(StructMeta { node: None, is_replaced: false }) };
    let field = field(node, key)?;
    Ok(StructMeta { node: Some(node.with(field.shape)), is_replaced: field.patch_replace })
}

/// What is known of the list `key` in the object at `node`.
pub(super) fn list_meta<'s>(node: Option<Node<'s>>, key: &str) -> Result<ListMeta<'s>, Fault> {
    let Some(node) = node else { return Ok(ListMeta { item: None, is_merged: false, merge_key: "" }) };
    let field = field(node, key)?;
    let item = match node.schema.shape(field.shape) {
        Shape::List { item, .. } => match node.schema.shape(*item) {
            Shape::List { .. } | Shape::StringList | Shape::Bytes => {
                return Err(Fault::Plain("unexpected slice of slice".to_owned()));
            }
            _ => Some(node.with(*item)),
        },
        Shape::StringList => None,
        _ => return Err(Fault::Plain("expected slice or array type, but got: struct".to_owned())),
    };
    Ok(ListMeta { item, is_merged: field.patch_merge, merge_key: field.patch_merge_key })
}

fn field<'s>(node: Node<'s>, key: &str) -> Result<&'s Field, Fault> {
    let unknown = |name: &str| {
        Fault::Plain(format!("unable to find api field in struct {name} for the json field {}", go_quote(key)))
    };
    let no_struct =
        |kind: &str| Fault::Plain(format!("merging an object in json but data type is not struct, instead is: {kind}"));
    match node.shape() {
        Shape::Struct { id, .. } => {
            let ty = node.schema.ty(*id);
            find(node, ty, key).ok_or_else(|| unknown(ty.struct_name()))
        }
        Shape::Raw => Err(unknown("RawExtension")),
        Shape::FieldsV1 => Err(unknown("FieldsV1")),
        Shape::Quantity => Err(unknown("Quantity")),
        Shape::IntOrString => Err(unknown("IntOrString")),
        Shape::Time => Err(unknown("Time")),
        Shape::MicroTime => Err(unknown("MicroTime")),
        Shape::SchemaOrBool => Err(unknown("JSONSchemaPropsOrBool")),
        Shape::SchemaOrArray => Err(unknown("JSONSchemaPropsOrArray")),
        Shape::SchemaOrStrings => Err(unknown("JSONSchemaPropsOrStringArray")),
        Shape::Map { .. } => Err(no_struct("map")),
        Shape::List { .. } | Shape::Bytes | Shape::StringList => Err(no_struct("slice")),
        Shape::Bool => Err(no_struct("bool")),
        Shape::Int32 => Err(no_struct("int32")),
        Shape::Int64 => Err(no_struct("int64")),
        Shape::Float => Err(no_struct("float64")),
        Shape::String => Err(no_struct("string")),
        Shape::Any => Err(no_struct("interface")),
    }
}

/// The field by its name, else one whose name differs in case only.
fn find<'s>(node: Node<'s>, ty: &'s Type, key: &str) -> Option<&'s Field> {
    node.schema.field(ty, key).or_else(|| node.schema.fields(ty).iter().find(|f| f.name.eq_ignore_ascii_case(key)))
}
