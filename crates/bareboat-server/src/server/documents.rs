//! Discovery and OpenAPI documents, made when somebody asks and kept until the catalog changes.

use crate::discovery::{AggregatedList, Discovery};
use crate::kinds::catalog::Catalog;
use crate::openapi::{OpenApi, Sources};
use bareboat_api::kind::Kind;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// The documents of one generation of the catalog.
pub(crate) struct Generation {
    number: u64,
    pub(crate) discovery: Discovery,
    core: OnceLock<AggregatedList>,
    groups: OnceLock<AggregatedList>,
    openapi: OnceLock<Arc<OpenApi>>,
    kinds: Vec<Arc<Kind>>,
    earlier: Option<Arc<OpenApi>>,
    sources: Sources,
    made: Mutex<HashMap<String, Bytes>>,
}

impl Generation {
    /// Aggregated discovery of `/api` or `/apis`.
    pub(crate) fn aggregated(&self, core: bool) -> &AggregatedList {
        if core {
            self.core.get_or_init(|| self.discovery.aggregated_core())
        } else {
            self.groups
                .get_or_init(|| self.discovery.aggregated_groups())
        }
    }

    /// The OpenAPI documents.
    pub(crate) fn openapi(&self) -> &Arc<OpenApi> {
        self.openapi.get_or_init(|| {
            Arc::new(match &self.earlier {
                Some(earlier) => earlier.renew(&self.kinds),
                None => OpenApi::new(&self.kinds, self.sources.clone()),
            })
        })
    }

    /// Bytes that were made before under a name, or are made now.
    pub(crate) fn bytes(
        &self,
        name: &str,
        make: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<Bytes> {
        if let Some(bytes) = self.made.lock().get(name) {
            return Some(bytes.clone());
        }
        // Made outside the lock: one large document must not hold up all others.
        let bytes = Bytes::from(make()?);
        let mut made = self.made.lock();
        // Documents are asked for once by each client and then seldom; a few are enough to keep.
        if made.len() >= 8 {
            made.clear();
        }
        made.insert(name.to_owned(), bytes.clone());
        Some(bytes)
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
            discovery: Discovery::new(&kinds, &[]),
            core: OnceLock::new(),
            groups: OnceLock::new(),
            openapi: OnceLock::new(),
            kinds,
            earlier,
            sources: self.sources.clone(),
            made: Mutex::default(),
        });
        *newest = Some(generation.clone());
        generation
    }
}
