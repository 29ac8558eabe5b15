//! Deletes the content of a deleted namespace, then removes the namespace's finalizer.
//!
//! Nothing is polled: every change in a namespace under deletion adds it to the queue.

mod conditions;
mod remote;

use crate::Client;
use crate::controller::Controller;
use crate::feed::Listener;
use crate::identity::Identity;
use crate::kinds::{NAMESPACES, is_deleting, of_store, read};
use crate::queue::{Queue, Verdict};
use crate::startup::Context;
use crate::sweep::sweep;
use bareboat_api::kind::{Kind, Verb};
use bareboat_api::{Object, Status, Value};
use bareboat_server::kinds::catalog::Table;
use bareboat_storage::{Entry, Event, EventKind, Resource, Store};
use conditions::{Findings, conditions};
use http::Method;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The finalizer that this controller removes.
const FINALIZER: &str = "kubernetes";
/// The stored resource of pods, which are deleted before everything else.
const PODS: &str = "core/pods";
/// How long after the end of a namespace objects may appear that were admitted before it.
const LATE: Duration = Duration::from_secs(120);
/// How often conditions are written while only the number of remaining objects changes.
const WRITE_INTERVAL: Duration = Duration::from_millis(500);
/// How often other servers are asked again whether their objects are gone. They report no events.
const REMOTE_INTERVAL: Duration = Duration::from_secs(2);

/// Notices namespaces under deletion and changes in them.
pub(crate) struct NamespaceListener {
    queue: Arc<Queue<Arc<str>>>,
    terminating: HashSet<Arc<str>>,
    /// The namespaces that exist: after events were lost, those that are missing were removed.
    known: HashSet<Arc<str>>,
    /// Namespaces that were removed a short time ago.
    removed: HashMap<Arc<str>, Instant>,
}

impl NamespaceListener {
    fn on_namespace(&mut self, event: &Event) {
        let name = event.key();
        if event.kind == EventKind::Deleted {
            let name = self.known.take(name).unwrap_or(name.into());
            self.is_removed(name);
            return;
        }
        let name: Arc<str> = name.into();
        if is_deleting(&event.entry) {
            self.terminating.insert(name.clone());
            self.queue.add(name.clone());
        } else if event.kind == EventKind::Added {
            self.removed.remove(&name);
        }
        self.known.insert(name);
    }

    /// A namespace is gone. It may not be empty: a client may have removed the finalizer.
    fn is_removed(&mut self, name: Arc<str>) {
        self.terminating.remove(&name);
        self.removed.retain(|_, since| since.elapsed() < LATE);
        self.removed.insert(name.clone(), Instant::now());
        self.queue.add(name);
    }
}

impl Listener for NamespaceListener {
    fn reset(&mut self, store: &Store) {
        self.terminating.clear();
        let before = std::mem::take(&mut self.known);
        for entry in store.resource(NAMESPACES).snapshot().range("", None) {
            let name: Arc<str> = entry.key().into();
            if is_deleting(entry) {
                self.terminating.insert(name.clone());
                self.queue.add(name.clone());
            }
            self.known.insert(name);
        }
        for name in before {
            if !self.known.contains(&name) {
                self.is_removed(name);
            }
        }
    }

    fn on_event(&mut self, resource: &Arc<Resource>, event: &Event) {
        if resource.name() == NAMESPACES {
            return self.on_namespace(event);
        }
        if resource.name() == bareboat_server::aggregation::STORE {
            // A server may be available now, or not matter any more.
            for name in &self.terminating {
                self.queue.add(name.clone());
            }
        }
        if self.terminating.is_empty() && self.removed.is_empty() {
            return;
        }
        let Some(namespace) = event.entry.namespace() else {
            return;
        };
        if let Some(name) = self.terminating.get(namespace) {
            self.queue.add(name.clone());
        } else if event.kind == EventKind::Added
            && let Some((name, _)) = self.removed.get_key_value(namespace)
        {
            self.queue.add(name.clone());
        }
    }
}

/// Deletes the content of namespaces. Keys are names of namespaces.
pub(crate) struct NamespaceCleaner {
    client: Client,
    /// When the conditions of a namespace were last written.
    written: Mutex<HashMap<Arc<str>, Instant>>,
}

