//! The messages that `openapi.v2` and `openapi.v3` share with the same numbers.

use super::encoding::MemberEncoding::{Flag, One, Text, Texts};
use super::encoding::{MemberEncoding, NamedMembers, Node, member as m};

pub(super) static CONTACT: Node = Node::Object(
    &[m("name", 1, Text), m("url", 2, Text), m("email", 3, Text)],
    4,
);
pub(super) static LICENSE: Node = Node::Object(&[m("name", 1, Text), m("url", 2, Text)], 3);
pub(super) static EXTERNAL_DOCS: Node =
    Node::Object(&[m("description", 1, Text), m("url", 2, Text)], 3);
pub(super) static TAG: Node = Node::Object(
    &[
        m("name", 1, Text),
        m("description", 2, Text),
        m("externalDocs", 3, One(&EXTERNAL_DOCS)),
    ],
    4,
);

pub(super) static XML: Node = Node::Object(
    &[
        m("name", 1, Text),
        m("namespace", 2, Text),
        m("prefix", 3, Text),
        m("attribute", 4, Flag),
        m("wrapped", 5, Flag),
    ],
    6,
);
pub(super) static SECURITY_REQUIREMENT: Node = Node::Map(&named(One(&STRINGS)));
static STRINGS: Node = Node::List(1, Texts);
pub(super) static TEXTS: Node = Node::TextMap(1);

/// A map whose members are all of one shape.
pub(super) const fn named(value: MemberEncoding) -> NamedMembers {
    NamedMembers {
        number: 1,
        value,
        extensions: None,
        apart: None,
    }
}
