//! Label selectors: text form, object form, and matching.
//!
//! The cache applies selectors to objects and keeps the indexes over labels.

mod parse;

use crate::field::go_quote;
use crate::{FieldError, FieldErrors, FieldPath, Map, Str, Value, names};
use std::fmt;

/// The operator of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `k=v`.
    Equals,
    /// `k==v`.
    DoubleEquals,
    /// `k!=v`; also matches objects without the label.
    NotEquals,
    /// `k in (a,b)`.
    In,
    /// `k notin (a,b)`; also matches objects without the label.
    NotIn,
    /// `k`.
    Exists,
    /// `!k`.
    DoesNotExist,
    /// `k>1`, as integers.
    GreaterThan,
    /// `k<1`, as integers.
    LessThan,
}

/// One condition on the labels of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    key: Str,
    operator: Operator,
    values: Vec<Str>,
}

impl Requirement {
    /// Returns a requirement, or the error for invalid parts.
    pub fn new(key: &str, operator: Operator, values: Vec<Str>) -> Result<Self, SelectorError> {
        let mut wrong = FieldErrors::default();
        complain(
            names::qualified_name(key),
            &FieldPath::new("key"),
            key,
            &mut wrong,
        );
        let path = FieldPath::new("values");
        let shown = || {
            values
                .iter()
                .map(|value| Value::String(value.clone()))
                .collect::<Value>()
        };
        match operator {
            Operator::In | Operator::NotIn if values.is_empty() => wrong.push(FieldError::invalid(
                path.clone(),
                shown(),
                "for 'in', 'notin' operators, values set can't be empty",
            )),
            Operator::Equals | Operator::DoubleEquals | Operator::NotEquals
                if values.len() != 1 =>
            {
                wrong.push(FieldError::invalid(
                    path.clone(),
                    shown(),
                    "exact-match compatibility requires one single value",
                ));
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                wrong.push(FieldError::invalid(
                    path.clone(),
                    shown(),
                    "values set must be empty for exists and does not exist",
                ));
            }
            Operator::GreaterThan | Operator::LessThan => {
                if values.len() != 1 {
                    wrong.push(FieldError::invalid(
                        path.clone(),
                        shown(),
                        "for 'Gt', 'Lt' operators, exactly one value is required",
                    ));
                }
                for (index, value) in values.iter().enumerate() {
                    if value.parse::<i64>().is_err() {
                        wrong.push(FieldError::invalid(
                            path.index(index),
                            value.clone(),
                            "for 'Gt', 'Lt' operators, the value must be an integer",
                        ));
                    }
                }
            }
            _ => {}
        }
        for (index, value) in values.iter().enumerate() {
            let path = path.index(index).key(key);
            complain(names::label_value(value), &path, value, &mut wrong);
        }
        if !wrong.is_empty() {
            return Err(SelectorError::from_fields(wrong.kept()));
        }
        let mut values = values;
        crate::sort_by(&mut values, Ord::cmp);
        values.dedup();
        let key = Str::new(key);
        Ok(Requirement {
            key,
            operator,
            values,
        })
    }

    /// Returns the label's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the operator.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// Returns the values, sorted.
    pub fn values(&self) -> &[Str] {
        &self.values
    }

    /// Returns whether a label's value, or its absence, satisfies this requirement.
    pub fn matches(&self, value: Option<&str>) -> bool {
        // The values are sorted.
        let listed = |value: &str| {
            let place = self
                .values
                .binary_search_by(|wanted| wanted.as_str().cmp(value));
            place.is_ok()
        };
        match self.operator {
            Operator::Equals | Operator::DoubleEquals | Operator::In => value.is_some_and(listed),
            Operator::NotEquals | Operator::NotIn => !value.is_some_and(listed),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan | Operator::LessThan => {
                let found = value.and_then(|value| value.parse::<i64>().ok());
                let bound = self
                    .values
                    .first()
                    .and_then(|bound| bound.parse::<i64>().ok());
                match (found, bound) {
                    (Some(found), Some(bound)) if self.operator == Operator::LessThan => {
                        found < bound
                    }
                    (Some(found), Some(bound)) => found > bound,
                    _ => false,
                }
            }
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Requirement { key, values, .. } = self;
        let joined = values.join(",");
        match self.operator {
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::Equals => write!(f, "{key}={joined}"),
            Operator::DoubleEquals => write!(f, "{key}=={joined}"),
            Operator::NotEquals => write!(f, "{key}!={joined}"),
            Operator::In => write!(f, "{key} in ({joined})"),
            Operator::NotIn => write!(f, "{key} notin ({joined})"),
            Operator::GreaterThan => write!(f, "{key}>{joined}"),
            Operator::LessThan => write!(f, "{key}<{joined}"),
        }
    }
}

/// A parsed label selector: requirements that must all hold, or the selector that matches nothing.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Selector {
    requirements: Vec<Requirement>,
    nothing: bool,
}

impl Selector {
    /// Returns the selector that matches every object.
    pub const fn everything() -> Selector {
        Selector {
            requirements: Vec::new(),
            nothing: false,
        }
    }

    /// Returns the selector that matches no object.
    pub const fn nothing() -> Selector {
        Selector {
            requirements: Vec::new(),
            nothing: true,
        }
    }

    /// Parses the text form, such as `app=web,tier in (front,back),!legacy`.
    pub fn parse(text: &str) -> Result<Selector, SelectorError> {
        parse::selector(text).map(Selector::from_requirements)
    }

