//! Follows PediaClusters, the lists of types they refer to and the Secrets with their credentials; starts and ends sessions.
//!
//! Among servers that share a store only the leader syncs. The others have no sessions, and forward requests to it. If they share
//! the shelf as well, each of them syncs its share of the members, and answers for all.

mod onlooker;

use super::profiles::Profiles;
use super::restore;
use super::session::{Common, Desired, Session};
use super::shards;
use super::share::{RENEW, Share};
use super::state::MemberState;
use super::table::Table;
use crate::credentials;
use crate::kinds::{
    AUTHORIZATION, CLUSTER_STORE, CLUSTERS, FINALIZER, MASTERS, SECRET_STORE, SYNC, TYPES_STORE,
};
use crate::options::SyncOptions;
use crate::peers::Part;
use crate::sync::writer::WriteError;
use crate::types::{Rule, Wanted};
use crate::views::Live;
use bareboat_api::{Object, Status, Value, value};
use bareboat_controllers::Client;
use bareboat_shelf::MemberId;
use bareboat_storage::{Entry, Event, FeedError, Resource, Store};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How many events of the store are read at once.
const BATCH: usize = 256;
/// The wait before a failed change is tried again.
const RETRY: Duration = Duration::from_millis(500);

/// A session that runs.
struct Follower {
    desired: watch::Sender<Desired>,
    task: JoinHandle<()>,
    uid: String,
    /// The term of the lease it began with.
    term: i64,
}

/// The controller of members.
pub(crate) struct Controller {
    common: Arc<Common>,
    table: Arc<Table>,
    client: Client,
    store: Store,
    profiles: Profiles,
    part: Arc<Part>,
    /// The term of this server's leadership; `None` if it is alone.
    term: Option<u64>,
    /// The share of this server, if several use the shelf.
    share: Option<Share>,
    /// What was last told about members that others sync, without times.
    told: BTreeMap<String, String>,
    followers: BTreeMap<String, Follower>,
    /// Members to look at.
    due: BTreeSet<String>,
}

impl Controller {
    pub(crate) fn new(
        common: &Arc<Common>,
        table: &Arc<Table>,
        client: Client,
        profiles: Profiles,
        part: &Arc<Part>,
        share: Option<Share>,
    ) -> Controller {
        Controller {
            common: common.clone(),
            table: table.clone(),
            store: client.server().store().clone(),
            client,
            profiles,
            part: part.clone(),
            term: None,
            share,
            told: BTreeMap::new(),
            followers: BTreeMap::new(),
            due: BTreeSet::new(),
        }
    }

