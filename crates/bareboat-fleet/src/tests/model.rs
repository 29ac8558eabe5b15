//! A member in memory: objects of one type, with a history that can be watched, compacted and restored.

use crate::api::{Answer, MemberApi, MemberError, Pieces};
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Value, value};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Namespace and name.
pub(super) type Key = (String, String);

/// What the shelf must know about an object: uid, version and content.
pub(super) type Known = (String, u64, i64);

#[derive(Clone, Default)]
struct History {
    objects: BTreeMap<Key, Known>,
    log: Vec<(u64, &'static str, Key, Known)>,
    version: u64,
    born: u64,
}

/// What a member does when it is asked for the present state in a watch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Speech {
    /// It sends it, and marks its end.
    #[default]
    Streams,
    /// It refuses the parameters.
    Refuses,
    /// It does not know the parameters: the end is not marked.
    Ignores,
}

#[derive(Default)]
struct Inner {
    speech: Speech,
    now: History,
    /// Versions up to this one cannot be watched from.
    compacted: u64,
    /// Snapshots that lists in pages go through.
    snapshots: HashMap<u64, Vec<(Key, Known)>>,
    /// Streams of another number end.
    epoch: u64,
    failures: u32,
    lists: usize,
    streams: usize,
    watches: usize,
}

/// A member in memory.
#[derive(Default)]
pub(super) struct Model {
    inner: Mutex<Inner>,
    changed: Notify,
}

/// The state of a member at some time, to restore it from.
pub(super) struct Backup(History);

impl Model {
    pub(super) fn new() -> Arc<Model> {
        Model::speaking(Speech::Refuses)
    }

    pub(super) fn speaking(speech: Speech) -> Arc<Model> {
        let model = Model::default();
        model.inner.lock().now.version = 10;
        model.inner.lock().speech = speech;
        Arc::new(model)
    }

    pub(super) fn put(&self, name: &str, content: i64) {
        {
            let now = &mut self.inner.lock().now;
            now.version += 1;
            let key = ("default".to_owned(), name.to_owned());
            let (kind, uid) = match now.objects.get(&key) {
                Some((uid, ..)) => ("MODIFIED", uid.clone()),
                None => {
                    now.born += 1;
                    ("ADDED", format!("uid-{}", now.born))
                }
            };
            let known = (uid, now.version, content);
            now.objects.insert(key.clone(), known.clone());
            now.log.push((now.version, kind, key, known));
        }
        self.changed.notify_waiters();
    }

    pub(super) fn delete(&self, name: &str) {
        {
            let now = &mut self.inner.lock().now;
            let key = ("default".to_owned(), name.to_owned());
            if let Some((uid, _, content)) = now.objects.remove(&key) {
                now.version += 1;
                let known = (uid, now.version, content);
                now.log.push((now.version, "DELETED", key, known));
            }
        }
        self.changed.notify_waiters();
    }

    /// Changes something that is not of the type, so that bookmarks move.
    pub(super) fn pass(&self) {
        self.inner.lock().now.version += 1;
        self.changed.notify_waiters();
    }

    /// Forgets the history, and ends the lists that go through pages.
    pub(super) fn compact(&self) {
        let inner = &mut *self.inner.lock();
        inner.compacted = inner.now.version;
        inner.now.log.clear();
        inner.snapshots.clear();
    }

    /// Breaks all connections.
    pub(super) fn cut(&self) {
        self.inner.lock().epoch += 1;
        self.changed.notify_waiters();
    }

    /// Fails the next requests.
    pub(super) fn fail(&self, requests: u32) {
        self.inner.lock().failures = requests;
    }

    pub(super) fn backup(&self) -> Backup {
        Backup(self.inner.lock().now.clone())
    }

    /// Goes back to a backup: versions that were given are given again.
    pub(super) fn restore(&self, backup: &Backup) {
        let inner = &mut *self.inner.lock();
        inner.now = backup.0.clone();
        // Uids are never given twice.
        inner.now.born += 1000;
        inner.compacted = inner.compacted.min(inner.now.version);
        inner.snapshots.clear();
        inner.epoch += 1;
        self.changed.notify_waiters();
    }

