//! Routes resource requests to the verb that answers them.
//!
//! Rare ways are boxed: a future takes the memory of its largest part, and it is moved for every request.

mod action;
mod computed;
mod connect;
mod create;
mod delete;
mod delete_collection;
mod freshness;
mod get;
mod kind_request;
mod list;
mod misfit;
mod patch;
mod raw;
mod scale;
mod selection;
mod unstoppable;
mod update;
pub(crate) mod visibility;
mod watch;
mod write;

#[cfg(feature = "dynamic")]
pub(crate) use connect::escape;
pub(crate) use connect::{connects, visit};
pub(crate) use delete::options::{DeleteOptions, Propagation};
use kind_request::Arity;
pub(crate) use kind_request::KindRequest;
pub(crate) use patch::judge_duplicates;
pub(crate) use write::change::{Edit, Edited, nameless};
pub(crate) use write::decode::fill_in;

use crate::authz::Authorized;
use crate::diagnostics::Stage;
use crate::flow::{self, Unread};
use crate::kinds::catalog::Backing;
use crate::kinds::computed::ANY_RESOURCE;
use crate::kinds::stored_kind::StoredKind;
use crate::reply::{Response, plain_text};
use crate::request::ask::Ask;
use crate::server::state::State;
use crate::work;
use bareboat_api::Status;
use bareboat_api::kind::{Kind, Routes, SubresourceRole, Verb};
use bytes::Bytes;
use http::StatusCode;
use std::sync::Arc;

/// Looks up the resource and runs the verb.
pub(crate) async fn route(
    state: &Arc<State>,
    ask: Arc<Authorized<Ask>>,
    body: Unread,
) -> Result<Response, Status> {
    let backing = {
        let table = state.catalog.table();
        match table.find(&ask.info.group, &ask.info.resource) {
            Some(backing) => backing.clone(),
            None => match table.find(&ask.info.group, ANY_RESOURCE) {
                Some(Backing::Computed(open)) if !ask.raw => {
                    let open = open.clone();
                    return Box::pin(connect::open(state, &ask, body, open)).await;
                }
                _ => return nothing_here(state, &ask),
            },
        }
    };
    let kind = backing.kind();
    ask.trace.is_about(kind);
    if ask.raw {
        return match backing {
            Backing::Stored(served) if scope_fits(&served.kind, &ask) => {
                Box::pin(raw::answer(state, ask, body, served)).await
            }
            _ => nothing_here(state, &ask),
        };
    }
    let version = kind
        .versions
        .iter()
        .position(|version| version.name == ask.info.version && version.served);
    let Some(version) = version else {
        return match Box::pin(retired(&state.threads, kind, &ask, body)).await {
            Some(status) => Err(status),
            None => nothing_here(state, &ask),
        };
    };
    if !scope_fits(kind, &ask) {
        return nothing_here(state, &ask);
    }
    if let Some(text) = &kind.versions[version].deprecation {
        ask.warnings.add(text.as_str());
        if let Some(audited) = ask.trace.audited() {
            audited.annotate("k8s.io/deprecated", "true");
            let release = crate::metrics::removed_release(text);
            if !release.is_empty() {
                audited.annotate("k8s.io/removed-release", release);
            }
        }
    }
    match backing {
        Backing::Stored(served) => carry_out(state, ask, body, served, version).await,
        Backing::Computed(computed) => {
            Box::pin(computed::answer(state, ask, body, computed, version)).await
        }
    }
}

/// Returns a 404: a Status in a group with fixed routes, plain text elsewhere.
fn nothing_here(state: &State, ask: &Ask) -> Result<Response, Status> {
    if state
        .catalog
        .table()
        .has_fixed_routes(&ask.info.group, &ask.info.version)
    {
        return Err(Status::no_such_route());
    }
    Ok(plain_text(StatusCode::NOT_FOUND, "404 page not found\n"))
}

/// Returns a 404 for a removed API version, with advice on how to change the object that was sent.
async fn retired(
    threads: &work::Threads,
    kind: &Arc<Kind>,
    ask: &Ask,
    body: Unread,
) -> Option<Status> {
    let version = &ask.info.version;
    let mut advice = kind.strategy.advise(version, None)?;
    if matches!(ask.info.verb.as_str(), "create" | "update" | "patch")
        && let Ok((bytes, _seat)) = body.read().await
    {
        let kind = kind.clone();
        let version = version.clone();
        let better = threads.compute(bytes.len(), move || {
            // Every JSON text is also YAML.
            let parsed = bareboat_wire::yaml::parse(&bytes).ok()?;
            kind.strategy.advise(&version, Some(&parsed.value))
        });
        advice = better.await.unwrap_or(advice);
    }
    let text = format!("the server could not find the requested resource: {advice}");
    Some(Status::new(404, "NotFound", text).with_details(Default::default()))
}

/// Returns whether the URL has a namespace exactly if the kind is namespaced.
fn scope_fits(kind: &Kind, ask: &Ask) -> bool {
    let info = &ask.info;
    if kind.namespaced() {
        // Without a namespace only whole collections can be read. Fixed routes of kinds that can be listed also match this
        // path for other verbs, and answer those with 405.
        let matched = kind.conventions.routes == Routes::Fixed
            && kind.verbs.has(Verb::List)
            && info.name.is_empty();
        return !info.namespace.is_empty()
            || matches!(info.verb.as_str(), "list" | "watch")
            || (matched && matches!(info.verb.as_str(), "create" | "deletecollection"));
    }
    // A namespace object has its own name as namespace in URLs.
    info.namespace.is_empty() || (info.namespace == info.name && kind.policy.is_namespace)
}

