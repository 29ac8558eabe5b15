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
mod settings;
mod sync;
mod types;
mod views;

#[cfg(test)]
mod tests;

pub use kinds::kinds;
pub use members::profiles::HubAddress;
pub use settings::FleetSettings;

use bareboat_api::value;
use bareboat_controllers::Client;
use bareboat_server::{Server, ServerBuilder};
use bareboat_shelf::{Shelf, ShelfError};
use members::controller::Controller;
use members::definitions::Pool;
use members::profiles::Profiles;
use members::session::{Common, Connect, over_network};
use members::status::StatusWriter;
use members::table::Table;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use sync::writer::{Clock, Writer};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

/// How often the shelf forgets old deletions.
const UPKEEP: Duration = Duration::from_secs(10);

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
    connect: Mutex<Option<Connect>>,
    running: Mutex<Option<Running>>,
}

/// The tasks of a fleet.
struct Running {
    tasks: JoinSet<()>,
    /// Ends when the last user of the writer is gone.
    writing: JoinHandle<()>,
}

impl Fleet {
    /// Opens the shelf. Nothing runs before [`Fleet::start`].
    pub fn open(settings: FleetSettings) -> Result<Fleet, ShelfError> {
        let clock: Clock = Arc::new(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            since.map_or(0, |time| {
                i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
            })
        });
        Fleet::open_with(settings, clock, Box::new(over_network))
    }

    fn open_with(
        settings: FleetSettings,
        clock: Clock,
        connect: Connect,
    ) -> Result<Fleet, ShelfError> {
        let shelf = Arc::new(Shelf::open(&settings.file, settings.shelf.clone())?);
        Ok(Fleet {
            parts: Arc::new(Parts {
                settings: Arc::new(settings),
                shelf,
                table: Table::new(clock.clone()),
                clock,
                address: Arc::default(),
                connect: Mutex::new(Some(connect)),
                running: Mutex::new(None),
            }),
        })
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

    /// Begins to follow the members, while this server leads. The kinds of the fleet must be served.
    pub async fn start(&self, server: &Server, leads: watch::Receiver<bool>) {
        let parts = &self.parts;
        let Some(connect) = parts.connect.lock().take() else {
            return;
        };
        let client = Client::new(server.clone()).named("bareboat-fleet");
        let (writer, writing) = Writer::new(parts.shelf.clone(), parts.clock.clone());
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
        let controller = Controller::new(&common, &parts.table, client.clone(), profiles());
        tasks.spawn(prepare(
            client,
            parts.settings.namespace.clone(),
            leads.clone(),
        ));
        tasks.spawn(controller.run(leads));
        tasks.spawn(status.run());
        tasks.spawn(upkeep(writer));
        *parts.running.lock() = Some(Running { tasks, writing });
    }

    /// Ends all tasks, and closes the shelf.
    pub async fn stop(&self) {
        let running = self.parts.running.lock().take();
        if let Some(Running { mut tasks, writing }) = running {
            tasks.shutdown().await;
            // Sessions that were aborted still hold the writer for a moment.
            let _ = tokio::time::timeout(Duration::from_secs(2), writing).await;
        }
        let shelf = self.parts.shelf.clone();
        match tokio::task::spawn_blocking(move || shelf.close()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the shelf cannot be closed"),
            Err(error) => tracing::warn!(%error, "the shelf cannot be closed"),
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
        if let Err(error) = writer.call(|shelf, now| shelf.upkeep(now)).await {
            tracing::warn!(%error, "the shelf cannot be kept up");
        }
    }
}
