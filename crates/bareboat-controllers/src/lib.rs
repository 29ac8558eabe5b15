//! Controllers as clients of the server: bootstrap, namespaces, garbage, custom kinds, events.
//!
//! They read one feed of metadata over all kinds, and whatever they write goes through the front
//! door of the server, authenticated, authorized and admitted like any other client's writes.
//! When nothing happens they do nothing.

mod bootstrap;
mod client;
mod conditions;
mod definitions;
mod expiry;
mod feed;
mod garbage;
mod kinds;
mod kubernetes;
mod namespaces;
mod options;
mod pods;
mod queue;
mod residents;
mod sweep;

pub use client::Client;
pub use kubernetes::KubernetesService;
pub use options::{FrontProxy, Options};

use bareboat_server::Server;
use feed::Listener;
use queue::{Queue, work};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Running controllers; they end when this is dropped.
pub struct Controllers {
    tasks: JoinSet<()>,
    kubernetes: Option<Arc<kubernetes::Keeper>>,
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
        let mut tasks = JoinSet::new();
        let mut listeners: Vec<Box<dyn Listener>> = Vec::new();
        if options.garbage {
            let shared = garbage::Shared::new();
            listeners.push(Box::new(garbage::Ear::new(shared.clone(), server.clone())));
            let (queue, worker) = (shared.queue.clone(), garbage::Worker::new(&client, shared));
            tasks.spawn(work(queue, 64, move |job| {
                let worker = worker.clone();
                async move { worker.look(job).await }
            }));
        }
        if options.namespaces {
            let queue = Queue::new();
            listeners.push(Box::new(namespaces::Ear::new(queue.clone())));
            let worker = Arc::new(namespaces::Worker::new(&client));
            tasks.spawn(work(queue, 8, move |name| {
                let worker = worker.clone();
                async move { worker.look(name).await }
            }));
        }
        if options.definitions {
            let queue = Queue::new();
            listeners.push(Box::new(definitions::Ear::new(queue.clone())));
            let worker = Arc::new(definitions::Worker::new(&client));
            tasks.spawn(work(queue, 8, move |job| {
                let worker = worker.clone();
                async move { worker.look(job).await }
            }));
        }
        if options.expiry {
            let queue = Queue::new();
            listeners.push(Box::new(expiry::Ear::new(queue.clone(), server.clone())));
            let worker = Arc::new(expiry::Worker::new(&client));
            tasks.spawn(work(queue, 16, move |mortal| {
                let worker = worker.clone();
                async move { worker.look(mortal).await }
            }));
        }
        if options.pods {
            let queue = Queue::new();
            listeners.push(Box::new(pods::Ear::new(queue.clone(), server.clone())));
            let worker = Arc::new(pods::Worker::new(&client));
            tasks.spawn(work(queue, 16, move |ending| {
                let worker = worker.clone();
                async move { worker.look(ending).await }
            }));
        }
        if options.residents {
            let queue = Queue::new();
            listeners.push(Box::new(residents::Ear::new(queue.clone())));
            let worker = Arc::new(residents::Worker::new(&client, options.root_ca));
            tasks.spawn(work(queue, 16, move |namespace| {
                let worker = worker.clone();
                async move { worker.look(namespace).await }
            }));
        }
        if options.residents
            && let Some(keeper) = &kubernetes
        {
            listeners.push(Box::new(kubernetes::Ear(keeper.queue.clone())));
        }
        if let Some(keeper) = kubernetes.clone() {
            let queue = keeper.queue.clone();
            tasks.spawn(work(queue, 1, move |()| {
                let keeper = keeper.clone();
                async move { keeper.look().await }
            }));
        }
        if !listeners.is_empty() {
            tasks.spawn(feed::run(server.store().clone(), listeners));
        }
        Controllers { tasks, kubernetes }
    }

    /// Tells where the server listens, so that its service leads there.
    pub fn listens(&self, address: SocketAddr) {
        if let Some(keeper) = &self.kubernetes {
            keeper.listens(address);
        }
    }

    /// Ends them.
    pub fn stop(&mut self) {
        self.tasks.abort_all();
    }
}