    /// Returns a selector with these requirements.
    pub fn from_requirements(mut requirements: Vec<Requirement>) -> Selector {
        crate::sort_by(&mut requirements, |a, b| a.key.cmp(&b.key));
        Selector {
            requirements,
            nothing: false,
        }
    }

    /// Reads a `LabelSelector` object; `null` matches nothing, `{}` everything.
    pub fn from_object(selector: &Value) -> Result<Selector, SelectorError> {
        if selector.is_null() {
            return Ok(Selector::nothing());
        }
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or("").to_owned();
        let mut requirements = Vec::new();
        if let Some(labels) = selector.get("matchLabels").and_then(Value::as_object) {
            for (key, value) in labels.iter() {
                let value = Str::from(text(Some(value)));
                requirements.push(Requirement::new(key, Operator::Equals, vec![value])?);
            }
        }
        let expressions = selector.get("matchExpressions").and_then(Value::as_array);
        for expression in expressions.unwrap_or_default() {
            let name = text(expression.get("operator"));
            let operator = expression_operator(&name).ok_or_else(|| {
                SelectorError(format!(
                    "{} is not a valid label selector operator",
                    go_quote(&name)
                ))
            })?;
            let values = expression.get("values").and_then(Value::as_array);
            let values = values.unwrap_or_default().iter();
            let values = values.map(|value| Str::from(text(Some(value)))).collect();
            requirements.push(Requirement::new(
                &text(expression.get("key")),
                operator,
                values,
            )?);
        }
        Ok(Selector::from_requirements(requirements))
    }

    /// Returns whether the selector matches an object with these labels.
    pub fn matches<'l>(&self, lookup: impl Fn(&str) -> Option<&'l str>) -> bool {
        !self.nothing
            && self
                .requirements
                .iter()
                .all(|requirement| requirement.matches(lookup(&requirement.key)))
    }

    /// Returns whether the selector matches an object with this `metadata.labels`.
    pub fn matches_map(&self, labels: Option<&Map>) -> bool {
        self.matches(|key| labels?.get_str(key))
    }

    /// Returns whether the selector matches every object.
    pub fn is_everything(&self) -> bool {
        !self.nothing && self.requirements.is_empty()
    }

    /// Returns whether the selector matches no object.
    pub fn is_nothing(&self) -> bool {
        self.nothing
    }

    /// Returns the requirements, sorted by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Returns the labels that must have one certain value: the terms that an index can answer.
    pub fn equality_terms(&self) -> impl Iterator<Item = (&str, &str)> {
        self.requirements.iter().filter_map(|requirement| {
            match (requirement.operator, requirement.values.as_slice()) {
                (Operator::Equals | Operator::DoubleEquals | Operator::In, [value]) => {
                    Some((requirement.key.as_str(), value.as_str()))
                }
                _ => None,
            }
        })
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{requirement}")?;
        }
        Ok(())
    }
}

/// Returns the errors of a `LabelSelector` object inside another object.
pub fn validate_selector(selector: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut wrong = FieldErrors::default();
    if let Some(labels) = selector.get("matchLabels").and_then(Value::as_object) {
        let path = path.child("matchLabels");
        for (key, value) in labels.iter() {
            let value = value.as_str().unwrap_or("");
            complain(names::qualified_name(key), &path, key, &mut wrong);
            complain(names::label_value(value), &path, value, &mut wrong);
        }
    }
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for (index, expression) in expressions.unwrap_or_default().iter().enumerate() {
        let path = path.child("matchExpressions").index(index);
        let text = |key| expression.get(key).and_then(Value::as_str).unwrap_or("");
        let values = expression.get("values").and_then(Value::as_array);
        let values = values.unwrap_or_default();
        match expression_operator(text("operator")) {
            Some(Operator::In | Operator::NotIn) if values.is_empty() => {
                wrong.push(FieldError::required(
                    path.child("values"),
                    "must be specified when `operator` is 'In' or 'NotIn'",
                ));
            }
            Some(Operator::Exists | Operator::DoesNotExist) if !values.is_empty() => {
                wrong.push(FieldError::forbidden(
                    path.child("values"),
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                ));
            }
            Some(_) => {}
            None => wrong.push(FieldError::invalid(
                path.child("operator"),
                text("operator"),
                "not a valid selector operator",
            )),
        }
        let key = text("key");
        complain(
            names::qualified_name(key),
            &path.child("key"),
            key,
            &mut wrong,
        );
        for (index, value) in values.iter().enumerate() {
            let value = value.as_str().unwrap_or("");
            let path = path.child("values").index(index);
            complain(names::label_value(value), &path, value, &mut wrong);
        }
    }
    wrong.into_list()
}

fn expression_operator(name: &str) -> Option<Operator> {
    match name {
        "In" => Some(Operator::In),
        "NotIn" => Some(Operator::NotIn),
        "Exists" => Some(Operator::Exists),
        "DoesNotExist" => Some(Operator::DoesNotExist),
        _ => None,
    }
}

fn complain(messages: Vec<String>, path: &FieldPath, value: &str, wrong: &mut FieldErrors) {
    for message in messages {
        wrong.push(FieldError::invalid(path.clone(), value, message));
    }
}

/// The error of an invalid selector, with Kubernetes' text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(pub(crate) String);

impl SelectorError {
    fn from_fields(errors: &[FieldError]) -> SelectorError {
        let texts: Vec<String> = errors.iter().map(FieldError::to_string).collect();
        match texts.as_slice() {
            [only] => SelectorError(only.clone()),
            several => SelectorError(format!("[{}]", several.join(", "))),
        }
    }
}

#[cfg(test)]
mod tests;
