//! Deletion of namespaces: their content goes first, then the finalizer that held them.
//!
//! Nothing is polled: whatever changes in a namespace under deletion makes the controller look at it again.

mod conditions;

use crate::Client;
use crate::feed::Listener;
use crate::kinds::{NAMESPACES, is_deleting, of_store, read};
use crate::queue::{Queue, Verdict};
use crate::sweep::sweep;
use bareboat_api::kind::{Kind, Verb};
use bareboat_api::{Object, Status, Value, value};
use bareboat_storage::{Entry, Event, EventKind, Resource, Store};
use conditions::{Findings, conditions};
use http::Method;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The finalizer this controller takes away.
const FINALIZER: &str = "kubernetes";
/// Where pods are stored: they go before everything else.
const PODS: &str = "core/pods";
/// How long a create that was admitted before its namespace ended may take to land.
const LATE: Duration = Duration::from_secs(120);
/// How long conditions that only count down are left as they are.
const CALM: Duration = Duration::from_millis(500);

/// Notes which namespaces are to be looked at.
pub(crate) struct Ear {
    queue: Arc<Queue<Arc<str>>>,
    terminating: HashSet<Arc<str>>,
    /// Namespaces that vanished a short while ago.
    departed: HashMap<Arc<str>, Instant>,
}

impl Ear {
    pub(crate) fn new(queue: Arc<Queue<Arc<str>>>) -> Ear {
        Ear {
            queue,
            terminating: HashSet::new(),
            departed: HashMap::new(),
        }
    }

    fn namespace(&mut self, event: &Event) {
        let name = event.key();
        if event.kind == EventKind::Deleted {
            // Whether or not it was emptied: somebody may have taken the finalizer away.
            let name = self.terminating.take(name).unwrap_or(name.into());
            self.departed.retain(|_, since| since.elapsed() < LATE);
            self.departed.insert(name.clone(), Instant::now());
            self.queue.add(name);
        } else if is_deleting(&event.entry) {
            let name: Arc<str> = name.into();
            self.terminating.insert(name.clone());
            self.queue.add(name);
        } else if event.kind == EventKind::Added {
            self.departed.remove(name);
        }
    }
}

impl Listener for Ear {
    fn reset(&mut self, store: &Store) {
        self.terminating.clear();
        for entry in store.resource(NAMESPACES).snapshot().range("", None) {
            if is_deleting(entry) {
                let name: Arc<str> = entry.key().into();
                self.terminating.insert(name.clone());
                self.queue.add(name);
            }
        }
    }

    fn heard(&mut self, resource: &Arc<Resource>, event: &Event) {
        if resource.name() == NAMESPACES {
            return self.namespace(event);
        }
        if self.terminating.is_empty() && self.departed.is_empty() {
            return;
        }
        let Some(namespace) = event.entry.namespace() else {
            return;
        };
        if let Some(name) = self.terminating.get(namespace) {
            self.queue.add(name.clone());
        } else if event.kind == EventKind::Added
            && let Some((name, _)) = self.departed.get_key_value(namespace)
        {
            self.queue.add(name.clone());
        }
    }
}

/// Empties namespaces.
pub(crate) struct Worker {
    client: Client,
    /// When conditions were last written.
    written: Mutex<HashMap<Arc<str>, Instant>>,
}

/// What is in a namespace of one kind.
struct Content {
    kind: Arc<Kind>,
    entries: Vec<Arc<Entry>>,
}

impl Worker {
    pub(crate) fn new(client: &Client) -> Worker {
        Worker {
            client: client.named("namespace-controller"),
            written: Mutex::default(),
        }
    }

    /// Brings one namespace nearer to its end.
    pub(crate) async fn look(&self, name: Arc<str>) -> Verdict {
        let store = self.client.server().store().clone();
        if !matches!(store.freshen(LATE).await, Ok(true)) {
            return Verdict::Retry;
        }
        let Some(entry) = store.resource(NAMESPACES).get(&name) else {
            self.written.lock().remove(&name);
            // Landed after the end: nobody else would ever look for it.
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
                tracing::warn!(%name, %status, "a namespace could not be finished");
                Verdict::Retry
            }
        }
    }

    /// Deletes the content of a namespace, or of one that is gone, and tells what is left.
    async fn empty(&self, store: &Store, name: &str, uid: Option<&str>) -> Findings {
        let mut findings = Findings::default();
        let content = self.content(store, name);
        // Looked at after the content was listed: nothing in the list belongs to a successor of the same name.
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
        for content in self.content(store, name) {
            findings.count(&content.kind, &content.entries);
        }
        findings
    }

    async fn sweep_all(&self, contents: Vec<Content>, findings: &mut Findings) {
        for content in contents {
            let todo = content.entries.into_iter().filter(|entry| is_due(entry));
            let failures = sweep(&self.client, &content.kind, todo.collect()).await;
            let texts = failures.into_iter().map(|status| status.message);
            findings.failures.extend(texts);
        }
    }

    /// Everything in a namespace that can be deleted.
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

    /// Writes down what was found, and lets the namespace go when nothing was.
    async fn conclude(
        &self,
        name: &Arc<str>,
        mut namespace: Object,
        findings: Findings,
    ) -> Result<Verdict, Status> {
        let path = format!("/api/v1/namespaces/{name}");
        let failed = !findings.failures.is_empty() || findings.untouched > 0;
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
            if let Some(calm) = recent.and_then(|ago| CALM.checked_sub(ago))
                && !finished
                && !failed
            {
                return Ok(Verdict::After(calm));
            }
            let patch = value!({
                "metadata": {"uid": (namespace.uid()), "resourceVersion": (namespace.resource_version())},
                "status": {"conditions": list},
            });
            let written = self.client.merge(&format!("{path}/status"), &patch).await?;
            self.written.lock().insert(name.clone(), Instant::now());
            namespace = Object::try_from(written)
                .map_err(|_| Status::internal("the answer is no object"))?;
        }
        if failed {
            return Ok(Verdict::Retry);
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

/// Whether an object has not been asked to go, or would wait for the garbage collector, which does not matter any more.
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