async fn carry_out(
    state: &Arc<State>,
    ask: Arc<Authorized<Ask>>,
    body: Unread,
    served: Arc<StoredKind>,
    version: usize,
) -> Result<Response, Status> {
    if connect::is_connection(&served.kind, &ask.info) {
        let call = KindRequest {
            state: state.clone(),
            ask,
            served,
            version,
        };
        return Box::pin(connect::to_stored_kind(&call, body)).await;
    }
    let verb = allowed_verb(&ask, &served, version)?;
    if connect::handles_writes(&served, &ask, verb) {
        let call = KindRequest {
            state: state.clone(),
            ask,
            served,
            version,
        };
        return Box::pin(connect::write(call, body)).await;
    }
    let call = Arc::new(KindRequest {
        state: state.clone(),
        ask,
        served,
        version,
    });
    if let Some(audited) = call.ask.trace.audited() {
        audited.speaks(&call.served.kind.names.kind, call.version().shape.message());
    }
    let scaled = call.scale_paths();
    let threads = |call: &KindRequest| state.threads.of(&call.ask.trace);
    match verb {
        Verb::Get if scaled.is_none() => {
            // Most answers are bytes that exist already.
            if let Some(response) = get::ready(&call)? {
                return Ok(response);
            }
            let threads = threads(&call);
            let get = async move { get::get(&call).await };
            threads.carry_out(body.into_seat(), get).await
        }
        Verb::List => {
            let threads = threads(&call);
            threads.carry_out(body.into_seat(), list::list(call)).await
        }
        Verb::Watch => {
            let (threads, seat) = (threads(&call), body.into_seat());
            let watch = watch::watch(call, seat.clone());
            threads.carry_out(seat, watch).await
        }
        other => {
            // Negotiation fails before anything is written.
            match (other, scaled) {
                _ if call.action().is_some() => {}
                (_, Some(_)) => drop(scale::agree(&call)?),
                (Verb::DeleteCollection, None) => drop(call.negotiate(Arity::Many)?),
                _ => drop(call.negotiate(Arity::One)?),
            }
            let (body, seat) = body.read().await?;
            call.ask.trace.pass(Stage::Read);
            if let Some(audited) = call.ask.trace.audited() {
                audited.sent(&body);
            }
            let threads = threads(&call);
            let work = async move {
                let (mut _place, mut defaults) = (None, 0);
                if call.may_be_large(other, &body) {
                    _place = flow::large_place(body.len()).await?;
                    work::large().await;
                    defaults = call.most_defaults(&body);
                }
                let _memory = flow::decoding(&body, defaults).await?;
                let written = write(&call, other, body).await;
                if written.is_ok() {
                    flow::woke(|| call.served.resource().stats().watchers);
                }
                // The errors of a large object may be long.
                written.or_else(|status| call.refuse(status))
            };
            threads.carry_out(seat, work).await
        }
    }
}

/// Runs a verb that has a body.
async fn write(call: &KindRequest, verb: Verb, body: Bytes) -> Result<Response, Status> {
    if let Some(action) = call.action() {
        return action::act(call, action, body).await;
    }
    match (verb, call.scale_paths()) {
        (verb, Some(paths)) => scale::scale(call, verb, paths, body).await,
        (Verb::Create, None) => create::create(call, body).await,
        (Verb::Update, None) => update::update(call, body).await,
        (Verb::Patch, None) => patch::patch(call, body).await,
        (Verb::DeleteCollection, None) => delete_collection::delete_collection(call, body).await,
        _ => delete::delete(call, body).await,
    }
}

/// Returns the verb of the request, if the kind or its subresource supports it.
fn allowed_verb(ask: &Ask, served: &StoredKind, version: usize) -> Result<Verb, Status> {
    let info = &ask.info;
    let verb = Verb::ALL
        .into_iter()
        .find(|verb| verb.name() == info.verb)
        .ok_or_else(Status::method_not_allowed)?;
    if !info.subresource.is_empty() {
        let found = served
            .version(version)
            .subresource(&info.subresource)
            .filter(|_| info.rest.is_empty());
        let subresource = found.ok_or_else(Status::no_such_route)?;
        let known = match subresource.role {
            SubresourceRole::Status | SubresourceRole::Part | SubresourceRole::Scale(_) => true,
            SubresourceRole::Action => subresource.action.is_some(),
            SubresourceRole::Connect { .. } => false,
        };
        if !known {
            return Err(Status::no_such_route());
        }
        if !subresource.verbs.has(verb) {
            return Err(Status::method_not_allowed());
        }
        return Ok(verb);
    }
    let on_collection = matches!(
        verb,
        Verb::Create | Verb::List | Verb::Watch | Verb::DeleteCollection
    );
    // List and watch may have a name that a selector pinned.
    let has_name = !info.name.is_empty() && !matches!(verb, Verb::List | Verb::Watch);
    if on_collection == has_name {
        return Err(Status::method_not_allowed());
    }
    if served.kind.namespaced()
        && info.namespace.is_empty()
        && matches!(verb, Verb::Create | Verb::DeleteCollection)
    {
        return Err(Status::method_not_allowed());
    }
    if served.kind.terminating {
        // Discovery hides writes of a terminating kind, but finalizers must still be removed. Create refuses new
        // objects itself.
        return Ok(verb);
    }
    if !served.kind.verbs.has(verb) {
        return Err(Status::method_not_allowed());
    }
    Ok(verb)
}
