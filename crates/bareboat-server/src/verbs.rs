//! The verbs, and who carries out which.

mod action;
mod call;
mod computed;
mod connect;
mod create;
mod delete;
mod delete_collection;
mod freshness;
mod get;
mod list;
mod misfit;
mod patch;
mod present;
mod scale;
mod selection;
mod stored;
mod unstoppable;
mod update;
mod watch;
mod write;

use call::Arity;
pub(crate) use call::Call;
pub(crate) use connect::connects;
pub(crate) use patch::judge_duplicates;
pub(crate) use write::change::{Edit, Edited, nameless};
pub(crate) use write::decode::fill_in;

use crate::authz::Authorized;
use crate::flow::{self, Unread};
use crate::kinds::catalog::Serving;
use crate::kinds::served::Served;
use crate::reply::{Response, plain_text};
use crate::request::ask::Ask;
use crate::server::state::State;
use crate::work;
use bareboat_api::Status;
use bareboat_api::kind::{Kind, SubresourceRole, Verb};
use bytes::Bytes;
use http::StatusCode;
use std::sync::Arc;

/// Finds who serves a resource and lets them.
pub(crate) async fn route(
    state: &Arc<State>,
    ask: Arc<Authorized<Ask>>,
    body: Unread,
) -> Result<Response, Status> {
    let serving = {
        let table = state.catalog.table();
        match table.find(&ask.info.group, &ask.info.resource) {
            Some(serving) => serving.clone(),
            None => return nothing_here(state, &ask),
        }
    };
    let kind = serving.kind();
    if ask.as_stored {
        return match serving {
            Serving::Stored(served) if scope_fits(&served.kind, &ask) => {
                stored::answer(state, ask, body, served).await
            }
            _ => nothing_here(state, &ask),
        };
    }
    let version = kind
        .versions
        .iter()
        .position(|version| version.name == ask.info.version && version.served);
    let Some(version) = version else {
        return match retired(&state.threads, kind, &ask, body).await {
            Some(status) => Err(status),
            None => nothing_here(state, &ask),
        };
    };
    if !scope_fits(kind, &ask) {
        return nothing_here(state, &ask);
    }
    if let Some(text) = &kind.versions[version].deprecation {
        ask.warnings.add(text.as_str());
    }
    match serving {
        Serving::Stored(served) => carry_out(state, ask, body, served, version).await,
        Serving::Computed(computed) => computed::answer(state, ask, body, computed, version).await,
    }
}

/// 404: a Status inside a built-in group, plain text elsewhere.
fn nothing_here(state: &State, ask: &Ask) -> Result<Response, Status> {
    if state
        .catalog
        .table()
        .has_built_in(&ask.info.group, &ask.info.version)
    {
        return Err(Status::no_such_route());
    }
    Ok(plain_text(StatusCode::NOT_FOUND, "404 page not found\n"))
}

/// 404 for a version that is known to have gone, with what to change in the object that was sent.
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
            // JSON is YAML, too.
            let parsed = bareboat_wire::yaml::parse(&bytes).ok()?;
            kind.strategy.advise(&version, Some(&parsed.value))
        });
        advice = better.await.unwrap_or(advice);
    }
    let text = format!("the server could not find the requested resource: {advice}");
    Some(Status::new(404, "NotFound", text).with_details(Default::default()))
}

/// Whether the URL has a namespace just where the kind has one.
fn scope_fits(kind: &Kind, ask: &Ask) -> bool {
    let info = &ask.info;
    if kind.namespaced() {
        // Without a namespace only whole collections can be read. Routes of built-in kinds know the path for other verbs,
        // too, and refuse those.
        return !info.namespace.is_empty()
            || matches!(info.verb.as_str(), "list" | "watch")
            || (!kind.custom && matches!(info.verb.as_str(), "create" | "deletecollection"));
    }
    // A namespace is its own namespace in URLs.
    info.namespace.is_empty()
        || (info.namespace == info.name
            && kind.group.is_empty()
            && kind.names.plural == "namespaces")
}

async fn carry_out(
    state: &Arc<State>,
    ask: Arc<Authorized<Ask>>,
    body: Unread,
    served: Arc<Served>,
    version: usize,
) -> Result<Response, Status> {
    if connect::is_connection(&served.kind, &ask.info) {
        let call = Call {
            state: state.clone(),
            ask,
            served,
            version,
        };
        return connect::stored(&call, body).await;
    }
    let verb = allowed_verb(&ask, &served, version)?;
    let call = Arc::new(Call {
        state: state.clone(),
        ask,
        served,
        version,
    });
    let scaled = call.scale_paths();
    let threads = &state.threads;
    match verb {
        Verb::Get if scaled.is_none() => {
            // Most answers are bytes that exist already.
            if let Some(response) = get::ready(&call)? {
                return Ok(response);
            }
            let get = async move { get::get(&call).await };
            threads.carry_out(body.into_seat(), get).await
        }
        Verb::List => threads.carry_out(body.into_seat(), list::list(call)).await,
        Verb::Watch => watch::watch(call).await,
        other => {
            // A form that cannot be had is refused before anything is written.
            match (other, scaled) {
                _ if call.action().is_some() => {}
                (_, Some(_)) => drop(scale::agree(&call)?),
                (Verb::DeleteCollection, None) => drop(call.negotiate(Arity::Many)?),
                _ => drop(call.negotiate(Arity::One)?),
            }
            let (body, seat) = body.read().await?;
            let work = async move {
                let mut _place = None;
                if call.may_be_large(other, &body) {
                    _place = flow::large_place()?;
                    work::large().await;
                }
                let written = write(&call, other, body).await;
                // What is wrong with a large object may fill many pages.
                written.or_else(|status| call.refuse(status))
            };
            threads.carry_out(seat, work).await
        }
    }
}

/// Carries out a verb that has a body.
async fn write(call: &Call, verb: Verb, body: Bytes) -> Result<Response, Status> {
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

/// The verb of the request, if the kind or its subresource has it.
fn allowed_verb(ask: &Ask, served: &Served, version: usize) -> Result<Verb, Status> {
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
    // List and watch may carry a name that a selector pinned.
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
        // Discovery hides changes, but finalizers must still come off. What creates is refused where it does.
        return Ok(verb);
    }
    if !served.kind.verbs.has(verb) {
        return Err(Status::method_not_allowed());
    }
    Ok(verb)
}
