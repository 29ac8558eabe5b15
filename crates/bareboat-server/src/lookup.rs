//! [`Lookup`] over a store: reads objects in their storage version for code outside of the server.

use crate::kinds::stored_kind::parse_entry;
use crate::work;
use bareboat_api::admission::{Brief, Lookup};
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Object, Str};
use bareboat_storage::Store;

/// Reads objects of a store. It has no authorizer and checks no permissions.
pub(crate) struct StoreLookup<'a>(pub(crate) &'a Store);

fn key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        name.to_owned()
    } else {
        [namespace, "/", name].concat()
    }
}

impl Lookup for StoreLookup<'_> {
    fn brief(&self, store: &str, namespace: &str, name: &str) -> Option<Brief> {
        let entry = self.0.resource(store).get(&key(namespace, name))?;
        let facets = entry.facets();
        Some(Brief {
            uid: Str::new(&facets.uid),
            terminating: facets.deletion_timestamp.is_some(),
        })
    }

    fn get(&self, store: &str, namespace: &str, name: &str) -> Option<Object> {
        let entry = self.0.resource(store).get(&key(namespace, name))?;
        parse_entry(&entry).ok()
    }

    fn list(&self, store: &str, namespace: &str) -> Vec<Object> {
        let snapshot = self.0.resource(store).snapshot();
        snapshot
            .range(&key(namespace, ""), None)
            .filter_map(|entry| parse_entry(entry).ok())
            .collect()
    }

    fn list_first<'a>(
        &'a self,
        store: &'a str,
        namespace: &'a str,
        most: usize,
    ) -> BoxFuture<'a, (Vec<Object>, usize)> {
        Box::pin(async move {
            let snapshot = self.0.resource(store).snapshot();
            let prefix = key(namespace, "");
            let total = snapshot.range(&prefix, None).count();
            let first = || snapshot.range(&prefix, None).take(most);
            work::maybe_large(first().map(|entry| entry.json().len()).sum()).await;
            let objects = first().filter_map(|entry| parse_entry(entry).ok());
            (objects.collect(), total)
        })
    }

    fn list_labelled(
        &self,
        store: &str,
        namespace: &str,
        (label, value): (&str, &str),
    ) -> Vec<Object> {
        let snapshot = self.0.resource(store).snapshot();
        snapshot
            .range(&key(namespace, ""), None)
            .filter(|entry| entry.facets().label(label) == Some(value))
            .filter_map(|entry| parse_entry(entry).ok())
            .collect()
    }
}
