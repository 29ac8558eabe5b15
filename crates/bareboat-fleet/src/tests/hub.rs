//! A server with a fleet whose members are ghosts.

use super::ghost::Ghost;
use crate::api::MemberApi;
use crate::credentials::Access;
use crate::members::session::Connect;
use crate::settings::FleetSettings;
use crate::sync::writer::Clock;
use crate::{Fleet, Parts};
use bareboat::prelude::{ControlPlane as _, Profile, Settings};
use bareboat_api::{Status, Value, value};
use bareboat_controllers::Client;
use bareboat_server::Server;
use bareboat_shelf::{Engine, KindId, MemberId, Shelf};
use bareboat_storage::Write;
use bareboat_views::{Members as _, Place};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::sync::watch;

/// How long anything may take. Only a failure waits this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server with a fleet.
pub(super) struct Hub {
    pub(super) fleet: Fleet,
    pub(super) client: Client,
    pub(super) connections: Arc<AtomicUsize>,
    pub(super) leads: watch::Sender<bool>,
    /// The term of a hub among others.
    pub(super) term: Arc<AtomicU64>,
    ghosts: Arc<Mutex<HashMap<String, Arc<Ghost>>>>,
    dir: Arc<TempDir>,
    server: Server,
}

pub(super) fn settings() -> FleetSettings {
    FleetSettings {
        probe_interval: Duration::from_millis(100),
        // Long enough that a busy machine is not taken for a dead member.
        probe_timeout: Duration::from_secs(60),
        request_timeout: Duration::from_secs(60),
        list_timeout: Duration::from_secs(60),
        absent_for: Duration::from_millis(300),
        discovery_interval: Duration::from_millis(400),
        first_wait: Duration::from_millis(20),
        longest_wait: Duration::from_millis(200),
        ..FleetSettings::default()
    }
}

impl Hub {
    pub(super) async fn start() -> Hub {
        let dir = Arc::new(tempfile::tempdir().expect("a directory can be made"));
        Hub::start_with(dir, Arc::default(), settings(), None, None, None).await
    }

    /// A hub that leads others, with a term.
    pub(super) async fn start_among(term: u64) -> Hub {
        let dir = Arc::new(tempfile::tempdir().expect("a directory can be made"));
        Hub::start_with(dir, Arc::default(), settings(), None, Some(term), None).await
    }

    /// A hub with its objects in a database.
    pub(super) async fn start_on(engine: Box<dyn Engine>) -> Hub {
        Hub::start_on_with(engine, settings()).await
    }

    pub(super) async fn start_on_with(engine: Box<dyn Engine>, settings: FleetSettings) -> Hub {
        let dir = Arc::new(tempfile::tempdir().expect("a directory can be made"));
        Hub::start_with(dir, Arc::default(), settings, None, None, Some(engine)).await
    }

    /// Another hub of the same store and the same members, with its objects in the same database.
    pub(super) async fn beside(&self, engine: Box<dyn Engine>) -> Hub {
        let store = Some(self.server.store().clone());
        let (dir, ghosts) = (self.dir.clone(), self.ghosts.clone());
        Hub::start_with(dir, ghosts, settings(), store, None, Some(engine)).await
    }

    /// Ends all tasks as a crash does. Nothing is given back.
    pub(super) async fn die(&self) {
        let running = self.fleet.parts.running.lock().take();
        if let Some(mut running) = running {
            running.status.1.abort();
            running.tasks.abort_all();
            while running.tasks.join_next().await.is_some() {}
            // A transaction that has begun ends as a whole.
            let _ = running.writing.await;
        }
    }

    /// The names of the members that this hub syncs, and of those that it only shows.
    pub(super) fn members(&self) -> (Vec<String>, Vec<String>) {
        let states = self.parts().table.all();
        let (remote, own): (Vec<_>, Vec<_>) = states.iter().partition(|state| state.is_remote());
        let names = |states: Vec<&Arc<crate::members::state::MemberState>>| {
            states.iter().map(|state| state.name.to_string()).collect()
        };
        (names(own), names(remote))
    }

    pub(super) async fn start_limited(change: impl FnOnce(&mut FleetSettings)) -> Hub {
        let dir = Arc::new(tempfile::tempdir().expect("a directory can be made"));
        let mut settings = settings();
        change(&mut settings);
        Hub::start_with(dir, Arc::default(), settings, None, None, None).await
    }

