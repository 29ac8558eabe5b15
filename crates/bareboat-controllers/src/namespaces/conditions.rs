//! The conditions of a namespace under deletion.

use crate::conditions::Condition;
use bareboat_api::kind::Kind;
use bareboat_storage::Entry;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is left in a namespace under deletion, for its conditions.
#[derive(Default)]
pub(super) struct Findings {
    /// How many objects are left, by resource.
    pub(super) remaining: BTreeMap<String, usize>,
    /// How many objects wait for a finalizer, by finalizer.
    pub(super) finalizers: BTreeMap<String, usize>,
    /// Why objects could not be deleted.
    pub(super) failures: Vec<String>,
    /// How many objects are not being deleted yet.
    pub(super) untouched: usize,
    /// How many objects other servers still have.
    pub(super) remote_left: usize,
    /// Versions of other servers that are not available, `GROUP/VERSION`.
    pub(super) undiscovered: Vec<String>,
}

impl Findings {
    /// Counts the objects of a kind that are left.
    pub(super) fn count(&mut self, kind: &Kind, entries: &[Arc<Entry>]) {
        let name = format!("{}.{}", kind.names.plural, kind.group);
        *self.remaining.entry(name).or_default() += entries.len();
        for entry in entries {
            let facets = entry.facets();
            for finalizer in &facets.finalizers {
                *self.finalizers.entry(finalizer.to_string()).or_default() += 1;
            }
            self.untouched += usize::from(facets.deletion_timestamp.is_none());
        }
    }

    /// Whether nothing is left and nothing failed.
    pub(super) fn is_empty(&self) -> bool {
        self.remaining.is_empty()
            && self.failures.is_empty()
            && self.untouched == 0
            && self.undiscovered.is_empty()
    }
}

/// The five conditions, with the texts of Kubernetes.
pub(super) fn conditions(findings: &Findings) -> [Condition; 5] {
    let listed = |counts: &BTreeMap<String, usize>, between: &str| {
        let texts: Vec<String> = counts
            .iter()
            .map(|(name, count)| format!("{name} {between} {count} resource instances"))
            .collect();
        texts.join(", ")
    };
    [
        discovery(&findings.undiscovered),
        Condition::new(
            "NamespaceDeletionGroupVersionParsingFailure",
            false,
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        match &findings.failures[..] {
            [] => Condition::new(
                "NamespaceDeletionContentFailure",
                false,
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            failures => {
                let mut sorted = failures.to_vec();
                sorted.sort();
                let text = format!(
                    "Failed to delete all resource types, {} remaining: {}",
                    sorted.len(),
                    sorted.join(", ")
                );
                Condition::new(
                    "NamespaceDeletionContentFailure",
                    true,
                    "ContentDeletionFailed",
                    text,
                )
            }
        },
        if findings.remaining.is_empty() {
            let text = "All content successfully removed";
            Condition::new("NamespaceContentRemaining", false, "ContentRemoved", text)
        } else {
            let text = listed(&findings.remaining, "has");
            let text = format!("Some resources are remaining: {text}");
            Condition::new(
                "NamespaceContentRemaining",
                true,
                "SomeResourcesRemain",
                text,
            )
        },
        if findings.finalizers.is_empty() {
            let text = "All content-preserving finalizers finished";
            Condition::new(
                "NamespaceFinalizersRemaining",
                false,
                "ContentHasNoFinalizers",
                text,
            )
        } else {
            let text = listed(&findings.finalizers, "in");
            let text = format!("Some content in the namespace has finalizers remaining: {text}");
            Condition::new(
                "NamespaceFinalizersRemaining",
                true,
                "SomeFinalizersRemain",
                text,
            )
        },
    ]
}

/// Whether all servers were asked which resources they have.
fn discovery(undiscovered: &[String]) -> Condition {
    const KIND: &str = "NamespaceDeletionDiscoveryFailure";
    if undiscovered.is_empty() {
        let text = "All resources successfully discovered";
        return Condition::new(KIND, false, "ResourcesDiscovered", text);
    }
    let mut names = undiscovered.to_vec();
    names.sort();
    let each: Vec<String> = names
        .iter()
        .map(|name| format!("{name}: stale GroupVersion discovery: {name}"))
        .collect();
    let text = format!(
        "Discovery failed for some groups, {} failing: unable to retrieve the complete list of server APIs: {}",
        names.len(),
        each.join(", ")
    );
    Condition::new(KIND, true, "DiscoveryFailed", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_count_remaining_objects_in_the_words_of_kubernetes() {
        let findings = Findings {
            remaining: [("pods.".to_owned(), 2), ("x.g.io".to_owned(), 1)].into(),
            finalizers: [("g.io/hold".to_owned(), 3)].into(),
            ..Findings::default()
        };
        let texts = conditions(&findings).map(|condition| condition.message);
        assert_eq!(
            texts[3],
            "Some resources are remaining: pods. has 2 resource instances, x.g.io has 1 resource instances"
        );
        assert_eq!(
            texts[4],
            "Some content in the namespace has finalizers remaining: g.io/hold in 3 resource instances"
        );
    }
}