    /// Runs until the store is closed or the fleet ends.
    pub(crate) async fn run(mut self, mut leads: watch::Receiver<bool>) {
        // The feed begins before the look at all objects, so that no change is lost in between.
        let Ok(mut feed) = self.store.feed(None) else {
            return;
        };
        let shares = self.share.is_some();
        let mut leading = *leads.borrow_and_update() || shares;
        if leading {
            self.begin(&leads).await;
        }
        // Also a server that no longer leads must not ask clients to wait for ever.
        self.part.begun();
        let mut renewals = tokio::time::interval(RENEW);
        renewals.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            if leading {
                self.work().await;
            }
            let retry = tokio::time::sleep(RETRY);
            let batch = tokio::select! {
                batch = feed.next_batch(BATCH) => batch,
                _ = renewals.tick(), if shares => {
                    self.renew().await;
                    continue;
                }
                changed = leads.changed(), if !shares => {
                    if changed.is_err() {
                        return;
                    }
                    let now = *leads.borrow_and_update();
                    // Another server may have led in between.
                    let again = now && leading && self.part.term() != self.term;
                    if leading && (!now || again) {
                        self.step_down().await;
                    }
                    if now && (!leading || again) {
                        self.begin(&leads).await;
                    }
                    leading = now;
                    continue;
                }
                () = retry, if leading && !self.due.is_empty() => continue,
            };
            match batch {
                Ok(batch) if leading => {
                    for (resource, event) in &batch {
                        self.note(resource, event);
                    }
                }
                Ok(_) => {}
                Err(FeedError::Lagged) if leading => self.reset().await,
                Err(FeedError::Lagged) => {}
                Err(_) => return,
            }
        }
    }

    /// Begins to sync. Among several servers, versions of the shelf are counted apart first.
    async fn begin(&mut self, leads: &watch::Receiver<bool>) {
        self.term = self.part.term();
        if let Some(term) = self.term {
            let count = || {
                let writer = &self.common.writer;
                writer.call(move |shelf, _| shelf.count_apart(term))
            };
            while let Err(error) = count().await {
                tracing::error!(%error, "the shelf cannot be counted apart from those of other servers; the fleet waits");
                if error == WriteError::Closed || !*leads.borrow() {
                    return;
                }
                tokio::time::sleep(RETRY).await;
            }
        }
        self.renew().await;
        self.reset().await;
        // Views do not show members that leave. Their rows may be many, and clients do not wait until they are removed.
        let leaving = self.leaving();
        self.due.retain(|name| !leaving.contains(name));
        self.work().await;
        self.part.begun();
        self.due.extend(leaving);
        if let Some(term) = self.term {
            self.part.settle(term, &self.table);
        }
    }

    /// Looks at all members, at the start and after events were lost. Members of the shelf that have no object are removed.
    async fn reset(&mut self) {
        let snapshot = self.store.resource(CLUSTER_STORE).snapshot();
        self.due = snapshot
            .range("", None)
            .map(|entry| entry.name().to_owned())
            .collect();
        let directory = self.common.shelf.directory();
        self.due
            .extend(directory.members().map(|(name, _)| name.to_owned()));
        self.due.extend(self.followers.keys().cloned());
    }

    /// Returns the members to look at that have no object, or one that is being deleted.
    fn leaving(&self) -> BTreeSet<String> {
        let clusters = self.store.resource(CLUSTER_STORE);
        let stays = |name: &String| {
            let object = clusters.get(name).and_then(|entry| read(&entry));
            object.is_some_and(|object| object.deletion_timestamp().is_none())
        };
        let due = self.due.iter();
        due.filter(|name| !stays(name)).cloned().collect()
    }

    /// Ends all sessions: another server leads.
    async fn step_down(&mut self) {
        self.due.clear();
        let names: Vec<String> = self.followers.keys().cloned().collect();
        for name in names {
            self.end_session(&name).await;
        }
    }

    /// Ends the session of a member. Its rows stay, and views do not show it any more.
    async fn end_session(&mut self, name: &str) {
        if let Some(follower) = self.followers.remove(name) {
            drop(follower.desired);
            let _ = follower.task.await;
        }
        self.table.remove(name);
    }

    /// Finds the members that a change concerns.
    fn note(&mut self, resource: &Arc<Resource>, event: &Event) {
        match resource.name() {
            CLUSTER_STORE => {
                self.due.insert(event.entry.name().to_owned());
            }
            TYPES_STORE => self.note_all(|object| refers_to(object, event.entry.name())),
            SECRET_STORE if event.entry.namespace() == Some(&*self.common.settings.namespace) => {
                let name = event.entry.name().to_owned();
                self.note_all(|object| credentials::secrets(object).any(|known| known == name));
            }
            _ => {}
        }
    }

    fn note_all(&mut self, concerns: impl Fn(&Object) -> bool) {
        let snapshot = self.store.resource(CLUSTER_STORE).snapshot();
        let objects = snapshot.range("", None).filter_map(|entry| read(entry));
        let names = objects.filter(|object| concerns(object));
        self.due
            .extend(names.map(|object| object.name().to_owned()));
    }

    async fn work(&mut self) {
        for name in std::mem::take(&mut self.due) {
            if let Err(status) = self.reconcile(&name).await {
                if !matches!(status.code, 404 | 409) {
                    tracing::warn!(member = %name, %status, "a PediaCluster cannot be followed");
                }
                self.due.insert(name);
            }
        }
    }

    async fn reconcile(&mut self, name: &str) -> Result<(), Status> {
        let entry = self.store.resource(CLUSTER_STORE).get(name);
        let object = entry.as_ref().and_then(|entry| read(entry));
        if !self.holds(name) {
            return self.look_on(name, object).await;
        }
        let Some(object) = object else {
            return self.remove(name).await;
        };
        if !shards::is_own(&object, &self.common.settings.sharding_name) {
            // Its rows and its profile are the business of the server that syncs it.
            self.end_session(name).await;
            return Ok(());
        }
        // An object of the same name that was made anew is another member.
        let other = self
            .followers
            .get(name)
            .is_some_and(|known| known.uid != object.uid());
        let term = self.term_of(name);
        if self
            .followers
            .get(name)
            .is_some_and(|known| known.term != term)
        {
            // Another server may have written in between, or rows were lost: the session reads again how far the shelf is.
            self.end_session(name).await;
        }
        if object.deletion_timestamp().is_some() || other {
            self.remove(name).await?;
        }
        if object.deletion_timestamp().is_some() {
            return self.release(&object).await;
        }
        if !object.finalizers().any(|known| known == FINALIZER) {
            // The change of the object is an event, and leads here again.
            return self.hold(&object).await;
        }
        let desired = self.desired(&object);
        let labels = labels(&object);
        let judges = judges(&object);
        if let Some(follower) = self.followers.get(name) {
            if let Some(state) = self.table.get(name) {
                state.set_labels(labels);
                state.set_judges(judges);
                state.set_live(live(&object, &desired, state.live()));
            }
            follower.desired.send_if_modified(|now| {
                let changed = !now.is_same(&desired);
                *now = desired;
                changed
            });
            return Ok(());
        }
        let member = self.add_member(name).await?;
        let state = MemberState::new(name, &self.table);
        let (common, known) = (self.common.clone(), object.clone());
        let restored =
            tokio::task::spawn_blocking(move || restore::types(&common, member, &known)).await;
        state.restore(restored.unwrap_or_default());
        state.set_labels(labels);
        state.set_judges(judges);
        state.set_live(live(&object, &desired, None));
        self.table.add(&state);
        let (sender, receiver) = watch::channel(desired);
        let session = Session::new(&self.common, &state, member);
        let follower = Follower {
            desired: sender,
            task: tokio::spawn(session.run(receiver)),
            uid: object.uid().to_owned(),
            term,
        };
        self.followers.insert(name.to_owned(), follower);
        Ok(())
    }

    /// Returns the number of a member on the shelf. It does not wait for what is written there: leases must be renewed.
    async fn add_member(&self, name: &str) -> Result<MemberId, Status> {
        let (shelf, name) = (self.common.shelf.clone(), name.to_owned());
        let adding = tokio::task::spawn_blocking(move || shelf.add_member(&name, ""));
        let added = adding.await.map_err(Status::internal)?;
        added.map(|(member, _)| member).map_err(Status::internal)
    }

    /// Reads what a PediaCluster says.
    fn desired(&self, object: &Object) -> Desired {
        let mut rules = Rule::read_all(object.at(&["spec", "syncResources"]));
        let mut warning = String::new();
        let referred = object
            .at(&["spec", "syncResourcesRefName"])
            .and_then(Value::as_str);
        if let Some(name) = referred.filter(|name| !name.is_empty()) {
            let entry = self.store.resource(TYPES_STORE).get(name);
            match entry.as_ref().and_then(|entry| read(entry)) {
                Some(list) => rules.extend(Rule::read_all(list.at(&["spec", "syncResources"]))),
                None => warning = format!("there is no ClusterSyncResources {name}"),
            }
        }
        let options = object.annotation(SYNC).map(SyncOptions::parse);
        let (options, invalid) = match options.transpose() {
            Ok(options) => (options.unwrap_or_default(), None),
            // Another version of this program wrote it. Without the settings more would be synced than they allow.
            Err(why) => (SyncOptions::default(), Some(format!("{SYNC}: {why}"))),
        };
        let all_custom = object.at(&["spec", "syncAllCustomResources"]);
        let secrets = self.store.resource(SECRET_STORE);
        let namespace = &self.common.settings.namespace;
        let secret = |name: &str, key: &str| {
            let entry = secrets.get(&format!("{namespace}/{name}"))?;
            let object = read(&entry)?;
            BASE64_STANDARD
                .decode(object.at(&["data", key])?.as_str()?)
                .ok()
        };
        let access = credentials::read(object, &secret);
        let forwarding = match &access {
            Ok(access) => credentials::forwarding(object, access, &secret),
            Err(why) => Err(why.clone()),
        };
        if let (Ok(_), Err(why)) = (&access, &forwarding) {
            warning = format!("requests are not forwarded: {why}");
        }
        Desired {
            access,
            forwarding,
            wanted: Wanted {
                rules,
                all_custom: all_custom == Some(&Value::Bool(true)),
                options: Arc::new(options),
            },
            invalid,
            warning,
        }
    }

    /// Ends the session of a member and removes its rows.
    async fn remove(&mut self, name: &str) -> Result<(), Status> {
        self.end_session(name).await;
        self.profiles.remove(&self.client, name).await?;
        let Some(member) = self.common.shelf.directory().member(name) else {
            return Ok(());
        };
        let writer = self.common.writer.clone();
        let removed = async move {
            let removing = writer.call(move |shelf, now| shelf.remove_member(member, now));
            removing.await
        };
        // Many rows take a while, and leases of other members must not run out meanwhile.
        let mut removed = std::pin::pin!(removed);
        let rows = loop {
            tokio::select! {
                removed = &mut removed => break removed.map_err(Status::internal)?,
                () = tokio::time::sleep(RENEW) => self.renew().await,
            }
        };
        tracing::info!(member = %name, rows, "a member left the fleet");
        Ok(())
    }

    /// Adds the finalizer.
    async fn hold(&self, object: &Object) -> Result<(), Status> {
        let mut finalizers: Vec<Value> = object.finalizers().map(Value::string).collect();
        finalizers.push(Value::string(FINALIZER));
        self.set_finalizers(object, finalizers).await
    }

    /// Removes the finalizer.
    async fn release(&self, object: &Object) -> Result<(), Status> {
        if !object.finalizers().any(|known| known == FINALIZER) {
            return Ok(());
        }
        let others = object.finalizers().filter(|known| *known != FINALIZER);
        self.set_finalizers(object, others.map(Value::string).collect())
            .await
    }

    async fn set_finalizers(&self, object: &Object, list: Vec<Value>) -> Result<(), Status> {
        let patch = value!({"metadata": {
            "resourceVersion": (object.resource_version()), "uid": (object.uid()), "finalizers": (Value::Array(list)),
        }});
        let path = format!("{CLUSTERS}/{}", object.name());
        self.client.merge(&path, &patch).await.map(drop)
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        for follower in self.followers.values() {
            follower.task.abort();
        }
    }
}

