//! Priority and fairness for a server: passes FlowSchemas and PriorityLevelConfigurations from the store to flow
//! control.

use bareboat_api::Value;
use bareboat_server::{FlowControl, ServerBuilder};
use bareboat_storage::{Entry, Event, EventKind, Observer, Snapshot};
use std::sync::Arc;

const SCHEMAS: &str = "flowcontrol.apiserver.k8s.io/flowschemas";
const LEVELS: &str = "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations";

/// Adds flow control by the FlowSchemas and PriorityLevelConfigurations in the store.
pub(crate) fn install(builder: ServerBuilder) -> ServerBuilder {
    let control = FlowControl::new();
    let view = |content| {
        Arc::new(View {
            control: control.clone(),
            content,
        })
    };
    builder
        .observe(SCHEMAS, view(Content::Schemas))
        .observe(LEVELS, view(Content::Levels))
        .flow_control(control)
}

/// The kind of objects in a storage resource.
#[derive(Clone, Copy)]
enum Content {
    Schemas,
    Levels,
}

/// Reports changes to flow control inside each commit.
struct View {
    control: FlowControl,
    content: Content,
}

impl View {
    fn set(&self, name: &str, value: Option<&Value>) {
        match self.content {
            Content::Schemas => self.control.set_schema(name, value),
            Content::Levels => self.control.set_level(name, value),
        }
    }
}

/// Parses an object, if possible.
fn read(entry: &Entry) -> Option<Value> {
    match bareboat_wire::json::parse(entry.json()) {
        Ok(parsed) => Some(parsed.value),
        Err(error) => {
            tracing::error!(key = entry.key(), %error, "a stored object of flow control does not parse");
            None
        }
    }
}

impl Observer for View {
    fn reset(&self, snapshot: &Snapshot) {
        let objects: Vec<Value> = snapshot
            .range("", None)
            .filter_map(|entry| read(entry))
            .collect();
        match self.content {
            Content::Schemas => self.control.reset_schemas(&objects),
            Content::Levels => self.control.reset_levels(&objects),
        }
    }

    fn changed(&self, event: &Arc<Event>) {
        match event.kind {
            EventKind::Deleted => self.set(event.key(), None),
            _ => self.set(event.key(), read(&event.entry).as_ref()),
        }
    }
}