/// The objects of one kind in a namespace.
struct Content {
    kind: Arc<Kind>,
    entries: Vec<Arc<Entry>>,
}

impl Controller for NamespaceCleaner {
    const NAME: &'static str = "namespaces";
    const MANAGER: &'static str = "namespace-controller";
    const PARALLEL: usize = 8;
    type Key = Arc<str>;
    type Listener = NamespaceListener;

    fn identity(_: &Table) -> Identity {
        Identity::kubernetes("namespace-controller")
    }

    fn new(
        context: &mut Context<'_>,
        queue: Arc<Queue<Arc<str>>>,
    ) -> (NamespaceCleaner, NamespaceListener) {
        let cleaner = NamespaceCleaner {
            client: context.client.clone(),
            written: Mutex::default(),
        };
        let listener = NamespaceListener {
            queue,
            terminating: HashSet::new(),
            known: HashSet::new(),
            removed: HashMap::new(),
        };
        (cleaner, listener)
    }

    async fn reconcile(&self, name: Arc<str>) -> Verdict {
        let store = self.client.server().store().clone();
        if !matches!(store.freshen(LATE).await, Ok(true)) {
            return Verdict::Retry;
        }
        let Some(entry) = store.resource(NAMESPACES).get(&name) else {
            self.written.lock().remove(&name);
            // Objects that were stored after the end of the namespace: nothing else would delete them.
            let findings = self.empty(&store, &name, None).await;
            return match findings.failures.is_empty() && findings.untouched == 0 {
                true => Verdict::Done,
                false => Verdict::Retry,
            };
        };
        if !is_deleting(&entry) {
            return Verdict::Done;
        }
        let Ok(namespace) = read(&entry) else {
            return Verdict::Done;
        };
        if !finalizers(&namespace).any(|held| held == FINALIZER) {
            return Verdict::Done;
        }
        let findings = self.empty(&store, &name, Some(namespace.uid())).await;
        match self.conclude(&name, namespace, findings).await {
            Ok(verdict) => verdict,
            Err(status) if matches!(status.code, 404 | 409) => Verdict::Retry,
            Err(status) => {
                tracing::warn!(%name, %status, "cannot finish the deletion of a namespace");
                Verdict::Retry
            }
        }
    }
}

impl NamespaceCleaner {
    /// Deletes the content of a namespace, which may be gone itself, and returns what is left.
    async fn empty(&self, store: &Store, name: &str, uid: Option<&str>) -> Findings {
        let mut findings = Findings::default();
        let content = self.content(store, name);
        // Read after the content was listed, so that nothing in the list belongs to a new namespace of the same name.
        let now = store.resource(NAMESPACES).get(name);
        if now.as_ref().map(|entry| &*entry.facets().uid) != uid {
            findings.untouched = 1;
            return findings;
        }
        let is_pods = |content: &Content| content.kind.store == PODS;
        let (pods, others): (Vec<Content>, Vec<Content>) = content.into_iter().partition(is_pods);
        let had_pods = !pods.is_empty();
        self.sweep_all(pods, &mut findings).await;
        if had_pods && let Some(pods) = self.content(store, name).into_iter().find(is_pods) {
            findings.count(&pods.kind, &pods.entries);
            return findings;
        }
        self.sweep_all(others, &mut findings).await;
        remote::empty(&self.client, name, &mut findings).await;
        for content in self.content(store, name) {
            findings.count(&content.kind, &content.entries);
        }
        findings
    }

    async fn sweep_all(&self, contents: Vec<Content>, findings: &mut Findings) {
        for content in contents {
            let pending = content.entries.into_iter().filter(|entry| is_due(entry));
            let failures = sweep(&self.client, &content.kind, pending.collect()).await;
            let texts = failures.into_iter().map(|status| status.message);
            findings.failures.extend(texts);
        }
    }

    /// All objects of a namespace that can be deleted.
    fn content(&self, store: &Store, name: &str) -> Vec<Content> {
        let prefix = format!("{name}/");
        let table = self.client.server().catalog().table();
        let mut found = Vec::new();
        for resource in store.resources() {
            let snapshot = resource.snapshot();
            let mut entries = snapshot.range(&prefix, None).peekable();
            if entries.peek().is_none() {
                continue;
            }
            let kind = of_store(&table, resource.name());
            if let Some(kind) =
                kind.filter(|kind| kind.namespaced() && kind.verbs.has(Verb::Delete))
            {
                found.push(Content {
                    kind: kind.clone(),
                    entries: entries.cloned().collect(),
                });
            }
        }
        found
    }

