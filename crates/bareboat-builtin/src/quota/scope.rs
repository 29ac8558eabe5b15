//! Scope selectors of quotas.

use crate::reach::Reach;
use bareboat_api::{Str, Value};

/// The property that a term tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Terminating,
    NotTerminating,
    BestEffort,
    NotBestEffort,
    PriorityClass,
    CrossNamespacePodAffinity,
    VolumeAttributesClass,
    /// An unknown scope, which matches nothing.
    Unknown,
}

/// One condition on the objects a quota counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    pub(super) scope: Scope,
    operator: Operator,
    values: Vec<Str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Exists,
    DoesNotExist,
    In,
    NotIn,
}

impl Term {
    /// Parses the terms of a quota.
    pub(super) fn read(quota: &Value) -> Vec<Term> {
        let plain = quota.list(&["spec", "scopes"]).iter();
        let plain = plain.filter_map(Value::as_str).map(|name| Term {
            scope: scope(name),
            operator: Operator::Exists,
            values: Vec::new(),
        });
        let selected = quota.list(&["spec", "scopeSelector", "matchExpressions"]);
        let selected = selected.iter().map(|term| Term {
            scope: scope(term.text(&["scopeName"])),
            operator: match term.text(&["operator"]) {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "DoesNotExist" => Operator::DoesNotExist,
                _ => Operator::Exists,
            },
            values: term
                .list(&["values"])
                .iter()
                .filter_map(Value::as_str)
                .map(Str::new)
                .collect(),
        });
        plain.chain(selected).collect()
    }

    /// Returns whether the term matches a value.
    pub(super) fn matches(&self, value: Option<&str>) -> bool {
        let listed = || value.is_some_and(|value| self.values.iter().any(|known| known == value));
        match self.operator {
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::In => listed(),
            Operator::NotIn => !listed(),
        }
    }
}

fn scope(name: &str) -> Scope {
    match name {
        "Terminating" => Scope::Terminating,
        "NotTerminating" => Scope::NotTerminating,
        "BestEffort" => Scope::BestEffort,
        "NotBestEffort" => Scope::NotBestEffort,
        "PriorityClass" => Scope::PriorityClass,
        "CrossNamespacePodAffinity" => Scope::CrossNamespacePodAffinity,
        "VolumeAttributesClass" => Scope::VolumeAttributesClass,
        _ => Scope::Unknown,
    }
}
