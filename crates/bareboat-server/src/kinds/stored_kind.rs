//! A kind whose objects are stored: its data, its resource in the store, and values computed per version.

mod view;

use super::connector::{Connection, Connections};
use bareboat_api::kind::{Conversion, Dependency, Kind, Reservation, Reservations, Verbs, Version};
use bareboat_api::{Object, Status, Str};
use bareboat_storage::{Entry, Resource, Store, Whole};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, watch};

/// A kind whose objects are stored.
///
/// When the data of the kind changes (a CRD is updated), a new `StoredKind` replaces it, and watches of the old one
/// end.
pub struct StoredKind {
    /// The kind as data: names, versions, conventions.
    pub kind: Arc<Kind>,
    /// Number of this incarnation; keeps cached encodings of an earlier incarnation from being used.
    incarnation: u32,
    versions: Vec<VersionFacts>,
    store: Store,
    resource: OnceLock<Arc<Resource>>,
    definition: OnceLock<Whole>,
    /// Shared by incarnations whose watches look the same.
    retired: Arc<watch::Sender<bool>>,
    turns: Mutex<HashMap<String, Weak<AsyncMutex<()>>>>,
    connections: Connections,
}

bareboat_api::opaque_debug!(StoredKind);

/// A lock held by a write.
struct Turn {
    _lock: OwnedMutexGuard<()>,
    store: Str,
}

impl Reservation for Turn {
    /// The lock keeps writes of this server apart; those of others are noticed at the commit.
    fn depends_on(&self) -> Vec<Dependency> {
        let dependency = Dependency {
            store: self.store.clone(),
            namespace: None,
            revision: None,
        };
        vec![dependency]
    }
}

/// Values computed once per version.
pub(crate) struct VersionFacts {
    pub(crate) api_version: Str,
    /// The first bytes of an object of this version.
    pub(crate) prefix: Box<[u8]>,
    /// The result of [`bareboat_api::kind::Shape::fingerprint`].
    pub(crate) fingerprint: u64,
}

static INCARNATIONS: AtomicU32 = AtomicU32::new(1);

impl StoredKind {
    /// Serves a kind from a store.
    pub fn new(kind: impl Into<Arc<Kind>>, store: &Store) -> StoredKind {
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
        StoredKind {
            versions,
            kind,
            incarnation: INCARNATIONS.fetch_add(1, Ordering::Relaxed),
            store: store.clone(),
            resource: OnceLock::new(),
            definition: OnceLock::new(),
            retired: Arc::new(watch::Sender::new(false)),
            turns: Mutex::default(),
            connections: Connections::default(),
        }
    }

    /// The same kind with other verbs: watches of both go on, and end together.
    pub(crate) fn with_verbs(&self, verbs: Verbs, terminating: bool) -> StoredKind {
        let mut kind = Kind::clone(&self.kind);
        (kind.verbs, kind.terminating) = (verbs, terminating);
        StoredKind {
            incarnation: self.incarnation,
            retired: self.retired.clone(),
            connections: self.connections.clone(),
            ..StoredKind::new(kind, &self.store)
        }
    }

    /// Returns whether watches of both end together.
    pub(crate) fn goes_on_in(&self, other: &StoredKind) -> bool {
        Arc::ptr_eq(&self.retired, &other.retired)
    }

