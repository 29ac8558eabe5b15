//! Controllers as clients of the server: bootstrap, namespaces, garbage, custom kinds, events.
//!
//! They read one feed of metadata over all kinds, and whatever they write goes through the front
//! door of the server, authenticated, authorized and admitted like any other client's writes.
//! When nothing happens they do nothing.

mod addresses;
mod api_services;
mod bootstrap;
mod client;
mod conditions;
mod default_roles;
mod definitions;
mod expiry;
mod feed;
mod garbage;
mod kinds;
mod kubernetes;
pub mod migration;
mod namespaces;
mod options;
mod pods;
mod queue;
mod quotas;
mod residents;
mod roles;
mod sweep;

pub use client::{Client, read_answer};
pub use kubernetes::KubernetesService;
pub use options::{FrontProxy, Options, UnknownController};

use bareboat_server::Server;
use feed::Listener;
use queue::{Queue, QueueMetrics, Verdict, work};
use std::future::Future;
use std::hash::Hash;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

/// Running controllers; they end when this is dropped.
pub struct Controllers {
    tasks: JoinSet<()>,
    /// What they are in the middle of.
    turns: TaskTracker,
    quotas: Option<quotas::Enforcement>,
    kubernetes: Option<Arc<kubernetes::Keeper>>,
}

/// Controllers in the making.
struct Crew {
    tasks: JoinSet<()>,
    turns: TaskTracker,
    listeners: Vec<Box<dyn Listener>>,
    metrics: Option<QueueMetrics>,
}

impl Crew {
    /// One more under a name: who listens, and what is done about each thing it notes, for so many at once.
    fn enlist<K, F, Fut>(
        &mut self,
        name: &str,
        listener: impl Listener + 'static,
        queue: Arc<Queue<K>>,
        at_once: usize,
        job: F,
    ) where
        K: Clone + Eq + Hash + Send + Sync + 'static,
        F: Fn(K) -> Fut + Send + 'static,
        Fut: Future<Output = Verdict> + Send + 'static,
    {
        self.listeners.push(Box::new(listener));
        self.measure(name, &queue);
        self.tasks
            .spawn(work(queue, at_once, self.turns.clone(), job));
    }
}

impl Crew {
    /// Measures the queue of a controller.
    fn measure<K: Clone + Eq + Hash>(&self, name: &str, queue: &Queue<K>) {
        if let Some(metrics) = &self.metrics {
            queue.measure(metrics.meter(name));
        }
    }
}

/// A job that a shared worker does.
macro_rules! by {
    ($worker:expr) => {{
        let worker = Arc::new($worker);
        move |thing| {
            let worker = worker.clone();
            async move { worker.look(thing).await }
        }
    }};
}

impl Controllers {
    /// Creates what must be there from the start, and starts all controllers.
    pub async fn start(server: Server) -> Controllers {
        Controllers::start_with(server, Options::default()).await
    }

