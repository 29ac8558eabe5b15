//! What is known about a member at the moment, shared by its session, views and the writer of its status.

use super::conditions::{Condition, Conditions};
use super::note::Note;
use super::table::Table;
use crate::sync::{Failure, Report};
use crate::types::{Chosen, TypeKey, converts_nothing};
use crate::views::Live;
use bareboat_api::Value;
use bareboat_views::{Member, OtherVersion, SyncedType, VersionSource};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// How far the sync of a type is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It waits for its turn to list.
    Pending,
    /// It lists; so many objects were read.
    Listing(usize),
    /// It follows the member.
    Syncing,
    /// It failed, and is tried again.
    Failed(Failure),
    /// It does not run, because the member is not healthy.
    Stopped,
}

/// A type of a member.
#[derive(Clone, Debug)]
pub(crate) struct TypeState {
    pub(crate) chosen: Chosen,
    pub(crate) info: Arc<SyncedType>,
    pub(crate) phase: Phase,
    /// Whether the type was listed completely at least once.
    pub(crate) filled: bool,
    /// When the phase last changed its name.
    pub(crate) since: i64,
}

/// Counters of a member, for metrics.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) changes: AtomicU64,
    pub(crate) skipped: AtomicU64,
    pub(crate) refills: AtomicU64,
}

#[derive(Default)]
struct Inner {
    conditions: Conditions,
    labels: BTreeMap<String, String>,
    version: Value,
    url: String,
    types: BTreeMap<TypeKey, TypeState>,
    shows_secrets: bool,
    judges: bool,
    live: Option<Live>,
    /// What another server says that syncs the member.
    told: Option<Note>,
}

/// What is known about a member.
pub(crate) struct MemberState {
    pub(crate) name: Arc<str>,
    inner: Mutex<Inner>,
    heard: AtomicI64,
    /// Counts changes.
    stamp: AtomicU64,
    /// The text of the last note, and the count it belongs to.
    note: Mutex<(u64, String)>,
    pub(crate) counters: Counters,
    table: Arc<Table>,
}

/// A copy of what the status of a PediaCluster shows.
pub(crate) struct Shown {
    pub(crate) conditions: Conditions,
    pub(crate) version: String,
    pub(crate) url: String,
    pub(crate) types: Vec<TypeState>,
}

impl MemberState {
    pub(crate) fn new(name: &str, table: &Arc<Table>) -> Arc<MemberState> {
        Arc::new(MemberState {
            name: Arc::from(name),
            inner: Mutex::default(),
            heard: AtomicI64::new(0),
            stamp: AtomicU64::new(1),
            note: Mutex::default(),
            counters: Counters::default(),
            table: table.clone(),
        })
    }

    /// Changes something; views and the status follow if it is a change.
    fn change(&self, change: impl FnOnce(&mut Inner) -> bool) {
        let changed = change(&mut self.inner.lock());
        if changed {
            self.stamp.fetch_add(1, Ordering::AcqRel);
            self.table.changed(&self.name);
        }
    }

    pub(crate) fn set_condition(&self, set: impl FnOnce(&mut Conditions)) {
        self.change(|inner| {
            let before = inner.conditions.clone();
            set(&mut inner.conditions);
            inner.conditions != before
        });
    }

    /// The server stops, and nothing is synced any more.
    pub(crate) fn shut_down(&self) {
        self.stop_types();
        self.set_condition(|conditions| {
            conditions.running = Condition::new(false, "Shutdown", "the server was stopped");
        });
    }

    pub(crate) fn set_labels(&self, labels: BTreeMap<String, String>) {
        self.change(|inner| {
            let changed = inner.labels != labels;
            inner.labels = labels;
            changed
        });
    }

    /// Sets whether the member itself decides who reads its objects.
    pub(crate) fn set_judges(&self, judges: bool) {
        self.change(|inner| std::mem::replace(&mut inner.judges, judges) != judges);
    }

    /// Returns whether another server syncs the member.
    pub(crate) fn is_remote(&self) -> bool {
        self.inner.lock().told.is_some()
    }

    /// Takes what another server says that syncs the member.
    pub(crate) fn tell(&self, note: Note, heard: Option<i64>) {
        self.heard.store(heard.unwrap_or(0), Ordering::Relaxed);
        let now = self.table.now();
        let changed = {
            let mut inner = self.inner.lock();
            let changed = inner.told.as_ref() != Some(&note);
            if changed {
                let types = note.types.iter().map(|chosen| stopped(chosen.clone(), now));
                inner.types = types.map(|one| (one.chosen.key(), one)).collect();
                inner.version = note.version.clone();
                inner.shows_secrets = note.shows_secrets;
                inner.told = Some(note);
            }
            changed
        };
        match changed {
            true => self.table.changed(&self.name),
            false => self.publish(),
        }
    }