    pub(super) fn objects(&self) -> BTreeMap<Key, Known> {
        self.inner.lock().now.objects.clone()
    }

    pub(super) fn version(&self) -> u64 {
        self.inner.lock().now.version
    }

    /// How often the type was listed from the start, and how often it was watched.
    pub(super) fn counts(&self) -> (usize, usize) {
        let inner = self.inner.lock();
        (inner.lists, inner.watches)
    }

    /// How often the present state was asked for in a watch.
    pub(super) fn streams(&self) -> usize {
        self.inner.lock().streams
    }

    fn list(&self, query: &HashMap<String, String>) -> Result<Value, MemberError> {
        let inner = &mut *self.inner.lock();
        let limit: usize = query
            .get("limit")
            .and_then(|text| text.parse().ok())
            .unwrap_or(500);
        let token = query
            .get("continue")
            .map(|text| text.split_once('-').expect("our own token"));
        let (version, from) = match token {
            None => {
                inner.lists += 1;
                let version = inner.now.version;
                let all = inner
                    .now
                    .objects
                    .iter()
                    .map(|(key, known)| (key.clone(), known.clone()));
                inner.snapshots.insert(version, all.collect());
                (version, 0)
            }
            Some((version, from)) => (
                version.parse().expect("our own token"),
                from.parse::<usize>().expect("our own token"),
            ),
        };
        let Some(snapshot) = inner.snapshots.get(&version) else {
            return Err(MemberError::Refused {
                code: 410,
                message: "expired".to_owned(),
            });
        };
        let items: Vec<Value> = snapshot
            .iter()
            .skip(from)
            .take(limit)
            .map(|(key, known)| object(key, known))
            .collect();
        let next = match from + items.len() < snapshot.len() {
            true => format!("{version}-{}", from + items.len()),
            false => String::new(),
        };
        Ok(value!({
            "metadata": {"resourceVersion": (version.to_string()), "continue": next},
            "items": (Value::Array(items)),
        }))
    }
}

fn object(key: &Key, known: &Known) -> Value {
    value!({
        "metadata": {
            "namespace": (key.0.as_str()), "name": (key.1.as_str()), "uid": (known.0.as_str()),
            "resourceVersion": (known.1.to_string()),
        },
        "data": {"content": (known.2.to_string())},
    })
}

