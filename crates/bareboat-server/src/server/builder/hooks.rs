//! Functions of the program around the life of a server, paths that it answers, and kinds with a store of their own.

use super::ServerBuilder;
use crate::annex::Annex;
use crate::kinds::connector::Connector;
use crate::server::Server;
use crate::server::hooks::Stopping;
use crate::server::pages::Page;
use bareboat_api::kind::Kind;
use bareboat_storage::Store;
use std::sync::Arc;

impl ServerBuilder {
    /// Runs a function when the server starts: at its first [`Server::listen`], or at [`Server::start`]. The server is not ready
    /// before it has succeeded; the readiness check is `poststarthook/NAME`.
    ///
    /// ```
    /// # mod bareboat { pub mod server { pub use bareboat_server::*; } }
    /// use bareboat::server::Server;
    ///
    /// let builder = Server::builder()
    ///     .on_start("load", |server| async move {
    ///         println!("{} revisions", server.store().visible());
    ///         Ok::<(), std::io::Error>(())
    ///     })
    ///     .on_stop("farewell", |_| async { println!("stopping") });
    /// # drop(builder);
    /// ```
    #[must_use]
    pub fn on_start<F, R, E>(mut self, name: &str, hook: F) -> Self
    where
        F: FnOnce(Server) -> R + Send + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.hooks.add_start(name, hook);
        self
    }

    /// Runs a task from the start of the server on, such as a controller. [`Server::shut_down`] waits for its end, so it should
    /// end soon after the shutdown begins.
    ///
    /// ```
    /// # mod bareboat { pub mod server { pub use bareboat_server::*; } }
    /// use bareboat::server::Server;
    ///
    /// let builder = Server::builder().task(|server, stopping| async move {
    ///     println!("{} revisions", server.store().visible());
    ///     stopping.begun().await;
    /// });
    /// # drop(builder);
    /// ```
    #[must_use]
    pub fn task<F, R>(mut self, task: F) -> Self
    where
        F: FnOnce(Server, Stopping) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        self.hooks.add_task(task);
        self
    }

    /// Runs a function when the server shuts down, before requests are refused. Functions run in the order in which they were
    /// added.
    #[must_use]
    pub fn on_stop<F, R>(mut self, name: &str, hook: F) -> Self
    where
        F: FnOnce(Server) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        self.hooks.add_stop(name, hook);
        self
    }

    /// Serves a stored kind from a store of its own, with its own resourceVersions. [`Server::shut_down`] closes the store.
    /// Controllers and admission rules that look up objects read the server's main store, so they do not see these.
    ///
    /// ```
    /// # mod bareboat { pub mod api { pub use bareboat_api::*; } pub mod server { pub use bareboat_server::*; }
    /// #     pub mod storage { pub use bareboat_storage::*; } }
    /// use bareboat::api::kind::Kind;
    /// use bareboat::server::{Server, ServerBuilder};
    /// use bareboat::storage::{MemoryBackend, OpenError, Store, StoreOptions};
    /// use std::sync::Arc;
    ///
    /// fn with_sessions(builder: ServerBuilder, sessions: Kind) -> Result<ServerBuilder, OpenError> {
    ///     let memory = Store::open(Arc::new(MemoryBackend::new()), StoreOptions::default())?;
    ///     Ok(builder.kind_in(sessions, memory))
    /// }
    /// # drop(with_sessions);
    /// ```
    #[must_use]
    pub fn kind_in(mut self, kind: Kind, store: Store) -> Self {
        self.kinds_elsewhere.push((kind, store));
        self
    }

    /// Lets a function, or another server, answer all writes of a stored kind: create, update, patch, delete and
    /// deletecollection. The store is then written by the program, for example by following other servers.
    #[must_use]
    pub fn writes(mut self, group: &str, plural: &str, connector: Connector) -> Self {
        let place = [group, plural, ""].map(str::to_owned);
        self.connectors.push((place, connector));
        self
    }

    /// Lets a function answer everything below some paths.
    #[must_use]
    pub fn annex(mut self, annex: Arc<dyn Annex>) -> Self {
        self.annexes.push(annex);
        self
    }

    /// Serves a document at a path that is not a resource, such as `/.well-known/openid-configuration`.
    #[must_use]
    pub fn page(mut self, path: &str, page: Page) -> Self {
        self.pages.insert(path.to_owned(), page);
        self
    }
}
