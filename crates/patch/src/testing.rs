//! Documents for property tests.

use pintle_apimachinery::{Object, Value};
use proptest::prelude::*;

/// Any document of modest size. `has_null`: whether `null` may stand in it.
pub(crate) fn value(has_null: bool) -> BoxedStrategy<Value> {
    let scalar = prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        (-3i64..4).prop_map(Value::Int),
        prop_oneof![Just(0.5), Just(1.0)].prop_map(Value::Float),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    let leaf = if has_null { prop_oneof![scalar, Just(Value::Null)].boxed() } else { scalar.boxed() };
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec(("[a-d]", inner), 0..4)
                .prop_map(|m| Value::Object(m.into_iter().collect::<Object>())),
        ]
    })
    .boxed()
}

/// Any object of modest size.
pub(crate) fn object(has_null: bool) -> BoxedStrategy<Value> {
    prop::collection::vec(("[a-d]", value(has_null)), 0..5)
        .prop_map(|m| Value::Object(m.into_iter().collect::<Object>()))
        .boxed()
}
