//! `x-kubernetes-validations`: CEL rules that a value must satisfy.
//!
//! Rules are stored as text and compiled for the first object; `bareboat-cel` implements the
//! language.

mod compile;
mod run;
mod view;

pub(crate) use compile::{Wanted, check_expression, declare};
pub(crate) use run::{check_default, evaluate};

use bareboat_api::{Map, Str, Value};
pub(crate) use bareboat_cel::GoPattern as Pattern;
use compile::Compiled;
use std::fmt;
use std::sync::OnceLock;

/// The cost limit of all rules of one object together.
pub(crate) const OBJECT_BUDGET: u64 = 10_000_000;

/// Returns what a schema has that this build cannot compile: nothing.
pub(crate) fn unavailable(_: &Map) -> Option<&'static str> {
    None
}

/// The rules of one node.
pub(crate) struct Rules {
    pub(crate) list: Box<[Rule]>,
    /// Compiled for a nested value, and for the root of a resource, which has more fields.
    compiled: [OnceLock<Compiled>; 2],
}

/// One rule of the definition.
#[derive(Debug, Default)]
pub(crate) struct Rule {
    pub(crate) rule: Str,
    pub(crate) message: Str,
    pub(crate) message_expression: Str,
    pub(crate) reason: Str,
    pub(crate) field_path: Str,
    pub(crate) optional_old_self: Option<bool>,
}

impl Rules {
    /// Parses the rules of a node, if it has any.
    pub(crate) fn parse(validations: Option<&Value>) -> Option<Rules> {
        let list = validations?.as_array()?;
        if list.is_empty() {
            return None;
        }
        Some(Rules {
            list: list.iter().map(Rule::parse).collect(),
            compiled: Default::default(),
        })
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.list.fmt(f)
    }
}

impl Rule {
    fn parse(value: &Value) -> Rule {
        let text = |key: &str| -> Str {
            let found = value.get(key).and_then(Value::as_str);
            found.map(Str::new).unwrap_or_default()
        };
        Rule {
            rule: text("rule"),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: text("reason"),
            field_path: text("fieldPath"),
            optional_old_self: value.get("optionalOldSelf").and_then(Value::as_bool),
        }
    }

    /// Returns whether the old value is optional, so that the rule also runs without one.
    pub(crate) fn takes_no_old_self(&self) -> bool {
        self.optional_old_self == Some(true)
    }

    /// Returns the text that names the rule in errors.
    fn words(&self) -> &str {
        if self.message.is_empty() {
            self.rule.trim()
        } else {
            self.message.trim()
        }
    }
}

#[cfg(test)]
mod tests;
