//! The messages of `openapi.v3`, with the numbers of gnostic's OpenAPIv3.proto.

use super::common::{
    CONTACT, EXTERNAL_DOCS, LICENSE, SECURITY_REQUIREMENT, TAG, TEXTS, XML, named,
};
use super::encoding::MemberEncoding::{
    Any, Anys, ChosenFlag, ChosenFloat, ChosenText, Flag, Float, Many, One, Text, Texts, Whole,
};
use super::encoding::{MemberEncoding, NamedMembers, Node, member as m};
use bareboat_api::Value;

pub(super) static DOCUMENT: Node = Node::Object(
    &[
        m("openapi", 1, Text),
        m("info", 2, One(&INFO)),
        m("servers", 3, Many(&SERVER)),
        m("paths", 4, One(&PATHS)),
        m("components", 5, One(&COMPONENTS)),
        m("security", 6, Many(&SECURITY_REQUIREMENT)),
        m("tags", 7, Many(&TAG)),
        m("externalDocs", 8, One(&EXTERNAL_DOCS)),
    ],
    9,
);

static INFO: Node = Node::Object(
    &[
        m("title", 1, Text),
        m("description", 2, Text),
        m("termsOfService", 3, Text),
        m("contact", 4, One(&CONTACT)),
        m("license", 5, One(&LICENSE)),
        m("version", 6, Text),
        m("summary", 8, Text),
    ],
    7,
);
static SERVER: Node = Node::Object(
    &[
        m("url", 1, Text),
        m("description", 2, Text),
        m("variables", 3, One(&SERVER_VARIABLES)),
    ],
    4,
);
static SERVER_VARIABLES: Node = Node::Map(&named(One(&SERVER_VARIABLE)));
static SERVER_VARIABLE: Node = Node::Object(
    &[
        m("enum", 1, Texts),
        m("default", 2, Text),
        m("description", 3, Text),
    ],
    4,
);

static REFERENCE: Node = Node::Object(
    &[
        m("$ref", 1, Text),
        m("summary", 2, Text),
        m("description", 3, Text),
    ],
    0,
);

/// The thing itself under 1, or a reference to it under 2.
fn or_reference(value: &Value, node: &'static Node) -> Option<(u32, MemberEncoding)> {
    match value.get("$ref") {
        Some(_) => Some((2, One(&REFERENCE))),
        None => Some((1, One(node))),
    }
}

static COMPONENTS: Node = Node::Object(
    &[
        m("schemas", 1, One(&SCHEMAS)),
        m("responses", 2, One(&RESPONSE_COMPONENTS)),
        m("parameters", 3, One(&PARAMETERS)),
        m("examples", 4, One(&EXAMPLES)),
        m("requestBodies", 5, One(&REQUEST_BODIES)),
        m("headers", 6, One(&HEADERS)),
        m("securitySchemes", 7, One(&SECURITY_SCHEMES)),
        m("links", 8, One(&LINKS)),
        m("callbacks", 9, One(&CALLBACKS)),
    ],
    10,
);

static PATHS: Node = Node::Map(&NamedMembers {
    number: 1,
    value: One(&PATH_ITEM),
    extensions: Some(2),
    apart: None,
});
static PATH_ITEM: Node = Node::Object(
    &[
        m("$ref", 1, Text),
        m("summary", 2, Text),
        m("description", 3, Text),
        m("get", 4, One(&OPERATION)),
        m("put", 5, One(&OPERATION)),
        m("post", 6, One(&OPERATION)),
        m("delete", 7, One(&OPERATION)),
        m("options", 8, One(&OPERATION)),
        m("head", 9, One(&OPERATION)),
        m("patch", 10, One(&OPERATION)),
        m("trace", 11, One(&OPERATION)),
        m("servers", 12, Many(&SERVER)),
        m("parameters", 13, Many(&PARAMETER)),
    ],
    14,
);
static OPERATION: Node = Node::Object(
    &[
        m("tags", 1, Texts),
        m("summary", 2, Text),
        m("description", 3, Text),
        m("externalDocs", 4, One(&EXTERNAL_DOCS)),
        m("operationId", 5, Text),
        m("parameters", 6, Many(&PARAMETER)),
        m("requestBody", 7, One(&REQUEST_BODY)),
        m("responses", 8, One(&RESPONSES)),
        m("callbacks", 9, One(&CALLBACKS)),
        m("deprecated", 10, Flag),
        m("security", 11, Many(&SECURITY_REQUIREMENT)),
        m("servers", 12, Many(&SERVER)),
    ],
    13,
);

