//! The messages of `openapi.v2`, with the numbers of gnostic's OpenAPIv2.proto.

use super::common::{
    CONTACT, EXTERNAL_DOCS, LICENSE, SECURITY_REQUIREMENT, TAG, TEXTS, XML, named,
};
use super::encoding::MemberEncoding::{
    Any, Anys, ChosenFlag, Flag, Float, Many, One, Text, Texts, Whole,
};
use super::encoding::{NamedMembers, Node, member as m};
use bareboat_api::Value;

pub(super) static DOCUMENT: Node = Node::Object(
    &[
        m("swagger", 1, Text),
        m("info", 2, One(&INFO)),
        m("host", 3, Text),
        m("basePath", 4, Text),
        m("schemes", 5, Texts),
        m("consumes", 6, Texts),
        m("produces", 7, Texts),
        m("paths", 8, One(&PATHS)),
        m("definitions", 9, One(&SCHEMAS)),
        m("parameters", 10, One(&PARAMETERS)),
        m("responses", 11, One(&RESPONSE_DEFINITIONS)),
        m("security", 12, Many(&SECURITY_REQUIREMENT)),
        m("securityDefinitions", 13, One(&SECURITY_DEFINITIONS)),
        m("tags", 14, Many(&TAG)),
        m("externalDocs", 15, One(&EXTERNAL_DOCS)),
    ],
    16,
);

static INFO: Node = Node::Object(
    &[
        m("title", 1, Text),
        m("version", 2, Text),
        m("description", 3, Text),
        m("termsOfService", 4, Text),
        m("contact", 5, One(&CONTACT)),
        m("license", 6, One(&LICENSE)),
    ],
    7,
);

static PATHS: Node = Node::Map(&NamedMembers {
    number: 2,
    value: One(&PATH_ITEM),
    extensions: Some(1),
    apart: None,
});
static PATH_ITEM: Node = Node::Object(
    &[
        m("$ref", 1, Text),
        m("get", 2, One(&OPERATION)),
        m("put", 3, One(&OPERATION)),
        m("post", 4, One(&OPERATION)),
        m("delete", 5, One(&OPERATION)),
        m("options", 6, One(&OPERATION)),
        m("head", 7, One(&OPERATION)),
        m("patch", 8, One(&OPERATION)),
        m("parameters", 9, Many(&PARAMETERS_ITEM)),
    ],
    10,
);
static OPERATION: Node = Node::Object(
    &[
        m("tags", 1, Texts),
        m("summary", 2, Text),
        m("description", 3, Text),
        m("externalDocs", 4, One(&EXTERNAL_DOCS)),
        m("operationId", 5, Text),
        m("produces", 6, Texts),
        m("consumes", 7, Texts),
        m("parameters", 8, Many(&PARAMETERS_ITEM)),
        m("responses", 9, One(&RESPONSES)),
        m("schemes", 10, Texts),
        m("deprecated", 11, Flag),
        m("security", 12, Many(&SECURITY_REQUIREMENT)),
    ],
    13,
);

fn is_reference(value: &Value) -> bool {
    value.get("$ref").is_some()
}
static REFERENCE: Node = Node::Object(&[m("$ref", 1, Text), m("description", 2, Text)], 0);

