//! Starting controllers: a queue, a listener and a task for each.

use crate::client::Client;
use crate::controller::{ALL, Controller};
use crate::feed::{self, Listener};
use crate::leader_election::{self, Elector, Leadership};
use crate::queue::{Queue, QueueMetrics, work};
use crate::{Controllers, Options};
use bareboat_api::kind::BoxFuture;
use bareboat_server::Server;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

/// Called with the address that the server listens on.
pub(crate) type AddressHook = Box<dyn Fn(SocketAddr) + Send + Sync>;

/// Called when all work of the controllers has ended.
pub(crate) type StopHook = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// Controllers that are being started.
pub(crate) struct Startup {
    pub(crate) server: Server,
    pub(crate) options: Options,
    tasks: JoinSet<()>,
    turns: TaskTracker,
    listeners: Vec<Box<dyn Listener>>,
    metrics: Option<QueueMetrics>,
    address_hooks: Vec<AddressHook>,
    stop_hooks: Vec<StopHook>,
    leadership: Leadership,
}

/// What a controller is made from.
pub(crate) struct Context<'a> {
    pub(crate) server: &'a Server,
    pub(crate) options: &'a Options,
    /// Writes as the user of the controller.
    pub(crate) client: Client,
    /// Whether the controllers of this server work.
    pub(crate) leadership: &'a Leadership,
    address_hooks: &'a mut Vec<AddressHook>,
    stop_hooks: &'a mut Vec<StopHook>,
}

impl Context<'_> {
    /// Calls a function when the server begins to listen.
    pub(crate) fn on_listening(&mut self, hook: impl Fn(SocketAddr) + Send + Sync + 'static) {
        self.address_hooks.push(Box::new(hook));
    }

    /// Calls a function when all work of the controllers has ended.
    pub(crate) fn on_stop(
        &mut self,
        hook: impl Fn() -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) {
        self.stop_hooks.push(Box::new(hook));
    }
}

impl Startup {
    pub(crate) fn new(server: Server, options: Options) -> Startup {
        let elects = ALL
            .iter()
            .any(|entry| entry.name == Elector::NAME && entry.is_on(&server, &options));
        let leadership = Leadership::new(!elects);
        if let Err(error) = leader_election::publish(&server, leadership.subscribe()) {
            tracing::debug!(%error, "whether this server leads is not among its metrics");
        }
        Startup {
            metrics: QueueMetrics::of(&server),
            leadership,
            server,
            options,
            tasks: JoinSet::new(),
            turns: TaskTracker::new(),
            listeners: Vec::new(),
            address_hooks: Vec::new(),
            stop_hooks: Vec::new(),
        }
    }

    /// Starts one controller.
    pub(crate) fn add<C: Controller>(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let queue = match C::EVERYWHERE {
                true => Queue::new(),
                false => Queue::of_leader(self.leadership.subscribe()),
            };
            let identity = C::identity(&self.server.catalog().table());
            let mut context = Context {
                server: &self.server,
                options: &self.options,
                client: Client::of_controller(&self.server, &identity).named(C::MANAGER),
                leadership: &self.leadership,
                address_hooks: &mut self.address_hooks,
                stop_hooks: &mut self.stop_hooks,
            };
            let (controller, listener) = C::new(&mut context, queue.clone());
            controller.before_start().await;
            self.listeners.push(Box::new(listener));
            if let Some(metrics) = &self.metrics {
                queue.measure(metrics.meter(C::NAME));
            }
            let controller = Arc::new(controller);
            let reconcile = move |key| {
                let controller = controller.clone();
                async move { controller.reconcile(key).await }
            };
            let turns = self.turns.clone();
            self.tasks.spawn(work(queue, C::PARALLEL, turns, reconcile));
        })
    }

    /// Starts the reader of the feed, which wakes all of them.
    pub(crate) fn finish(mut self) -> Controllers {
        if !self.listeners.is_empty() {
            let store = self.server.store().clone();
            let leads = self.leadership.subscribe();
            // It begins here and not in the task, which may run after the first requests.
            match store.feed(None) {
                Ok(feed) => drop(
                    self.tasks
                        .spawn(feed::run(store, feed, leads, self.listeners)),
                ),
                Err(error) => {
                    tracing::error!(%error, "controllers cannot read the feed of the store");
                }
            }
        }
        Controllers {
            tasks: self.tasks,
            turns: self.turns,
            address_hooks: self.address_hooks,
            stop_hooks: self.stop_hooks,
            leadership: self.leadership,
        }
    }
}
