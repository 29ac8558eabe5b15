//! Admission: a write that would exceed a quota is refused; any other holds its share until it is stored.

use super::Accounts;
use super::books::{Account, Change, meter};
use bareboat_api::Status;
use bareboat_api::admission::{Operation, Review, Validator, World};
use bareboat_api::kind::{BoxFuture, Hold};
use bareboat_storage::Store;
use std::sync::Arc;

/// Refuses what would exceed a quota.
pub(super) struct Gate {
    accounts: Arc<Accounts>,
    store: Store,
}

impl Gate {
    pub(super) fn new(accounts: Arc<Accounts>, store: Store) -> Gate {
        Gate { accounts, store }
    }

    fn check(&self, review: &mut Review<'_>) -> Result<(), Status> {
        if review.namespace.is_empty()
            || !matches!(review.operation, Operation::Create | Operation::Update)
        {
            return Ok(());
        }
        let (Some(account), Some(object)) =
            (self.accounts.of(review.namespace), review.object.as_deref())
        else {
            return Ok(());
        };
        let old = review.old.map(|old| old.value());
        let Some(meter) = meter(&review.kind.store).filter(|meter| {
            meter.handles(review.operation, review.subresource, object.value(), old)
        }) else {
            return Ok(());
        };
        let mut books = account.open(&self.store, review.namespace);
        let amounts = books
            .weigh(&meter, object.value(), old)
            .map_err(|why| Status::forbidden(review.kind.group_resource(), object.name(), why))?;
        if amounts.is_empty() || review.dry_run {
            return Ok(());
        }
        let base = review.old.map(|old| old.resource_version().parse());
        let change = Change {
            store: review.kind.store.as_str().into(),
            key: format!("{}/{}", review.namespace, object.name()).into(),
            base: base.and_then(Result::ok).unwrap_or(0),
        };
        let number = books.hold(change, amounts);
        drop(books);
        review.holds.add(Held {
            account,
            number: Some(number),
        });
        Ok(())
    }
}

impl Validator for Gate {
    fn name(&self) -> &'static str {
        "ResourceQuota"
    }

    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        _: &'a dyn World,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(self.check(review)))
    }
}

/// The share of one write.
struct Held {
    account: Arc<Account>,
    number: Option<u64>,
}

impl Hold for Held {
    fn keep(mut self: Box<Self>, revision: u64) {
        if let Some(number) = self.number.take() {
            self.account.books().keep(number, revision);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(number) = self.number.take() {
            self.account.books().give_back(number);
        }
    }
}
