//! Commits a write, and decides when a conflicting write is tried again.

use super::commit_error;
use super::companions::{coming, going, same};
use super::{Pipeline, Ready};
use crate::diagnostics::Stage;
use crate::verbs::kind_request::KindRequest;
use crate::verbs::unstoppable::Unstoppable;
use crate::work;
use crate::{authz, flow};
use bareboat_api::kind::{Companion, Reservations};
use bareboat_api::{Object, Status};
use bareboat_storage::{CommitError, Committed, Dependency, Store, TransactionError, Write};
use std::time::Duration;

/// Decides what follows a failed commit. `Ok` means that the caller reads the object again and repeats the write:
/// another write came first, the client gave no resourceVersion, and there is time left.
pub(crate) async fn retry_on_conflict(
    call: &KindRequest,
    name: &str,
    conditional: bool,
    error: CommitError,
) -> Result<(), Status> {
    if matches!(error, CommitError::Outdated) {
        return authorize_again(call).await;
    }
    let conflict = matches!(error, CommitError::Conflict { .. } | CommitError::NotFound);
    if conditional || !conflict {
        return Err(commit_error(call, name, error));
    }
    check_deadline(call)
}

/// The time after which a write that depends on changes of another server is tried again. Views of this server that
/// follow the store may need a moment to see those changes.
const SOON: Duration = Duration::from_millis(2);

/// Prepares another try of a write, after another server changed what it depends on: the rights of the user may have
/// changed, too.
pub(crate) async fn authorize_again(call: &KindRequest) -> Result<(), Status> {
    check_deadline(call)?;
    tokio::time::sleep(SOON).await;
    let ask = &call.ask;
    // Everything is decided again, on what is visible now.
    ask.basis.begin_again_at(call.served.store().visible());
    authz::also(&*call.state.authorizer, &ask.user, &ask.info).await
}

/// Adds what a write depends on, if other servers can change it.
fn with_dependencies(call: &KindRequest, write: Write, held: &Reservations) -> Write {
    let store = call.served.store();
    if !store.is_shared() {
        return write;
    }
    let basis = &call.ask.basis;
    let reserved = held.depends_on().map(|on| Dependency {
        resource: store.resource(&on.store),
        namespace: on.namespace.map(|namespace| namespace.as_str().into()),
        revision: on.revision.unwrap_or(basis.begun()),
    });
    let roles = call.state.authorizer.depends_on(&call.ask.user);
    let roles = roles.iter().map(|name| Dependency {
        resource: store.resource(name),
        namespace: None,
        revision: basis.authorized(),
    });
    write.depending_on(reserved.chain(roles))
}

/// Returns a 504 if the deadline of the request has passed. Loops that repeat a write call this before each repetition.
pub(crate) fn check_deadline(call: &KindRequest) -> Result<(), Status> {
    if call.time_left().is_zero() {
        return Err(Status::timeout(
            "request did not complete within the allotted timeout",
        ));
    }
    Ok(())
}

/// Takes the lock of the object's `Strategy::turn`, if any, until the write is done, and lets `Strategy::conclude` make
/// the last change. Call no webhook between this and the commit: other writes wait for the lock.
pub(crate) async fn conclude(pipeline: &Pipeline<'_>, ready: &mut Ready) {
    let served = &pipeline.call.served;
    let turn = served.turn(&ready.object);
    let turn = flow::maybe_away(work::seat().as_ref(), turn).await;
    ready.held.append(turn);
    let strategy = &served.kind.strategy;
    strategy.conclude(&mut ready.object, &pipeline.context());
}

/// Makes a write durable, together with its companions. `before` is the current object, `after` the new one. The
/// reservations of the write are kept if it is stored.
pub(crate) async fn commit(
    call: &KindRequest,
    write: Write,
    before: Option<&Object>,
    after: Option<&Object>,
    mut held: Reservations,
) -> Result<Result<Committed, CommitError>, Status> {
    let strategy = &call.served.kind.strategy;
    if let Some(after) = after {
        held.append(strategy.storing(after));
    }
    let write = with_dependencies(call, write, &held);
    let store = call.served.store();
    let of = |object: &Object| strategy.companions(object);
    let had = before.map(of).unwrap_or_default();
    let has = after.map(of).unwrap_or_default();
    let is_new = |one: &&Companion| one.says.is_some() && !had.iter().any(|old| same(old, one));
    let come: Vec<&Companion> = has.iter().filter(is_new).collect();
    let is_over = |one: &&Companion| !has.iter().any(|new| same(new, one));
    let go: Vec<&Companion> = had.iter().filter(is_over).collect();
    if come.is_empty() && go.is_empty() {
        return Ok(durable_as_is(call, write, held).await);
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
        let actor = call.ask.actor();
        for write in &mut writes {
            write.actor = Some(actor.clone());
        }
        let committed;
        (committed, held) = durable_together(store, writes, held).await;
        let lost = match committed {
            Ok(committed) => {
                call.ask.trace.pass(Stage::Committed);
                let own = committed.into_iter().next();
                return Ok(own.ok_or(CommitError::Closed));
            }
            Err(TransactionError { index: 0, error }) => return Ok(Err(error)),
            Err(TransactionError { error, .. }) => error,
        };
        // Another write changed a companion, so it is read again.
        let raced = matches!(
            lost,
            CommitError::AlreadyExists { .. }
                | CommitError::Conflict { .. }
                | CommitError::NotFound
        );
        if !raced {
            return Ok(Err(lost));
        }
        check_deadline(call)?;
    }
}

/// Makes a write durable that has no companions.
pub(crate) async fn durable(
    call: &KindRequest,
    write: Write,
    held: Reservations,
) -> Result<Committed, CommitError> {
    let write = with_dependencies(call, write, &held);
    durable_as_is(call, write, held).await
}

/// Makes a write durable, even if the client disconnects. Its reservations and its concurrency seat are held until
/// then.
async fn durable_as_is(
    call: &KindRequest,
    write: Write,
    held: Reservations,
) -> Result<Committed, CommitError> {
    work::wanted().await;
    work::small();
    let (store, seat) = (call.served.store().clone(), work::seat());
    let write = write.by(call.ask.actor());
    let committed = Unstoppable::new(async move {
        let _seat = seat;
        let committed = store.commit(write).await?;
        held.keep(committed.revision);
        Ok(committed)
    })
    .await?;
    call.ask.trace.pass(Stage::Committed);
    Ok(committed)
}

/// The same for several writes in one transaction. The reservations come back if nothing was stored.
async fn durable_together(
    store: &Store,
    writes: Vec<Write>,
    held: Reservations,
) -> (Result<Vec<Committed>, TransactionError>, Reservations) {
    work::wanted().await;
    work::small();
    let (store, seat) = (store.clone(), work::seat());
    Unstoppable::new(async move {
        let _seat = seat;
        let committed = store.commit_many(writes).await;
        match committed.as_ref().map(|all| all.first()) {
            Ok(Some(own)) => {
                held.keep(own.revision);
                (committed, Reservations::default())
            }
            _ => (committed, held),
        }
    })
    .await
}
