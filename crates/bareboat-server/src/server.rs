//! The server as a value: built, listened on, called in-process, shut down.

pub(crate) mod authenticate;
mod builder;
mod carrier;
mod deadline;
mod documents;
pub(crate) mod door;
mod drive;
mod error;
mod first_head;
mod fresh;
mod head;
mod health;
mod hooks;
#[cfg(feature = "http2")]
pub(crate) mod http2;
mod listen;
mod pages;
mod paths;
mod refusal;
mod registration;
mod serve;
pub(crate) mod state;
pub(crate) mod stopping;
mod version;
mod webhook_paths;
#[cfg(not(feature = "http2"))]
pub(crate) mod without_http2;

pub use builder::{BuildError, ServerBuilder};
use door::Door;
pub use error::Error;
pub use health::Check;
pub use hooks::Stopping;
pub use listen::ListenError;
pub use pages::Page;
pub use version::current as current_version;

use crate::authn::{BadCredentials, Peer};
use crate::kinds::catalog::Catalog;
use crate::reply::Response;
use crate::request::body::RequestBody;
use crate::revocation::Revocations;
use bareboat_api::admission::Validator;
use bareboat_api::kind::{BoxFuture, User};
use bareboat_storage::Store;
use state::State;
use std::sync::Arc;
#[cfg(not(feature = "http2"))]
pub(crate) use without_http2 as http2;

/// An API server: a value that can be listened on and called in-process.
///
/// # Inside another program
///
/// A program that listens itself authenticates and calls the server for each request, here with hyper. Upgrades are what
/// WebSockets and `kubectl exec` need.
///
/// ```no_run
/// use bareboat_api::Status;
/// use bareboat_server::authn::Peer;
/// use bareboat_server::request::body::RequestBody;
/// use bareboat_server::{Server, reply};
/// use http::{Request, StatusCode};
/// use hyper::body::Incoming;
/// use hyper::server::conn::http1;
/// use hyper::service::service_fn;
/// use hyper_util::rt::{TokioIo, TokioTimer};
/// use std::convert::Infallible;
///
/// async fn serve(server: Server, listener: tokio::net::TcpListener) -> std::io::Result<()> {
///     // Hooks and tasks of the builder.
///     server.start();
///     loop {
///         let (stream, address) = listener.accept().await?;
///         let (server, peer) = (server.clone(), Peer::new(Vec::new(), Some(address), false));
///         let service = service_fn(move |request: Request<Incoming>| {
///             let (server, peer) = (server.clone(), peer.clone());
///             async move {
///                 let answer = match server.authenticate(&request, &peer).await {
///                     Ok(Some(user)) => server.call(user, request.map(RequestBody::new)).await,
///                     _ => reply::json(StatusCode::UNAUTHORIZED, &Status::unauthorized().to_value()),
///                 };
///                 Ok::<_, Infallible>(answer)
///             }
///         });
///         let mut http = http1::Builder::new();
///         http.timer(TokioTimer::new());
///         tokio::spawn(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
///     }
/// }
/// ```
///
/// `examples/axum` does the same inside an axum router.
#[derive(Clone)]
pub struct Server {
    pub(crate) state: Arc<State>,
}

bareboat_api::opaque_debug!(Server);

impl Server {
    /// Starts building a server.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// Answers a request from inside the process as a given user.
    ///
    /// The caller chooses the user. No credentials are checked.
    pub async fn call(&self, user: User, request: http::Request<RequestBody>) -> Response {
        self.answer(Door::InProcess(Arc::new(user)), request).await
    }

    /// Like [`Server::call`], but writes are stored also where [`ServerBuilder::writes`] lets a function answer those of clients.
    pub async fn call_store(&self, user: User, request: http::Request<RequestBody>) -> Response {
        self.answer(Door::Store(Arc::new(user)), request).await
    }

    /// Like [`Server::call`], but at the raw endpoint: single objects in the version they were written in. Nothing is
    /// converted, and the version in the URL need not be served.
    ///
    /// Objects can be read and deleted, and their metadata can be changed by a merge patch. Controllers use this, so that
    /// they work with a broken converter and with versions that are no longer served.
    pub async fn call_raw(&self, user: User, request: http::Request<RequestBody>) -> Response {
        self.answer(Door::Raw(Arc::new(user)), request).await
    }

    /// Boxes the future that answers a request. It is compiled here, once: the body of an `async fn` is compiled again in
    /// every crate that awaits it.
    #[inline(never)]
    fn answer(&self, door: Door, request: http::Request<RequestBody>) -> BoxFuture<'_, Response> {
        Box::pin(async move { serve::serve(self.state.clone(), &door, request).await })
    }

    /// Returns the served kinds.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.state.catalog
    }

    /// Whether roles and bindings in the store decide who may do what.
    pub fn uses_roles(&self) -> bool {
        self.state.authorizer.uses_roles()
    }

    /// Ends streams of clients that may no longer have them, when something they depend on changed.
    pub fn revocations(&self) -> &Revocations {
        &self.state.revocations
    }

    /// Returns the store.
    pub fn store(&self) -> &Store {
        &self.state.store
    }

    /// Adds a validator, which runs after those added before. It is removed when the last `Arc` to it is dropped.
    pub fn validate_with(&self, validator: &Arc<dyn Validator>) {
        self.state.admission.add(validator);
    }

    /// Adds metrics to the server's own; they are removed when the collector is dropped.
    pub fn collect(
        &self,
        collector: impl prometheus::core::Collector + 'static,
    ) -> Result<(), prometheus::Error> {
        self.state.metrics.add(collector)
    }

    /// Authenticates a request as this server does on its own sockets, for programs that listen themselves: pass the user to
    /// [`Server::call`]. A request without credentials has the user `system:anonymous` if the server accepts that for its path,
    /// otherwise the answer is `None`.
    pub async fn authenticate<B>(
        &self,
        request: &http::Request<B>,
        peer: &Peer,
    ) -> Result<Option<User>, BadCredentials> {
        authenticate::of_request(&self.state, request, peer).await
    }

    /// Runs the start hooks and tasks of the builder. [`Server::listen`] does this as well; only the first call has an effect.
    pub fn start(&self) {
        self.state.hooks.start(self);
    }

    /// Runs the stop hooks, ends watches and tasks, lets requests finish, and closes the store.
    pub async fn shut_down(&self) {
        self.state.hooks.stop(self).await;
        self.state.shut_down().await;
    }
}
