//! The fleet: what `bareboat serve --fleet` adds to a server, and the commands `bareboat fleet …`.

mod access;
mod join;
mod kubeconfig;
pub(crate) mod peers;
mod search;
mod status;

use crate::settings::{FleetAuthorization, FleetShelf, Settings};
use crate::store_flags::without_password;
use anyhow::{Context as _, Result, bail};
use bareboat::fleet::{
    Fleet, FleetSettings, HubAddress, MysqlShelf, Peers, PostgresShelf, ViewAuthorization,
    ViewSettings, Views, install_views,
};
use bareboat::{Server, ServerBuilder};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::watch;

/// Subcommands of `bareboat fleet`.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum FleetCommand {
    /// Let the fleet sync another API server
    #[command(long_about = join::ABOUT, after_help = join::AFTER)]
    Join(join::JoinFlags),
    /// Remove a server from the fleet, and the account it was synced with
    Unjoin(join::UnjoinFlags),
    /// Show the members and how far their sync is
    Status(status::StatusFlags),
    /// Search objects of all members
    #[command(after_help = search::AFTER)]
    Search(search::SearchFlags),
    /// Make a kubeconfig with a context for all members together, and one for each
    #[command(after_help = kubeconfig::AFTER)]
    Kubeconfig(kubeconfig::KubeconfigFlags),
}

/// Runs a subcommand.
pub(crate) fn run(command: &FleetCommand) -> Result<()> {
    match command {
        FleetCommand::Join(flags) => join::join(flags),
        FleetCommand::Unjoin(flags) => join::unjoin(flags),
        FleetCommand::Status(flags) => status::run(flags),
        FleetCommand::Search(flags) => search::run(flags),
        FleetCommand::Kubeconfig(flags) => kubeconfig::run(flags),
    }
}

/// The fleet of a server.
pub(crate) struct ServedFleet {
    fleet: Fleet,
    views: Arc<Views>,
}

/// Opens the shelf, if the settings ask for a fleet.
pub(crate) fn open(settings: &Settings) -> Result<Option<ServedFleet>> {
    let wanted = &settings.fleet;
    if !wanted.fleet {
        return Ok(None);
    }
    let mut fleet = FleetSettings::default();
    fleet.file = match &wanted.fleet_file {
        Some(file) => file.clone(),
        None => settings.store.data_dir.join("fleet.db"),
    };
    fleet.namespace.clone_from(&wanted.fleet_namespace);
    fleet.sharding_name.clone_from(&wanted.fleet_sharding_name);
    fleet.probe_interval = wanted.fleet_probe_interval;
    fleet.refills = wanted.fleet_max_lists;
    fleet.shelf.retain = wanted.fleet_retain;
    fleet.shelf.ring = usize::try_from(wanted.fleet_recent_bytes).unwrap_or(usize::MAX);
    fleet.shelf.pages = usize::try_from(wanted.fleet_cache_bytes).unwrap_or(usize::MAX);
    fleet.shelf.rows_per_member = wanted.fleet_max_objects;
    fleet.shelf.bytes_per_member = wanted.fleet_max_bytes;
    let (fleet, place) = match wanted.fleet_shelf {
        FleetShelf::Local => {
            let place = fleet.file.display().to_string();
            crate::serve::private_file(&fleet.file)
                .with_context(|| format!("{place} cannot be written"))?;
            (Fleet::open(fleet).map_err(anyhow::Error::from), place)
        }
        FleetShelf::Shared => {
            let url = shared_address(settings)?;
            (open_shared(url, fleet), without_password(url))
        }
    };
    let unusable = || format!("the objects of members in {place} cannot be used");
    let fleet = fleet.with_context(unusable)?;
    let mut bounds = ViewSettings::default().bounds;
    bounds.time = wanted.fleet_search_time;
    bounds.bytes = usize::try_from(wanted.fleet_search_bytes).unwrap_or(usize::MAX);
    let views = ViewSettings {
        authorization: match wanted.fleet_authorization {
            FleetAuthorization::Hub => ViewAuthorization::Hub,
            FleetAuthorization::Path => ViewAuthorization::Path,
        },
        bounds,
        ..ViewSettings::default()
    };
    let views = Views::new(fleet.shelf().clone(), Arc::new(fleet.clone()), views);
    let views = views.with_context(unusable)?;
    Ok(Some(ServedFleet { fleet, views }))
}

/// Returns the address of the database that has the objects of members.
fn shared_address(settings: &Settings) -> Result<&str> {
    if !settings.fleet.fleet_sharding_name.is_empty() {
        bail!(
            "--fleet-shelf=shared shares the members out by itself; leave --fleet-sharding-name out"
        );
    }
    let address = settings.store.storage.as_deref().unwrap_or("");
    let (scheme, _) = address.split_once("://").unwrap_or_default();
    match scheme {
        "postgres" | "postgresql" | "mysql" | "mariadb" => Ok(address),
        _ => bail!(
            "--fleet-shelf=shared needs a store in PostgreSQL, MariaDB or MySQL (--storage postgres://… or mysql://…); with another store use --fleet-shelf=local: one server syncs, and the others forward to it"
        ),
    }
}

fn open_shared(url: &str, fleet: FleetSettings) -> Result<Fleet> {
    if url.starts_with("postgres") {
        let engine = PostgresShelf::open(url, &fleet.shelf)?;
        return Ok(Fleet::open_shared(fleet, Box::new(engine))?);
    }
    let engine = MysqlShelf::open(url, &fleet.shelf)?;
    Ok(Fleet::open_shared(fleet, Box::new(engine))?)
}

impl ServedFleet {
    /// Adds kinds and views to a server.
    pub(crate) fn install(&self, builder: ServerBuilder) -> Result<ServerBuilder> {
        let builder = self.fleet.install(builder);
        match install_views(builder, self.views.clone()) {
            Ok(builder) => Ok(builder),
            Err(errors) => bail!("the views cannot be served: {errors:?}"),
        }
    }

    /// Begins to follow the members, alone or among other servers of the same store.
    pub(crate) async fn start(
        &self,
        server: &Server,
        leads: watch::Receiver<bool>,
        peers: Option<Peers>,
    ) {
        match peers {
            Some(peers) => self.fleet.start_among(server, leads, peers).await,
            None => self.fleet.start(server, leads).await,
        }
    }

    /// Says where clients reach this server.
    pub(crate) fn listens(&self, address: SocketAddr, authorities: &str) {
        self.fleet.listens(HubAddress {
            url: format!("https://{address}"),
            authorities: STANDARD.encode(authorities),
        });
    }

    /// Ends the sync.
    pub(crate) async fn stop(&self) {
        self.fleet.stop().await;
    }
}
