//! A kind that is being served: its data, its place in the store, and what is known of each version.

use super::connector::{Connection, Connections};
use bareboat_api::kind::{Conversion, Hold, Holds, Kind, Verbs, Version};
use bareboat_api::{Object, Status, Str};
use bareboat_storage::{Entry, Resource, Store};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, watch};

/// A kind that is being served.
///
/// When the data of a kind changes (a CRD is updated) a new `Served` takes its place, and watches
/// of the old one end.
pub struct Served {
    /// The data.
    pub kind: Arc<Kind>,
    /// Numbers this incarnation, so that cached encodings of an earlier one are not taken for its own.
    incarnation: u32,
    versions: Vec<VersionFacts>,
    store: Store,
    resource: OnceLock<Arc<Resource>>,
    /// Shared by incarnations that differ in nothing a watch shows.
    retired: Arc<watch::Sender<bool>>,
    turns: Mutex<HashMap<String, Weak<AsyncMutex<()>>>>,
    connections: Connections,
}

/// The turn of a write.
struct Turn(#[allow(dead_code, reason = "held, not read")] OwnedMutexGuard<()>);

impl Hold for Turn {}

/// What is computed once for each version.
pub(crate) struct VersionFacts {
    pub(crate) api_version: Str,
    /// How the bytes of an object of this version begin.
    pub(crate) prefix: Box<[u8]>,
    /// [`bareboat_api::kind::Shape::fingerprint`].
    pub(crate) fingerprint: u64,
}

static INCARNATIONS: AtomicU32 = AtomicU32::new(1);

impl Served {
    /// Serves a kind out of a store.
    pub fn new(kind: impl Into<Arc<Kind>>, store: &Store) -> Served {
        let kind = kind.into();
        let versions = kind
            .versions
            .iter()
            .map(|version| {
                let api_version = kind.api_version(&version.name);
                VersionFacts {
                    prefix: type_meta(&api_version, &kind.names.kind),
                    api_version,
                    fingerprint: version.shape.fingerprint(),
                }
            })
            .collect();
        Served {
            versions,
            kind,
            incarnation: INCARNATIONS.fetch_add(1, Ordering::Relaxed),
            store: store.clone(),
            resource: OnceLock::new(),
            retired: Arc::new(watch::Sender::new(false)),
            turns: Mutex::default(),
            connections: Connections::default(),
        }
    }

    /// The same with other verbs: watches of both go on, and end together.
    pub(crate) fn with_verbs(&self, verbs: Verbs, terminating: bool) -> Served {
        let mut kind = Kind::clone(&self.kind);
        (kind.verbs, kind.terminating) = (verbs, terminating);
        Served {
            incarnation: self.incarnation,
            retired: self.retired.clone(),
            connections: self.connections.clone(),
            ..Served::new(kind, &self.store)
        }
    }

    /// Whether watches of both end together.
    pub(crate) fn goes_on_in(&self, other: &Served) -> bool {
        Arc::ptr_eq(&self.retired, &other.retired)
    }

    /// Waits for the turn of a write among those that must not happen at once; it lasts until the result is dropped.
    pub(crate) async fn turn(&self, object: &Object) -> Holds {
        let Some(word) = self.kind.strategy.turn(object) else {
            return Holds::default();
        };
        let turn = {
            let mut turns = self.turns.lock();
            match turns.get(word).and_then(Weak::upgrade) {
                Some(turn) => turn,
                None => {
                    turns.retain(|_, turn| turn.strong_count() > 0);
                    let turn = Arc::new(AsyncMutex::new(()));
                    turns.insert(word.to_owned(), Arc::downgrade(&turn));
                    turn
                }
            }
        };
        Holds::from(Turn(turn.lock_owned().await))
    }

    /// The same, with somebody who answers for subresources that are connections.
    pub(crate) fn with_connections(mut self, connections: Connections) -> Served {
        self.connections = connections;
        self
    }

    pub(crate) fn connection(&self, version: &str, subresource: &str) -> Option<&Connection> {
        self.connections.find(version, subresource)
    }

    /// Where the objects are.
    pub fn resource(&self) -> &Arc<Resource> {
        // Not in `new`: kinds come and go inside commits, where the store must not be called.
        self.resource
            .get_or_init(|| self.store.resource(&self.kind.store))
    }

    /// The store the objects are in.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The place of a version among the kind's.
    pub fn version_index(&self, name: &str) -> Option<usize> {
        self.kind
            .versions
            .iter()
            .position(|version| version.name == name && version.served)
    }

    /// A version.
    pub fn version(&self, index: usize) -> &Version {
        &self.kind.versions[index]
    }

    pub(crate) fn facts(&self, index: usize) -> &VersionFacts {
        &self.versions[index]
    }

    /// The apiVersion of a version.
    pub fn api_version(&self, index: usize) -> &Str {
        &self.versions[index].api_version
    }

    /// The place of the version with an apiVersion, served or not.
    pub(crate) fn place_of(&self, api_version: &str) -> Option<usize> {
        self.versions
            .iter()
            .position(|facts| facts.api_version == api_version)
    }

    /// The version objects are stored in, where it is one of this kind's own.
    pub(crate) fn stored_version(&self) -> Option<usize> {
        self.place_of(&self.kind.stored_api_version)
            .filter(|_| self.kind.stored_kind == self.kind.names.kind)
    }

    /// Under which form objects are stored now; 0 when that says nothing.
    pub(crate) fn stored_fingerprint(&self) -> u64 {
        self.fingerprint_of(&self.kind.stored_api_version)
    }

    /// Under which form objects of an apiVersion are; 0 when that says nothing.
    pub(crate) fn fingerprint_of(&self, api_version: &str) -> u64 {
        self.place_of(api_version)
            .filter(|_| self.kind.stored_kind == self.kind.names.kind)
            .map_or(0, |place| self.versions[place].fingerprint)
    }

    /// The version of that name, served or not; for a name nobody knows any more, the one objects are stored in.
    pub(crate) fn version_for(&self, name: &str) -> usize {
        let versions = &self.kind.versions;
        let named = versions.iter().position(|version| version.name == name);
        named.or_else(|| self.stored_version()).unwrap_or(0)
    }

    /// Whether objects of this kind define other kinds: then even a small one may take long to check.
    pub(crate) fn defines_kinds(&self) -> bool {
        self.kind.store == super::custom::STORE
    }

    pub(crate) fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// The key of an object in the store.
    pub fn key(&self, namespace: &str, name: &str) -> String {
        if self.kind.namespaced() {
            format!("{namespace}/{name}")
        } else {
            name.to_owned()
        }
    }

    /// The beginning of the keys of a collection.
    pub fn prefix(&self, namespace: &str) -> String {
        if self.kind.namespaced() && !namespace.is_empty() {
            format!("{namespace}/")
        } else {
            String::new()
        }
    }

    /// Ends the watches of this incarnation.
    pub fn retire(&self) {
        self.retired.send_replace(true);
    }

    pub(crate) fn retirement(&self) -> watch::Receiver<bool> {
        self.retired.subscribe()
    }

    /// The object as it is stored, with its resourceVersion.
    pub(crate) fn parse(&self, entry: &Entry) -> Result<Object, Status> {
        parse_entry(entry)
    }

    /// Whether labels and metadata of stored objects are those of every version.
    pub(crate) fn metadata_is_shared(&self) -> bool {
        matches!(self.kind.conversion, Conversion::Rename)
    }
}

/// The object an entry holds.
pub(crate) fn parse_entry(entry: &Entry) -> Result<Object, Status> {
    if entry.is_damaged() {
        return Err(damaged(entry));
    }
    parse_object(entry.key(), entry.json())
}

/// 500 for an object that is damaged in the store.
fn damaged(entry: &Entry) -> Status {
    let key = entry.key();
    let why = format!(
        "StorageError: corrupt object, Key: {key}, ResourceVersion: {}: what is stored does not match its checksum; restore \
         it from a backup, or delete it with ignoreStoreReadErrorWithClusterBreakingPotential",
        entry.revision()
    );
    Status::new(500, "StorageReadError", why)
}

/// 500 for a list with damaged objects in it, which are named.
pub(crate) fn damaged_list<'a>(
    resource: &str,
    entries: impl Iterator<Item = &'a Arc<Entry>>,
) -> Result<(), Status> {
    const NAMED: usize = 100;
    let keys: Vec<&str> = entries
        .filter(|entry| entry.is_damaged())
        .take(NAMED)
        .map(|entry| entry.key())
        .collect();
    if keys.is_empty() {
        return Ok(());
    }
    let why = format!("failed to read one or more {resource} from the storage");
    let status = Status::new(500, "StorageReadError", why);
    Err(keys.into_iter().fold(status, |status, key| {
        let why = format!("corrupt object, Key: {key}");
        status.with_cause("UnexpectedServerResponse", why, "")
    }))
}

/// The object in bytes that are kept for a key.
pub(crate) fn parse_object(key: &str, bytes: &[u8]) -> Result<Object, Status> {
    let parsed = bareboat_wire::json::parse(bytes).map_err(|error| {
        tracing::error!(key, %error, "a stored object does not parse");
        Status::internal("a stored object could not be read")
    })?;
    Object::try_from(parsed.value)
        .map_err(|_| Status::internal("a stored object is no JSON object"))
}

/// How the bytes of an object begin: `{"apiVersion":"…","kind":"…"`.
fn type_meta(api_version: &str, kind: &str) -> Box<[u8]> {
    let mut out = br#"{"apiVersion":"#.to_vec();
    bareboat_api::value::write_string(api_version, &mut out);
    out.extend_from_slice(br#","kind":"#);
    bareboat_api::value::write_string(kind, &mut out);
    out.into()
}
