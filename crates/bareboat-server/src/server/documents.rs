//! Discovery and OpenAPI documents, made on request and cached until the catalog changes.

use crate::aggregation::Aggregation;
use crate::discovery::{AggregatedList, Discovery, Priorities, RemoteVersion};
use crate::kinds::catalog::Catalog;
use crate::kinds::computed::ANY_RESOURCE;
use crate::openapi::{OpenApi, Sources};
use crate::work;
use bareboat_api::kind::Kind;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// How many documents are cached: each client fetches them once and then seldom.
const KEPT: usize = 8;
/// With more kinds than this, answering from finished documents is large work, too.
const MANY: usize = 256;

/// The documents of one generation of the catalog and of remote groups. Each is made once, also for concurrent requests.
pub(crate) struct Generation {
    /// The generations of the catalog and of remote groups.
    number: (u64, u64),
    remotes: Vec<RemoteVersion>,
    priorities: Priorities,
    discovery: OnceCell<Discovery>,
    core: OnceCell<AggregatedList>,
    groups: OnceCell<AggregatedList>,
    openapi: OnceCell<Arc<OpenApi>>,
    kinds: Vec<Arc<Kind>>,
    earlier: Option<Arc<OpenApi>>,
    sources: Sources,
    made: Mutex<HashMap<String, Made>>,
}

/// The bytes of a document, once they are made; `None` inside if it has no such form.
type Made = Arc<OnceCell<Option<Bytes>>>;

impl Generation {
    /// Returns discovery of all kinds.
    pub(crate) async fn discovery(&self) -> &Discovery {
        let discovery = self.discovery.get_or_init(|| async {
            work::large().await;
            Discovery::new(&self.kinds, &self.remotes, &self.priorities)
        });
        let discovery = discovery.await;
        if self.kinds.len() > MANY {
            work::large().await;
        }
        discovery
    }

    /// Returns aggregated discovery of `/api` or `/apis`.
    pub(crate) async fn aggregated(&self, core: bool) -> &AggregatedList {
        let list = if core { &self.core } else { &self.groups };
        let make = || async {
            let discovery = self.discovery().await;
            work::large().await;
            match core {
                true => discovery.aggregated_core(),
                false => discovery.aggregated_groups(),
            }
        };
        list.get_or_init(make).await
    }

    /// Returns the OpenAPI documents.
    pub(crate) async fn openapi(&self) -> &Arc<OpenApi> {
        let openapi = self.openapi.get_or_init(|| async {
            work::large().await;
            let described = |kind: &&Arc<Kind>| kind.names.plural != ANY_RESOURCE;
            let kinds: Vec<Arc<Kind>> = self.kinds.iter().filter(described).cloned().collect();
            Arc::new(match &self.earlier {
                Some(earlier) => earlier.renew(&kinds),
                None => OpenApi::new(&kinds, self.sources.clone()),
            })
        });
        let openapi = openapi.await;
        if self.kinds.len() > MANY {
            work::large().await;
        }
        openapi
    }

    /// Returns the bytes cached under a name; makes them if there are none.
    pub(crate) async fn bytes(
        &self,
        name: &str,
        make: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<Bytes> {
        let made = {
            let mut all = self.made.lock();
            if all.len() >= KEPT && !all.contains_key(name) {
                all.clear();
            }
            all.entry(name.to_owned()).or_default().clone()
        };
        let bytes = made.get_or_init(|| async {
            work::large().await;
            make().map(Bytes::from)
        });
        bytes.await.clone()
    }
}

/// The documents of the newest generation.
pub(crate) struct Documents {
    newest: Mutex<Option<Arc<Generation>>>,
    sources: Sources,
}

impl Documents {
    pub(crate) fn new(sources: Sources) -> Documents {
        Documents {
            newest: Mutex::new(None),
            sources,
        }
    }

    /// Returns the documents of the current catalog and remote groups.
    pub(crate) fn of(&self, catalog: &Catalog, aggregation: &Aggregation) -> Arc<Generation> {
        // Read first: what changes afterwards makes another generation.
        let of_remotes = aggregation.generation();
        let table = catalog.table();
        let number = (table.generation(), of_remotes);
        let mut newest = self.newest.lock();
        if let Some(generation) = newest
            .as_ref()
            .filter(|generation| generation.number == number)
        {
            return generation.clone();
        }
        let kinds: Vec<Arc<Kind>> = table.iter().map(|serving| serving.kind().clone()).collect();
        let earlier = newest.as_ref().and_then(|generation| {
            generation
                .openapi
                .get()
                .cloned()
                .or_else(|| generation.earlier.clone())
        });
        let generation = Arc::new(Generation {
            number,
            remotes: aggregation.versions(),
            priorities: aggregation.priorities(),
            discovery: OnceCell::new(),
            core: OnceCell::new(),
            groups: OnceCell::new(),
            openapi: OnceCell::new(),
            kinds,
            earlier,
            sources: self.sources.clone(),
            made: Mutex::default(),
        });
        *newest = Some(generation.clone());
        generation
    }
}
