//! Flow schemas and priority levels: the defaults exist and are kept up to date, and every schema says in its status
//! whether its level exists.

mod listener;

use crate::Client;
use crate::Options;
use crate::conditions::{Condition, now};
use crate::controller::Controller;
use crate::identity::Identity;
use crate::kinds::{join, read};
use crate::queue::{Queue, Verdict};
use crate::startup::Context;
use bareboat_api::{Object, Status, Value, value};
use bareboat_flow::defaults::{self, AUTO_UPDATE, Repair};
use bareboat_server::Server;
use bareboat_server::kinds::catalog::Table;
use bareboat_storage::Resource;
use http::Method;
use std::collections::HashMap;
use std::sync::Arc;

use listener::FlowListener;

const GROUP: &str = "flowcontrol.apiserver.k8s.io";
const API_VERSION: &str = "flowcontrol.apiserver.k8s.io/v1";
/// Under these names upstream writes default objects, and conditions.
const PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";
const CONSUMER: &str = "api-priority-and-fairness-config-consumer-v1";

/// One of the two kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Which {
    Level,
    Schema,
}

impl Which {
    const ALL: [Which; 2] = [Which::Level, Which::Schema];

    fn of(store: &str) -> Option<Which> {
        Which::ALL.into_iter().find(|which| which.store() == store)
    }

    fn store(self) -> &'static str {
        match self {
            Which::Level => "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations",
            Which::Schema => "flowcontrol.apiserver.k8s.io/flowschemas",
        }
    }

    fn collection(self) -> &'static str {
        match self {
            Which::Level => "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
            Which::Schema => "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
        }
    }

    fn defaults(self) -> Vec<Value> {
        match self {
            Which::Level => defaults::levels(),
            Which::Schema => defaults::schemas(),
        }
    }
}

/// The kind and name of a level or schema.
pub(crate) type ObjectName = (Which, Arc<str>);

/// Keeps default objects and conditions up to date.
pub(crate) struct FlowConfigKeeper {
    producer: Client,
    consumer: Client,
    defaults: HashMap<ObjectName, Value>,
}

impl Controller for FlowConfigKeeper {
    const NAME: &'static str = "flow-control";
    const MANAGER: &'static str = PRODUCER;
    const PARALLEL: usize = 4;
    type Key = ObjectName;
    type Listener = FlowListener;

    fn identity(_: &Table) -> Identity {
        let rules = [
            "create update delete | flowcontrol.apiserver.k8s.io | flowschemas prioritylevelconfigurations",
            "patch | flowcontrol.apiserver.k8s.io | flowschemas/status",
        ];
        Identity::own("bareboat-flow-control", &rules)
    }

    fn has_work(server: &Server, _: &Options) -> bool {
        let table = server.catalog().table();
        table.find(GROUP, "flowschemas").is_some()
    }

    fn new(
        context: &mut Context<'_>,
        queue: Arc<Queue<ObjectName>>,
    ) -> (FlowConfigKeeper, FlowListener) {
        let defaults = Which::ALL.into_iter().flat_map(|which| {
            let objects = which.defaults().into_iter();
            objects.map(move |object| ((which, name(&object).into()), object))
        });
        let keeper = FlowConfigKeeper {
            producer: context.client.named(PRODUCER),
            consumer: context.client.named(CONSUMER),
            defaults: defaults.collect(),
        };
        (keeper, FlowListener::new(queue))
    }

    async fn before_start(&self) {
        self.update_all().await;
    }

    async fn reconcile(&self, object: ObjectName) -> Verdict {
        match self.bring_up_to_date(&object).await {
            Ok(()) => Verdict::Done,
            // It was deleted or changed meanwhile, and an event follows.
            Err(status) if matches!(status.code, 404 | 409) => Verdict::Done,
            Err(status) => {
                tracing::warn!(name = %object.1, %status, "cannot update an object of flow control");
                Verdict::Retry
            }
        }
    }
}

