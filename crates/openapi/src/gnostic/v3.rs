//! The messages of `openapi.v3` that documents here use.

use super::{Form, Kind, Object};
use pintle_apimachinery::Value;

const fn object(fields: &'static [(&'static str, u32, Kind)], extensions: u32) -> Form {
    Form::Object(Object { fields, others: None, extensions })
}

pub(super) static DOCUMENT: Form = object(
    &[
        ("openapi", 1, Kind::Text),
        ("info", 2, Kind::One(&INFO)),
        ("paths", 4, Kind::One(&PATHS)),
        ("components", 5, Kind::One(&COMPONENTS)),
    ],
    9,
);

static INFO: Form = object(&[("title", 1, Kind::Text), ("description", 2, Kind::Text), ("version", 6, Kind::Text)], 7);

static COMPONENTS: Form = object(
    &[
        ("schemas", 1, Kind::Members(&SCHEMA_OR_REFERENCE)),
        ("securitySchemes", 7, Kind::Members(&SECURITY_SCHEME_OR_REFERENCE)),
    ],
    10,
);

static PATHS: Form = Form::Object(Object { fields: &[], others: Some((1, &PATH_ITEM)), extensions: 2 });

static PATH_ITEM: Form = object(
    &[
        ("summary", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("get", 4, Kind::One(&OPERATION)),
        ("put", 5, Kind::One(&OPERATION)),
        ("post", 6, Kind::One(&OPERATION)),
        ("delete", 7, Kind::One(&OPERATION)),
        ("options", 8, Kind::One(&OPERATION)),
        ("head", 9, Kind::One(&OPERATION)),
        ("patch", 10, Kind::One(&OPERATION)),
        ("parameters", 13, Kind::Many(&PARAMETER_OR_REFERENCE)),
    ],
    14,
);

static OPERATION: Form = object(
    &[
        ("tags", 1, Kind::Texts),
        ("summary", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("operationId", 5, Kind::Text),
        ("parameters", 6, Kind::Many(&PARAMETER_OR_REFERENCE)),
        ("requestBody", 7, Kind::One(&REQUEST_BODY_OR_REFERENCE)),
        ("responses", 8, Kind::One(&RESPONSES)),
        ("deprecated", 10, Kind::Flag),
    ],
    13,
);

static REFERENCE: Form =
    object(&[("$ref", 1, Kind::Text), ("summary", 2, Kind::Text), ("description", 3, Kind::Text)], 0);

static PARAMETER_OR_REFERENCE: Form =
    Form::OneOf(|value| if value.has("$ref") { (2, &REFERENCE) } else { (1, &PARAMETER) });

static PARAMETER: Form = object(
    &[
        ("name", 1, Kind::Text),
        ("in", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("required", 4, Kind::Flag),
        ("schema", 10, Kind::One(&SCHEMA_OR_REFERENCE)),
    ],
    14,
);

static REQUEST_BODY_OR_REFERENCE: Form =
    Form::OneOf(|value| if value.has("$ref") { (2, &REFERENCE) } else { (1, &REQUEST_BODY) });

static REQUEST_BODY: Form = object(
    &[("description", 1, Kind::Text), ("content", 2, Kind::Members(&MEDIA_TYPE)), ("required", 3, Kind::Flag)],
    4,
);

static MEDIA_TYPE: Form = object(&[("schema", 1, Kind::One(&SCHEMA_OR_REFERENCE))], 5);

static RESPONSES: Form = Form::Object(Object {
    fields: &[("default", 1, Kind::One(&RESPONSE_OR_REFERENCE))],
    others: Some((2, &RESPONSE_OR_REFERENCE)),
    extensions: 3,
});

static RESPONSE_OR_REFERENCE: Form =
    Form::OneOf(|value| if value.has("$ref") { (2, &REFERENCE) } else { (1, &RESPONSE) });

static RESPONSE: Form = object(&[("description", 1, Kind::Text), ("content", 3, Kind::Members(&MEDIA_TYPE))], 5);

static SCHEMA_OR_REFERENCE: Form = Form::OneOf(|value| if value.has("$ref") { (2, &REFERENCE) } else { (1, &SCHEMA) });

static SCHEMA: Form = object(
    &[
        ("nullable", 1, Kind::Flag),
        ("readOnly", 3, Kind::Flag),
        ("writeOnly", 4, Kind::Flag),
        ("example", 7, Kind::Any),
        ("deprecated", 8, Kind::Flag),
        ("title", 9, Kind::Text),
        ("multipleOf", 10, Kind::Number),
        ("maximum", 11, Kind::Number),
        ("exclusiveMaximum", 12, Kind::Flag),
        ("minimum", 13, Kind::Number),
        ("exclusiveMinimum", 14, Kind::Flag),
        ("maxLength", 15, Kind::Integer),
        ("minLength", 16, Kind::Integer),
        ("pattern", 17, Kind::Text),
        ("maxItems", 18, Kind::Integer),
        ("minItems", 19, Kind::Integer),
        ("uniqueItems", 20, Kind::Flag),
        ("maxProperties", 21, Kind::Integer),
        ("minProperties", 22, Kind::Integer),
        ("required", 23, Kind::Texts),
        ("enum", 24, Kind::Anys),
        ("type", 25, Kind::Text),
        ("allOf", 26, Kind::Many(&SCHEMA_OR_REFERENCE)),
        ("oneOf", 27, Kind::Many(&SCHEMA_OR_REFERENCE)),
        ("anyOf", 28, Kind::Many(&SCHEMA_OR_REFERENCE)),
        ("not", 29, Kind::One(&SCHEMA)),
        ("items", 30, Kind::One(&Form::Items(1, &SCHEMA_OR_REFERENCE))),
        ("properties", 31, Kind::Members(&SCHEMA_OR_REFERENCE)),
        ("additionalProperties", 32, Kind::One(&ADDITIONAL_PROPERTIES)),
        ("default", 33, Kind::One(&Form::Default)),
        ("description", 34, Kind::Text),
        ("format", 35, Kind::Text),
    ],
    36,
);

static ADDITIONAL_PROPERTIES: Form = Form::OneOf(|value| match value {
    Value::Bool(_) => (2, &Form::Flag(2)),
    _ => (1, &SCHEMA_OR_REFERENCE),
});

static SECURITY_SCHEME_OR_REFERENCE: Form =
    Form::OneOf(|value| if value.has("$ref") { (2, &REFERENCE) } else { (1, &SECURITY_SCHEME) });

static SECURITY_SCHEME: Form = object(
    &[("type", 1, Kind::Text), ("description", 2, Kind::Text), ("name", 3, Kind::Text), ("in", 4, Kind::Text)],
    9,
);