    async fn start_with(
        dir: Arc<TempDir>,
        ghosts: Arc<Mutex<HashMap<String, Arc<Ghost>>>>,
        mut settings: FleetSettings,
        store: Option<bareboat_storage::Store>,
        term: Option<u64>,
        engine: Option<Box<dyn Engine>>,
    ) -> Hub {
        settings.file = dir.path().join("fleet.db");
        let connections = Arc::new(AtomicUsize::new(0));
        let (known, count) = (ghosts.clone(), connections.clone());
        let connect: Connect = Box::new(move |_: &Server, access: &Access| {
            count.fetch_add(1, Ordering::Relaxed);
            let name = access.url.trim_start_matches("https://");
            let ghost = known.lock().get(name).cloned();
            let ghost = ghost.ok_or_else(|| format!("there is no ghost {name}"))?;
            Ok(ghost as Arc<dyn MemberApi>)
        });
        let clock: Clock = Arc::new(|| jiff::Timestamp::now().as_millisecond());
        let shelf = match engine {
            Some(engine) => Shelf::over(engine, settings.shelf.clone()),
            None => Shelf::open(&settings.file, settings.shelf.clone()),
        };
        let shelf = shelf.expect("a shelf can be opened");
        let fleet = Fleet::over(settings, shelf, clock, connect);
        let mut builder = Server::builder();
        if let Some(store) = store {
            builder = builder.storage(store);
        }
        let plane = Settings::default().profile(Profile::Bare);
        let builder = fleet.install(builder.control_plane_with(&plane));
        let server = builder.build().expect("a server can be built");
        let (leads, receiver) = watch::channel(true);
        let peers = crate::Peers {
            term: Arc::new(AtomicU64::new(term.unwrap_or(0))),
            authorities: String::new(),
            name: None,
        };
        let own = peers.term.clone();
        match term {
            Some(_) => fleet.start_among(&server, receiver, peers).await,
            None => fleet.start(&server, receiver).await,
        }
        Hub {
            term: own,
            client: Client::new(server.clone()),
            fleet,
            connections,
            leads,
            ghosts,
            dir,
            server,
        }
    }

    pub(super) fn parts(&self) -> &Parts {
        &self.fleet.parts
    }

    /// Ends the hub as a crash does, and starts another on its data.
    pub(super) async fn crash(self) -> Hub {
        let store = self.server.store().clone();
        self.die().await;
        Hub::start_with(
            self.dir.clone(),
            self.ghosts.clone(),
            settings(),
            Some(store),
            None,
            None,
        )
        .await
    }

    /// Ends the hub as a crash does, loses its shelf, and starts another.
    pub(super) async fn lose_shelf(self) -> Hub {
        self.die().await;
        let files = std::fs::read_dir(self.dir.path()).expect("the directory can be read");
        for file in files {
            let path = file.expect("a file has a name").path();
            std::fs::remove_file(path).expect("a file can be removed");
        }
        self.crash().await
    }

    /// Makes a ghost reachable under a name.
    pub(super) fn know(&self, name: &str, ghost: &Arc<Ghost>) {
        self.ghosts.lock().insert(name.to_owned(), ghost.clone());
    }

    /// Lets a ghost join.
    pub(super) async fn join(&self, name: &str, ghost: &Arc<Ghost>) {
        self.know(name, ghost);
        let rules =
            value!([{"group": "", "resources": ["pods"]}, {"group": "*", "resources": ["*"]}]);
        self.apply(name, rules).await;
    }

    /// Creates or changes a PediaCluster.
    pub(super) async fn apply(&self, name: &str, rules: Value) {
        let object = value!({
            "apiVersion": "cluster.clusterpedia.io/v1alpha2", "kind": "PediaCluster", "metadata": {"name": name},
            "spec": {"apiserver": (format!("https://{name}")), "tokenData": (BASE64_STANDARD.encode("t")), "syncResources": rules},
        });
        let path = "/apis/cluster.clusterpedia.io/v1alpha2/pediaclusters";
        match self.client.create(path, &object).await {
            Err(status) if status.code == 409 => {
                let changed = self.client.merge(&format!("{path}/{name}"), &object).await;
                changed.expect("a PediaCluster can be changed");
            }
            outcome => drop(outcome.expect("a PediaCluster can be created")),
        }
    }

