//! Writes an event about an object that names an owner in another namespace.

use super::decide::OwnerState;
use crate::Client;
use crate::conditions::now;
use crate::kinds::NAMESPACES;
use bareboat_api::kind::Kind;
use bareboat_api::value;
use bareboat_server::kinds::catalog::{Backing, Table};
use bareboat_storage::{Entry, Owner, Store};

/// Whether an owner that cannot be found exists in another namespace.
pub(super) fn is_in_other_namespace(
    table: &Table,
    store: &Store,
    entry: &Entry,
    owner: &Owner,
    state: OwnerState,
) -> bool {
    if state == OwnerState::Invalid {
        return true;
    }
    let (group, _) = owner.api_version.rsplit_once('/').unwrap_or_default();
    let (OwnerState::Absent, Some(own), Some(Backing::Stored(served))) = (
        state,
        entry.namespace(),
        table.find_kind(group, &owner.kind),
    ) else {
        return false;
    };
    served.kind.namespaced()
        && store
            .resource(NAMESPACES)
            .snapshot()
            .range("", None)
            .filter(|namespace| namespace.key() != own)
            .filter_map(|namespace| {
                let key = served.key(namespace.key(), &owner.name);
                served.resource().get(&key)
            })
            .any(|found| found.facets().uid == owner.uid)
}

/// Writes the event. If that fails it is not tried again: nothing depends on it.
// Upstream: garbagecollector/graph_builder.go, reportInvalidNamespaceOwnerRef.
pub(super) async fn report(client: &Client, kind: &Kind, entry: &Entry, owner: &Owner) {
    if client
        .server()
        .catalog()
        .table()
        .find("", "events")
        .is_none()
    {
        return;
    }
    let own = entry.namespace().unwrap_or_default();
    // Events about cluster-scoped objects are in the namespace `default`.
    let place = entry.namespace().unwrap_or("default");
    let message = format!(
        "ownerRef [{}/{}, namespace: {own}, name: {}, uid: {}] does not exist in namespace {own:?}",
        owner.api_version, owner.kind, owner.name, owner.uid
    );
    let now = now();
    let mut involved = value!({
        "kind": (kind.names.kind.as_str()),
        "apiVersion": (kind.storage_api_version.as_str()),
        "name": (entry.name()),
        "uid": (&*entry.facets().uid),
    });
    if !own.is_empty() {
        involved.make_object().insert("namespace", own.into());
    }
    // The name is that of the object and its revision, so that the same event is not written twice.
    let name = format!("{}.{:x}", entry.name(), entry.revision());
    let event = value!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": place},
        "involvedObject": involved,
        "reason": "OwnerRefInvalidNamespace",
        "message": message,
        "source": {"component": "garbage-collector-controller"},
        "firstTimestamp": (now.clone()),
        "lastTimestamp": now,
        "count": 1,
        "type": "Warning",
        "reportingComponent": "garbage-collector-controller",
    });
    let path = format!("/api/v1/namespaces/{place}/events");
    if let Err(status) = client.create(&path, &event).await
        && status.reason != "AlreadyExists"
    {
        tracing::debug!(key = entry.key(), %status, "cannot write an event");
    }
}