    /// Writes the conditions, and removes the finalizer if nothing is left.
    async fn conclude(
        &self,
        name: &Arc<str>,
        mut namespace: Object,
        findings: Findings,
    ) -> Result<Verdict, Status> {
        let path = format!("/api/v1/namespaces/{name}");
        let failed = !findings.failures.is_empty()
            || !findings.undiscovered.is_empty()
            || findings.untouched > 0;
        let waits_for_remote = findings.remote_left > 0;
        let finished = findings.is_empty();
        let mut list = match namespace.at(&["status", "conditions"]) {
            Some(Value::Array(list)) => list.clone(),
            _ => Vec::new(),
        };
        let now = crate::conditions::now();
        let mut changed = false;
        for condition in conditions(&findings) {
            changed |= condition.set(&mut list, &now);
        }
        if changed {
            let recent = self.written.lock().get(name).map(Instant::elapsed);
            if let Some(wait) = recent.and_then(|ago| WRITE_INTERVAL.checked_sub(ago))
                && !finished
                && !failed
            {
                return Ok(Verdict::After(wait));
            }
            let status = namespace.map_mut().object_mut("status");
            status.insert("conditions", Value::Array(list));
            let body = namespace.value();
            let written = self.client.update(&format!("{path}/status"), body).await?;
            self.written.lock().insert(name.clone(), Instant::now());
            namespace = Object::try_from(written)
                .map_err(|_| Status::internal("the response is not an object"))?;
        }
        if failed {
            return Ok(Verdict::Retry);
        }
        if waits_for_remote {
            return Ok(Verdict::After(REMOTE_INTERVAL));
        }
        if !finished {
            return Ok(Verdict::Done);
        }
        let kept: Vec<Value> = finalizers(&namespace)
            .filter(|held| *held != FINALIZER)
            .map(Value::string)
            .collect();
        let spec = namespace.map_mut().object_mut("spec");
        spec.insert("finalizers", Value::Array(kept));
        self.client
            .request(
                Method::PUT,
                &format!("{path}/finalize"),
                "application/json",
                Some(namespace.value()),
            )
            .await?;
        self.written.lock().remove(name);
        Ok(Verdict::Done)
    }
}

/// Whether an object is to be deleted: it is not being deleted yet, or it waits for the garbage collector, which is not
/// necessary in a namespace under deletion.
fn is_due(entry: &Entry) -> bool {
    let facets = entry.facets();
    facets.deletion_timestamp.is_none()
        || facets.has_finalizer("orphan")
        || facets.has_finalizer("foregroundDeletion")
}

fn finalizers(namespace: &Object) -> impl Iterator<Item = &str> {
    namespace
        .at(&["spec", "finalizers"])
        .and_then(Value::as_array)
        .unwrap_or(&[])
        .iter()
        .filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_storage::{MemoryBackend, StoreOptions, Write};

    #[tokio::test]
    async fn a_namespace_that_was_removed_while_events_were_lost_is_emptied() {
        let log = Arc::new(MemoryBackend::new());
        let store = Store::open(log, StoreOptions::default()).expect("a store can be opened");
        let resource = store.resource(NAMESPACES);
        for name in ["a", "b"] {
            let object = format!(
                r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}"#
            );
            let write = Write::create(&resource, name, object.into());
            store.commit(write).await.expect("it is new");
        }
        let queue = Queue::new();
        let mut listener = NamespaceListener {
            queue: queue.clone(),
            terminating: HashSet::new(),
            known: HashSet::new(),
            removed: HashMap::new(),
        };
        listener.reset(&store);
        assert!(queue.keys().is_empty());
        let found = resource.get("a").expect("it was created");
        let write = Write::delete(&resource, &found);
        store.commit(write).await.expect("it is there");
        listener.reset(&store);
        assert_eq!(queue.keys(), HashSet::from(["a".into()]));
        store.close().await;
    }
}
