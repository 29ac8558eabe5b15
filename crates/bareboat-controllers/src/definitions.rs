//! Deletion of custom kinds: the instances of a deleted definition go before it does; and names that become free are
//! given to definitions that wait for them.

use crate::Client;
use crate::conditions::{Condition, now};
use crate::feed::Listener;
use crate::kinds::{DEFINITIONS, is_deleting, of_store, read};
use crate::queue::{Queue, Verdict};
use crate::sweep::sweep;
use bareboat_api::{Object, Status, Str, Value};
use bareboat_server::kinds::custom::CLEANUP_FINALIZER;
use bareboat_storage::{Entry, Event, EventKind, Resource, Store};
use http::Method;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// How long a shared store may take to prove that it is up to date.
const FRESH: Duration = Duration::from_secs(30);

/// Something to look at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Job {
    /// A definition that is being deleted.
    Clean(Arc<str>),
    /// The names of a group, of which some became free.
    Settle(Arc<str>),
}

/// Notes which definitions are to be looked at.
pub(crate) struct Ear {
    queue: Arc<Queue<Job>>,
    /// Definitions under deletion, by where their instances are stored.
    terminating: HashMap<String, Arc<str>>,
}

impl Ear {
    pub(crate) fn new(queue: Arc<Queue<Job>>) -> Ear {
        Ear {
            queue,
            terminating: HashMap::new(),
        }
    }

    fn begin(&mut self, entry: &Entry) {
        if is_deleting(entry)
            && let Some(store) = instances_of(entry.key())
        {
            let name: Arc<str> = entry.key().into();
            self.terminating.insert(store, name.clone());
            self.queue.add(Job::Clean(name));
        }
    }

    fn definition(&mut self, event: &Event) {
        let name = event.key();
        let gone = event.kind == EventKind::Deleted;
        if gone {
            if let Some(store) = instances_of(name) {
                self.terminating.remove(&store);
            }
        } else {
            self.begin(&event.entry);
        }
        let renamed = event.kind == EventKind::Modified
            && event.prev.as_ref().is_some_and(|prev| {
                // Definitions are large: their names are compared only when their spec changed.
                prev.facets().generation != event.entry.facets().generation
                    && accepted(prev) != accepted(&event.entry)
            });
        if (gone || renamed)
            && let Some((_, group)) = name.split_once('.')
        {
            self.queue.add(Job::Settle(group.into()));
        }
    }
}

impl Listener for Ear {
    fn reset(&mut self, store: &Store) {
        self.terminating.clear();
        for entry in store.resource(DEFINITIONS).snapshot().range("", None) {
            self.begin(entry);
        }
    }

    fn heard(&mut self, resource: &Arc<Resource>, event: &Event) {
        if resource.name() == DEFINITIONS {
            self.definition(event);
        } else if !self.terminating.is_empty()
            && let Some(name) = self.terminating.get(resource.name())
        {
            self.queue.add(Job::Clean(name.clone()));
        }
    }
}

/// Cleans up after definitions.
pub(crate) struct Worker {
    client: Client,
}

impl Worker {
    pub(crate) fn new(client: &Client) -> Worker {
        Worker {
            client: client.named("customresource-cleanup"),
        }
    }

    pub(crate) async fn look(&self, job: Job) -> Verdict {
        let result = match &job {
            Job::Clean(name) => self.clean(name).await,
            Job::Settle(group) => self.settle(group).await,
        };
        match result {
            Ok(verdict) => verdict,
            Err(status) if matches!(status.code, 404 | 409) => Verdict::Retry,
            Err(status) => {
                tracing::warn!(?job, %status, "a definition could not be cleaned up");
                Verdict::Retry
            }
        }
    }

    async fn clean(&self, name: &str) -> Result<Verdict, Status> {
        let store = self.client.server().store().clone();
        if !matches!(store.freshen(FRESH).await, Ok(true)) {
            return Ok(Verdict::Retry);
        }
        let Some(entry) = store.resource(DEFINITIONS).get(name) else {
            return Ok(Verdict::Done);
        };
        if !is_deleting(&entry) || !entry.facets().has_finalizer(CLEANUP_FINALIZER) {
            return Ok(Verdict::Done);
        }
        let Some(place) = instances_of(name) else {
            return Ok(Verdict::Done);
        };
        let text = "CustomResource deletion is in progress";
        let condition = terminating(true, "InstanceDeletionInProgress", text);
        let definition = self.write(read(&entry)?, &condition, false).await?;
        if let Some(condition) = self.nothing_to_delete(&definition, &place) {
            self.write(definition, &condition, true).await?;
            return Ok(Verdict::Done);
        }
        self.delete_instances(definition, &store.resource(&place))
            .await
    }

    /// Why there are no instances of this definition, if that is certain.
    fn nothing_to_delete(&self, definition: &Object, place: &str) -> Option<Condition> {
        let table = self.client.server().catalog().table();
        if of_store(&table, place).is_some_and(|kind| !kind.custom) {
            let text = "instances overlap with built-in resources in storage";
            return Some(terminating(false, "OverlappingBuiltInResource", text));
        }
        if condition_of(definition, "Established", "status") != Some("True") {
            let text = "resource was never established";
            return Some(terminating(false, "NeverEstablished", text));
        }
        None
    }

