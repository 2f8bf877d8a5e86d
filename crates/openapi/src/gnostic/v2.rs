//! The messages of `openapi.v2` that documents here use.

use super::{Form, Kind, Object};
use pintle_apimachinery::Value;

const fn object(fields: &'static [(&'static str, u32, Kind)], extensions: u32) -> Form {
    Form::Object(Object { fields, others: None, extensions })
}

pub(super) static DOCUMENT: Form = object(
    &[
        ("swagger", 1, Kind::Text),
        ("info", 2, Kind::One(&INFO)),
        ("paths", 8, Kind::One(&PATHS)),
        ("definitions", 9, Kind::Members(&SCHEMA)),
        ("parameters", 10, Kind::Members(&PARAMETER)),
        ("security", 12, Kind::Many(&SECURITY_REQUIREMENT)),
        ("securityDefinitions", 13, Kind::Members(&SECURITY_DEFINITION)),
    ],
    16,
);

static INFO: Form = object(&[("title", 1, Kind::Text), ("version", 2, Kind::Text), ("description", 3, Kind::Text)], 7);

static PATHS: Form = Form::Object(Object { fields: &[], others: Some((2, &PATH_ITEM)), extensions: 1 });

static PATH_ITEM: Form = object(
    &[
        ("get", 2, Kind::One(&OPERATION)),
        ("put", 3, Kind::One(&OPERATION)),
        ("post", 4, Kind::One(&OPERATION)),
        ("delete", 5, Kind::One(&OPERATION)),
        ("options", 6, Kind::One(&OPERATION)),
        ("head", 7, Kind::One(&OPERATION)),
        ("patch", 8, Kind::One(&OPERATION)),
        ("parameters", 9, Kind::Many(&PARAMETERS_ITEM)),
    ],
    10,
);

static OPERATION: Form = object(
    &[
        ("tags", 1, Kind::Texts),
        ("summary", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("operationId", 5, Kind::Text),
        ("produces", 6, Kind::Texts),
        ("consumes", 7, Kind::Texts),
        ("parameters", 8, Kind::Many(&PARAMETERS_ITEM)),
        ("responses", 9, Kind::One(&RESPONSES)),
        ("schemes", 10, Kind::Texts),
        ("deprecated", 11, Kind::Flag),
    ],
    13,
);

static PARAMETERS_ITEM: Form = Form::OneOf(|value| if value.has("$ref") { (2, &REFERENCE) } else { (1, &PARAMETER) });

static PARAMETER: Form =
    Form::OneOf(
        |value| if value["in"].as_str() == Some("body") { (1, &BODY_PARAMETER) } else { (2, &PLAIN_PARAMETER) },
    );

static PLAIN_PARAMETER: Form =
    Form::OneOf(
        |value| if value["in"].as_str() == Some("path") { (4, &PATH_PARAMETER) } else { (3, &QUERY_PARAMETER) },
    );

static REFERENCE: Form = object(&[("$ref", 1, Kind::Text), ("description", 2, Kind::Text)], 0);

static BODY_PARAMETER: Form = object(
    &[
        ("description", 1, Kind::Text),
        ("name", 2, Kind::Text),
        ("in", 3, Kind::Text),
        ("required", 4, Kind::Flag),
        ("schema", 5, Kind::One(&SCHEMA)),
    ],
    6,
);

static QUERY_PARAMETER: Form = object(
    &[
        ("required", 1, Kind::Flag),
        ("in", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("name", 4, Kind::Text),
        ("type", 6, Kind::Text),
        ("format", 7, Kind::Text),
        ("uniqueItems", 20, Kind::Flag),
    ],
    23,
);

static PATH_PARAMETER: Form = object(
    &[
        ("required", 1, Kind::Flag),
        ("in", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("name", 4, Kind::Text),
        ("type", 5, Kind::Text),
        ("format", 6, Kind::Text),
        ("uniqueItems", 19, Kind::Flag),
    ],
    22,
);

static RESPONSES: Form = Form::Object(Object { fields: &[], others: Some((1, &RESPONSE_VALUE)), extensions: 2 });

static RESPONSE_VALUE: Form = Form::OneOf(|value| if value.has("$ref") { (2, &REFERENCE) } else { (1, &RESPONSE) });

static RESPONSE: Form = object(&[("description", 1, Kind::Text), ("schema", 2, Kind::One(&SCHEMA_ITEM))], 5);

static SCHEMA_ITEM: Form = Form::OneOf(|_| (1, &SCHEMA));

static SCHEMA: Form = object(
    &[
        ("$ref", 1, Kind::Text),
        ("format", 2, Kind::Text),
        ("title", 3, Kind::Text),
        ("description", 4, Kind::Text),
        ("default", 5, Kind::Any),
        ("multipleOf", 6, Kind::Number),
        ("maximum", 7, Kind::Number),
        ("exclusiveMaximum", 8, Kind::Flag),
        ("minimum", 9, Kind::Number),
        ("exclusiveMinimum", 10, Kind::Flag),
        ("maxLength", 11, Kind::Integer),
        ("minLength", 12, Kind::Integer),
        ("pattern", 13, Kind::Text),
        ("maxItems", 14, Kind::Integer),
        ("minItems", 15, Kind::Integer),
        ("uniqueItems", 16, Kind::Flag),
        ("maxProperties", 17, Kind::Integer),
        ("minProperties", 18, Kind::Integer),
        ("required", 19, Kind::Texts),
        ("enum", 20, Kind::Anys),
        ("additionalProperties", 21, Kind::One(&ADDITIONAL_PROPERTIES)),
        ("type", 22, Kind::One(&Form::Texts(1))),
        ("items", 23, Kind::One(&Form::Items(1, &SCHEMA))),
        ("allOf", 24, Kind::Many(&SCHEMA)),
        ("properties", 25, Kind::Members(&SCHEMA)),
        ("readOnly", 27, Kind::Flag),
        ("example", 30, Kind::Any),
    ],
    31,
);

static ADDITIONAL_PROPERTIES: Form = Form::OneOf(|value| match value {
    Value::Bool(_) => (2, &Form::Flag(2)),
    _ => (1, &SCHEMA),
});

static SECURITY_REQUIREMENT: Form =
    Form::Object(Object { fields: &[], others: Some((1, &Form::Texts(1))), extensions: 0 });

static SECURITY_DEFINITION: Form = Form::OneOf(|_| (2, &API_KEY));

static API_KEY: Form = object(
    &[("type", 1, Kind::Text), ("name", 2, Kind::Text), ("in", 3, Kind::Text), ("description", 4, Kind::Text)],
    5,
);
