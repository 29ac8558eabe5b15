//! Conflicts: fields that a configuration would change although another manager owns them.

use crate::fields::FieldSet;
use crate::managed::{Entry, Operation};
use bareboat_api::field::go_quote;
use std::fmt;

/// The fields of one manager that a configuration would change.
#[derive(Debug, Clone, PartialEq)]
pub struct Conflict {
    /// The manager as in messages: `"name" with subresource "status" using apps/v1`.
    pub manager: String,
    /// The fields in conflict that this manager owns.
    pub fields: FieldSet,
}

impl Conflict {
    pub(super) fn new(entry: &Entry, fields: FieldSet) -> Conflict {
        Conflict {
            manager: describe(entry),
            fields,
        }
    }
}

/// Returns the manager of an entry as in messages.
fn describe(entry: &Entry) -> String {
    let mut text = go_quote(&entry.manager);
    if !entry.subresource.is_empty() {
        text.push_str(" with subresource ");
        text.push_str(&go_quote(&entry.subresource));
    }
    if entry.operation == Operation::Update {
        text.push_str(" using ");
        text.push_str(&entry.api_version);
    }
    text
}

/// All conflicts of an apply, sorted by manager.
#[derive(Debug, Clone, PartialEq)]
pub struct Conflicts(Vec<Conflict>);

impl Conflicts {
    pub(super) fn new(conflicts: Vec<Conflict>) -> Conflicts {
        Conflicts(conflicts)
    }

    /// Returns the `message` and `field` of each cause; its `reason` is `FieldManagerConflict`.
    pub fn causes(&self) -> Vec<(String, String)> {
        let causes = self.0.iter().flat_map(|conflict| {
            let message = format!("conflict with {}", conflict.manager);
            conflict
                .fields
                .paths()
                .into_iter()
                .map(move |path| (message.clone(), path))
        });
        causes.collect()
    }

    /// Returns the conflicts on fields outside of the set.
    pub(super) fn outside(&self, allowed: &FieldSet) -> Conflicts {
        let mut conflicts = self.0.clone();
        conflicts.retain_mut(|conflict| {
            conflict.fields.subtract(allowed);
            !conflict.fields.is_empty()
        });
        Conflicts(conflicts)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count: usize = self.0.iter().map(|conflict| conflict.fields.len()).sum();
        if let ([conflict], 1) = (self.0.as_slice(), count) {
            let path = conflict.fields.paths().join("");
            let manager = &conflict.manager;
            return write!(
                f,
                "Apply failed with 1 conflict: conflict with {manager}: {path}"
            );
        }
        write!(f, "Apply failed with {count} conflicts: ")?;
        for (index, conflict) in self.0.iter().enumerate() {
            let line = if index > 0 { "\n" } else { "" };
            write!(f, "{line}conflicts with {}:", conflict.manager)?;
            for path in conflict.fields.paths() {
                write!(f, "\n- {path}")?;
            }
        }
        Ok(())
    }
}