    /// Returns the note for other servers as text. It is printed once per change.
    pub(crate) fn noted(&self, print: impl FnOnce(&Note) -> String) -> String {
        let stamp = self.stamp.load(Ordering::Acquire);
        let mut note = self.note.lock();
        if note.0 != stamp {
            let view = self.view();
            let types = self.inner.lock();
            let shown = types
                .types
                .values()
                .filter(|one| one.chosen.shown && one.filled);
            let told = Note {
                ready: view.ready,
                reason: view.reason,
                in_sync: view.in_sync,
                version: view.version,
                shows_secrets: view.shows_secrets,
                types: shown.map(|one| one.chosen.clone()).collect(),
            };
            *note = (stamp, print(&told));
        }
        note.1.clone()
    }

    /// Sets how views reach the member.
    pub(crate) fn set_live(&self, live: Option<Live>) {
        self.inner.lock().live = live;
    }

    pub(crate) fn live(&self) -> Option<Live> {
        self.inner.lock().live.clone()
    }

    pub(crate) fn set_url(&self, url: &str) {
        self.change(|inner| {
            let changed = inner.url != url;
            url.clone_into(&mut inner.url);
            changed
        });
    }

    pub(crate) fn set_version(&self, version: Value) {
        self.change(|inner| {
            let changed = inner.version != version;
            inner.version = version;
            changed
        });
    }

    pub(crate) fn set_shows_secrets(&self, shows: bool) {
        self.change(|inner| std::mem::replace(&mut inner.shows_secrets, shows) != shows);
    }

    /// The member answered or sent something.
    pub(crate) fn heard(&self) {
        self.heard.store(self.table.now(), Ordering::Relaxed);
    }

    /// Takes the time at which another server last heard the member.
    pub(crate) fn heard_at(&self, time: i64) {
        self.heard.store(time, Ordering::Relaxed);
        self.publish();
    }

    /// Publishes when the member was last heard. Views read this only for members that are not in sync, so nothing is done for others.
    pub(crate) fn publish(&self) {
        let fleet = self.table.fleet();
        let shown = fleet.members.get(&*self.name);
        if !shown.is_some_and(|member| member.in_sync && member.heard.is_some()) {
            self.table.publish(&self.name);
        }
    }

    /// When the member was last heard, in milliseconds since 1970.
    pub(crate) fn last_heard(&self) -> Option<i64> {
        Some(self.heard.load(Ordering::Relaxed)).filter(|time| *time > 0)
    }

    /// Adds or replaces a type. What is known about how far it is stays.
    pub(crate) fn add_type(&self, chosen: &Chosen, resumes: bool) {
        let now = self.table.now();
        self.change(|inner| {
            let info = Arc::new(info(chosen));
            match inner.types.get_mut(&chosen.key()) {
                Some(known) => {
                    known.chosen = chosen.clone();
                    known.info = info;
                    if known.phase == Phase::Stopped {
                        known.phase = Phase::Pending;
                    }
                }
                None => {
                    let state = TypeState {
                        chosen: chosen.clone(),
                        info,
                        phase: Phase::Pending,
                        filled: resumes,
                        since: now,
                    };
                    inner.types.insert(chosen.key(), state);
                }
            }
            true
        });
    }

    /// Takes types that were synced before this server started. They do not run yet.
    pub(crate) fn restore(&self, types: Vec<Chosen>) {
        let now = self.table.now();
        let restored = types.into_iter().map(|chosen| {
            let state = stopped(chosen, now);
            (state.chosen.key(), state)
        });
        self.inner.lock().types.extend(restored);
    }

    pub(crate) fn remove_type(&self, key: &TypeKey) {
        self.change(|inner| inner.types.remove(key).is_some());
    }

    /// Marks all types as not running.
    pub(crate) fn stop_types(&self) {
        let now = self.table.now();
        self.change(|inner| {
            for state in inner.types.values_mut() {
                (state.phase, state.since) = (Phase::Stopped, now);
            }
            true
        });
    }

