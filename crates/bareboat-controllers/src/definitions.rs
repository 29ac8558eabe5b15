//! Deletes the instances of a deleted CustomResourceDefinition, then the definition. Gives names that become free to
//! definitions that wait for them.

use crate::Client;
use crate::conditions::{Condition, now};
use crate::controller::Controller;
use crate::feed::Listener;
use crate::identity::Identity;
use crate::kinds::{DEFINITIONS, is_deleting, of_store, read};
use crate::queue::{Queue, Verdict};
use crate::startup::Context;
use crate::sweep::sweep;
use bareboat_api::kind::Origin;
use bareboat_api::{Object, Status, Str, Value};
use bareboat_server::kinds::catalog::Table;
use bareboat_server::kinds::custom::CLEANUP_FINALIZER;
use bareboat_storage::{Entry, Event, EventKind, Resource, Store};
use http::Method;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// How long to wait until a shared store is up to date.
const FRESH: Duration = Duration::from_secs(30);

/// Work of the controller for one definition (`Clean`) or one group (`AssignNames`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Job {
    /// Delete the instances of a definition under deletion.
    Clean(Arc<str>),
    /// Give names of a group that became free to definitions that wait for them.
    AssignNames(Arc<str>),
}

/// Notices definitions under deletion, and names that become free.
pub(crate) struct DefinitionListener {
    queue: Arc<Queue<Job>>,
    /// Definitions under deletion, by the stored resource of their instances.
    terminating: HashMap<String, Arc<str>>,
}

impl DefinitionListener {
    fn add_if_deleting(&mut self, entry: &Entry) {
        if is_deleting(entry)
            && let Some(store) = instances_of(entry.key())
        {
            let name: Arc<str> = entry.key().into();
            self.terminating.insert(store, name.clone());
            self.queue.add(Job::Clean(name));
        }
    }

    fn on_definition(&mut self, event: &Event) {
        let name = event.key();
        let gone = event.kind == EventKind::Deleted;
        if gone {
            if let Some(store) = instances_of(name) {
                self.terminating.remove(&store);
            }
        } else {
            self.add_if_deleting(&event.entry);
        }
        let renamed = event.kind == EventKind::Modified
            && event.prev.as_ref().is_some_and(|prev| {
                // Definitions are large, so they are parsed only if the spec changed.
                prev.facets().generation != event.entry.facets().generation
                    && accepted(prev) != accepted(&event.entry)
            });
        if (gone || renamed)
            && let Some((_, group)) = name.split_once('.')
        {
            self.queue.add(Job::AssignNames(group.into()));
        }
    }
}

impl Listener for DefinitionListener {
    fn reset(&mut self, store: &Store) {
        self.terminating.clear();
        for entry in store.resource(DEFINITIONS).snapshot().range("", None) {
            self.add_if_deleting(entry);
        }
    }

    fn on_event(&mut self, resource: &Arc<Resource>, event: &Event) {
        if resource.name() == DEFINITIONS {
            self.on_definition(event);
        } else if !self.terminating.is_empty()
            && let Some(name) = self.terminating.get(resource.name())
        {
            self.queue.add(Job::Clean(name.clone()));
        }
    }
}

/// Deletes instances and finishes definitions.
pub(crate) struct DefinitionCleaner {
    client: Client,
}

impl Controller for DefinitionCleaner {
    const NAME: &'static str = "definitions";
    const MANAGER: &'static str = "customresource-cleanup";
    const PARALLEL: usize = 8;
    type Key = Job;
    type Listener = DefinitionListener;

    fn identity(_: &Table) -> Identity {
        let rules = [
            // Instances may be of any group.
            "delete | * | *",
            "patch | apiextensions.k8s.io | customresourcedefinitions",
            "update | apiextensions.k8s.io | customresourcedefinitions/status",
        ];
        Identity::own("bareboat-definitions", &rules)
    }

    fn new(
        context: &mut Context<'_>,
        queue: Arc<Queue<Job>>,
    ) -> (DefinitionCleaner, DefinitionListener) {
        let client = context.client.clone();
        let listener = DefinitionListener {
            queue,
            terminating: HashMap::new(),
        };
        (DefinitionCleaner { client }, listener)
    }

    async fn reconcile(&self, job: Job) -> Verdict {
        let result = match &job {
            Job::Clean(name) => self.clean(name).await,
            Job::AssignNames(group) => self.assign_names(group).await,
        };
        match result {
            Ok(verdict) => verdict,
            Err(status) if matches!(status.code, 404 | 409) => Verdict::Retry,
            Err(status) => {
                tracing::warn!(?job, %status, "cannot clean up after a definition");
                Verdict::Retry
            }
        }
    }
}

impl DefinitionCleaner {
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

    /// The condition of a definition that cannot have instances.
    fn nothing_to_delete(&self, definition: &Object, place: &str) -> Option<Condition> {
        let table = self.client.server().catalog().table();
        if of_store(&table, place).is_some_and(|kind| kind.origin == Origin::BuiltIn) {
            let text = "instances overlap with built-in resources in storage";
            return Some(terminating(false, "OverlappingBuiltInResource", text));
        }
        if member_of_condition(definition, "Established", "status") != Some("True") {
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
        // An instance that was created during the deletion is deleted next time.
        let untouched = |entry: &Arc<Entry>| entry.facets().deletion_timestamp.is_none();
        Ok(match left.range("", None).any(untouched) {
            true => Verdict::Retry,
            false => Verdict::Done,
        })
    }

    /// Writes the condition, and with `finish` removes the finalizer.
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
        Object::try_from(written).map_err(|_| Status::internal("the response is not an object"))
    }

    /// Writes every definition of a group that lacks a name. A write, even one that changes nothing, assigns names.
    async fn assign_names(&self, group: &str) -> Result<Verdict, Status> {
        let definitions = self.client.server().store().resource(DEFINITIONS);
        let mut before = usize::MAX;
        loop {
            let waiting: Vec<Arc<Entry>> = definitions
                .snapshot()
                .range("", None)
                .filter(|entry| is_sibling(entry, group) && lacks_names(entry))
                .cloned()
                .collect();
            // A definition that got a name may have released another one that a third definition waits for.
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

/// Whether a definition waits for names. It is not parsed: members are stored in a fixed order.
fn lacks_names(entry: &Entry) -> bool {
    const CONDITION: &[u8] = br#""status":"False","type":"NamesAccepted""#;
    memchr::memmem::find(entry.json(), CONDITION).is_some()
}

fn terminating(holds: bool, reason: &'static str, message: impl Into<String>) -> Condition {
    Condition::new("Terminating", holds, reason, message)
}

/// The stored resource of the instances of a definition. The name of a definition is plural and group.
fn instances_of(name: &str) -> Option<String> {
    let (plural, group) = name.split_once('.')?;
    Some(format!("{group}/{plural}"))
}

fn accepted(entry: &Entry) -> Option<Value> {
    let definition = read(entry).ok()?;
    definition.at(&["status", "acceptedNames"]).cloned()
}

fn member_of_condition<'a>(object: &'a Object, kind: &str, member: &str) -> Option<&'a str> {
    object
        .at(&["status", "conditions"])?
        .as_array()?
        .iter()
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))?
        .get(member)?
        .as_str()
}
