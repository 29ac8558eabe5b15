//! A ghost: a member whose objects are computed from their number, so that thousands of them take no memory. It can be slow,
//! silent, endless or forgetful.

use super::model::{document, query};
use crate::api::{Answer, MemberApi, MemberError, Pieces};
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Value, value};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast;

/// How a ghost behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Good,
    /// It cannot be reached.
    Down,
    /// It answers health checks, and nothing else.
    Silent,
    /// Its lists have no end.
    Endless,
}

pub(super) struct State {
    pub(super) mood: Mood,
    /// The number of its pods.
    pub(super) pods: usize,
    /// The uid of its namespace kube-system.
    pub(super) uid: String,
    /// Its namespaces beside kube-system, and whether they have the label `sync=yes`.
    pub(super) namespaces: BTreeMap<String, bool>,
    /// The discovery of its groups, apart from core.
    pub(super) groups: Result<Value, u16>,
    pub(super) lists: usize,
    /// Paths that the hub may not read.
    pub(super) forbidden: BTreeSet<String>,
    /// The version of the whole member.
    version: u64,
}

/// A member with computed objects.
pub(super) struct Ghost {
    pub(super) state: Mutex<State>,
    events: broadcast::Sender<Bytes>,
    /// Events of namespaces.
    changes: broadcast::Sender<Bytes>,
}

fn resource(plural: &str, kind: &str, namespaced: bool) -> Value {
    let scope = if namespaced { "Namespaced" } else { "Cluster" };
    value!({
        "resource": plural, "responseKind": {"kind": kind}, "scope": scope, "singularResource": (kind.to_lowercase()),
        "verbs": ["get", "list", "watch"],
    })
}

/// The discovery document of some groups with one resource each.
pub(super) fn groups(of: &[(&str, &str, &str, &str)]) -> Value {
    let group = |(name, plural, kind, freshness): &(&str, &str, &str, &str)| {
        value!({"metadata": {"name": (*name)}, "versions": [
            {"version": "v1", "freshness": (*freshness), "resources": [(resource(plural, kind, true))]},
        ]})
    };
    let items: Vec<Value> = of.iter().map(group).collect();
    value!({"kind": "APIGroupDiscoveryList", "items": (Value::Array(items))})
}

impl Ghost {
    pub(super) fn new(pods: usize) -> Arc<Ghost> {
        Arc::new(Ghost {
            state: Mutex::new(State {
                mood: Mood::Good,
                pods,
                uid: "system-1".to_owned(),
                namespaces: BTreeMap::new(),
                groups: Ok(groups(&[("apps", "deployments", "Deployment", "Current")])),
                lists: 0,
                forbidden: BTreeSet::new(),
                version: 1_000_000,
            }),
            events: broadcast::channel(64).0,
            changes: broadcast::channel(64).0,
        })
    }

    pub(super) fn set(&self, mood: Mood) {
        self.state.lock().mood = mood;
    }

    /// Sends an event to all watches of pods.
    pub(super) fn send(&self, kind: &str, number: usize, version: u64) {
        self.state.lock().version = version;
        let mut object = pod(number);
        let metadata = object.make_object().object_mut("metadata");
        metadata.insert("resourceVersion", Value::string(version.to_string()));
        let _ = self.events.send(line(kind, object));
    }

    /// Makes or changes a namespace.
    pub(super) fn name(&self, name: &str, labelled: bool) {
        let mut state = self.state.lock();
        state.version += 1;
        let known = state.namespaces.insert(name.to_owned(), labelled);
        let kind = if known.is_some() { "MODIFIED" } else { "ADDED" };
        let object = namespace(name, labelled, state.version);
        let _ = self.changes.send(line(kind, object));
    }

    /// The namespaces that a query asks for.
    fn namespaces(state: &State, query: &std::collections::HashMap<String, String>) -> Vec<Value> {
        let mut all = vec![value!({"metadata": {
            "name": "kube-system", "uid": (state.uid.as_str()), "resourceVersion": "1",
        }})];
        if query.contains_key("fieldSelector") {
            return all;
        }
        let selects = query.contains_key("labelSelector");
        if selects {
            all.clear();
        }
        let others = state.namespaces.iter();
        let others = others.filter(|(_, labelled)| !selects || **labelled);
        all.extend(others.map(|(name, labelled)| namespace(name, *labelled, 2)));
        all
    }

    fn pods(&self, query: &std::collections::HashMap<String, String>) -> Value {
        let state = &mut *self.state.lock();
        let from: usize = query
            .get("continue")
            .map_or(0, |text| text.parse().expect("our own token"));
        if from == 0 {
            state.lists += 1;
        }
        let limit: usize = query
            .get("limit")
            .map_or(500, |text| text.parse().expect("a number"));
        let endless = state.mood == Mood::Endless;
        let to = match endless {
            true => from + limit,
            false => (from + limit).min(state.pods),
        };
        let items: Vec<Value> = (from..to).map(pod).collect();
        let next = match endless || to < state.pods {
            true => to.to_string(),
            false => String::new(),
        };
        value!({"metadata": {"resourceVersion": (state.version.to_string()), "continue": next}, "items": (Value::Array(items))})
    }