static PARAMETERS: Node = Node::Map(&named(One(&PARAMETER)));
static PARAMETER: Node = Node::Choice(|value| or_reference(value, &PARAMETER_ITSELF));
static PARAMETER_ITSELF: Node = Node::Object(
    &[
        m("name", 1, Text),
        m("in", 2, Text),
        m("description", 3, Text),
        m("required", 4, Flag),
        m("deprecated", 5, Flag),
        m("allowEmptyValue", 6, Flag),
        m("style", 7, Text),
        m("explode", 8, Flag),
        m("allowReserved", 9, Flag),
        m("schema", 10, One(&SCHEMA)),
        m("example", 11, Any),
        m("examples", 12, One(&EXAMPLES)),
        m("content", 13, One(&MEDIA_TYPES)),
    ],
    14,
);
static REQUEST_BODIES: Node = Node::Map(&named(One(&REQUEST_BODY)));
static REQUEST_BODY: Node = Node::Choice(|value| or_reference(value, &REQUEST_BODY_ITSELF));
static REQUEST_BODY_ITSELF: Node = Node::Object(
    &[
        m("description", 1, Text),
        m("content", 2, One(&MEDIA_TYPES)),
        m("required", 3, Flag),
    ],
    4,
);
static RESPONSES: Node = Node::Map(&NamedMembers {
    number: 2,
    value: One(&RESPONSE),
    extensions: Some(3),
    apart: Some(("default", 1)),
});
static RESPONSE_COMPONENTS: Node = Node::Map(&named(One(&RESPONSE)));
static RESPONSE: Node = Node::Choice(|value| or_reference(value, &RESPONSE_ITSELF));
static RESPONSE_ITSELF: Node = Node::Object(
    &[
        m("description", 1, Text),
        m("headers", 2, One(&HEADERS)),
        m("content", 3, One(&MEDIA_TYPES)),
        m("links", 4, One(&LINKS)),
    ],
    5,
);
static MEDIA_TYPES: Node = Node::Map(&named(One(&MEDIA_TYPE)));
static MEDIA_TYPE: Node = Node::Object(
    &[
        m("schema", 1, One(&SCHEMA)),
        m("example", 2, Any),
        m("examples", 3, One(&EXAMPLES)),
        m("encoding", 4, One(&ENCODINGS)),
    ],
    5,
);
static ENCODINGS: Node = Node::Map(&named(One(&ENCODING)));
static ENCODING: Node = Node::Object(
    &[
        m("contentType", 1, Text),
        m("headers", 2, One(&HEADERS)),
        m("style", 3, Text),
        m("explode", 4, Flag),
        m("allowReserved", 5, Flag),
    ],
    6,
);
static HEADERS: Node = Node::Map(&named(One(&HEADER)));
static HEADER: Node = Node::Choice(|value| or_reference(value, &HEADER_ITSELF));
static HEADER_ITSELF: Node = Node::Object(
    &[
        m("description", 1, Text),
        m("required", 2, Flag),
        m("deprecated", 3, Flag),
        m("allowEmptyValue", 4, Flag),
        m("style", 5, Text),
        m("explode", 6, Flag),
        m("allowReserved", 7, Flag),
        m("schema", 8, One(&SCHEMA)),
        m("example", 9, Any),
        m("examples", 10, One(&EXAMPLES)),
        m("content", 11, One(&MEDIA_TYPES)),
    ],
    12,
);
static EXAMPLES: Node = Node::Map(&named(One(&EXAMPLE)));
static EXAMPLE: Node = Node::Choice(|value| or_reference(value, &EXAMPLE_ITSELF));
static EXAMPLE_ITSELF: Node = Node::Object(
    &[
        m("summary", 1, Text),
        m("description", 2, Text),
        m("value", 3, Any),
        m("externalValue", 4, Text),
    ],
    5,
);
static LINKS: Node = Node::Map(&named(One(&LINK)));
static LINK: Node = Node::Choice(|value| or_reference(value, &LINK_ITSELF));
static LINK_ITSELF: Node = Node::Object(
    &[
        m("operationRef", 1, Text),
        m("operationId", 2, Text),
        m("parameters", 3, One(&ANY_OR_EXPRESSION)),
        m("requestBody", 4, One(&ANY_OR_EXPRESSION)),
        m("description", 5, Text),
        m("server", 6, One(&SERVER)),
    ],
    7,
);
static ANY_OR_EXPRESSION: Node = Node::Choice(|_| Some((1, Any)));
static CALLBACKS: Node = Node::Map(&named(One(&CALLBACK)));
static CALLBACK: Node = Node::Choice(|value| or_reference(value, &PATHS));
static SECURITY_SCHEMES: Node = Node::Map(&named(One(&SECURITY_SCHEME)));
static SECURITY_SCHEME: Node = Node::Choice(|value| or_reference(value, &SECURITY_SCHEME_ITSELF));
static SECURITY_SCHEME_ITSELF: Node = Node::Object(
    &[
        m("type", 1, Text),
        m("description", 2, Text),
        m("name", 3, Text),
        m("in", 4, Text),
        m("scheme", 5, Text),
        m("bearerFormat", 6, Text),
        m("flows", 7, One(&OAUTH_FLOWS)),
        m("openIdConnectUrl", 8, Text),
    ],
    9,
);
static OAUTH_FLOWS: Node = Node::Object(
    &[
        m("implicit", 1, One(&OAUTH_FLOW)),
        m("password", 2, One(&OAUTH_FLOW)),
        m("clientCredentials", 3, One(&OAUTH_FLOW)),
        m("authorizationCode", 4, One(&OAUTH_FLOW)),
    ],
    5,
);
static OAUTH_FLOW: Node = Node::Object(
    &[
        m("authorizationUrl", 1, Text),
        m("tokenUrl", 2, Text),
        m("refreshUrl", 3, Text),
        m("scopes", 4, One(&TEXTS)),
    ],
    5,
);

