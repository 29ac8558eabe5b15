//! The definitions of members' custom kinds, read from the shelf. Members with the same definition share one in memory.

use crate::types::{Definitions, defined_type, essential};
use bareboat_api::Value;
use bareboat_shelf::{Column, KindId, Predicate, Query, Shelf, ShelfError};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// How many definitions are read at once.
const PAGE: usize = 200;

/// Definitions that are in use, by their content.
#[derive(Default)]
pub(crate) struct Pool(Mutex<HashMap<[u8; 32], Weak<Value>>>);

impl Pool {
    fn share(&self, definition: Value) -> Arc<Value> {
        let digest: [u8; 32] = Sha256::digest(definition.to_json()).into();
        let mut known = self.0.lock();
        if let Some(shared) = known.get(&digest).and_then(Weak::upgrade) {
            return shared;
        }
        known.retain(|_, shared| shared.strong_count() > 0);
        let shared = Arc::new(definition);
        known.insert(digest, Arc::downgrade(&shared));
        shared
    }

    /// Reads the definitions of a member.
    pub(crate) fn read(
        &self,
        shelf: &Shelf,
        member: &str,
        kind: KindId,
    ) -> Result<Definitions, ShelfError> {
        let mut definitions = Definitions::new();
        let mut query = Query {
            kinds: vec![kind],
            scope: Predicate::one_of(Column::Cluster, [member]),
            ..Query::default()
        };
        loop {
            let page = shelf.page(&query, PAGE)?;
            for item in &page.items {
                let definition = item.value("");
                let established = is_established(&definition);
                if let Some(key) = defined_type(&definition).filter(|_| established) {
                    definitions.insert(key, self.share(essential(definition)));
                }
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(definitions),
            }
        }
    }
}

/// Returns whether a definition is served. One without conditions is taken as it is.
fn is_established(definition: &Value) -> bool {
    let conditions = definition
        .at(&["status", "conditions"])
        .and_then(Value::as_array);
    conditions.is_none_or(|conditions| {
        conditions.iter().any(|condition| {
            condition.get("type").and_then(Value::as_str) == Some("Established")
                && condition.get("status").and_then(Value::as_str) == Some("True")
        })
    })
}
