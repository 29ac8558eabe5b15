//! Writes the status of PediaClusters, and the ClusterProfile of each member, when something changed.

use super::conditions;
use super::profiles::Profiles;
use super::shards;
use super::state::{MemberState, Phase, Shown, TypeState};
use super::table::Table;
use crate::discovery::ApiResource;
use crate::kinds::{CLUSTER_STORE, CLUSTERS};
use crate::members::controller::read;
use bareboat_api::time::Timestamp;
use bareboat_api::{Map, Object, Status, Value, value};
use bareboat_controllers::Client;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long changes are collected before they are written.
const COLLECT: Duration = Duration::from_millis(250);
/// How often a write is tried that others got ahead of.
const TRIES: usize = 5;
/// When a failed write is tried again.
const AGAIN: Duration = Duration::from_secs(2);

/// The server that syncs a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// This server.
    Here,
    /// A server with another sharding name.
    Another,
    /// No server: the member is being deleted.
    NoServer,
}

/// Writes status.
pub(crate) struct StatusWriter {
    pub(crate) table: Arc<Table>,
    pub(crate) client: Client,
    pub(crate) profiles: Profiles,
    pub(crate) sharding_name: String,
}

impl StatusWriter {
    /// Runs until the fleet ends. At last it writes that members are not synced any more.
    pub(crate) async fn run(self, mut ended: oneshot::Receiver<()>) {
        let mut failed: BTreeSet<String> = BTreeSet::new();
        loop {
            let again = tokio::time::sleep(AGAIN);
            tokio::select! {
                _ = &mut ended => return self.say_goodbye().await,
                () = self.table.wake.notified() => tokio::time::sleep(COLLECT).await,
                () = again, if !failed.is_empty() => {}
            }
            let mut due = self.table.take_dirty();
            due.append(&mut failed);
            for name in due {
                // What another server syncs it also writes about.
                let Some(state) = self.table.get(&name).filter(|state| !state.is_remote()) else {
                    continue;
                };
                let written = match self.write(&state).await {
                    Ok(()) => self.publish(&state).await,
                    Err(status) => Err(status),
                };
                if let Err(status) = written {
                    if !matches!(status.code, 404 | 409) {
                        tracing::warn!(member = %name, %status, "the status of a member cannot be written");
                    }
                    failed.insert(name);
                }
            }
        }
    }

    /// Writes that the sync of all members of this server has ended.
    async fn say_goodbye(&self) {
        let states = self.table.all();
        for state in states.iter().filter(|state| !state.is_remote()) {
            state.shut_down();
            if let Err(status) = self.write(state).await {
                tracing::debug!(member = %state.name, %status, "the last status of a member cannot be written");
            }
        }
    }

    /// Writes the profile of a member, unless the member leaves.
    async fn publish(&self, state: &MemberState) -> Result<(), Status> {
        let owner = || {
            let store = self.client.server().store();
            let entry = store.resource(CLUSTER_STORE).get(&state.name);
            let object = entry.and_then(|entry| read(&entry));
            object.map(
                |object| match shards::is_own(&object, &self.sharding_name) {
                    true if object.deletion_timestamp().is_none() => Owner::Here,
                    true => Owner::NoServer,
                    false => Owner::Another,
                },
            )
        };
        if owner() != Some(Owner::Here) {
            return Ok(());
        }
        self.profiles.publish(&self.client, state).await?;
        // The controller may have removed the profile just before it was written.
        match owner() {
            Some(Owner::Here | Owner::Another) => Ok(()),
            Some(Owner::NoServer) | None => self.profiles.remove(&self.client, &state.name).await,
        }
    }

    async fn write(&self, state: &MemberState) -> Result<(), Status> {
        let store = self.client.server().store();
        let mut tries = 0;
        loop {
            let entry = store.resource(CLUSTER_STORE).get(&state.name);
            let object = entry.and_then(|entry| read(&entry));
            let own = |object: &Object| shards::is_own(object, &self.sharding_name);
            let Some(mut object) = object.filter(own) else {
                return Ok(());
            };
            let before = object.get("status").cloned().unwrap_or_default();
            let status = render(
                &state.shown(),
                &before,
                self.table.now(),
                &self.sharding_name,
            );
            if status == before {
                return Ok(());
            }
            object.map_mut().insert("status", status);
            let path = format!("{CLUSTERS}/{}/status", state.name);
            match self.client.update(&path, object.value()).await {
                Err(status) if status.code == 409 && tries < TRIES => tries += 1,
                outcome => return outcome.map(drop),
            }
        }
    }
}

/// Prints a time of the table.
pub(crate) fn time(millis: i64) -> String {
    let seconds = millis.div_euclid(1000);
    Timestamp { seconds, nanos: 0 }.print_seconds()
}

