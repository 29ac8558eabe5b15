//! Quotas: the disks of a pool fit into it. Writes at the same time are counted, too.

use crate::kinds::GROUP;
use bareboat::api::admission::{Lookup, Operation, Review, Validator};
use bareboat::api::kind::{BoxFuture, Dependency, Reservation};
use bareboat::prelude::*;
use std::sync::{Arc, Mutex};

/// Disks of unfinished writes: the pool and the size in GiB.
type Reserved = Arc<Mutex<Vec<(String, i64)>>>;

/// Refuses machines whose disks do not fit into their pool.
#[derive(Default)]
pub(crate) struct PoolQuota(Reserved);

/// A disk that a write reserves until it is done.
struct Disk(Reserved, (String, i64));

impl Reservation for Disk {
    /// Other servers of the same store may have created machines in the meantime.
    fn depends_on(&self) -> Vec<Dependency> {
        vec![Dependency {
            store: format!("{GROUP}/virtualmachines").into(),
            namespace: None,
            revision: None,
        }]
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Ok(mut reserved) = self.0.lock()
            && let Some(place) = reserved.iter().position(|disk| *disk == self.1)
        {
            reserved.swap_remove(place);
        }
    }
}

impl Validator for PoolQuota {
    fn name(&self) -> &'static str {
        "PoolQuota"
    }

    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        lookup: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(self.reserve(review, lookup)))
    }
}

impl PoolQuota {
    fn reserve(&self, review: &mut Review<'_>, lookup: &dyn Lookup) -> Result<(), Status> {
        let written = matches!(review.operation, Operation::Create | Operation::Update);
        let new = review.object.as_ref().and_then(|vm| disk(vm.value()));
        let (Some(new), true, "") = (new, written, review.subresource) else {
            return Ok(());
        };
        let refuse = |why| Status::forbidden(review.kind.group_resource(), review.name, why);
        let pool = lookup.get(&format!("{GROUP}/storagepools"), "", &new.0);
        let pool = pool.ok_or_else(|| refuse(format!("there is no storage pool {}", new.0)))?;
        let capacity = number(pool.value(), "capacity");
        let mut reserved = self.0.lock().expect("no panic while this is locked");
        let others = lookup.list(&format!("{GROUP}/virtualmachines"), "");
        let others = others
            .iter()
            .filter(|vm| (vm.namespace(), vm.name()) != (review.namespace, review.name));
        let disks = others.filter_map(|vm| disk(vm.value()));
        let taken = disks.chain(reserved.iter().cloned());
        let taken: i64 = taken
            .filter(|disk| disk.0 == new.0)
            .map(|disk| disk.1)
            .sum();
        let free = capacity - taken;
        if new.1 > free {
            let why = format!("the pool {} has {free} of {capacity} GiB left", new.0);
            return Err(refuse(why));
        }
        reserved.push(new.clone());
        drop(reserved);
        review.reservations.add(Disk(self.0.clone(), new));
        Ok(())
    }
}

/// Returns the pool of a machine's disk and its size; nothing for other kinds.
fn disk(vm: &Value) -> Option<(String, i64)> {
    let pool = vm.at(&["spec", "pool"])?.as_str()?;
    Some((pool.to_owned(), number(vm, "disk")))
}

fn number(object: &Value, name: &str) -> i64 {
    let found = object.at(&["spec", name]).and_then(Value::as_i64);
    found.unwrap_or_default()
}
