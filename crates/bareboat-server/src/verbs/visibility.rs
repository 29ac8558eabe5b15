//! What a user sees of a kind with a read filter, and what searches find. A kind without them pays one look at a field.

use super::kind_request::KindRequest;
use super::selection::Selection;
use bareboat_api::Status;
use bareboat_api::kind::{Reader, Sees, Sought, Visibility};
use bareboat_storage::Entry;
use std::collections::HashSet;

/// Returns what the user of a request sees; `None` for everything. The raw endpoint has no filter: controllers must reach all objects.
pub(crate) async fn of(call: &KindRequest) -> Option<Sees> {
    let filter = call.served.kind.reader.as_ref().filter(|_| !call.ask.raw)?;
    let (kind, info) = (&call.served.kind, &call.ask.info);
    let reader = Reader::new(
        &call.ask.user,
        (&kind.group, &kind.names.plural),
        &info.namespace,
        &info.name,
        call.state.as_ref(),
    );
    let visibility = filter.visibility(&reader).await;
    let (asked, warnings) = reader.finish();
    for warning in warnings {
        call.ask.warnings.add(warning);
    }
    if let Some(standing) = &call.ask.standing {
        standing.depends_on(asked);
    }
    match visibility {
        Visibility::All => None,
        Visibility::Only(sees) => Some(sees),
    }
}

/// Returns whether an entry is visible.
pub(crate) async fn shows(
    sees: Option<&Sees>,
    call: &KindRequest,
    entry: &Entry,
) -> Result<bool, Status> {
    match sees {
        None => Ok(true),
        Some(sees) => Ok(sees(&call.live(entry).await?)),
    }
}

/// Returns 404 for an entry that the user does not see.
pub(super) async fn check(call: &KindRequest, entry: &Entry) -> Result<(), Status> {
    if call.served.kind.reader.is_none() {
        return Ok(());
    }
    let sees = of(call).await;
    match shows(sees.as_ref(), call, entry).await? {
        true => Ok(()),
        false => Err(call.not_found()),
    }
}

/// Returns 404 if the URL names an object that the user does not see.
pub(super) async fn check_named(call: &KindRequest) -> Result<(), Status> {
    if call.served.kind.reader.is_none() {
        return Ok(());
    }
    match call.served.resource().get(&call.key()) {
        Some(entry) => check(call, &entry).await,
        None => Ok(()),
    }
}

/// Adds the read filter of the kind to a selection, and what its searches find.
pub(super) async fn complete(call: &KindRequest, selection: &mut Selection) -> Result<(), Status> {
    selection.limit_to(of(call).await);
    let mut found: Option<HashSet<String>> = None;
    for (search, term) in selection.searches() {
        let sought = Sought {
            text: term.value.as_str().into(),
            namespace: call.ask.info.namespace.clone(),
        };
        let keys = (search.find)(sought).await?.into_iter();
        found = Some(match found {
            None => keys.collect(),
            Some(before) => keys.filter(|key| before.contains(key)).collect(),
        });
    }
    if let Some(keys) = found {
        selection.found(keys);
    }
    Ok(())
}

/// Adds the read filter of the kind to the selection of a watch, which has no searches.
pub(super) async fn complete_watch(
    call: &KindRequest,
    selection: &mut Selection,
) -> Result<(), Status> {
    if let [(search, _), ..] = selection.searches() {
        return Err(Status::bad_request(format!(
            "field label {} is answered by a search and cannot be watched; list with it, or watch without it",
            search.field
        )));
    }
    selection.limit_to(of(call).await);
    Ok(())
}