fn render(shown: &Shown, before: &Value, now: i64, sharding_name: &str) -> Value {
    let mut list = match before.get("conditions") {
        Some(Value::Array(list)) => list.clone(),
        _ => Vec::new(),
    };
    shown.conditions.write(&mut list, &time(now));
    let mut status = Map::new();
    status.insert("conditions", Value::Array(list));
    for (key, text) in [
        ("apiserver", &*shown.url),
        ("version", &*shown.version),
        ("shardingName", sharding_name),
    ] {
        if !text.is_empty() {
            status.insert(key, Value::string(text));
        }
    }
    let mut groups: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for one in &shown.types {
        let group = groups
            .entry(one.chosen.resource.group.as_str())
            .or_default();
        group.push(resource(one, None));
        // What a rule names in another group is shown there, with the place where it really is.
        if let Some(alias) = &one.chosen.alias {
            let group = groups.entry(alias.group.as_str()).or_default();
            group.push(resource(one, Some(alias)));
        }
    }
    let groups = groups
        .into_iter()
        .map(|(group, resources)| value!({"group": group, "resources": (Value::Array(resources))}));
    status.insert("syncResources", Value::Array(groups.collect()));
    Value::Object(status)
}

fn resource(state: &TypeState, alias: Option<&ApiResource>) -> Value {
    let synced = &state.chosen.resource;
    let resource = alias.unwrap_or(synced);
    let (status, reason, message) = match &state.phase {
        Phase::Pending => ("Pending", "", String::new()),
        Phase::Listing(0) => ("Pending", "Listing", String::new()),
        Phase::Listing(read) => ("Pending", "Listing", format!("{read} objects were listed")),
        Phase::Syncing => ("Syncing", "", String::new()),
        Phase::Failed(failure) => ("Error", failure.reason, failure.message.clone()),
        Phase::Stopped => ("Stop", "", String::new()),
    };
    let listed = match (&state.phase, state.filled) {
        (_, true) => "Completed",
        (Phase::Listing(_), false) => "Listing",
        _ => "Pending",
    };
    let version = synced.version.as_str();
    let mut condition = value!({
        "version": (resource.version.as_str()), "syncVersion": version, "storageVersion": version,
        "status": status, "reason": reason, "message": message,
        "initialListPhase": listed, "lastTransitionTime": (time(state.since)),
    });
    if alias.is_some() {
        let place = match synced.group.as_str() {
            "" => synced.resource.clone(),
            group => format!("{}.{group}", synced.resource),
        };
        let map = condition.make_object();
        map.insert("syncResource", Value::string(&place));
        map.insert("storageResource", Value::string(&place));
    }
    value!({
        "name": (resource.resource.as_str()),
        "kind": (resource.kind.as_str()),
        "namespaced": (resource.namespaced),
        "syncConditions": [(condition)],
    })
}

/// Sets one condition of an object that is not a PediaCluster.
pub(super) fn with_condition(
    object: &mut Object,
    kind: &str,
    condition: &conditions::Condition,
    now: &str,
) {
    let status = object.map_mut().object_mut("status");
    let mut list = match status.get("conditions") {
        Some(Value::Array(list)) => list.clone(),
        _ => Vec::new(),
    };
    conditions::set(&mut list, kind, condition, now);
    status.insert("conditions", Value::Array(list));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Chosen;
    use bareboat_views::SyncedType;

    #[test]
    fn a_type_that_is_synced_in_another_group_says_where() {
        let events = |group: &str| ApiResource {
            group: group.to_owned(),
            version: "v1".to_owned(),
            resource: "events".to_owned(),
            kind: "Event".to_owned(),
            namespaced: true,
            ..ApiResource::default()
        };
        let state = TypeState {
            chosen: Chosen {
                resource: events(""),
                alias: Some(events("events.k8s.io")),
                others: Vec::new(),
                definition: None,
                shown: true,
                named: true,
            },
            info: Arc::new(SyncedType::default()),
            phase: Phase::Syncing,
            filled: true,
            since: 0,
        };
        let place = |value: &Value| {
            let conditions = value.get("syncConditions").and_then(Value::as_array);
            let condition = conditions.and_then(<[Value]>::first).cloned();
            let text = |key: &str| condition.as_ref()?.get(key)?.as_str().map(str::to_owned);
            (
                text("version"),
                text("syncResource"),
                text("storageResource"),
            )
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(place(&resource(&state, None)), (text("v1"), None, None));
        let alias = state.chosen.alias.as_ref();
        assert_eq!(
            place(&resource(&state, alias)),
            (text("v1"), text("events"), text("events"))
        );
    }
}
