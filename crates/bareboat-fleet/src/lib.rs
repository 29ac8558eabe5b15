//! The fleet: other API servers, called members, whose objects are synced to the shelf and searched there.
//!
//! Members are described by PediaClusters, kinds of Clusterpedia. Each member has a session that probes it and asks what it
//! serves, and each of its types a task that lists once and then watches. Everything is bounded: pages, events, the queue of
//! the one writer, lists at the same time, rows of a member. A member that is slow, dead or lies harms only itself.
//!
//! The controllers here are clients of the server they run in: they write PediaClusters' status through it.

mod api;
mod credentials;
mod discovery;
mod kinds;
mod kubeconfig;
mod members;
mod metrics;
mod options;
mod peers;
mod settings;
mod sync;
mod types;
mod views;

#[cfg(test)]
mod tests;

pub use kinds::kinds;
pub use members::profiles::HubAddress;
pub use peers::{Peers, SERVES as LEADER_SERVES};
pub use settings::FleetSettings;

use bareboat_api::value;
use bareboat_controllers::Client;
use bareboat_server::{Server, ServerBuilder};
use bareboat_shelf::{Engine, Shelf, ShelfError};
use members::controller::Controller;
use members::definitions::Pool;
use members::profiles::Profiles;
use members::session::{Common, Connect, over_network};
use members::share::{Share, hub_name};
use members::status::StatusWriter;
use members::table::Table;
use parking_lot::{Mutex, RwLock};
use peers::Part;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use sync::writer::{Clock, Writer};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

/// How often the shelf forgets old deletions.
const UPKEEP: Duration = Duration::from_secs(10);
/// How often this server reads the changes that other servers made in a shared shelf.
const NEWS: Duration = Duration::from_millis(50);
/// The same, while this server has no watch.
const RARE_NEWS: Duration = Duration::from_millis(125);

/// How long the last status of members may take.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A fleet: its shelf, its members and the tasks that follow them.
#[derive(Clone)]
pub struct Fleet {
    parts: Arc<Parts>,
}

bareboat_api::opaque_debug!(Fleet);

struct Parts {
    settings: Arc<FleetSettings>,
    shelf: Arc<Shelf>,
    table: Arc<Table>,
    clock: Clock,
    address: Arc<RwLock<Option<HubAddress>>>,
    part: Arc<Part>,
    /// The name of this server among those that use the shelf; `None` if it has one of its own.
    hub: Option<String>,
    connect: Mutex<Option<Connect>>,
    running: Mutex<Option<Running>>,
}

/// The tasks of a fleet.
struct Running {
    tasks: JoinSet<()>,
    /// Writes status, and says at the end that the sync has ended.
    status: (oneshot::Sender<()>, JoinHandle<()>),
    /// Ends when the last user of the writer is gone.
    writing: JoinHandle<()>,
}

impl Fleet {
    /// Opens the shelf in a file. Nothing runs before [`Fleet::start`].
    pub fn open(settings: FleetSettings) -> Result<Fleet, ShelfError> {
        let shelf = Shelf::open(&settings.file, settings.shelf.clone())?;
        Ok(Fleet::over(
            settings,
            shelf,
            system_clock(),
            Box::new(over_network),
        ))
    }

    /// Opens the shelf in a database that the servers of one store share. Each of them syncs some of the members.
    pub fn open_shared(
        settings: FleetSettings,
        engine: Box<dyn Engine>,
    ) -> Result<Fleet, ShelfError> {
        let shelf = Shelf::over(engine, settings.shelf.clone())?;
        Ok(Fleet::over(
            settings,
            shelf,
            system_clock(),
            Box::new(over_network),
        ))
    }

    fn over(settings: FleetSettings, shelf: Shelf, clock: Clock, connect: Connect) -> Fleet {
        let hub = shelf.is_shared().then(hub_name);
        Fleet {
            parts: Arc::new(Parts {
                settings: Arc::new(settings),
                shelf: Arc::new(shelf),
                table: Table::new(clock.clone()),
                clock,
                address: Arc::default(),
                part: Arc::default(),
                hub,
                connect: Mutex::new(Some(connect)),
                running: Mutex::new(None),
            }),
        }
    }

    /// Adds the kinds of a fleet to a server.
    #[must_use]
    pub fn install(&self, builder: ServerBuilder) -> ServerBuilder {
        let builder = builder.kinds(kinds());
        match metrics::FleetMetrics::new(&self.parts.table) {
            Ok(metrics) => builder.collector(metrics),
            // The names are constants and valid, so this does not happen.
            Err(_) => builder,
        }
    }

    /// Returns the shelf.
    pub fn shelf(&self) -> &Arc<Shelf> {
        &self.parts.shelf
    }

    /// Says where clients reach this server, for ClusterProfiles.
    pub fn listens(&self, address: HubAddress) {
        *self.parts.address.write() = Some(address);
        for state in self.parts.table.all() {
            self.parts.table.changed(&state.name);
        }
    }

