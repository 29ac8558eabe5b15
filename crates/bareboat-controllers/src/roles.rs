//! Aggregated cluster roles: the rules of a ClusterRole with an aggregation rule are those of all roles it selects.

use crate::Client;
use crate::controller::Controller;
use crate::feed::Listener;
use crate::identity::Identity;
use crate::kinds::read;
use crate::queue::{Queue, Verdict};
use crate::startup::Context;
use bareboat_api::labels::Selector;
use bareboat_api::value::Seen;
use bareboat_api::{Object, Status, Value, value};
use bareboat_server::kinds::catalog::Table;
use bareboat_storage::{Entry, Event, EventKind, Resource, Store};
use memchr::memmem;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The store resource of ClusterRoles.
const ROLES: &str = "rbac.authorization.k8s.io/clusterroles";
const PATH: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
/// The field manager and the account that Kubernetes' controller uses.
const MANAGER: &str = "clusterrole-aggregation-controller";

/// Notices aggregated roles whose rules may have changed.
pub(crate) struct RoleListener {
    queue: Arc<Queue<Arc<str>>>,
    /// The selectors of roles with an aggregation rule.
    aggregated: HashMap<Arc<str>, Vec<Selector>>,
}

impl RoleListener {
    fn update(&mut self, entry: &Entry) {
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

impl Listener for RoleListener {
    fn reset(&mut self, store: &Store) {
        self.aggregated.clear();
        for entry in store.resource(ROLES).snapshot().range("", None) {
            self.update(entry);
        }
    }

    fn on_event(&mut self, resource: &Arc<Resource>, event: &Event) {
        if resource.name() != ROLES {
            return;
        }
        if event.kind == EventKind::Deleted {
            self.aggregated.remove(event.key());
        } else {
            self.update(&event.entry);
        }
        let changed = [Some(&event.entry), event.prev.as_ref()];
        for (name, selectors) in &self.aggregated {
            let selected = changed
                .iter()
                .flatten()
                .any(|entry| selectors.iter().any(|selector| selects(selector, entry)));
            if selected {
                self.queue.add(name.clone());
            }
        }
    }
}

/// Whether a role may have an aggregation rule, without parsing it. `false` is certain.
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

/// Writes the rules of aggregated roles. Keys are names of cluster roles.
pub(crate) struct RoleAggregator {
    client: Client,
}

impl Controller for RoleAggregator {
    const NAME: &'static str = "roles";
    const MANAGER: &'static str = MANAGER;
    const PARALLEL: usize = 4;
    type Key = Arc<str>;
    type Listener = RoleListener;

    fn identity(_: &Table) -> Identity {
        Identity::kubernetes(MANAGER)
    }

    fn new(
        context: &mut Context<'_>,
        queue: Arc<Queue<Arc<str>>>,
    ) -> (RoleAggregator, RoleListener) {
        let client = context.client.clone();
        let listener = RoleListener {
            queue,
            aggregated: HashMap::new(),
        };
        (RoleAggregator { client }, listener)
    }

    async fn reconcile(&self, name: Arc<str>) -> Verdict {
        match self.aggregate(&name).await {
            Ok(()) => Verdict::Done,
            // It was deleted or changed meanwhile, and an event follows.
            Err(status) if matches!(status.code, 404 | 409) => Verdict::Done,
            Err(status) => {
                tracing::warn!(role = %name, %status, "cannot aggregate a role");
                Verdict::Retry
            }
        }
    }
}

impl RoleAggregator {
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
        // Several selectors may select the same role.
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
        let path = crate::kinds::join(PATH, name);
        self.client.apply(&path, MANAGER, &wanted).await
    }
}