impl FlowConfigKeeper {
    /// Creates or repairs all objects. Levels come first, because schemas refer to them.
    async fn update_all(&self) {
        for which in Which::ALL {
            let defaults = self.defaults.keys().filter(|(kind, _)| *kind == which);
            let mut names: Vec<Arc<str>> = defaults.map(|(_, name)| name.clone()).collect();
            let stored = self.stored(which).snapshot();
            names.extend(stored.range("", None).map(|entry| Arc::from(entry.key())));
            names.sort();
            names.dedup();
            let looks = names.into_iter().map(|name| async move {
                if let Err(status) = self.bring_up_to_date(&(which, name.clone())).await {
                    tracing::error!(%name, %status, "cannot write a default object of flow control");
                }
            });
            // They share commits.
            futures_util::future::join_all(looks).await;
        }
    }

    fn stored(&self, which: Which) -> Arc<Resource> {
        self.producer.server().store().resource(which.store())
    }

    async fn bring_up_to_date(&self, object_name: &ObjectName) -> Result<(), Status> {
        let (which, name) = (object_name.0, &object_name.1);
        let stored = self.stored(which);
        let object = stored.get(name).map(|entry| read(&entry)).transpose()?;
        let is_going = |object: &Object| object.deletion_timestamp().is_some();
        if object.as_ref().is_some_and(is_going) {
            // A default object is created again when it is gone.
            return Ok(());
        }
        match (object, self.defaults.get(object_name)) {
            (None, Some(default)) => {
                let created = self.producer.create(which.collection(), default).await;
                match created {
                    Err(status) if status.reason != "AlreadyExists" => Err(status),
                    _ => self.describe(which, name).await,
                }
            }
            (None, None) => Ok(()),
            (Some(object), Some(default)) => {
                let stored = Value::from(object);
                if let Repair::Update(wanted) = defaults::repair(&stored, default) {
                    let path = join(which.collection(), name);
                    self.producer.update(&path, &wanted).await?;
                }
                self.describe(which, name).await
            }
            (Some(object), None) => {
                // A default object of another release that was never changed, and is no default any more.
                let annotation = object.at(&["metadata", "annotations", AUTO_UPDATE]);
                if annotation.and_then(Value::as_str) == Some("true") {
                    let path = join(which.collection(), name);
                    let uid = object.at(&["metadata", "uid"]).cloned().unwrap_or_default();
                    let options = value!({"preconditions": {"uid": (uid)}});
                    return self.producer.remove(&path, &options).await;
                }
                self.describe(which, name).await
            }
        }
    }

    /// Says in the status of a schema whether its level exists.
    async fn describe(&self, which: Which, name: &str) -> Result<(), Status> {
        if which == Which::Level {
            return Ok(());
        }
        let Some(entry) = self.stored(which).get(name) else {
            return Ok(());
        };
        let schema = read(&entry)?;
        let Some(condition) = condition(
            &schema,
            self.stored(Which::Level).get(level(&schema)).is_some(),
        ) else {
            return Ok(());
        };
        let wanted = value!({
            "apiVersion": (API_VERSION),
            "kind": "FlowSchema",
            "metadata": {"name": (name)},
            "status": {"conditions": [(condition)]},
        });
        let path = join(which.collection(), name);
        let path = format!("{path}/status?fieldManager={CONSUMER}&force=true");
        let apply = "application/apply-patch+yaml";
        let applied = self
            .consumer
            .request(Method::PATCH, &path, apply, Some(&wanted));
        applied.await.map(|_| ())
    }
}

/// The condition to set; noobject_name if it is set already.
fn condition(schema: &Object, exists: bool) -> Option<Value> {
    let level = level(schema);
    let names = format!(
        "This FlowSchema references the PriorityLevelConfiguration object named \"{level}\""
    );
    let dangling = match exists {
        true => Condition::new("Dangling", false, "Found", format!("{names} and it exists")),
        false => Condition::new(
            "Dangling",
            true,
            "NotFound",
            format!("{names} but there is no such object"),
        ),
    };
    let known = schema
        .at(&["status", "conditions"])
        .and_then(Value::as_array);
    let mut known = known.unwrap_or(&[]).to_vec();
    if !dangling.set(&mut known, &now()) {
        return None;
    }
    let is_ours =
        |condition: &Value| condition.get("type").and_then(Value::as_str) == Some("Dangling");
    known.into_iter().find(is_ours)
}

fn level(schema: &Object) -> &str {
    let name = schema.at(&["spec", "priorityLevelConfiguration", "name"]);
    name.and_then(Value::as_str).unwrap_or("")
}

fn name(object: &Value) -> &str {
    let name = object.at(&["metadata", "name"]);
    name.and_then(Value::as_str).unwrap_or("")
}
