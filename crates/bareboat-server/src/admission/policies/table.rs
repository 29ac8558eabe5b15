//! Policies and their bindings, kept up to date inside each commit. Expressions are compiled when they are first used.

use crate::admission::matching::{Criteria, Index};
use arc_swap::ArcSwap;
use bareboat_api::{Object, Value};
use bareboat_policy::{Binding, Policy, PolicyKind};
use bareboat_storage::{Entry, Event, EventKind, Observer, Snapshot};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The policies with at least one binding, by name.
#[derive(Default)]
pub(super) struct Table {
    pub(super) bound: Vec<Arc<Bound>>,
    pub(super) index: Index,
}

/// A policy with its bindings.
pub(super) struct Bound {
    pub(super) definition: Arc<Definition>,
    pub(super) bindings: Vec<Arc<Attachment>>,
}

/// A policy and the requests it applies to.
pub(super) struct Definition {
    pub(super) policy: Policy,
    /// None if the policy has no constraints, which validation refuses.
    pub(super) criteria: Option<Criteria>,
}

/// A binding and the requests it applies to.
pub(super) struct Attachment {
    pub(super) binding: Binding,
    /// None for all requests that the policy applies to.
    pub(super) criteria: Option<Criteria>,
}

/// All policies and bindings of a kind.
pub(super) struct Known {
    kind: PolicyKind,
    objects: Mutex<Objects>,
    table: Arc<ArcSwap<Table>>,
}

#[derive(Default)]
struct Objects {
    policies: BTreeMap<String, Arc<Definition>>,
    bindings: BTreeMap<String, Arc<Attachment>>,
}

impl Known {
    pub(super) fn new(kind: PolicyKind, table: Arc<ArcSwap<Table>>) -> Known {
        Known {
            kind,
            objects: Mutex::default(),
            table,
        }
    }

    fn publish(&self, objects: &Objects) {
        let mut bindings: BTreeMap<&str, Vec<Arc<Attachment>>> = BTreeMap::new();
        for attachment in objects.bindings.values() {
            let policy = attachment.binding.policy.as_str();
            bindings.entry(policy).or_default().push(attachment.clone());
        }
        let bound: Vec<Arc<Bound>> = objects
            .policies
            .iter()
            .filter_map(|(name, definition)| {
                Some(Arc::new(Bound {
                    definition: definition.clone(),
                    bindings: bindings.remove(name.as_str())?,
                }))
            })
            .collect();
        let rules = |bound: &'_ Arc<Bound>| bound.definition.criteria.is_some();
        let index = Index::new(bound.iter().map(|bound| match rules(bound) {
            true => bound.definition.criteria.as_ref().and_then(Criteria::rules),
            false => Some(&[][..]),
        }));
        self.table.store(Arc::new(Table { bound, index }));
    }
}

/// Which of the two objects an observer reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Policies,
    Bindings,
}

/// Reads policies or bindings as they are written.
pub(super) struct Source {
    known: Arc<Known>,
    part: Part,
}

impl Source {
    pub(super) fn new(known: Arc<Known>, part: Part) -> Source {
        Source { known, part }
    }

    fn insert(&self, objects: &mut Objects, entry: &Entry) {
        let key = entry.key().to_owned();
        let Some(object) = read(entry) else {
            self.remove(objects, &key);
            return;
        };
        let criteria = |member: &str| {
            let found = object.at(&["spec", member]);
            let found = found.filter(|value| !value.is_null());
            found.map(Criteria::of_match_resources)
        };
        match self.part {
            Part::Policies => {
                let definition = Definition {
                    policy: Policy::new(&object, self.known.kind),
                    criteria: criteria("matchConstraints"),
                };
                objects.policies.insert(key, Arc::new(definition));
            }
            Part::Bindings => {
                let attachment = Attachment {
                    binding: Binding::new(&object),
                    criteria: criteria("matchResources"),
                };
                objects.bindings.insert(key, Arc::new(attachment));
            }
        }
    }

    fn remove(&self, objects: &mut Objects, key: &str) {
        match self.part {
            Part::Policies => {
                objects.policies.remove(key);
            }
            Part::Bindings => {
                objects.bindings.remove(key);
            }
        }
    }
}

fn read(entry: &Entry) -> Option<Object> {
    let parsed = bareboat_wire::json::parse(entry.json());
    match parsed.map(|parsed| Object::try_from(parsed.value)) {
        Ok(Ok(object)) => Some(object),
        // An unreadable object is not served either.
        _ => {
            tracing::error!(
                key = entry.key(),
                "a stored policy or binding does not parse"
            );
            None
        }
    }
}

impl Observer for Source {
    fn reset(&self, snapshot: &Snapshot) {
        let mut objects = self.known.objects.lock();
        match self.part {
            Part::Policies => objects.policies.clear(),
            Part::Bindings => objects.bindings.clear(),
        }
        for entry in snapshot.range("", None) {
            self.insert(&mut objects, entry);
        }
        self.known.publish(&objects);
    }

    fn changed(&self, event: &Arc<Event>) {
        // The status of a policy changes nothing for requests, and expressions need not be compiled again.
        let spec = |entry: &Entry| read(entry).and_then(|object| object.get("spec").cloned());
        let mut objects = self.known.objects.lock();
        if event.kind == EventKind::Deleted {
            self.remove(&mut objects, event.key());
        } else if let Some(previous) = &event.prev
            && spec(previous).is_some_and(|old: Value| spec(&event.entry) == Some(old))
        {
            return;
        } else {
            self.insert(&mut objects, &event.entry);
        }
        self.known.publish(&objects);
    }
}
