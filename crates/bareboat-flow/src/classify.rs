//! Which flow schema a request belongs to.
//!
//! Schemas are indexed by their subjects. A request costs one lookup for its user, one for the namespace of a service
//! account and one for each group; the number of other schemas does not matter.

use crate::schema::{Request, Schema, Subject, account_namespace};
use ahash::RandomState;
use bareboat_api::HashedMap;
use bareboat_api::kind::User;
use smallvec::SmallVec;
use std::sync::Arc;

/// An immutable table of flow schemas.
#[derive(Debug)]
pub struct Classifier {
    /// By precedence, then by name.
    schemas: Vec<Arc<Schema>>,
    /// Positions of schemas by the hash of a subject, in ascending order. Different subjects may have equal hashes.
    index: Index,
    /// Schemas with a rule for all users.
    everybody: Vec<u32>,
    hasher: RandomState,
}

/// Positions of schemas by hashes, which need no hashing of their own.
type Index = HashedMap<SmallVec<[u32; 4]>>;

/// The kind of a subject, as a part of its hash.
#[derive(Clone, Copy, Hash)]
enum By {
    User,
    Group,
    Accounts,
}

impl Classifier {
    /// Compiles schemas, which may come in any order.
    pub fn new(schemas: impl IntoIterator<Item = Arc<Schema>>) -> Classifier {
        let mut schemas: Vec<Arc<Schema>> = schemas.into_iter().collect();
        schemas.sort_by(|a, b| (a.precedence, &a.name).cmp(&(b.precedence, &b.name)));
        let hasher = RandomState::new();
        let mut index = Index::default();
        let mut everybody = Vec::new();
        for (position, schema) in (0..).zip(&schemas) {
            for subject in schema.rules.iter().flat_map(|rule| &rule.subjects) {
                let hash = match subject {
                    Subject::Everybody => {
                        everybody.push(position);
                        continue;
                    }
                    Subject::User(name) => hasher.hash_one((By::User, name.as_str())),
                    Subject::Group(name) => hasher.hash_one((By::Group, name.as_str())),
                    Subject::Accounts(name) => hasher.hash_one((By::Accounts, name.as_str())),
                };
                let found = index.entry(hash).or_default();
                if found.last() != Some(&position) {
                    found.push(position);
                }
            }
        }
        everybody.dedup();
        Classifier {
            schemas,
            index,
            everybody,
            hasher,
        }
    }

    /// Returns the schemas in the order they are tried.
    pub fn schemas(&self) -> &[Arc<Schema>] {
        &self.schemas
    }

    /// Returns the position of the first schema that matches.
    pub fn classify(&self, user: &User, request: &Request<'_>) -> Option<usize> {
        let mut lists: SmallVec<[&[u32]; 8]> = SmallVec::new();
        let mut add = |by: By, name: &str| {
            if let Some(found) = self.index.get(&self.hasher.hash_one((by, name))) {
                lists.push(found);
            }
        };
        add(By::User, &user.name);
        if let Some(namespace) = account_namespace(&user.name) {
            add(By::Accounts, namespace);
        }
        for group in &user.groups {
            add(By::Group, group);
        }
        if !self.everybody.is_empty() {
            lists.push(&self.everybody);
        }
        loop {
            let next = lists
                .iter()
                .filter_map(|list| list.first())
                .min()
                .copied()?;
            for list in &mut lists {
                if list.first() == Some(&next) {
                    *list = &list[1..];
                }
            }
            let position = next as usize;
            if self.schemas[position].matches(user, request) {
                return Some(position);
            }
        }
    }
}
