//! Objects of other kinds that stand or fall with the one that is written: all of it is one commit, or none of it is.
//!
//! Which they are, and what they say, the strategy of the kind knows.

use super::Pipeline;
use crate::kinds::catalog::Serving;
use crate::managed;
use crate::verbs::call::Call;
use crate::verbs::delete::begin;
use crate::verbs::unstoppable::Unstoppable;
use crate::work;
use bareboat_api::kind::{Companion, Holds};
use bareboat_api::{Object, Status};
use bareboat_storage::{CommitError, Committed, Entry, Store, TransactionError, Write};
use std::sync::Arc;

/// Under this name the server itself writes.
const MANAGER: &str = "kube-apiserver";

/// Makes a write durable, with what comes and goes because of it. `before` is the object that was there, `after` the one
/// that will be. What is held for the write is kept if it happens.
pub(crate) async fn commit(
    call: &Call,
    write: Write,
    before: Option<&Object>,
    after: Option<&Object>,
    mut held: Holds,
) -> Result<Result<Committed, CommitError>, Status> {
    let store = call.served.store();
    let of = |object: &Object| call.served.kind.strategy.companions(object);
    let had = before.map(of).unwrap_or_default();
    let has = after.map(of).unwrap_or_default();
    let is_new = |one: &&Companion| one.says.is_some() && !had.iter().any(|old| same(old, one));
    let come: Vec<&Companion> = has.iter().filter(is_new).collect();
    let is_over = |one: &&Companion| !has.iter().any(|new| same(new, one));
    let go: Vec<&Companion> = had.iter().filter(is_over).collect();
    if come.is_empty() && go.is_empty() {
        return Ok(durable(store, write, held).await);
    }
    loop {
        let mut writes = vec![write.clone()];
        for companion in &come {
            match coming(call, companion).await? {
                Ok(more) => writes.extend(more),
                Err(lost) => return Ok(Err(lost)),
            }
        }
        for companion in &go {
            writes.extend(going(call, companion).await?);
        }
        let committed;
        (committed, held) = durable_together(store, writes, held).await;
        let lost = match committed {
            Ok(committed) => {
                let own = committed.into_iter().next();
                return Ok(own.ok_or(CommitError::Closed));
            }
            Err(TransactionError { index: 0, error }) => return Ok(Err(error)),
            Err(TransactionError { error, .. }) => error,
        };
        // Somebody wrote a companion meanwhile: it is looked at again.
        let raced = matches!(
            lost,
            CommitError::AlreadyExists { .. }
                | CommitError::Conflict { .. }
                | CommitError::NotFound
        );
        if !raced {
            return Ok(Err(lost));
        }
        if call.time_left().is_zero() {
            return Err(Status::timeout(
                "request did not complete within the allotted timeout",
            ));
        }
    }
}

/// Makes a write durable, whether or not its client still waits. What is held for it, and the seat of its request, stay
/// taken until then.
pub(crate) async fn durable(
    store: &Store,
    write: Write,
    held: Holds,
) -> Result<Committed, CommitError> {
    work::wanted().await;
    work::small();
    let (store, seat) = (store.clone(), work::seat());
    Unstoppable::new(async move {
        let _seat = seat;
        let committed = store.commit(write).await?;
        held.keep(committed.revision);
        Ok(committed)
    })
    .await
}

/// The same for several writes at once. What is held comes back if they did not happen.
async fn durable_together(
    store: &Store,
    writes: Vec<Write>,
    held: Holds,
) -> (Result<Vec<Committed>, TransactionError>, Holds) {
    work::wanted().await;
    work::small();
    let (store, seat) = (store.clone(), work::seat());
    Unstoppable::new(async move {
        let _seat = seat;
        let committed = store.commit_many(writes).await;
        match committed.as_ref().map(|all| all.first()) {
            Ok(Some(own)) => {
                held.keep(own.revision);
                (committed, Holds::default())
            }
            _ => (committed, held),
        }
    })
    .await
}

fn same(a: &Companion, b: &Companion) -> bool {
    (a.group, a.resource, &a.name) == (b.group, b.resource, &b.name)
}

/// The same request, about the kind of a companion; nothing if that is not served.
fn call_of(call: &Call, companion: &Companion) -> Option<Call> {
    let table = call.state.catalog.table();
    let Some(Serving::Stored(served)) = table.find(companion.group, companion.resource) else {
        return None;
    };
    Some(Call {
        state: call.state.clone(),
        ask: call.ask.clone(),
        version: served.stored_version().unwrap_or(0),
        served: served.clone(),
    })
}

fn found(call: &Call, own: &Call, companion: &Companion) -> Option<Arc<Entry>> {
    let key = own.served.key(&call.ask.info.namespace, &companion.name);
    own.served.resource().get(&key)
}

/// Whether a stored companion says what the object has it say.
fn says(stored: &Object, companion: &Companion) -> bool {
    let said = companion.says.as_ref();
    said.is_none_or(|said| stored.get("spec") == said.get("spec"))
}

/// Stores a companion, unless it is there. If it says something else, whoever wrote it was faster.
async fn coming(
    call: &Call,
    companion: &Companion,
) -> Result<Result<Option<Write>, CommitError>, Status> {
    let (Some(own), Some(said)) = (call_of(call, companion), &companion.says) else {
        return Ok(Ok(None));
    };
    if let Some(entry) = found(call, &own, companion) {
        return Ok(match says(&own.served.parse(&entry)?, companion) {
            true => Ok(None),
            false => Err(CommitError::Conflict { found: Some(entry) }),
        });
    }
    let mut said = said.clone();
    let defaulted = own.version().shape.default(&mut said);
    defaulted.map_err(Status::internal)?;
    let object =
        Object::try_from(said).map_err(|_| Status::internal("a companion is no object"))?;
    let pipeline = Pipeline::new(&own, false);
    let object = managed::on_create(&own, object, MANAGER, &pipeline.now).await?;
    let object = pipeline.make(object)?.object;
    let key = own.served.key(object.namespace(), object.name());
    let (stored, shape) = own.served.to_stored(object, None).await?;
    let bytes = bareboat_wire::encode::stored(stored.value());
    let write = Write::create(own.served.resource(), key, bytes);
    Ok(Ok(Some(write.shaped(shape))))
}

/// Removes a companion, or begins to if it has finalizers; one that says something else by now stays.
async fn going(call: &Call, companion: &Companion) -> Result<Option<Write>, Status> {
    let Some(own) = call_of(call, companion) else {
        return Ok(None);
    };
    let Some(entry) = found(call, &own, companion) else {
        return Ok(None);
    };
    let mut object = own.served.parse(&entry)?;
    if !says(&object, companion) {
        return Ok(None);
    }
    let resource = own.served.resource();
    if object.finalizers().next().is_none() {
        return Ok(Some(Write::delete(resource, &entry)));
    }
    if object.deletion_timestamp().is_some() {
        return Ok(None);
    }
    begin(&mut object, &super::now(), 0);
    let stored = own.stored(&entry, object).await?;
    let write = Write::replace(resource, &entry, stored.bytes);
    Ok(Some(write.shaped(stored.shape)))
}
