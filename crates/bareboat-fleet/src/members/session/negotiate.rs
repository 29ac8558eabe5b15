//! Asks a member what it serves, and starts and ends the tasks of its types accordingly.

use super::{Session, end};
use crate::api::{MemberApi, fetch};
use crate::discovery::{ApiResource, Discovered, discover};
use crate::members::conditions::Condition;
use crate::members::state::Phase;
use crate::sync::{Streaming, escaped};
use crate::types::{Chosen, DEFINITIONS, TypeKey, Wanted};
use bareboat_api::Value;
use bareboat_shelf::{KindId, KindInfo, MemberId, Progress, Shelf, ShelfError};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::time::Instant;

/// The largest document about a member.
const LARGEST: usize = 1 << 20;
/// The largest list of namespaces.
const NAMESPACES: usize = 64 << 20;

/// Notes which cluster a member is. If it is another one than before, or was restored from a backup, everything is listed
/// again: versions that are ahead of the member are of a past that it has forgotten.
pub(crate) fn identify(
    shelf: &Shelf,
    name: &str,
    member: MemberId,
    uid: &str,
    current: Option<u64>,
) -> Result<(), ShelfError> {
    let (_, replaced) = shelf.add_member(name, uid)?;
    let ahead = |progress: &Progress| {
        let saved = progress.resource_version.parse::<u64>().ok();
        saved
            .zip(current)
            .is_some_and(|(saved, current)| saved > current)
    };
    let restored = shelf
        .progress(member)?
        .iter()
        .any(|(_, progress)| ahead(progress));
    if replaced || restored {
        tracing::info!(member = %name, replaced, restored, "all types of a member are listed again");
        shelf.forget_progress(member)?;
    }
    Ok(())
}

impl Session {
    /// Begins to follow a member that is healthy: learns its version, and whether it is still the same cluster.
    pub(super) async fn open(&mut self, api: &Arc<dyn MemberApi>) {
        let patience = self.common.settings.request_timeout;
        let json = "application/json";
        if let Ok(version) = fetch(&**api, "/version", json, LARGEST, patience).await {
            self.streaming = Arc::new(Streaming::of_version(&version));
            self.state.set_version(version);
        }
        let target = "/api/v1/namespaces?fieldSelector=metadata.name%3Dkube-system&limit=1";
        let Ok(list) = fetch(&**api, target, json, LARGEST, patience).await else {
            // The member may not show its namespaces.
            return;
        };
        let items = list
            .get("items")
            .and_then(Value::as_array)
            .unwrap_or_default();
        let uid = items
            .first()
            .and_then(|item| item.at(&["metadata", "uid"])?.as_str());
        let uid = uid.filter(|uid| uid.len() <= 128).unwrap_or("").to_owned();
        let current = list
            .at(&["metadata", "resourceVersion"])
            .and_then(Value::as_str);
        let current = current.and_then(|version| version.parse::<u64>().ok());
        let (name, member) = (self.state.name.to_string(), self.member);
        let writer = &self.common.writer;
        let checked = writer.call(move |shelf, _| identify(shelf, &name, member, &uid, current));
        if let Err(error) = checked.await {
            tracing::warn!(member = %self.state.name, %error, "the identity of a member cannot be noted");
        }
    }

    /// Asks what the member serves, and starts and ends tasks. Returns whether that is known.
    pub(super) async fn negotiate(&mut self, api: &Arc<dyn MemberApi>, wanted: &Wanted) -> bool {
        let patience = self.common.settings.request_timeout;
        let discovered = discover(&**api, patience).await;
        let discovered =
            discovered.map_err(|error| format!("what the member serves is not known: {error}"));
        let known = match discovered {
            Ok(discovered) => match self.namespaces(api, wanted).await {
                Ok(namespaces) => Ok((discovered, namespaces)),
                Err(why) => Err(why),
            },
            Err(why) => Err(why),
        };
        let (discovered, namespaces) = match known {
            Ok(known) => {
                self.selected.clone_from(&known.1);
                known
            }
            Err(why) => {
                // Tasks that run go on: nothing is withdrawn because the member did not answer.
                let runs = !self.running.is_empty();
                if !runs {
                    self.state.set_condition(|conditions| {
                        conditions.running = Condition::new(false, "InitialFailed", why);
                    });
                }
                return runs;
            }
        };
        self.read_definitions(&discovered).await;
        let chosen = wanted.choose(&discovered, self.definitions.as_ref());
        let chosen: BTreeMap<TypeKey, Chosen> =
            chosen.into_iter().map(|one| (one.key(), one)).collect();
        self.end_types(&chosen, &discovered, wanted).await;
        let mut problem = None;
        for one in chosen.values() {
            if let Err(why) = self.start(api, one, wanted, namespaces.as_ref()).await {
                problem = Some(why);
            }
        }
        // The shelf may have been full for a moment.
        self.lacks_types = problem.is_some();
        let secrets = chosen.get(&(String::new(), "secrets".to_owned()));
        let shows = wanted.options.full_secrets && secrets.is_some_and(|one| one.named);
        self.state.set_shows_secrets(shows);
        self.state.set_condition(|conditions| {
            conditions.running = match problem {
                Some(why) => Condition::new(false, "InitialFailed", why),
                None => Condition::new(true, "Running", ""),
            };
        });
        true
    }

    /// Returns whether the selector chooses other namespaces than before.
    pub(super) async fn selects_others(&self, api: &Arc<dyn MemberApi>, wanted: &Wanted) -> bool {
        let now = self.namespaces(api, wanted).await;
        now.is_ok_and(|now| now != self.selected)
    }

