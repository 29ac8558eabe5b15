//! The server as a value: built, listened on, called in-process, shut down.

mod builder;
mod documents;
mod health;
mod listen;
mod pages;
mod paths;
mod serve;
pub(crate) mod state;

pub use builder::{BuildError, ServerBuilder};
pub use health::Check;
pub use listen::ListenError;
pub use pages::Page;
use serve::Door;

use crate::kinds::catalog::Catalog;
use crate::reply::Response;
use crate::request::body::RequestBody;
use bareboat_api::admission::Validator;
use bareboat_api::kind::User;
use bareboat_storage::Store;
use state::State;
use std::sync::Arc;

/// An API server: a value that can be listened on and called in-process.
#[derive(Clone)]
pub struct Server {
    pub(crate) state: Arc<State>,
}

impl Server {
    /// Starts building a server.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// Answers a request from inside the process as a given user.
    ///
    /// Whoever holds a `Server` may act as anybody: it is for the program that made it.
    pub async fn call(&self, user: User, request: http::Request<RequestBody>) -> Response {
        serve::serve(
            self.state.clone(),
            &Door::InProcess(Arc::new(user)),
            request,
        )
        .await
    }

    /// Like [`Server::call`], for single objects of stored kinds in the version they are stored in: no converter is
    /// asked, and the version in the URL need not be served.
    ///
    /// Objects can be read, their metadata changed by merge patch, and they can be deleted: what keeping the state in
    /// order takes, whatever became of a definition.
    pub async fn call_stored(&self, user: User, request: http::Request<RequestBody>) -> Response {
        serve::serve(self.state.clone(), &Door::Storage(Arc::new(user)), request).await
    }

    /// The kinds that are served.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.state.catalog
    }

    /// The store below.
    pub fn store(&self) -> &Store {
        &self.state.store
    }

    /// As long as somebody holds it, this may refuse every write, after all who were there before.
    pub fn validate_with(&self, validator: &Arc<dyn Validator>) {
        self.state.admission.add(validator);
    }

    /// Prints more metrics together with the server's own, for as long as it lives.
    pub fn collect(
        &self,
        collector: impl prometheus::core::Collector + 'static,
    ) -> Result<(), prometheus::Error> {
        self.state.metrics.add(collector)
    }

    /// Ends watches, lets requests finish, and closes the store.
    pub async fn shut_down(&self) {
        self.state.shut_down().await;
    }
}
