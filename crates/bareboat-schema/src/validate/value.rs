//! Validation of values, with kube-openapi's error texts.
//!
//! Upstream: kube-openapi pkg/validation/validate; apiextensions pkg/apiserver/validation.

use super::correlate::{Before, Old, same};
use crate::number;
use crate::schema::{Additional, Checks, Flags, Kind, Node};
use bareboat_api::field::go_quote;
use bareboat_api::{FieldError, FieldErrorKind, FieldErrors, FieldPath, Value, interrupt};
use std::collections::HashSet;
use std::fmt::Write as _;

/// Checks a value; errors have the path `base`, while their texts name the path below it.
///
/// `resource` means that the value is a whole object, whose type meta never counts as unchanged.
pub(crate) fn check_value(
    node: &Node,
    value: &Value,
    old: Option<Old<'_>>,
    base: &FieldPath,
    resource: bool,
    errors: &mut FieldErrors,
) {
    let earlier = std::mem::take(errors);
    let mut checker = Checker {
        base,
        resource,
        composed: false,
        errors: FieldErrors::default(),
    };
    let here = ValuePath {
        parent: None,
        step: Step::Root,
    };
    checker.visit(node, value, &Before::known(old), &here);
    let composed = checker.composed;
    let mut found = checker.errors;
    if composed {
        deduplicate(&mut found);
    }
    *errors = earlier;
    errors.append(&mut found);
}

/// Removes duplicate errors, which compositions cause.
fn deduplicate(errors: &mut FieldErrors) {
    let mut seen = HashSet::with_capacity(errors.kept().len());
    errors.retain(|error| seen.insert(error.to_string()));
}

/// Collects the errors of a value.
pub(super) struct Checker<'a> {
    pub(super) base: &'a FieldPath,
    resource: bool,
    /// Whether any error came from a composition, the only source of duplicates.
    composed: bool,
    pub(super) errors: FieldErrors,
}

/// A place in the value, printed only when something is wrong there.
pub(super) struct ValuePath<'a> {
    parent: Option<&'a ValuePath<'a>>,
    step: Step<'a>,
}

enum Step<'a> {
    Root,
    Member(&'a str),
    Element(usize),
}

impl ValuePath<'_> {
    fn is_root(&self) -> bool {
        matches!(self.step, Step::Root)
    }

    pub(super) fn text(&self) -> String {
        let mut text = match self.parent {
            Some(parent) => parent.text(),
            None => String::new(),
        };
        match self.step {
            Step::Root => {}
            Step::Member(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Step::Element(index) => {
                let _ = write!(text, "[{index}]");
            }
        }
        text
    }
}

