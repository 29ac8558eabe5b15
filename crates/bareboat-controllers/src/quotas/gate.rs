//! Admission: refuses writes that would exceed a quota. Other writes reserve what they need until they are stored.

use super::usage::{NamespaceUsage, PendingWrite, meter};
use super::{QUOTAS, QuotaNamespaces};

use bareboat_api::admission::{Lookup, Operation, Review, Validator, decided};
use bareboat_api::kind::{BoxFuture, Dependency, Reservation};
use bareboat_api::{Status, Str};
use bareboat_storage::Store;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Refuses writes that would exceed a quota.
pub(super) struct QuotaGate {
    namespaces: Arc<QuotaNamespaces>,
    store: Store,
}

impl QuotaGate {
    pub(super) fn new(namespaces: Arc<QuotaNamespaces>, store: Store) -> QuotaGate {
        QuotaGate { namespaces, store }
    }

    fn check(&self, review: &mut Review<'_>) -> Result<(), Status> {
        if review.namespace.is_empty()
            || !matches!(review.operation, Operation::Create | Operation::Update)
        {
            return Ok(());
        }
        let (Some(usage), Some(object)) = (
            self.namespaces.of(review.namespace),
            review.object.as_deref(),
        ) else {
            return Ok(());
        };
        let old = review.old.map(|old| old.value());
        let Some(meter) = meter(&review.kind.store).filter(|meter| {
            meter.handles(review.operation, review.subresource, object.value(), old)
        }) else {
            return Ok(());
        };
        // Read before the usage is.
        let followed = self.namespaces.followed.load(Ordering::Acquire);
        let mut current = usage.current(&self.store, review.namespace);
        let amounts = current
            .check(&meter, object.value(), old)
            .map_err(|why| Status::forbidden(review.kind.group_resource(), object.name(), why))?;
        if amounts.is_empty() || review.dry_run {
            return Ok(());
        }
        let base = review.old.map(|old| old.resource_version().parse());
        let change = PendingWrite {
            store: review.kind.store.as_str().into(),
            key: format!("{}/{}", review.namespace, object.name()).into(),
            base: base.and_then(Result::ok).unwrap_or(0),
        };
        let number = current.reserve(change, amounts);
        drop(current);
        review.reservations.add(Reserved {
            usage,
            number: Some(number),
            store: review.kind.store.clone(),
            namespace: Str::new(review.namespace),
            followed,
        });
        Ok(())
    }
}

impl Validator for QuotaGate {
    fn name(&self) -> &'static str {
        "ResourceQuota"
    }

    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        _: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        decided(self.check(review))
    }
}

/// The reservation of one write.
struct Reserved {
    usage: Arc<NamespaceUsage>,
    number: Option<u64>,
    store: Str,
    namespace: Str,
    /// The revision up to which the usage had all changes.
    followed: u64,
}

impl Reservation for Reserved {
    /// The quotas of the namespace, and the objects of the kind that they count.
    fn depends_on(&self) -> Vec<Dependency> {
        let on = |store: Str| Dependency {
            store,
            namespace: Some(self.namespace.clone()),
            revision: Some(self.followed),
        };
        vec![on(self.store.clone()), on(Str::const_new(QUOTAS))]
    }

    fn keep(mut self: Box<Self>, revision: u64) {
        if let Some(number) = self.number.take() {
            self.usage.lock().confirm(number, revision);
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some(number) = self.number.take() {
            self.usage.lock().release(number);
        }
    }
}
