//! What stands for rules and patterns in a build without the feature `expressions`.
//!
//! A schema that has one of them is refused when it is compiled ([`unavailable`]), so nothing else here is reached.

use crate::schema::Node;
use crate::validate::Findings;
use bareboat_api::{Map, Value};

/// Returns what a schema has that this build cannot compile.
pub(crate) fn unavailable(schema: &Map) -> Option<&'static str> {
    let has_text = |key: &str| schema.get_str(key).is_some_and(|text| !text.is_empty());
    let rules = schema
        .get("x-kubernetes-validations")
        .and_then(Value::as_array);
    if rules.is_some_and(|rules| !rules.is_empty()) {
        Some("a CEL rule (`x-kubernetes-validations`)")
    } else if has_text("pattern") {
        Some("a `pattern`")
    } else {
        None
    }
}

/// The rules of one node. There are none.
#[derive(Debug)]
pub(crate) enum Rules {}

impl Rules {
    pub(crate) fn parse(_: Option<&Value>) -> Option<Rules> {
        None
    }
}

/// Runs no rules.
pub(crate) fn evaluate(_: &Node, _: &Value, _: Option<&Value>, _: &mut Findings) {}

/// The text of a pattern that cannot be matched.
#[derive(Debug)]
pub(crate) struct Pattern(Box<str>);

impl Pattern {
    pub(crate) fn new(source: &str) -> Pattern {
        Pattern(source.into())
    }

    pub(crate) fn source(&self) -> &str {
        &self.0
    }

    pub(crate) fn matches(&self, _: &str) -> Result<bool, &'static str> {
        Err("patterns need the feature `expressions`")
    }
}