    /// Like [`Fleet::start`], on a server that shares its store with others. Requests to the views are forwarded while another one
    /// leads, unless all of them use the same shelf.
    pub async fn start_among(&self, server: &Server, leads: watch::Receiver<bool>, peers: Peers) {
        if self.parts.hub.is_some() {
            return self.start(server, leads).await;
        }
        let store = server.store().clone();
        self.parts.part.join(peers, store, leads.clone());
        self.start(server, leads).await;
    }

    /// Begins to follow the members, while this server leads. The kinds of the fleet must be served.
    pub async fn start(&self, server: &Server, leads: watch::Receiver<bool>) {
        let parts = &self.parts;
        let Some(connect) = parts.connect.lock().take() else {
            return;
        };
        // A list must not lack members that this server only has not looked at yet.
        if parts.hub.is_some() || *leads.borrow() {
            parts.part.begin();
        }
        let client = Client::new(server.clone()).named("bareboat-fleet");
        let (writer, writing) = Writer::new(
            parts.shelf.clone(),
            parts.clock.clone(),
            parts.settings.bookmark_interval,
        );
        let writing = tokio::spawn(writing);
        let salt = parts.shelf.clone();
        let salt = tokio::task::spawn_blocking(move || salt.salt()).await;
        let salt = salt.ok().and_then(Result::ok).unwrap_or_default();
        let common = Arc::new(Common {
            server: server.clone(),
            shelf: parts.shelf.clone(),
            writer: writer.clone(),
            refills: Arc::new(Semaphore::new(parts.settings.refills.max(1))),
            settings: parts.settings.clone(),
            definitions: Pool::default(),
            salt: salt.into(),
            connect,
        });
        let profiles = || Profiles {
            namespace: parts.settings.namespace.clone(),
            address: parts.address.clone(),
            clock: parts.clock.clone(),
        };
        let status = StatusWriter {
            table: parts.table.clone(),
            client: client.clone(),
            profiles: profiles(),
            sharding_name: parts.settings.sharding_name.clone(),
        };
        let mut tasks = JoinSet::new();
        let controller = Controller::new(
            &common,
            &parts.table,
            client.clone(),
            profiles(),
            &parts.part,
            parts.hub.as_deref().map(Share::new),
        );
        if parts.hub.is_some() {
            tasks.spawn(news(parts.shelf.clone()));
        }
        tasks.spawn(prepare(
            client,
            parts.settings.namespace.clone(),
            leads.clone(),
        ));
        tasks.spawn(controller.run(leads));
        tasks.spawn(upkeep(writer));
        let (end, ended) = oneshot::channel();
        let status = (end, tokio::spawn(status.run(ended)));
        *parts.running.lock() = Some(Running {
            tasks,
            status,
            writing,
        });
    }

    /// Ends all tasks, and closes the shelf.
    pub async fn stop(&self) {
        let running = self.parts.running.lock().take();
        if let Some(Running {
            mut tasks,
            status,
            writing,
        }) = running
        {
            tasks.shutdown().await;
            let (end, mut status) = status;
            let _ = end.send(());
            if tokio::time::timeout(LAST_WORDS, &mut status).await.is_err() {
                status.abort();
            }
            // Sessions that were aborted still hold the writer for a moment.
            let _ = tokio::time::timeout(Duration::from_secs(2), writing).await;
        }
        let (shelf, hub) = (self.parts.shelf.clone(), self.parts.hub.clone());
        let closing = move || {
            if let Some(hub) = hub {
                // Others take its members at once.
                shelf.release(&hub)?;
            }
            shelf.close()
        };
        match tokio::task::spawn_blocking(closing).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the shelf cannot be closed"),
            Err(error) => tracing::warn!(%error, "the shelf cannot be closed"),
        }
    }
}

fn system_clock() -> Clock {
    Arc::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |time| {
            i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
        })
    })
}

/// Looks for what other servers have written to the shelf.
async fn news(shelf: Arc<Shelf>) {
    loop {
        let pause = match shelf.is_followed() {
            true => NEWS,
            false => RARE_NEWS,
        };
        tokio::time::sleep(pause).await;
        let shelf = shelf.clone();
        let looked = tokio::task::spawn_blocking(move || shelf.refresh()).await;
        if let Ok(Err(error)) = looked {
            tracing::warn!(%error, cause = ?std::error::Error::source(&error), "the shelf cannot be read");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

/// Makes the namespace of the fleet, once this server leads.
async fn prepare(client: Client, namespace: String, mut leads: watch::Receiver<bool>) {
    if leads.wait_for(|leads| *leads).await.is_err() {
        return;
    }
    let object = value!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": (namespace.as_str())}});
    match client.create("/api/v1/namespaces", &object).await {
        Err(status) if status.code != 409 => {
            tracing::warn!(%status, namespace, "the namespace of the fleet cannot be made");
        }
        _ => {}
    }
}

/// Does the regular work of the shelf.
async fn upkeep(writer: Writer) {
    loop {
        tokio::time::sleep(UPKEEP).await;
        if let Err(error) = writer.upkeep().await {
            tracing::warn!(%error, "the shelf cannot be kept up");
        }
    }
}