static SCHEMAS: Node = Node::Map(&named(One(&SCHEMA)));
static SCHEMA: Node = Node::Choice(|value| or_reference(value, &SCHEMA_ITSELF));
static SCHEMA_ITSELF: Node = Node::Object(
    &[
        m("nullable", 1, Flag),
        m("discriminator", 2, One(&DISCRIMINATOR)),
        m("readOnly", 3, Flag),
        m("writeOnly", 4, Flag),
        m("xml", 5, One(&XML)),
        m("externalDocs", 6, One(&EXTERNAL_DOCS)),
        m("example", 7, Any),
        m("deprecated", 8, Flag),
        m("title", 9, Text),
        m("multipleOf", 10, Float),
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
        m("maxProperties", 21, Whole),
        m("minProperties", 22, Whole),
        m("required", 23, Texts),
        m("enum", 24, Anys),
        m("type", 25, Text),
        m("allOf", 26, Many(&SCHEMA)),
        m("oneOf", 27, Many(&SCHEMA)),
        m("anyOf", 28, Many(&SCHEMA)),
        m("not", 29, One(&SCHEMA_ITSELF)),
        m("items", 30, One(&ITEMS)),
        m("properties", 31, One(&SCHEMAS)),
        m("additionalProperties", 32, One(&ADDITIONAL_PROPERTIES)),
        m("default", 33, One(&DEFAULT)),
        m("description", 34, Text),
        m("format", 35, Text),
    ],
    36,
);
static ITEMS: Node = Node::List(1, One(&SCHEMA));
static ADDITIONAL_PROPERTIES: Node = Node::Choice(|value| match value {
    Value::Bool(_) => Some((2, ChosenFlag)),
    Value::Object(_) => Some((1, One(&SCHEMA))),
    _ => None,
});
/// The message cannot hold defaults that are objects or lists: like upstream, it is empty then.
static DEFAULT: Node = Node::Choice(|value| match value {
    Value::Int(_) | Value::Float(_) => Some((1, ChosenFloat)),
    Value::Bool(_) => Some((2, ChosenFlag)),
    Value::String(_) => Some((3, ChosenText)),
    _ => None,
});
static DISCRIMINATOR: Node = Node::Object(
    &[m("propertyName", 1, Text), m("mapping", 2, One(&TEXTS))],
    3,
);
