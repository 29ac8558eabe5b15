//! Validation of an object against its schema: values, embedded resources, unique lists, rules.
//!
//! The server checks type meta and object metadata and passes its errors in, so that rules are
//! skipped when the object is too broken for them.

mod bounds;
mod compose;
mod correlate;
mod embedded;
mod lists;
mod scalar;
pub mod scale;
mod value;

pub(crate) use correlate::{Old, same};
pub(crate) use embedded::{embedded_resources, resource};
pub(crate) use value::check_value;

use crate::schema::Schema;
use bareboat_api::kind::Validated;
use bareboat_api::{FieldError, FieldErrorKind, FieldErrors, FieldPath, Value};

/// The result of validation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// The errors; the object is rejected if there are any.
    pub errors: Vec<FieldError>,
    /// Errors that are only warnings on update: rules violated by unchanged values.
    pub warnings: Vec<String>,
}

impl From<Findings> for Validated {
    fn from(Findings { errors, warnings }: Findings) -> Validated {
        Validated { errors, warnings }
    }
}

impl Schema {
    /// Validates an object. With `old`, tolerates most errors in unchanged values. The result
    /// includes `earlier`, the caller's errors; some of them keep rules from running.
    pub fn validate(&self, new: &Value, old: Option<&Value>, earlier: Vec<FieldError>) -> Findings {
        let mut errors = FieldErrors::default();
        errors.extend(earlier);
        let root = FieldPath::root();
        let correlated = old.map(|value| Old {
            value,
            node: &self.root,
        });
        check_value(&self.root, new, correlated, &root, true, &mut errors);
        embedded_resources(&self.root, new, &root, &mut errors);
        self.check_lists(new, old, &mut errors);
        self.check_rules(new, old, errors)
    }

    /// Validates an update of the status subresource: the schema of `status`, and every rule.
    pub fn validate_status(&self, new: &Value, old: &Value, earlier: Vec<FieldError>) -> Findings {
        let mut errors = FieldErrors::default();
        errors.extend(earlier);
        if let (Some(node), Some(status)) = (self.root.property("status"), new.get("status")) {
            let correlated = old.get("status").map(|value| Old { value, node });
            let base = FieldPath::new("status");
            check_value(node, status, correlated, &base, false, &mut errors);
        }
        self.check_lists(new, Some(old), &mut errors);
        self.check_rules(new, Some(old), errors)
    }

    /// Checks for duplicates in sets and maps; they count only if the old object had none.
    fn check_lists(&self, new: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
        let start = errors.len();
        lists::unique(&self.root, new, &FieldPath::root(), errors);
        if errors.len() > start
            && let Some(old) = old
        {
            let mut before = FieldErrors::default();
            lists::unique(&self.root, old, &FieldPath::root(), &mut before);
            if !before.is_empty() {
                errors.take_after(start);
            }
        }
    }

    fn check_rules(&self, new: &Value, old: Option<&Value>, errors: FieldErrors) -> Findings {
        // Nothing was checked after the last error that fits the list.
        let unreliable = errors.is_full() || errors.kept().iter().any(keeps_rules_from_running);
        let mut findings = Findings {
            errors: errors.into_list(),
            warnings: Vec::new(),
        };
        if !self.has_rules() {
            return findings;
        }
        if unreliable {
            findings.errors.push(FieldError::invalid(
                FieldPath::root(),
                Value::Null,
                "some validation rules were not checked because the object was invalid; \
                 correct the existing errors to complete validation",
            ));
            return findings;
        }
        crate::rules::evaluate(&self.root, new, old, &mut findings);
        findings
    }
}

/// Returns whether an error invalidates the types or bounds that rules rely on.
fn keeps_rules_from_running(error: &FieldError) -> bool {
    matches!(
        error.kind,
        FieldErrorKind::NotSupported
            | FieldErrorKind::Required
            | FieldErrorKind::TooLong
            | FieldErrorKind::TooMany
            | FieldErrorKind::TypeInvalid
    )
}

#[cfg(test)]
mod tests;
