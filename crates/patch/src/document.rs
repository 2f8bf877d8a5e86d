//! A patch document that Go reads into a `map[string]interface {}`: what else may not stand at its root.

use pintle_apimachinery::value::{FieldGuide, Guide, Mismatch, Scalar};
use pintle_apimachinery::{Str, Value};

/// The guide of such a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MapDocument {
    is_root: bool,
}

impl MapDocument {
    pub(crate) const ROOT: MapDocument = MapDocument { is_root: true };

    fn mismatch<T>(value: &str) -> Result<T, Mismatch> {
        Err(Mismatch::Type { value: value.to_owned(), go_type: "map[string]interface {}".to_owned() })
    }
}

impl Guide for MapDocument {
    fn member(self, _key: &str) -> FieldGuide<Self> {
        FieldGuide::Known { guide: MapDocument { is_root: false }, name: None, omit_empty: false, is_field: false }
    }

    fn item(self) -> Self {
        MapDocument { is_root: false }
    }

    fn enter_object(self) -> Result<(), Mismatch> {
        Ok(())
    }

    fn enter_array(self) -> Result<(), Mismatch> {
        if self.is_root { MapDocument::mismatch("array") } else { Ok(()) }
    }

    fn scalar(self, scalar: Scalar<'_>) -> Result<Value, Mismatch> {
        match scalar {
            Scalar::Bool(_) if self.is_root => MapDocument::mismatch("bool"),
            Scalar::Number(_) if self.is_root => MapDocument::mismatch("number"),
            Scalar::String(_) if self.is_root => MapDocument::mismatch("string"),
            Scalar::Bool(b) => Ok(Value::Bool(b)),
            Scalar::String(s) => Ok(Value::String(s)),
            Scalar::Number(literal) => Ok(match literal.parse::<i64>() {
                Ok(i) => Value::Int(i),
                Err(_) => literal.parse::<f64>().ok().filter(|f| f.is_finite()).map_or(Value::Null, Value::Float),
            }),
        }
    }

    fn null(self) -> Value {
        Value::Null
    }

    fn drops_null_members(self) -> bool {
        false
    }

    fn struct_name(self) -> &'static str {
        ""
    }

    fn finish_object(self, _members: &mut Vec<(Str, Value)>) {}
}
