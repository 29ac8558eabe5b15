//! Checks an applied configuration against its type.

use super::{MergeRule, element, items::item_key, member, rule};
use crate::fields::Element;
use bareboat_api::{
    Value,
    typing::{NodeType, Scalar, TypeNode},
};
use std::{collections::HashSet, fmt};

/// The problems of a configuration that does not fit its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeError {
    problems: Vec<(String, String)>,
}

impl TypeError {
    /// Returns the path and text of each problem.
    pub fn problems(&self) -> &[(String, String)] {
        &self.problems
    }
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = |f: &mut fmt::Formatter<'_>, (path, text): &(String, String)| match &**path {
            "" => f.write_str(text),
            path => write!(f, "{path}: {text}"),
        };
        if let [problem] = self.problems.as_slice() {
            return one(f, problem);
        }
        f.write_str("errors:")?;
        for problem in &self.problems {
            f.write_str("\n  ")?;
            one(f, problem)?;
        }
        Ok(())
    }
}

impl std::error::Error for TypeError {}

/// Checks that members are declared, containers have the right type and elements are unique.
// Upstream: structured-merge-diff, typed/validate.go.
pub fn validate(config: &Value, node: &dyn TypeNode) -> Result<(), TypeError> {
    let mut check = Check::default();
    check.value(config, node);
    if check.problems.is_empty() {
        return Ok(());
    }
    Err(TypeError {
        problems: check.problems,
    })
}

/// The maximum number of reported problems.
const MAX_PROBLEMS: usize = 100;

#[derive(Default)]
struct Check {
    path: String,
    problems: Vec<(String, String)>,
}

impl Check {
    fn problem(&mut self, text: impl Into<String>) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push((self.path.clone(), text.into()));
        }
    }

    fn below(&mut self, element: &Element, check: impl FnOnce(&mut Check)) {
        let length = self.path.len();
        self.path.push_str(&element.to_string());
        check(self);
        self.path.truncate(length);
    }

    fn value(&mut self, value: &Value, node: &dyn TypeNode) {
        match (node.node_type(), value) {
            (_, Value::Null) | (NodeType::Untyped, _) => {}
            (NodeType::Scalar, value) => self.scalar(value, node.scalar()),
            (NodeType::Struct | NodeType::Map, Value::Object(members)) => {
                for (name, value) in members.iter() {
                    let member = member(node, name);
                    let open = node.node_type() == NodeType::Map || node.preserves_unknown();
                    let declared = member.named || open;
                    self.member(name, |check| match declared {
                        true => check.value(value, member.node),
                        false => check.problem("field not declared in schema"),
                    });
                    if !declared {
                        return;
                    }
                }
            }
            (NodeType::List(_), Value::Array(list)) => self.list(list, node),
            (NodeType::Struct | NodeType::Map, other) => {
                self.problem(format!("expected map, got {other}"))
            }
            (NodeType::List(_), other) => self.problem(format!("expected list, got {other}")),
        }
    }

    fn scalar(&mut self, value: &Value, wanted: Scalar) {
        let wanted = match (wanted, value) {
            (Scalar::Open, _)
            | (Scalar::String, Value::String(_))
            | (Scalar::Number, Value::Int(_) | Value::Float(_))
            | (Scalar::Boolean, Value::Bool(_)) => return,
            (Scalar::Any, Value::Object(_) | Value::Array(_)) => "any scalar",
            (Scalar::Any, _) => return,
            (Scalar::String, _) => "string",
            (Scalar::Number, value) => {
                // Upstream names its own type for such a value.
                let found = match value {
                    Value::Object(_) => "map[string]interface {}",
                    Value::Array(_) => "[]interface {}",
                    Value::Bool(_) => "bool",
                    _ => "string",
                };
                return self.problem(format!("expected numeric (int or float), got {found}"));
            }
            (Scalar::Boolean, _) => "boolean",
        };
        self.problem(format!("expected {wanted}, got {value}"));
    }

    fn member(&mut self, name: &str, check: impl FnOnce(&mut Check)) {
        let length = self.path.len();
        self.path.push('.');
        self.path.push_str(name);
        check(self);
        self.path.truncate(length);
    }

    fn list(&mut self, list: &[Value], node: &dyn TypeNode) {
        let rule = match rule(node, None) {
            Some(rule @ (MergeRule::Set | MergeRule::Keyed)) => rule,
            _ => {
                for (index, item) in list.iter().enumerate() {
                    let index = Element::Index(index as i64);
                    self.below(&index, |check| check.value(item, element(node)));
                }
                return;
            }
        };
        let mut seen = HashSet::with_capacity(list.len());
        for (index, item) in list.iter().enumerate() {
            let key = match item_key(node, rule, item) {
                Ok(key) => key,
                Err(text) => return self.problem(format!("element {index}: {text}")),
            };
            let place = Element::parse(&key).ok().flatten();
            let place = place.unwrap_or(Element::Index(index as i64));
            if !seen.insert(key) {
                self.problem(format!("duplicate entries for key {place}"));
            }
            self.below(&place, |check| check.value(item, element(node)));
        }
    }
}
