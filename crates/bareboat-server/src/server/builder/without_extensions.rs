//! What stands for extensions in a build without the feature `dynamic`: clients extend nothing.

use crate::admission::Chain;
use crate::aggregation::Aggregation;
use crate::kinds::catalog::Catalog;
use crate::outbound::Outgoing;
use bareboat_api::kind::Kind;
use bareboat_storage::Store;
use prometheus::core::Collector;
use std::sync::Arc;

/// No extensions.
#[derive(Default)]
pub(super) struct Extensions;

/// A server without extensions.
pub(super) struct Extended;

impl Extensions {
    pub(super) fn install(
        self,
        _: &mut Chain,
        _: &Arc<Catalog>,
        _: &Store,
        _: &Outgoing,
    ) -> Result<Extended, prometheus::Error> {
        Ok(Extended)
    }
}

impl Extended {
    pub(super) fn kind(&mut self) -> Option<Kind> {
        None
    }

    pub(super) fn collectors(&mut self) -> Vec<Box<dyn Collector>> {
        Vec::new()
    }

    pub(super) fn observe(self, _: &Store) -> Arc<Aggregation> {
        Arc::default()
    }
}