impl Checker<'_> {
    /// Checks a value at its own place; unchanged values cause no errors.
    ///
    /// Returns the number of passed checks, which decides between failed alternatives.
    fn visit(
        &mut self,
        node: &Node,
        value: &Value,
        old: &Before<'_, '_>,
        place: &ValuePath<'_>,
    ) -> usize {
        // A list of errors that is full stays an answer, whatever else is wrong.
        if interrupt::requested() || self.errors.is_full() {
            return 0;
        }
        let start = self.errors.len();
        let passed = self.check(node, value, old, place);
        if self.errors.len() > start
            && let Some(old) = old.find()
            && same(value, old)
        {
            self.forget(start);
        }
        passed
    }

    pub(super) fn check(
        &mut self,
        node: &Node,
        value: &Value,
        old: &Before<'_, '_>,
        place: &ValuePath<'_>,
    ) -> usize {
        let checks = node.checks.as_deref();
        if value.is_null() {
            let mut passed = 1;
            if !node.type_text().is_empty() && !node.has(Flags::NULLABLE) {
                self.wrong_type(place, node.type_text(), "null");
                passed = 0;
            }
            if let Some(checks) = checks {
                self.choices(checks, value, place);
            }
            return passed;
        }
        let mut passed = 1;
        if !node.type_text().is_empty() || checks.is_some_and(|checks| checks.format.is_some()) {
            passed += 1 + usize::from(self.check_type(node, value, place));
        }
        passed += 2;
        if let Some(checks) = checks {
            passed += self.compositions(checks, value, old, place);
        }
        match value {
            Value::String(text) => {
                passed += 1;
                if let Some(checks) = checks {
                    passed += self.check_text(checks, text, place);
                }
            }
            Value::Int(_) | Value::Float(_) => {
                passed += 2;
                self.check_number(node, value, place);
            }
            Value::Array(list) => {
                passed += 2;
                if let Some(items) = &node.items {
                    let mut elements = old.find().map(Old::elements);
                    for (index, item) in list.iter().enumerate() {
                        let here = ValuePath {
                            parent: Some(place),
                            step: Step::Element(index),
                        };
                        let before = elements.as_mut().and_then(|old| old.find(item));
                        passed += self.visit(items, item, &Before::known(before), &here);
                    }
                }
                if let Some(checks) = checks {
                    self.check_items(checks, list.len(), place);
                }
            }
            _ => {}
        }
        passed += 1;
        if let Some(checks) = checks {
            self.choices(checks, value, place);
        }
        if let Value::Object(map) = value {
            passed += 1 + self.check_members(node, map, old, place);
        }
        passed
    }

    fn check_type(&mut self, node: &Node, value: &Value, place: &ValuePath<'_>) -> bool {
        let integer_wanted = node.kind == Kind::Integer || node.has(Flags::INT_OR_STRING);
        let format = node
            .checks
            .as_deref()
            .and_then(|checks| checks.format.as_ref());
        let fits = match value {
            Value::String(_) if node.has(Flags::INT_OR_STRING) => true,
            // Without a type, a format still requires a string; upstream lets lists pass.
            Value::String(_) | Value::Array(_) if node.type_text().is_empty() => true,
            _ if node.type_text().is_empty() => format.is_none(),
            Value::Int(_) => integer_wanted || node.kind == Kind::Number,
            Value::Float(number) => {
                node.kind == Kind::Number || integer_wanted && number::is_integer(*number)
            }
            other => !node.has(Flags::INT_OR_STRING) && node.kind.name() == other.type_name(),
        };
        if fits {
            return true;
        }
        match (format, value) {
            // The error of a format takes precedence over that of the type, except for strings and
            // lists.
            (Some((_, name)), Value::Int(_)) => self.wrong_type(place, name, "int64"),
            (Some((_, name)), Value::Float(_)) => self.wrong_type(place, name, "float64"),
            (Some((_, name)), Value::Bool(_) | Value::Object(_)) => {
                self.wrong_type(place, name, "");
            }
            _ => self.wrong_type(place, node.type_text(), value.type_name()),
        }
        false
    }

    fn check_items(&mut self, checks: &Checks, count: usize, place: &ValuePath<'_>) {
        let count_i64 = i64::try_from(count).unwrap_or(i64::MAX);
        if let Some(limit) = checks.min_items
            && count_i64 < limit
        {
            let detail = format!("should have at least {limit} items");
            self.invalid(place, Value::Int(count_i64), &detail);
        }
        if let Some(limit) = checks.max_items
            && count_i64 > limit
        {
            let path = self.path(&place.text());
            let limit = usize::try_from(limit).unwrap_or(0);
            self.tell(FieldError::too_many(path, count, limit));
        }
    }

    fn check_members(
        &mut self,
        node: &Node,
        map: &bareboat_api::Map,
        old: &Before<'_, '_>,
        place: &ValuePath<'_>,
    ) -> usize {
        let mut passed = 0;
        if let Some(checks) = node.checks.as_deref() {
            self.check_member_count(checks, map.len(), place);
        }
        let mut declared = node.in_order();
        for (name, member) in map.iter() {
            let schema = match (declared.property(name), &node.additional) {
                (Some(schema), _) => schema,
                (None, Additional::Node(schema)) => schema,
                (None, Additional::Allowed(false)) => {
                    let text = place.text();
                    let detail = format!("{text}.{name} in body is a forbidden property");
                    self.push(&text, FieldErrorKind::Invalid, Value::string(name), detail);
                    continue;
                }
                _ => continue,
            };
            let type_meta =
                self.resource && place.is_root() && matches!(name, "apiVersion" | "kind");
            let before = match type_meta {
                true => Before::known(None),
                false => old.member(name),
            };
            let here = ValuePath {
                parent: Some(place),
                step: Step::Member(name),
            };
            passed += self.visit(schema, member, &before, &here);
        }
        if let Some(checks) = node.checks.as_deref() {
            for name in &checks.required {
                if !map.contains_key(name) {
                    let here = ValuePath {
                        parent: Some(place),
                        step: Step::Member(name),
                    };
                    let path = self.path(&here.text());
                    self.tell(FieldError::required(path, ""));
                }
            }
        }
        passed
    }

    fn check_member_count(&mut self, checks: &Checks, count: usize, place: &ValuePath<'_>) {
        let count_i64 = i64::try_from(count).unwrap_or(i64::MAX);
        if let Some(limit) = checks.min_properties
            && count_i64 < limit
        {
            let detail = format!("should have at least {limit} properties");
            self.invalid(place, Value::Int(count_i64), &detail);
        }
        if let Some(limit) = checks.max_properties
            && count_i64 > limit
        {
            let path = self.path(&place.text());
            let limit = usize::try_from(limit).unwrap_or(0);
            self.tell(FieldError::too_many(path, count, limit));
        }
    }

    fn choices(&mut self, checks: &Checks, value: &Value, place: &ValuePath<'_>) {
        if checks.choices.is_empty() {
            return;
        }
        if !value.is_null() && checks.offers(value) {
            return;
        }
        let supported = checks.choices.iter().map(|choice| match choice {
            Value::String(text) => text.to_string(),
            other => other.to_string(),
        });
        let path = self.path(&place.text());
        self.tell(FieldError::not_supported(path, value.clone(), supported));
    }

    fn wrong_type(&mut self, place: &ValuePath<'_>, wanted: &str, found: &str) {
        let text = place.text();
        let detail = format!("{text} in body must be of type {wanted}: \"{found}\"");
        self.push(
            &text,
            FieldErrorKind::TypeInvalid,
            Value::string(found),
            detail,
        );
    }

    pub(super) fn invalid(&mut self, place: &ValuePath<'_>, value: Value, rest: &str) {
        let text = place.text();
        let detail = format!("{text} in body {rest}");
        self.push(&text, FieldErrorKind::Invalid, value, detail);
    }

    /// Failed compositions stand at the object, and name their place in words.
    pub(super) fn composed(&mut self, place: &ValuePath<'_>, rest: &str) {
        self.composed = true;
        let detail = format!("{} {rest}", go_quote(&place.text()));
        self.tell(FieldError::invalid(self.base.clone(), "", detail));
    }

    /// Adds an error.
    pub(super) fn tell(&mut self, error: FieldError) {
        self.errors.push(error);
    }

    /// Removes and returns the errors from an index on.
    pub(super) fn take_back(&mut self, start: usize) -> Vec<FieldError> {
        self.errors.take_after(start)
    }

    pub(super) fn forget(&mut self, start: usize) {
        drop(self.take_back(start));
    }

    pub(super) fn push(&mut self, text: &str, kind: FieldErrorKind, value: Value, detail: String) {
        let error = FieldError {
            kind,
            path: self.path(text),
            value: Some(value),
            detail,
        };
        self.tell(error);
    }

    pub(super) fn path(&self, text: &str) -> FieldPath {
        if text.is_empty() {
            self.base.clone()
        } else {
            self.base.child(text)
        }
    }
}
