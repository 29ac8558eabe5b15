//! Owners that other API servers have. In doubt, an owner exists.

use crate::Client;
use crate::garbage::FOREGROUND;
use crate::garbage::decide::OwnerState;
use crate::kinds::join;
use crate::remote::resources_of;
use bareboat_api::Value;
use bareboat_storage::Owner;
use http::Method;
use std::collections::HashMap;

/// How many owners of one object are looked up.
const MOST_LOOKUPS: usize = 16;

/// Returns the states of those owners whose version another server has, by index.
pub(in crate::garbage) async fn remote_owners(
    client: &Client,
    namespace: Option<&str>,
    owners: &[Owner],
) -> HashMap<usize, OwnerState> {
    let mut states = HashMap::new();
    for (index, owner) in owners.iter().enumerate() {
        let (group, version) = owner
            .api_version
            .rsplit_once('/')
            .unwrap_or(("", &owner.api_version));
        if client.server().is_remote(group, version) {
            let state = match states.len() < MOST_LOOKUPS {
                true => look_up(client, namespace, owner, (group, version)).await,
                false => OwnerState::Unknown,
            };
            states.insert(index, state);
        }
    }
    states
}

async fn look_up(
    client: &Client,
    namespace: Option<&str>,
    owner: &Owner,
    (group, version): (&str, &str),
) -> OwnerState {
    let versions = client.server().remote_versions();
    let of_version = versions
        .iter()
        .find(|known| known.group == group && known.version == version);
    let Some(resources) = of_version.and_then(resources_of) else {
        return OwnerState::Unknown;
    };
    let is_kind = |resource: &&crate::remote::RemoteResource| {
        *resource.kind == *owner.kind && resource.has("get")
    };
    let Some(resource) = resources.iter().find(is_kind) else {
        return OwnerState::Unknown;
    };
    if resource.namespaced && namespace.is_none() {
        return OwnerState::Invalid;
    }
    let path = join(&resource.collection(namespace), &owner.name);
    match client.remote(Method::GET, &path, None).await {
        Ok(found) => {
            let text = |key: &str| found.at(&["metadata", key]).and_then(Value::as_str);
            let finalizers = found.at(&["metadata", "finalizers"]);
            let finalizers = finalizers.and_then(Value::as_array).unwrap_or(&[]);
            let waits = finalizers
                .iter()
                .any(|held| held.as_str() == Some(FOREGROUND));
            match text("uid") {
                Some(uid) if *uid == *owner.uid => match text("deletionTimestamp") {
                    Some(_) if waits => OwnerState::ForegroundDeleting,
                    _ => OwnerState::Alive,
                },
                Some(_) => OwnerState::Absent,
                None => OwnerState::Unknown,
            }
        }
        // Only a Status about this name says that the object does not exist; any other 404 is about the path.
        Err(status)
            if status.code == 404
                && status.reason == "NotFound"
                && status.message.contains(&format!("{:?}", &*owner.name)) =>
        {
            OwnerState::Absent
        }
        Err(_) => OwnerState::Unknown,
    }
}
