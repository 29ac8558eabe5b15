//! Warnings about objects of custom kinds.

use bareboat_api::field::go_quote;
use bareboat_api::kind::{Strategy, WriteContext};
use bareboat_api::{Object, names};
use std::collections::BTreeSet;

/// Finalizers that need no domain.
const STANDARD: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];

/// The strategy of custom kinds.
pub(super) struct ObjectStrategy;

impl Strategy for ObjectStrategy {
    /// Warns about new finalizers without a domain.
    // Upstream: apiextensions-apiserver, pkg/registry/customresource, generateWarningsFromObj.
    fn warnings(&self, new: &Object, old: Option<&Object>, ctx: &WriteContext<'_>) -> Vec<String> {
        if ctx.subresource.is_some() {
            return Vec::new();
        }
        let mut added: BTreeSet<&str> = new.finalizers().collect();
        if added.is_empty() {
            return Vec::new();
        }
        for known in old.into_iter().flat_map(Object::finalizers) {
            added.remove(known);
        }
        added.into_iter().flat_map(about).collect()
    }
}

fn about(finalizer: &str) -> Vec<String> {
    let mut found = names::qualified_name(finalizer);
    if !finalizer.contains('/') && !STANDARD.contains(&finalizer) {
        let path = match finalizer.contains('.') {
            true => " including a path (/)",
            false => "",
        };
        found.push(format!(
            "prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
        ));
    }
    let tell = |text: String| format!("metadata.finalizers: {}: {text}", go_quote(finalizer));
    found.into_iter().map(tell).collect()
}
