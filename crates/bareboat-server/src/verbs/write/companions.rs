//! Objects of other kinds that stand or fall with the one that is written: all of it is one commit, or none of it is.
//!
//! Which they are, and what they say, the strategy of the kind knows.

use super::Pipeline;
use crate::kinds::catalog::Serving;
use crate::managed;
use crate::verbs::call::Call;
use crate::verbs::delete::begin;
use bareboat_api::kind::Companion;
use bareboat_api::{Object, Status};
use bareboat_storage::{CommitError, Committed, Entry, TransactionError, Write};
use std::sync::Arc;

/// Under this name the server itself writes.
const MANAGER: &str = "kube-apiserver";

/// Makes a write durable, with what comes and goes because of it. `before` is the object that was there, `after` the one
/// that will be.
pub(crate) async fn commit(
    call: &Call,
    write: Write,
    before: Option<&Object>,
    after: Option<&Object>,
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
        return Ok(store.commit(write).await);
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
        let lost = match store.commit_many(writes).await {
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
    own.version().shape.default(&mut said);
    let object =
        Object::try_from(said).map_err(|_| Status::internal("a companion is no object"))?;
    let pipeline = Pipeline::new(&own, false);
    let object = managed::on_create(&own, object, MANAGER, &pipeline.now).await?;
    let object = pipeline.make(object)?.object;
    let key = own.served.key(object.namespace(), object.name());
    let stored = own.served.to_stored(object, None).await?;
    let bytes = bareboat_wire::encode::stored(stored.value());
    let write = Write::create(own.served.resource(), key, bytes);
    Ok(Ok(Some(write.shaped(own.served.stored_fingerprint()))))
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