static PARAMETERS: Node = Node::Map(&named(One(&PARAMETER)));
static PARAMETERS_ITEM: Node = Node::Choice(|value| {
    Some(match is_reference(value) {
        true => (2, One(&REFERENCE)),
        false => (1, One(&PARAMETER)),
    })
});
static PARAMETER: Node = Node::Choice(|value| match value.get("in")?.as_str()? {
    "body" => Some((1, One(&BODY_PARAMETER))),
    _ => Some((2, One(&NON_BODY_PARAMETER))),
});
static BODY_PARAMETER: Node = Node::Object(
    &[
        m("description", 1, Text),
        m("name", 2, Text),
        m("in", 3, Text),
        m("required", 4, Flag),
        m("schema", 5, One(&SCHEMA)),
    ],
    6,
);
static NON_BODY_PARAMETER: Node = Node::Choice(|value| match value.get("in")?.as_str()? {
    "header" => Some((1, One(&HEADER_PARAMETER))),
    "formData" => Some((2, One(&QUERY_PARAMETER))),
    "query" => Some((3, One(&QUERY_PARAMETER))),
    "path" => Some((4, One(&HEADER_PARAMETER))),
    _ => None,
});
/// Header and path parameters have the same members.
static HEADER_PARAMETER: Node = Node::Object(
    &[
        m("required", 1, Flag),
        m("in", 2, Text),
        m("description", 3, Text),
        m("name", 4, Text),
        m("type", 5, Text),
        m("format", 6, Text),
        m("items", 7, One(&PRIMITIVES)),
        m("collectionFormat", 8, Text),
        m("default", 9, Any),
        m("maximum", 10, Float),
        m("exclusiveMaximum", 11, Flag),
        m("minimum", 12, Float),
        m("exclusiveMinimum", 13, Flag),
        m("maxLength", 14, Whole),
        m("minLength", 15, Whole),
        m("pattern", 16, Text),
        m("maxItems", 17, Whole),
        m("minItems", 18, Whole),
        m("uniqueItems", 19, Flag),
        m("enum", 20, Anys),
        m("multipleOf", 21, Float),
    ],
    22,
);
/// Query and form parameters have the same members.
static QUERY_PARAMETER: Node = Node::Object(
    &[
        m("required", 1, Flag),
        m("in", 2, Text),
        m("description", 3, Text),
        m("name", 4, Text),
        m("allowEmptyValue", 5, Flag),
        m("type", 6, Text),
        m("format", 7, Text),
        m("items", 8, One(&PRIMITIVES)),
        m("collectionFormat", 9, Text),
        m("default", 10, Any),
        m("maximum", 11, Float),
        m("exclusiveMaximum", 12, Flag),
        m("minimum", 13, Float),
        m("exclusiveMinimum", 14, Flag),
        m("maxLength", 15, Whole),
        m("minLength", 16, Whole),
        m("pattern", 17, Text),
        m("maxItems", 18, Whole),
        m("minItems", 19, Whole),
        m("uniqueItems", 20, Flag),
        m("enum", 21, Anys),
        m("multipleOf", 22, Float),
    ],
    23,
);
/// The members that `PrimitivesItems` and `Header` share with the same numbers, and those of one
/// alone.
macro_rules! primitive {
    ($($more:expr),*) => {
        &[
            m("type", 1, Text),
            m("format", 2, Text),
            m("items", 3, One(&PRIMITIVES)),
            m("collectionFormat", 4, Text),
            m("default", 5, Any),
            m("maximum", 6, Float),
            m("exclusiveMaximum", 7, Flag),
            m("minimum", 8, Float),
            m("exclusiveMinimum", 9, Flag),
            m("maxLength", 10, Whole),
            m("minLength", 11, Whole),
            m("pattern", 12, Text),
            m("maxItems", 13, Whole),
            m("minItems", 14, Whole),
            m("uniqueItems", 15, Flag),
            m("enum", 16, Anys),
            m("multipleOf", 17, Float),
            $($more),*
        ]
    };
}
static PRIMITIVES: Node = Node::Object(primitive!(), 18);
static HEADERS: Node = Node::Map(&named(One(&HEADER)));
static HEADER: Node = Node::Object(primitive!(m("description", 18, Text)), 19);

static RESPONSES: Node = Node::Map(&NamedMembers {
    number: 1,
    value: One(&RESPONSE_VALUE),
    extensions: Some(2),
    apart: None,
});
static RESPONSE_DEFINITIONS: Node = Node::Map(&named(One(&RESPONSE)));
static RESPONSE_VALUE: Node = Node::Choice(|value| {
    Some(match is_reference(value) {
        true => (2, One(&REFERENCE)),
        false => (1, One(&RESPONSE)),
    })
});
static RESPONSE: Node = Node::Object(
    &[
        m("description", 1, Text),
        m("schema", 2, One(&SCHEMA_ITEM)),
        m("headers", 3, One(&HEADERS)),
        m("examples", 4, One(&EXAMPLES)),
    ],
    5,
);
static EXAMPLES: Node = Node::Map(&named(Any));
static SCHEMA_ITEM: Node = Node::Choice(|_| Some((1, One(&SCHEMA))));