/// Returns whether the member itself decides who reads its objects.
fn judges(object: &Object) -> bool {
    object.annotation(AUTHORIZATION) == Some("Member")
}

/// Returns the labels of an object.
fn labels(object: &Object) -> BTreeMap<String, String> {
    let labels = object
        .at(&["metadata", "labels"])
        .and_then(Value::as_object);
    let labels = labels.into_iter().flat_map(|labels| labels.iter());
    labels
        .filter_map(|(key, value)| Some((key.to_owned(), value.as_str()?.to_owned())))
        .collect()
}

/// Returns how views reach a member.
fn live(object: &Object, desired: &Desired, before: Option<Live>) -> Option<Live> {
    let masters = object.annotation(MASTERS) == Some("true");
    let access = desired.forwarding.as_ref().ok()?;
    match before.filter(|live| live.is_for(access, masters)) {
        Some(live) => Some(live),
        None => Live::new(access, masters).ok(),
    }
}

/// Reads a stored object, with its version.
pub(crate) fn read(entry: &Entry) -> Option<Object> {
    let parsed = bareboat_wire::json::parse(entry.json()).ok()?;
    Object::try_from(parsed.value).ok()
}

fn refers_to(object: &Object, name: &str) -> bool {
    let referred = object.at(&["spec", "syncResourcesRefName"]);
    referred.and_then(Value::as_str) == Some(name)
}