    /// Sets an annotation of a PediaCluster in the store, as another version of this program may have done.
    pub(super) async fn annotate_unchecked(&self, name: &str, key: &str, text: &str) {
        let store = self.server.store();
        let resource = store.resource(crate::kinds::CLUSTER_STORE);
        loop {
            let found = resource.get(name).expect("the PediaCluster is there");
            let parsed = bareboat_wire::json::parse(found.json()).expect("it is JSON");
            let mut object = parsed.value;
            let metadata = object.make_object().object_mut("metadata");
            let annotations = metadata.object_mut("annotations");
            annotations.insert(key, Value::string(text));
            let write = Write::replace(&resource, &found, object.to_json().into());
            // The status may be written at the same time.
            if store.commit(write).await.is_ok() {
                return;
            }
        }
    }

    pub(super) async fn cluster(&self, name: &str) -> Result<Value, Status> {
        let path = format!("/apis/cluster.clusterpedia.io/v1alpha2/pediaclusters/{name}");
        let get = self
            .client
            .request(http::Method::GET, &path, "application/json", None);
        get.await
    }

    /// Status and reason of a condition.
    pub(super) async fn condition(&self, name: &str, kind: &str) -> (String, String) {
        let cluster = self.cluster(name).await.unwrap_or_default();
        let conditions = cluster
            .at(&["status", "conditions"])
            .and_then(Value::as_array);
        let mut conditions = conditions.unwrap_or_default().iter();
        let found = conditions.find(|one| one.get("type").and_then(Value::as_str) == Some(kind));
        let text = |key: &str| {
            let text = found.and_then(|one| one.get(key)?.as_str());
            text.unwrap_or("").to_owned()
        };
        (text("status"), text("reason"))
    }

    /// Status, reason and message of the sync of a resource.
    pub(super) async fn sync_condition(&self, name: &str, resource: &str) -> [String; 3] {
        let cluster = self.cluster(name).await.unwrap_or_default();
        let list = |of: &Value, path: &[&str]| -> Vec<Value> {
            let list = of.at(path).and_then(Value::as_array);
            list.unwrap_or_default().to_vec()
        };
        let groups = list(&cluster, &["status", "syncResources"]);
        let mut resources = groups.iter().flat_map(|group| list(group, &["resources"]));
        let is = |one: &Value| one.get("name").and_then(Value::as_str) == Some(resource);
        let found = resources.find(is).unwrap_or_default();
        let condition = list(&found, &["syncConditions"]).into_iter().next();
        let condition = condition.unwrap_or_default();
        ["status", "reason", "message"].map(|key| {
            let text = condition.get(key).and_then(Value::as_str);
            text.unwrap_or("").to_owned()
        })
    }

    /// Waits until something holds.
    pub(super) async fn until<F: Future<Output = bool>>(&self, what: &str, holds: impl Fn() -> F) {
        let begun = Instant::now();
        while !holds().await {
            assert!(begun.elapsed() < PATIENCE, "it never held: {what}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(super) async fn ready(&self, name: &str) {
        let what = format!("{name} is ready");
        self.until(&what, || async {
            self.condition(name, "Ready").await.0 == "True"
        })
        .await;
    }

    /// Waits until all types of a member are synced. A member is ready before that.
    pub(super) async fn in_sync(&self, name: &str) {
        let what = format!("{name} is in sync");
        self.until(&what, || async {
            let fleet = self.fleet.fleet();
            // Before discovery there is no type that could be behind.
            let member = fleet.members.get(name);
            member.is_some_and(|it| it.in_sync && !it.types.is_empty())
        })
        .await;
    }

    /// Waits until the hub has looked at its members.
    pub(super) async fn begun(&self) {
        self.until("the hub has looked at its members", || async {
            matches!(self.fleet.place(), Place::Here)
        })
        .await;
    }

    /// How many rows a member has of a resource.
    pub(super) fn rows(&self, name: &str, group: &str, resource: &str) -> u64 {
        let shelf = self.fleet.shelf();
        let directory = shelf.directory();
        let place: Option<(MemberId, KindId)> =
            directory.member(name).zip(directory.kind(group, resource));
        let Some((member, kind)) = place else {
            return 0;
        };
        let counts = shelf.counts(member).expect("the shelf can be read");
        counts
            .into_iter()
            .find(|(one, _)| *one == kind)
            .map_or(0, |(_, count)| count)
    }

    pub(super) async fn has_rows(&self, name: &str, resource: &str, count: u64) {
        let what = format!("{name} has {count} {resource}");
        self.until(&what, || async { self.rows(name, "", resource) == count })
            .await;
    }
}
