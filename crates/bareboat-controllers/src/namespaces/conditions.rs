//! What a namespace under deletion says of its content.

use crate::conditions::Condition;
use bareboat_api::kind::Kind;
use bareboat_storage::Entry;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is left in a namespace.
#[derive(Default)]
pub(super) struct Findings {
    /// How many objects of which resource.
    pub(super) remaining: BTreeMap<String, usize>,
    /// How many objects wait for which finalizer.
    pub(super) finalizers: BTreeMap<String, usize>,
    /// Why something could not be deleted.
    pub(super) failures: Vec<String>,
    /// How many objects are not even being deleted: they came late, or nobody looked at them yet.
    pub(super) untouched: usize,
}

impl Findings {
    /// Counts what is left of a kind.
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

    /// Whether nothing is left and nothing went wrong.
    pub(super) fn is_empty(&self) -> bool {
        self.remaining.is_empty() && self.failures.is_empty() && self.untouched == 0
    }
}

/// The five conditions, in the words clients know.
pub(super) fn conditions(findings: &Findings) -> [Condition; 5] {
    let listed = |counts: &BTreeMap<String, usize>, between: &str| {
        let texts: Vec<String> = counts
            .iter()
            .map(|(name, count)| format!("{name} {between} {count} resource instances"))
            .collect();
        texts.join(", ")
    };
    [
        Condition::new(
            "NamespaceDeletionDiscoveryFailure",
            false,
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_count_what_remains_in_the_words_of_upstream() {
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