/// Reads the query of a target.
pub(super) fn query(target: &str) -> HashMap<String, String> {
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// A whole body.
pub(super) struct Whole(pub(super) Option<Bytes>);

impl Pieces for Whole {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, String>>> {
        Box::pin(std::future::ready(self.0.take().map(Ok)))
    }
}

/// The answer with a document.
pub(super) fn document(code: u16, value: &Value) -> Answer {
    Answer {
        code,
        body: Box::new(Whole(Some(value.to_json().into()))),
    }
}

/// The event of a watch whose version is too old.
fn expired() -> Value {
    value!({"type": "ERROR", "object": {"code": 410, "reason": "Expired"}})
}

/// The part of a watch that brings the present state.
struct State {
    objects: VecDeque<Value>,
    marks_end: bool,
}

/// A watch from a version on.
struct Watch {
    model: Arc<Model>,
    /// What is left of the present state.
    state: Option<State>,
    at: u64,
    epoch: u64,
    bookmark: u64,
    rest: Option<Bytes>,
}

impl Watch {
    /// Returns the next line, if there is one.
    fn line(&mut self) -> Option<Result<Bytes, String>> {
        let inner = self.model.inner.lock();
        if inner.epoch != self.epoch {
            return Some(Err("the connection was lost".to_owned()));
        }
        // What was forgotten before it was sent is lost, and the member says so.
        if self.at.max(self.bookmark) < inner.compacted {
            let mut line = expired().to_json();
            line.push(b'\n');
            return Some(Ok(line.into()));
        }
        let event = inner
            .now
            .log
            .iter()
            .find(|(version, ..)| *version > self.at);
        let first = self
            .state
            .as_mut()
            .and_then(|state| state.objects.pop_front());
        let event = match event {
            _ if first.is_some() => {
                value!({"type": "ADDED", "object": (first.unwrap_or_default())})
            }
            Some((version, kind, key, known)) => {
                self.at = *version;
                value!({"type": (*kind), "object": (object(key, known))})
            }
            // What happened meanwhile comes before the end of the state.
            None if self.state.take().is_some_and(|state| state.marks_end) => {
                self.bookmark = inner.now.version;
                let version = inner.now.version.to_string();
                let end = value!({"k8s.io/initial-events-end": "true"});
                value!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": version, "annotations": end}}})
            }
            None if inner.now.version > self.at.max(self.bookmark) => {
                self.bookmark = inner.now.version;
                let version = inner.now.version.to_string();
                value!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": version}}})
            }
            None => return None,
        };
        let mut line = event.to_json();
        line.push(b'\n');
        Some(Ok(line.into()))
    }
}

impl Pieces for Watch {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, String>>> {
        Box::pin(async move {
            if let Some(rest) = self.rest.take() {
                return Some(Ok(rest));
            }
            loop {
                let model = self.model.clone();
                let changed = model.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if let Some(line) = self.line() {
                    let mut line = match line {
                        Ok(line) => line,
                        Err(why) => return Some(Err(why)),
                    };
                    // Lines come in pieces.
                    self.rest = Some(line.split_off(line.len() / 2));
                    return Some(Ok(line));
                }
                changed.await;
            }
        })
    }
}

/// The model, as the sync sees it.
pub(super) struct ModelApi(pub(super) Arc<Model>);

impl ModelApi {
    /// Answers a watch that asks for the present state.
    fn stream(&self, inner: &mut Inner) -> Answer {
        inner.streams += 1;
        if inner.speech == Speech::Refuses {
            let message = "sendInitialEvents: Forbidden";
            return document(422, &value!({"message": message}));
        }
        let objects = inner.now.objects.iter();
        let version = inner.now.version;
        Answer {
            code: 200,
            body: Box::new(Watch {
                model: self.0.clone(),
                state: Some(State {
                    objects: objects.map(|(key, known)| object(key, known)).collect(),
                    marks_end: inner.speech == Speech::Streams,
                }),
                at: version,
                epoch: inner.epoch,
                bookmark: version,
                rest: None,
            }),
        }
    }
}

impl MemberApi for ModelApi {
    fn get<'a>(
        &'a self,
        target: &'a str,
        _: &'a str,
        _: Duration,
    ) -> BoxFuture<'a, Result<Answer, MemberError>> {
        Box::pin(async move {
            {
                let inner = &mut *self.0.inner.lock();
                if inner.failures > 0 {
                    inner.failures -= 1;
                    return Err(MemberError::Unreachable("no route".to_owned()));
                }
            }
            let query = query(target);
            if !query.contains_key("watch") {
                return match self.0.list(&query) {
                    Ok(list) => Ok(document(200, &list)),
                    Err(MemberError::Refused { code, .. }) => {
                        Ok(document(code, &value!({"message": "expired"})))
                    }
                    Err(error) => Err(error),
                };
            }
            let inner = &mut *self.0.inner.lock();
            if query.contains_key("sendInitialEvents") {
                return Ok(self.stream(inner));
            }
            let version: u64 = query["resourceVersion"].parse().expect("a version of ours");
            inner.watches += 1;
            if version < inner.compacted {
                let mut line = expired().to_json();
                line.push(b'\n');
                return Ok(Answer {
                    code: 200,
                    body: Box::new(Whole(Some(line.into()))),
                });
            }
            Ok(Answer {
                code: 200,
                body: Box::new(Watch {
                    model: self.0.clone(),
                    state: None,
                    at: version,
                    epoch: inner.epoch,
                    bookmark: version,
                    rest: None,
                }),
            })
        })
    }
}
