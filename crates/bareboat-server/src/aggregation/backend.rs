//! Another API server: how it is reached, and what is known of its discovery and OpenAPI.

use crate::outbound::{Destination, OutboundError};
use crate::proxy::Remote;
use bareboat_api::{Str, Value};
use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the head of an answer may take. Requests have their own, often shorter, deadlines.
const PATIENCE: Duration = Duration::from_secs(60);

/// Another API server. Several versions may be served by one.
pub(super) struct Backend {
    pub(super) remote: Remote,
    content: Mutex<Content>,
    /// Held while its documents are fetched.
    pub(super) refreshing: tokio::sync::Mutex<()>,
    /// Held while OpenAPI 2 is fetched; when the last fetch ended.
    pub(super) fetching_v2: tokio::sync::Mutex<Option<Instant>>,
}

/// What is known of a server's discovery and OpenAPI.
#[derive(Default)]
pub(super) struct Content {
    /// When discovery was last fetched.
    pub(super) fetched: Option<Instant>,
    /// The entity tag of its aggregated discovery.
    pub(super) etag: Option<String>,
    /// Resources by group and version, in the form of aggregated discovery.
    pub(super) resources: HashMap<(Str, Str), Arc<[Value]>>,
    /// Hashes of its OpenAPI 3 documents by path, such as `apis/metrics.k8s.io/v1beta1`.
    pub(super) index: HashMap<String, Str>,
    /// Whether it has OpenAPI 2 only.
    pub(super) only_v2: bool,
    pub(super) v2: Option<V2Document>,
    /// OpenAPI 3 documents by path, with their hashes.
    pub(super) documents: HashMap<String, (Str, Bytes)>,
}

/// An OpenAPI 2 document.
#[derive(Clone)]
pub(crate) struct V2Document {
    pub(super) etag: Option<String>,
    pub(super) hash: Str,
    pub(super) document: Arc<Value>,
}

impl Backend {
    pub(super) fn new(destination: Result<Destination, OutboundError>) -> Backend {
        Backend {
            remote: Remote::new(destination, PATIENCE),
            content: Mutex::default(),
            refreshing: tokio::sync::Mutex::default(),
            fetching_v2: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock()
    }

    pub(super) fn resources(&self, group: &Str, version: &Str) -> Option<Arc<[Value]>> {
        let content = self.content.lock();
        let key = (group.clone(), version.clone());
        content.resources.get(&key).cloned()
    }

    pub(super) fn document_hash(&self, path: &str) -> Option<Str> {
        self.content.lock().index.get(path).cloned()
    }
}