static SCHEMAS: Node = Node::Map(&named(One(&SCHEMA)));
static SCHEMA: Node = Node::Object(
    &[
        m("$ref", 1, Text),
        m("format", 2, Text),
        m("title", 3, Text),
        m("description", 4, Text),
        m("default", 5, Any),
        m("multipleOf", 6, Float),
        m("maximum", 7, Float),
        m("exclusiveMaximum", 8, Flag),
        m("minimum", 9, Float),
        m("exclusiveMinimum", 10, Flag),
        m("maxLength", 11, Whole),
        m("minLength", 12, Whole),
        m("pattern", 13, Text),
        m("maxItems", 14, Whole),
        m("minItems", 15, Whole),
        m("uniqueItems", 16, Flag),
        m("maxProperties", 17, Whole),
        m("minProperties", 18, Whole),
        m("required", 19, Texts),
        m("enum", 20, Anys),
        m("additionalProperties", 21, One(&ADDITIONAL_PROPERTIES)),
        m("type", 22, One(&TYPE)),
        m("items", 23, One(&ITEMS)),
        m("allOf", 24, Many(&SCHEMA)),
        m("properties", 25, One(&SCHEMAS)),
        m("discriminator", 26, Text),
        m("readOnly", 27, Flag),
        m("xml", 28, One(&XML)),
        m("externalDocs", 29, One(&EXTERNAL_DOCS)),
        m("example", 30, Any),
    ],
    31,
);
static TYPE: Node = Node::List(1, Texts);
static ITEMS: Node = Node::List(1, One(&SCHEMA));
static ADDITIONAL_PROPERTIES: Node = Node::Choice(|value| match value {
    Value::Bool(_) => Some((2, ChosenFlag)),
    Value::Object(_) => Some((1, One(&SCHEMA))),
    _ => None,
});

static SECURITY_DEFINITIONS: Node = Node::Map(&named(One(&SECURITY_DEFINITION)));
static SECURITY_DEFINITION: Node = Node::Choice(|value| {
    let text = |key| value.get(key).and_then(Value::as_str).unwrap_or("");
    match (text("type"), text("flow")) {
        ("basic", _) => Some((1, One(&BASIC))),
        ("apiKey", _) => Some((2, One(&API_KEY))),
        ("oauth2", "implicit") => Some((3, One(&OAUTH_IMPLICIT))),
        ("oauth2", "password") => Some((4, One(&OAUTH_TOKEN))),
        ("oauth2", "application") => Some((5, One(&OAUTH_TOKEN))),
        ("oauth2", "accessCode") => Some((6, One(&OAUTH_CODE))),
        _ => None,
    }
});
static BASIC: Node = Node::Object(&[m("type", 1, Text), m("description", 2, Text)], 3);
static API_KEY: Node = Node::Object(
    &[
        m("type", 1, Text),
        m("name", 2, Text),
        m("in", 3, Text),
        m("description", 4, Text),
    ],
    5,
);
static OAUTH_IMPLICIT: Node = Node::Object(
    &[
        m("type", 1, Text),
        m("flow", 2, Text),
        m("scopes", 3, One(&TEXTS)),
        m("authorizationUrl", 4, Text),
        m("description", 5, Text),
    ],
    6,
);
static OAUTH_TOKEN: Node = Node::Object(
    &[
        m("type", 1, Text),
        m("flow", 2, Text),
        m("scopes", 3, One(&TEXTS)),
        m("tokenUrl", 4, Text),
        m("description", 5, Text),
    ],
    6,
);
static OAUTH_CODE: Node = Node::Object(
    &[
        m("type", 1, Text),
        m("flow", 2, Text),
        m("scopes", 3, One(&TEXTS)),
        m("authorizationUrl", 4, Text),
        m("tokenUrl", 5, Text),
        m("description", 6, Text),
    ],
    7,
);