    /// Returns the namespaces that a selector chooses; `None` for all.
    async fn namespaces(
        &self,
        api: &Arc<dyn MemberApi>,
        wanted: &Wanted,
    ) -> Result<Option<Arc<[String]>>, String> {
        let Some(selector) = &wanted.options.namespace_selector else {
            return Ok(None);
        };
        let target = format!("/api/v1/namespaces?labelSelector={}", escaped(selector));
        let patience = self.common.settings.list_timeout;
        let list = fetch(&**api, &target, "application/json", NAMESPACES, patience).await;
        let list = list.map_err(|error| format!("the namespaces cannot be listed: {error}"))?;
        let items = list
            .get("items")
            .and_then(Value::as_array)
            .unwrap_or_default();
        let name = |item: &Value| Some(item.at(&["metadata", "name"])?.as_str()?.to_owned());
        let mut names: Vec<String> = items.iter().filter_map(name).collect();
        names.sort();
        Ok(Some(names.into()))
    }

    /// Reads the definitions from the shelf, once they are there.
    async fn read_definitions(&mut self, discovered: &Discovered) {
        let key = (DEFINITIONS.0.to_owned(), DEFINITIONS.1.to_owned());
        if discovered.lacks(&key) {
            self.definitions = Some(BTreeMap::new());
            return;
        }
        let types = self.state.types();
        let state = types.iter().find(|one| one.chosen.key() == key);
        let known = match state {
            Some(state) => state.filled || matches!(state.phase, Phase::Failed(_)),
            None => self.saved(&key).await.is_some(),
        };
        if !known {
            return;
        }
        let (common, name) = (self.common.clone(), self.state.name.clone());
        let reading = tokio::task::spawn_blocking(move || {
            let kind = common.shelf.directory().kind(DEFINITIONS.0, DEFINITIONS.1);
            kind.map(|kind| common.definitions.read(&common.shelf, &name, kind))
        });
        match reading.await {
            Ok(Some(Ok(definitions))) => self.definitions = Some(definitions),
            Ok(Some(Err(error))) => {
                tracing::warn!(member = %self.state.name, %error, "the definitions of a member cannot be read");
            }
            _ => self.definitions = Some(BTreeMap::new()),
        }
    }

    /// Ends the tasks of types that are not chosen, and removes rows where that is certain to be right.
    async fn end_types(
        &mut self,
        chosen: &BTreeMap<TypeKey, Chosen>,
        discovered: &Discovered,
        wanted: &Wanted,
    ) {
        let now = Instant::now();
        self.absent.retain(|key, _| !chosen.contains_key(key));
        for state in self.state.types() {
            let key = state.chosen.key();
            if chosen.contains_key(&key) {
                continue;
            }
            let was_custom = state.chosen.definition.is_some();
            let is_custom = self
                .definitions
                .as_ref()
                .is_some_and(|all| all.contains_key(&key));
            let unwanted = !wanted.wants(&state.chosen.resource, is_custom || was_custom);
            let deleted = was_custom && self.definitions.is_some() && !is_custom;
            let lacks = discovered.lacks(&key);
            let gone = lacks && {
                let since = *self.absent.entry(key.clone()).or_insert(now);
                now.duration_since(since) >= self.common.settings.absent_for
            };
            if unwanted || gone || (deleted && lacks) {
                self.drop_type(&key).await;
            }
        }
    }

    /// Ends a type and removes its rows.
    async fn drop_type(&mut self, key: &TypeKey) {
        self.absent.remove(key);
        if let Some(running) = self.running.remove(key) {
            end(running.task).await;
        }
        self.state.remove_type(key);
        let Some(kind) = self.common.shelf.directory().kind(&key.0, &key.1) else {
            return;
        };
        let member = self.member;
        let writer = &self.common.writer;
        let removed = writer.call(move |shelf, now| shelf.remove_kind(member, kind, now));
        match removed.await {
            Ok(rows) => {
                tracing::info!(member = %self.state.name, group = %key.0, resource = %key.1, rows, "a type is no longer synced");
            }
            Err(error) => {
                tracing::warn!(member = %self.state.name, %error, "rows of a type cannot be removed");
            }
        }
    }

    /// Removes the rows of types on the shelf that no rule wants. This needs no answer of the member.
    pub(super) async fn remove_unwanted(&mut self, wanted: &Wanted) {
        let (shelf, member) = (self.common.shelf.clone(), self.member);
        let reading = tokio::task::spawn_blocking(move || {
            let mut kinds: Vec<KindId> = Vec::new();
            kinds.extend(
                shelf
                    .progress(member)
                    .ok()?
                    .into_iter()
                    .map(|(kind, _)| kind),
            );
            kinds.extend(shelf.counts(member).ok()?.into_iter().map(|(kind, _)| kind));
            let directory = shelf.directory();
            let infos = kinds
                .iter()
                .filter_map(|kind| directory.kind_info(kind.0).cloned());
            Some(infos.collect::<Vec<KindInfo>>())
        });
        let Ok(Some(infos)) = reading.await else {
            return;
        };
        for info in infos {
            let key = (info.group.clone(), info.resource.clone());
            let resource = ApiResource {
                singular: info.kind.to_lowercase(),
                group: info.group,
                resource: info.resource,
                kind: info.kind,
                ..ApiResource::default()
            };
            // Whether a type is custom may not be known yet. It counts as custom, so that nothing is removed too early.
            let custom = self
                .definitions
                .as_ref()
                .is_none_or(|all| all.contains_key(&key));
            if !wanted.needs(&key) && !wanted.wants(&resource, custom) {
                self.drop_type(&key).await;
            }
        }
    }
}
