//! Roles made of other roles: the rules of a ClusterRole with an aggregation rule are those of all roles it selects.

use crate::Client;
use crate::feed::Listener;
use crate::kinds::read;
use crate::queue::{Queue, Verdict};
use bareboat_api::labels::Selector;
use bareboat_api::value::Seen;
use bareboat_api::{Object, Status, Value, value};
use bareboat_storage::{Entry, Event, EventKind, Resource, Store};
use http::Method;
use memchr::memmem;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Where cluster roles are stored.
const ROLES: &str = "rbac.authorization.k8s.io/clusterroles";
const PATH: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
/// Under this name upstream writes the rules.
const MANAGER: &str = "clusterrole-aggregation-controller";

/// Notes which roles may lack rules, or have too many.
pub(crate) struct Ear {
    queue: Arc<Queue<Arc<str>>>,
    /// What roles with an aggregation rule select.
    aggregated: HashMap<Arc<str>, Vec<Selector>>,
}

impl Ear {
    pub(crate) fn new(queue: Arc<Queue<Arc<str>>>) -> Ear {
        Ear {
            queue,
            aggregated: HashMap::new(),
        }
    }

    fn learn(&mut self, entry: &Entry) {
        if !may_aggregate(entry) {
            self.aggregated.remove(entry.key());
            return;
        }
        let Ok(role) = read(entry) else {
            return;
        };
        let name: Arc<str> = entry.key().into();
        self.queue.add(name.clone());
        self.aggregated.insert(name, selectors(&role));
    }
}

impl Listener for Ear {
    fn reset(&mut self, store: &Store) {
        self.aggregated.clear();
        for entry in store.resource(ROLES).snapshot().range("", None) {
            self.learn(entry);
        }
    }

    fn heard(&mut self, resource: &Arc<Resource>, event: &Event) {
        if resource.name() != ROLES {
            return;
        }
        if event.kind == EventKind::Deleted {
            self.aggregated.remove(event.key());
        } else {
            self.learn(&event.entry);
        }
        let changed = [Some(&event.entry), event.prev.as_ref()];
        for (name, selectors) in &self.aggregated {
            let concerned = changed
                .iter()
                .flatten()
                .any(|entry| selectors.iter().any(|selector| selects(selector, entry)));
            if concerned {
                self.queue.add(name.clone());
            }
        }
    }
}

/// Whether a role may be made of others: certain when false, without reading it.
fn may_aggregate(entry: &Entry) -> bool {
    memmem::find(entry.json(), br#""aggregationRule":{"#).is_some()
}

fn selectors(role: &Object) -> Vec<Selector> {
    let list = role.at(&["aggregationRule", "clusterRoleSelectors"]);
    let list = list.and_then(Value::as_array).unwrap_or(&[]).iter();
    list.filter_map(|selector| Selector::from_object(selector).ok())
        .collect()
}

fn selects(selector: &Selector, entry: &Entry) -> bool {
    selector.matches(|key| entry.facets().label(key))
}

/// Writes rules.
pub(crate) struct Worker {
    client: Client,
}

impl Worker {
    pub(crate) fn new(client: &Client) -> Worker {
        Worker {
            client: client.named(MANAGER),
        }
    }

    pub(crate) async fn look(&self, name: Arc<str>) -> Verdict {
        match self.aggregate(&name).await {
            Ok(()) => Verdict::Done,
            // Gone or changed meanwhile: that will be heard of.
            Err(status) if matches!(status.code, 404 | 409) => Verdict::Done,
            Err(status) => {
                tracing::warn!(role = %name, %status, "a role could not be aggregated");
                Verdict::Retry
            }
        }
    }

    async fn aggregate(&self, name: &str) -> Result<(), Status> {
        let snapshot = self.client.server().store().resource(ROLES).snapshot();
        let Some(entry) = snapshot.get(name).filter(|entry| may_aggregate(entry)) else {
            return Ok(());
        };
        let role = read(entry)?;
        if role.get("aggregationRule").is_none_or(Value::is_null) {
            return Ok(());
        }
        let mut others = Vec::new();
        // Selected twice, a role adds nothing more.
        let mut chosen = HashSet::new();
        for selector in selectors(&role) {
            for other in snapshot.range("", None) {
                let wanted = other.key() != name && selects(&selector, other);
                if wanted && chosen.insert(other.key()) {
                    others.push(read(other)?);
                }
            }
        }
        let all = others
            .iter()
            .filter_map(|other| other.get("rules")?.as_array());
        let mut seen = Seen::new();
        let rules = all.flatten().filter(|rule| seen.insert(rule));
        let rules: Vec<Value> = rules.cloned().collect();
        let held = role.get("rules").and_then(Value::as_array).unwrap_or(&[]);
        if held == rules.as_slice() {
            return Ok(());
        }
        let mut wanted = value!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
        });
        if !rules.is_empty() {
            wanted.make_object().insert("rules", Value::Array(rules));
        }
        let path = format!(
            "{}?fieldManager={MANAGER}&force=true",
            crate::kinds::join(PATH, name)
        );
        self.client
            .request(
                Method::PATCH,
                &path,
                "application/apply-patch+yaml",
                Some(&wanted),
            )
            .await
            .map(|_| ())
    }
}