    /// Takes the report of a type's task.
    pub(crate) fn report(&self, key: &TypeKey, report: Report) {
        if let Report::Changed(rows) = report {
            self.counters
                .changes
                .fetch_add(rows as u64, Ordering::Relaxed);
        }
        let phase = match report {
            Report::Heard | Report::Changed(_) => return self.heard(),
            Report::Skipped(objects) => {
                self.counters
                    .skipped
                    .fetch_add(objects as u64, Ordering::Relaxed);
                return;
            }
            Report::Refilled => {
                self.counters.refills.fetch_add(1, Ordering::Relaxed);
                return;
            }
            Report::Waiting => Phase::Pending,
            Report::Listing(read) => Phase::Listing(read),
            Report::Syncing => {
                self.heard();
                Phase::Syncing
            }
            Report::Failed(failure) => Phase::Failed(failure),
        };
        let now = self.table.now();
        self.change(|inner| {
            let Some(state) = inner.types.get_mut(key) else {
                return false;
            };
            state.filled |= phase == Phase::Syncing;
            if std::mem::discriminant(&state.phase) != std::mem::discriminant(&phase) {
                state.since = now;
            }
            let changed = state.phase != phase;
            state.phase = phase;
            changed
        });
    }

    /// Returns the types.
    pub(crate) fn types(&self) -> Vec<TypeState> {
        self.inner.lock().types.values().cloned().collect()
    }

    /// Returns what the status shows.
    pub(crate) fn shown(&self) -> Shown {
        let inner = self.inner.lock();
        let version = inner.version.get("gitVersion").and_then(Value::as_str);
        let clean = |text: &str| text.chars().filter(|c| !c.is_control()).take(64).collect();
        Shown {
            conditions: inner.conditions.clone(),
            version: version.map(clean).unwrap_or_default(),
            url: inner.url.clone(),
            types: inner
                .types
                .values()
                .filter(|one| one.chosen.shown)
                .cloned()
                .collect(),
        }
    }

    /// Returns whether the member was healthy when it was last asked.
    pub(crate) fn is_healthy(&self) -> bool {
        self.inner.lock().conditions.healthy.holds()
    }

    /// Returns whether it is known how the member is: all its types were listed once, or it cannot be synced.
    pub(crate) fn is_settled(&self) -> bool {
        let inner = self.inner.lock();
        let conditions = &inner.conditions;
        let listed = |one: &TypeState| one.filled || matches!(one.phase, Phase::Failed(_));
        let fails = |condition: &Condition| condition.status == "False";
        fails(&conditions.validated)
            || fails(&conditions.healthy)
            || conditions.healthy.holds() && inner.types.values().all(listed)
    }

    /// Returns the condition `Ready`.
    pub(crate) fn ready(&self) -> Condition {
        self.inner.lock().conditions.ready()
    }

    /// Returns the member as views see it.
    pub(crate) fn view(&self) -> Member {
        let inner = self.inner.lock();
        let told = inner.told.as_ref();
        let shown = || inner.types.values().filter(|one| one.chosen.shown);
        let fact = |key: &str| {
            let labels = [format!("topology.kubernetes.io/{key}"), key.to_owned()];
            let found = labels.iter().find_map(|label| inner.labels.get(label));
            found.map(|value| (key.to_owned(), value.clone()))
        };
        Member {
            name: self.name.to_string(),
            labels: inner.labels.clone(),
            facts: ["region", "zone", "provider"]
                .iter()
                .filter_map(|key| fact(key))
                .collect(),
            ready: match told {
                Some(told) => told.ready,
                None => inner.conditions.ready().holds(),
            },
            reason: match told {
                Some(told) => told.reason.clone(),
                None => inner.conditions.failing_reason().to_owned(),
            },
            heard: self.last_heard(),
            in_sync: match told {
                Some(told) => told.in_sync,
                None => {
                    inner.conditions.healthy.holds()
                        && shown().all(|one| one.phase == Phase::Syncing)
                }
            },
            version: inner.version.clone(),
            types: shown().map(|one| one.info.clone()).collect(),
            shows_secrets: inner.shows_secrets,
            judges: inner.judges,
        }
    }
}

/// Returns a type whose rows are complete, and which is not synced here.
fn stopped(chosen: Chosen, now: i64) -> TypeState {
    TypeState {
        info: Arc::new(info(&chosen)),
        phase: Phase::Stopped,
        filled: true,
        since: now,
        chosen,
    }
}

/// Returns what views need to know about a type.
fn info(chosen: &Chosen) -> SyncedType {
    let resource = &chosen.resource;
    let definition = chosen.definition.as_deref();
    let source = match definition {
        Some(definition) if converts_nothing(definition) => VersionSource::Shelf,
        _ => VersionSource::Member,
    };
    let others = chosen.others.iter().map(|name| OtherVersion {
        name: name.clone(),
        source,
    });
    SyncedType {
        group: resource.group.clone(),
        version: resource.version.clone(),
        resource: resource.resource.clone(),
        kind: resource.kind.clone(),
        singular: resource.singular.clone(),
        short_names: resource.short_names.clone(),
        categories: resource.categories.clone(),
        namespaced: resource.namespaced,
        others: others.collect(),
        definition: chosen.definition.clone(),
    }
}