    async fn delete_instances(
        &self,
        definition: Object,
        instances: &Resource,
    ) -> Result<Verdict, Status> {
        let snapshot = instances.snapshot();
        let todo = snapshot.range("", None);
        let todo = todo.filter(|entry| entry.facets().deletion_timestamp.is_none());
        let todo: Vec<Arc<Entry>> = todo.cloned().collect();
        if !todo.is_empty() {
            let kind = {
                let table = self.client.server().catalog().table();
                of_store(&table, instances.name()).cloned()
            };
            let Some(kind) = kind else {
                return Ok(Verdict::Retry);
            };
            let failures = sweep(&self.client, &kind, todo).await;
            if !failures.is_empty() {
                let texts: Vec<&str> = failures.iter().map(|status| &*status.message).collect();
                let text = format!("could not issue all deletes: {}", texts.join(", "));
                let condition = terminating(true, "InstanceDeletionFailed", text);
                self.write(definition, &condition, false).await?;
                return Ok(Verdict::Retry);
            }
        }
        let left = instances.snapshot();
        if left.is_empty() {
            let condition =
                terminating(false, "InstanceDeletionCompleted", "removed all instances");
            self.write(definition, &condition, true).await?;
            return Ok(Verdict::Done);
        }
        // One that came in while the definition was being deleted has not been asked to go yet.
        let untouched = |entry: &Arc<Entry>| entry.facets().deletion_timestamp.is_none();
        Ok(match left.range("", None).any(untouched) {
            true => Verdict::Retry,
            false => Verdict::Done,
        })
    }

    /// Writes the condition, and gives the definition free if it is to go.
    async fn write(
        &self,
        mut definition: Object,
        condition: &Condition,
        finish: bool,
    ) -> Result<Object, Status> {
        let status = definition.map_mut().object_mut("status");
        let list = status.entry_or_insert_with("conditions", || Value::Array(Vec::new()));
        let changed = match list {
            Value::Array(list) => condition.set(list, &now()),
            _ => false,
        };
        if finish {
            let kept = definition
                .finalizers()
                .filter(|held| *held != CLEANUP_FINALIZER);
            let kept: Vec<Str> = kept.map(Str::new).collect();
            definition.set_finalizers(kept);
        } else if !changed {
            return Ok(definition);
        }
        let path = format!("{PATH}/{}/status", definition.name());
        let body = definition.value();
        let written = self
            .client
            .request(Method::PUT, &path, "application/json", Some(body))
            .await?;
        Object::try_from(written).map_err(|_| Status::internal("the answer is no object"))
    }

    /// Lets every definition of a group that lacks a name try again: a write, even of nothing, settles its names.
    async fn settle(&self, group: &str) -> Result<Verdict, Status> {
        let definitions = self.client.server().store().resource(DEFINITIONS);
        let mut before = usize::MAX;
        loop {
            let waiting: Vec<Arc<Entry>> = definitions
                .snapshot()
                .range("", None)
                .filter(|entry| is_sibling(entry, group) && lacks_names(entry))
                .cloned()
                .collect();
            // One that took a name may have given up another, for which somebody else waits.
            if waiting.is_empty() || waiting.len() >= before {
                return Ok(Verdict::Done);
            }
            before = waiting.len();
            for entry in waiting {
                let path = format!("{PATH}/{}", entry.key());
                match self.client.merge(&path, &Value::object()).await {
                    Err(status) if status.code != 404 => return Err(status),
                    _ => {}
                }
            }
        }
    }
}

fn is_sibling(entry: &Entry, group: &str) -> bool {
    let own = entry.key().split_once('.');
    own.is_some_and(|(_, own)| own == group)
}

/// Whether a definition waits for names, found without reading all of it: members are stored in order.
fn lacks_names(entry: &Entry) -> bool {
    const CONDITION: &[u8] = br#""status":"False","type":"NamesAccepted""#;
    memchr::memmem::find(entry.json(), CONDITION).is_some()
}

fn terminating(holds: bool, reason: &'static str, message: impl Into<String>) -> Condition {
    Condition::new("Terminating", holds, reason, message)
}

/// Where the instances of a definition are stored; its name is plural and group.
fn instances_of(name: &str) -> Option<String> {
    let (plural, group) = name.split_once('.')?;
    Some(format!("{group}/{plural}"))
}

fn accepted(entry: &Entry) -> Option<Value> {
    let definition = read(entry).ok()?;
    definition.at(&["status", "acceptedNames"]).cloned()
}

fn condition_of<'a>(object: &'a Object, kind: &str, member: &str) -> Option<&'a str> {
    object
        .at(&["status", "conditions"])?
        .as_array()?
        .iter()
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))?
        .get(member)?
        .as_str()
}
