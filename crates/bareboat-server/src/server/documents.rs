//! Discovery and OpenAPI documents, made when somebody asks and kept until the catalog changes.

use crate::discovery::{AggregatedList, Discovery};
use crate::kinds::catalog::Catalog;
use crate::openapi::{OpenApi, Sources};
use crate::work;
use bareboat_api::kind::Kind;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// How many documents are kept: each client asks for them once and then seldom.
const KEPT: usize = 8;
/// So many kinds make every document large.
const MANY: usize = 256;

/// The documents of one generation of the catalog. Each is made once, however many ask for it at the same time.
pub(crate) struct Generation {
    number: u64,
    discovery: OnceCell<Discovery>,
    core: OnceCell<AggregatedList>,
    groups: OnceCell<AggregatedList>,
    openapi: OnceCell<Arc<OpenApi>>,
    kinds: Vec<Arc<Kind>>,
    earlier: Option<Arc<OpenApi>>,
    sources: Sources,
    made: Mutex<HashMap<String, Made>>,
}

/// The bytes of a document, once they are made; nothing inside if it has no such form.
type Made = Arc<OnceCell<Option<Bytes>>>;

impl Generation {
    /// Discovery of all kinds.
    pub(crate) async fn discovery(&self) -> &Discovery {
        let discovery = self.discovery.get_or_init(|| async {
            work::large().await;
            Discovery::new(&self.kinds, &[])
        });
        let discovery = discovery.await;
        if self.kinds.len() > MANY {
            work::large().await;
        }
        discovery
    }

    /// Aggregated discovery of `/api` or `/apis`.
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

    /// The OpenAPI documents.
    pub(crate) async fn openapi(&self) -> &Arc<OpenApi> {
        let openapi = self.openapi.get_or_init(|| async {
            work::large().await;
            Arc::new(match &self.earlier {
                Some(earlier) => earlier.renew(&self.kinds),
                None => OpenApi::new(&self.kinds, self.sources.clone()),
            })
        });
        let openapi = openapi.await;
        if self.kinds.len() > MANY {
            work::large().await;
        }
        openapi
    }

    /// Bytes that were made before under a name, or are made now.
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

    /// The documents of the catalog as it is now.
    pub(crate) fn of(&self, catalog: &Catalog) -> Arc<Generation> {
        let table = catalog.table();
        let mut newest = self.newest.lock();
        if let Some(generation) = newest
            .as_ref()
            .filter(|generation| generation.number == table.generation())
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
            number: table.generation(),
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
