//! Definitions that are about to be committed, parsed by their requests. The sequencer, which all writes wait for, then
//! need not parse them.

use bareboat_api::kind::Reservation;
use bareboat_api::{Object, Value};
use bareboat_schema::crd::Definition;
use bareboat_storage::Entry;
use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::Arc;

/// A definition, parsed.
pub(super) struct Draft {
    pub(super) value: Value,
    pub(super) definition: Definition,
    /// A hash of what the kind is made of.
    pub(super) substance: u64,
}

impl Draft {
    pub(super) fn new(value: Value) -> Draft {
        Draft {
            definition: Definition::parse(&value),
            substance: super::substance(&value),
            value,
        }
    }
}

/// The persisted bytes of a definition, and its draft.
type BytesAndDraft = (Bytes, Arc<Draft>);

/// The drafts of running writes.
#[derive(Clone, Default)]
pub(super) struct Drafts(Arc<Mutex<Vec<BytesAndDraft>>>);

impl Drafts {
    /// Adds the draft of a write, until the result is dropped.
    pub(super) fn add(&self, object: &Object) -> impl Reservation + 'static {
        let bytes = bareboat_wire::encode::persisted(object.value());
        let draft = Arc::new(Draft::new(object.value().clone()));
        self.0.lock().push((bytes, draft.clone()));
        Drafted {
            drafts: self.clone(),
            draft,
        }
    }

    /// Returns the draft of a committed entry.
    pub(super) fn find(&self, entry: &Entry) -> Option<Arc<Draft>> {
        let drafts = self.0.lock();
        let mut found = drafts.iter();
        let found = found.find(|(bytes, _)| entry.persisted_eq(bytes));
        found.map(|(_, draft)| draft.clone())
    }
}

/// A draft that is removed when its write is done.
struct Drafted {
    drafts: Drafts,
    draft: Arc<Draft>,
}

impl Reservation for Drafted {}

impl Drop for Drafted {
    fn drop(&mut self) {
        let mut drafts = self.drafts.0.lock();
        drafts.retain(|(_, draft)| !Arc::ptr_eq(draft, &self.draft));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::value;

    #[test]
    fn a_draft_is_found_by_its_bytes_while_its_write_runs() {
        let object = Object::try_from(value!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "foos.example.com"},
            "spec": {"group": "example.com", "names": {"plural": "foos", "kind": "Foo"}},
        }))
        .expect("an object");
        let bytes = bareboat_wire::encode::persisted(object.value());
        let entry = Entry::new("foos.example.com".into(), 7, &bytes, 0).expect("an entry");
        let drafts = Drafts::default();
        assert!(drafts.find(&entry).is_none());
        let held = drafts.add(&object);
        let draft = drafts.find(&entry).expect("the draft");
        assert_eq!(draft.definition.group, "example.com");
        let mut other = object.clone();
        other.set_meta("name", Value::string("bars.example.com"));
        let other = bareboat_wire::encode::persisted(other.value());
        let other = Entry::new("bars.example.com".into(), 8, &other, 0).expect("an entry");
        assert!(drafts.find(&other).is_none());
        drop(held);
        assert!(drafts.find(&entry).is_none());
    }
}