    /// Waits for other writes that must not run at the same time; the lock is held until the result is dropped.
    pub(crate) async fn turn(&self, object: &Object) -> Reservations {
        let Some(word) = self.kind.strategy.turn(object) else {
            return Reservations::default();
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
        Reservations::from(Turn {
            _lock: turn.lock_owned().await,
            store: self.kind.store.clone(),
        })
    }

    /// The same kind with handlers for its connect subresources.
    pub(crate) fn with_connections(mut self, connections: Connections) -> StoredKind {
        self.connections = connections;
        self
    }

    pub(crate) fn connection(&self, version: &str, subresource: &str) -> Option<&Connection> {
        self.connections.find(version, subresource)
    }

    /// Returns the resource in the store.
    pub fn resource(&self) -> &Arc<Resource> {
        // Not in `new`: kinds are added and removed inside commits, where the store must not be called.
        self.resource
            .get_or_init(|| self.store.resource(&self.kind.store))
    }

    /// Returns the store of the objects.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the index of a served version.
    pub fn version_index(&self, name: &str) -> Option<usize> {
        self.kind
            .versions
            .iter()
            .position(|version| version.name == name && version.served)
    }

    /// Returns a version by index.
    pub fn version(&self, index: usize) -> &Version {
        &self.kind.versions[index]
    }

    pub(crate) fn facts(&self, index: usize) -> &VersionFacts {
        &self.versions[index]
    }

    /// Returns the apiVersion of a version.
    pub fn api_version(&self, index: usize) -> &Str {
        &self.versions[index].api_version
    }

    /// Returns the index of the version with this apiVersion, served or not.
    pub(crate) fn index_of(&self, api_version: &str) -> Option<usize> {
        self.versions
            .iter()
            .position(|facts| facts.api_version == api_version)
    }

    /// Returns the storage version, if it is a version of this kind. (A kind may share the store of another kind.)
    pub(crate) fn storage_version(&self) -> Option<usize> {
        self.index_of(&self.kind.storage_api_version)
            .filter(|_| self.kind.storage_kind == self.kind.names.kind)
    }

    /// Returns the fingerprint of the storage version's shape; 0 if it is not a version of this kind.
    pub(crate) fn storage_fingerprint(&self) -> u64 {
        self.fingerprint_of(&self.kind.storage_api_version)
    }

    /// Returns the fingerprint of an apiVersion's shape; 0 if it is not a version of this kind.
    pub(crate) fn fingerprint_of(&self, api_version: &str) -> u64 {
        self.index_of(api_version)
            .filter(|_| self.kind.storage_kind == self.kind.names.kind)
            .map_or(0, |index| self.versions[index].fingerprint)
    }

    /// Returns the version of that name, served or not; for an unknown name, the storage version.
    pub(crate) fn version_for(&self, name: &str) -> usize {
        let versions = &self.kind.versions;
        let named = versions.iter().position(|version| version.name == name);
        named.or_else(|| self.storage_version()).unwrap_or(0)
    }

    /// Returns whether objects of this kind define other kinds: even a small one may then take long to validate.
    pub(crate) fn defines_kinds(&self) -> bool {
        self.kind.store == super::DEFINITIONS
    }

    pub(crate) fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// Returns the definition of the kind, if it has one.
    pub(crate) fn definition(&self) -> Option<&Whole> {
        let name = self.kind.definition.as_ref()?;
        Some(self.definition.get_or_init(|| Whole {
            resource: self.store.resource(super::DEFINITIONS),
            key: name.as_str().into(),
        }))
    }

    /// Returns the key of an object in the store.
    pub fn key(&self, namespace: &str, name: &str) -> String {
        match self.kind.namespaced() {
            true => [namespace, "/", name].concat(),
            false => name.to_owned(),
        }
    }

    /// Returns the key prefix of a collection.
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

    /// Parses an entry: the object in its stored version, with its resourceVersion.
    pub(crate) fn parse(&self, entry: &Entry) -> Result<Object, Status> {
        parse_entry(entry)
    }

    /// Returns whether stored labels and metadata are the same in every version.
    pub(crate) fn metadata_is_shared(&self) -> bool {
        matches!(self.kind.conversion, Conversion::Rename)
    }
}

/// Parses the object of an entry.
pub(crate) fn parse_entry(entry: &Entry) -> Result<Object, Status> {
    if entry.is_damaged() {
        return Err(damaged(entry));
    }
    parse_object(entry.key(), entry.json())
}

/// Returns the 500 Status for an object that is corrupt in the store.
fn damaged(entry: &Entry) -> Status {
    let key = entry.key();
    let why = format!(
        "StorageError: corrupt object, Key: {key}, ResourceVersion: {}: what is stored does not match its checksum; restore \
         it from a backup, or delete it with ignoreStoreReadErrorWithClusterBreakingPotential",
        entry.revision()
    );
    Status::new(500, "StorageReadError", why)
}

/// Returns the 500 Status for a list that contains corrupt objects, and names them.
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

/// Parses the stored bytes of a key.
pub(crate) fn parse_object(key: &str, bytes: &[u8]) -> Result<Object, Status> {
    let parsed = bareboat_wire::json::parse(bytes).map_err(|error| {
        // Not every reader answers a request with it.
        tracing::error!(key, %error, "a stored object does not parse");
        Status::internal("a stored object could not be read").caused_by(error)
    })?;
    Object::try_from(parsed.value)
        .map_err(|_| Status::internal("a stored object is no JSON object"))
}

/// Returns the first bytes of an object: `{"apiVersion":"…","kind":"…"`.
fn type_meta(api_version: &str, kind: &str) -> Box<[u8]> {
    let mut out = br#"{"apiVersion":"#.to_vec();
    bareboat_api::value::write_string(api_version, &mut out);
    out.extend_from_slice(br#","kind":"#);
    bareboat_api::value::write_string(kind, &mut out);
    out.into()
}