    /// The present state of a type in a watch.
    fn stream(
        &self,
        path: &str,
        version: &str,
        events: Option<broadcast::Receiver<Bytes>>,
    ) -> Stream {
        let state = &mut *self.state.lock();
        let mut lines = Vec::new();
        let mut pods = 0..0;
        match path {
            "/api/v1/pods" => {
                state.lists += 1;
                pods = 0..match state.mood {
                    Mood::Endless => usize::MAX,
                    _ => state.pods,
                };
            }
            "/api/v1/namespaces" => {
                let all = Ghost::namespaces(state, &std::collections::HashMap::new());
                lines.extend(all.into_iter().map(|object| line("ADDED", object)));
            }
            _ => {}
        }
        let end = value!({"k8s.io/initial-events-end": "true"});
        lines.push(line(
            "BOOKMARK",
            value!({"metadata": {"resourceVersion": version, "annotations": end}}),
        ));
        Stream {
            pods,
            lines,
            events: Events(events),
        }
    }

    fn answer(&self, target: &str) -> Answer {
        let path = target.split('?').next().unwrap_or(target);
        let query = query(target);
        if self.state.lock().forbidden.contains(path) {
            let message = format!("the hub may not read {path}");
            return document(403, &value!({"message": message}));
        }
        let version = self.state.lock().version.to_string();
        let empty = value!({"metadata": {"resourceVersion": (version.as_str())}, "items": []});
        if query.contains_key("watch") {
            let events = match path {
                "/api/v1/pods" => Some(self.events.subscribe()),
                "/api/v1/namespaces" => Some(self.changes.subscribe()),
                _ => None,
            };
            let body: Box<dyn Pieces> = match query.contains_key("sendInitialEvents") {
                true => Box::new(self.stream(path, &version, events)),
                false => Box::new(Events(events)),
            };
            return Answer { code: 200, body };
        }
        match path {
            "/readyz" => document(200, &value!("ok")),
            "/version" => document(200, &value!({"gitVersion": "v1.36.0"})),
            "/api" => {
                let resources = [
                    resource("pods", "Pod", true),
                    resource("namespaces", "Namespace", false),
                ];
                document(
                    200,
                    &value!({"kind": "APIGroupDiscoveryList", "items": [
                        {"metadata": {}, "versions": [{"version": "v1", "freshness": "Current", "resources": (Value::Array(resources.to_vec()))}]},
                    ]}),
                )
            }
            "/apis" => match &self.state.lock().groups {
                Ok(groups) => document(200, groups),
                Err(code) => document(*code, &value!({"message": "no"})),
            },
            "/api/v1/namespaces" => {
                let items = Ghost::namespaces(&self.state.lock(), &query);
                document(
                    200,
                    &value!({"metadata": {"resourceVersion": version}, "items": (Value::Array(items))}),
                )
            }
            "/api/v1/pods" => document(200, &self.pods(&query)),
            _ => document(200, &empty),
        }
    }
}

/// The present state, and then the events of a watch.
struct Stream {
    /// The numbers of the pods that are left.
    pods: std::ops::Range<usize>,
    /// Other lines after them.
    lines: Vec<Bytes>,
    events: Events,
}

impl Pieces for Stream {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, String>>> {
        // Many objects come in one piece.
        let some: Vec<usize> = self.pods.by_ref().take(500).collect();
        let piece = match some.is_empty() {
            false => some
                .into_iter()
                .flat_map(|number| line("ADDED", pod(number)))
                .collect(),
            true if !self.lines.is_empty() => self.lines.remove(0),
            true => return self.events.next(),
        };
        Box::pin(std::future::ready(Some(Ok(piece))))
    }
}

fn line(kind: &str, object: Value) -> Bytes {
    let mut line = value!({"type": kind, "object": object}).to_json();
    line.push(b'\n');
    line.into()
}

/// The events of a watch, or silence.
struct Events(Option<broadcast::Receiver<Bytes>>);

impl Pieces for Events {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, String>>> {
        Box::pin(async move {
            match &mut self.0 {
                Some(events) => events.recv().await.ok().map(Ok),
                None => std::future::pending().await,
            }
        })
    }
}

fn namespace(name: &str, labelled: bool, version: u64) -> Value {
    let label = if labelled { "yes" } else { "no" };
    value!({"metadata": {
        "name": name, "uid": (format!("uid-{name}")), "resourceVersion": (version.to_string()), "labels": {"sync": label},
    }})
}

fn pod(number: usize) -> Value {
    let name = format!("pod-{number:06}");
    value!({
        "metadata": {
            "name": (name.as_str()), "namespace": "default", "uid": (format!("uid-{number}")), "resourceVersion": (format!("{}", number + 1)),
            "labels": {"app": (format!("app-{}", number % 10))}, "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"nodeName": (format!("node-{}", number % 7))},
        "status": {"phase": "Running"},
    })
}

impl MemberApi for Ghost {
    fn get<'a>(
        &'a self,
        target: &'a str,
        _: &'a str,
        patience: Duration,
    ) -> BoxFuture<'a, Result<Answer, MemberError>> {
        Box::pin(async move {
            let mood = self.state.lock().mood.clone();
            match mood {
                Mood::Down => Err(MemberError::Unreachable("no route".to_owned())),
                Mood::Silent if target != "/readyz" => {
                    tokio::time::sleep(patience).await;
                    Err(MemberError::Unreachable("no answer".to_owned()))
                }
                _ => Ok(self.answer(target)),
            }
        })
    }
}