    /// Creates what must be there from the start, and starts the controllers that are wanted.
    pub async fn start_with(server: Server, options: Options) -> Controllers {
        let client = Client::new(server.clone());
        let kubernetes = options
            .kubernetes
            .map(|wanted| Arc::new(kubernetes::Keeper::new(&client, wanted)));
        if options.bootstrap {
            bootstrap::run(&client, options.front_proxy.as_ref()).await;
            if let Some(keeper) = &kubernetes {
                keeper.look().await;
            }
        }
        if options.default_roles {
            default_roles::run(&client.named("kube-apiserver")).await;
        }
        let mut crew = Crew {
            tasks: JoinSet::new(),
            turns: TaskTracker::new(),
            listeners: Vec::new(),
            metrics: QueueMetrics::of(&server),
        };
        if options.garbage {
            let shared = garbage::Shared::new();
            let ear = garbage::Ear::new(shared.clone(), server.clone());
            let queue = shared.queue.clone();
            crew.enlist(
                "garbage",
                ear,
                queue,
                64,
                by!(garbage::Worker::new(&client, shared)),
            );
        }
        if options.namespaces {
            let queue = Queue::new();
            let ear = namespaces::Ear::new(queue.clone());
            crew.enlist(
                "namespaces",
                ear,
                queue,
                8,
                by!(namespaces::Worker::new(&client)),
            );
        }
        if options.definitions {
            let queue = Queue::new();
            let ear = definitions::Ear::new(queue.clone());
            crew.enlist(
                "definitions",
                ear,
                queue,
                8,
                by!(definitions::Worker::new(&client)),
            );
        }
        if options.expiry {
            let queue = Queue::new();
            let lines = Arc::new(expiry::Lines::default());
            let ear = expiry::Ear::new(queue.clone(), lines.clone(), server.clone());
            crew.enlist(
                "expiry",
                ear,
                queue,
                4,
                by!(expiry::Worker::new(&client, lines)),
            );
        }
        if options.pods && pods::has_work(&server) {
            let queue = Queue::new();
            let ear = pods::Ear::new(queue.clone(), server.clone());
            crew.enlist("pods", ear, queue, 16, by!(pods::Worker::new(&client)));
        }
        if options.residents {
            let queue = Queue::new();
            let ear = residents::Ear::new(queue.clone());
            let worker = residents::Worker::new(&client, options.root_ca);
            crew.enlist("residents", ear, queue, 16, by!(worker));
        }
        let mut quotas = None;
        if options.quotas {
            let queue = Queue::new();
            let enforcement = quotas::Enforcement::begin(&server);
            let accounts = enforcement.accounts.clone();
            let ear = quotas::Ear::new(accounts.clone(), queue.clone(), server.store().clone());
            crew.enlist(
                "quotas",
                ear,
                queue,
                16,
                by!(quotas::Worker::new(&client, accounts)),
            );
            quotas = Some(enforcement);
        }
        if options.roles {
            let queue = Queue::new();
            let ear = roles::Ear::new(queue.clone());
            crew.enlist("roles", ear, queue, 4, by!(roles::Worker::new(&client)));
        }
        if options.addresses && addresses::has_work(&server) {
            let queue = Queue::new();
            let ear = addresses::Ear::new(queue.clone());
            let worker = addresses::Worker::new(&client, queue.clone());
            crew.enlist("addresses", ear, queue, 16, by!(worker));
        }
        if options.api_services {
            let queue = Queue::new();
            let ear = api_services::Ear::new(queue.clone(), server.clone());
            crew.enlist(
                "api-services",
                ear,
                queue,
                64,
                by!(api_services::Worker::new(&client)),
            );
        }
        if let Some(keeper) = kubernetes.clone() {
            let queue = keeper.queue.clone();
            if options.residents {
                crew.listeners
                    .push(Box::new(kubernetes::Ear(queue.clone())));
            }
            crew.measure("kubernetes", &queue);
            let turns = crew.turns.clone();
            crew.tasks.spawn(work(queue, 1, turns, move |()| {
                let keeper = keeper.clone();
                async move { keeper.look().await }
            }));
        }
        let Crew {
            mut tasks,
            turns,
            listeners,
            ..
        } = crew;
        if !listeners.is_empty() {
            tasks.spawn(feed::run(server.store().clone(), listeners));
        }
        Controllers {
            tasks,
            turns,
            quotas,
            kubernetes,
        }
    }

    /// Tells where the server listens, so that its service leads there.
    pub fn listens(&self, address: SocketAddr) {
        if let Some(keeper) = &self.kubernetes {
            keeper.listens(address);
        }
    }

    /// Ends them, and waits until they have: whoever closes the store then has nobody complain that it is closed. Writes
    /// that have begun are the server's own and go on.
    pub async fn stop(&mut self) {
        self.tasks.shutdown().await;
        self.turns.close();
        self.turns.wait().await;
        self.quotas = None;
    }
}
