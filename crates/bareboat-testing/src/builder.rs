//! What a test server is made of: choices first, then a running server.

use crate::TestServer;
use bareboat::ServerBuilder;
use bareboat::prelude::{ControlPlane as _, Profile, Server, Settings, StaticTokens};
use bareboat::storage::{MemoryBackend, Store, StoreOptions};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

type Extend = Box<dyn Fn(ServerBuilder) -> ServerBuilder + Send + Sync>;

/// A test server in the making.
pub struct Builder {
    extensions: Vec<Extend>,
    tokens: String,
    options: StoreOptions,
    sqlite: bool,
    pub(crate) controllers: bool,
    pub(crate) default_roles: bool,
    control_plane: Option<Profile>,
    pub(crate) listening: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Builder {
            extensions: Vec::new(),
            tokens: String::new(),
            options: StoreOptions::default(),
            sqlite: false,
            controllers: true,
            default_roles: false,
            control_plane: Some(Profile::Full),
            listening: false,
        }
    }
}

impl Builder {
    /// Adds anything a [`ServerBuilder`] takes: kinds, admission, an authorizer.
    ///
    /// Called again at every restart.
    #[must_use]
    pub fn with(
        mut self,
        extend: impl Fn(ServerBuilder) -> ServerBuilder + Send + Sync + 'static,
    ) -> Self {
        self.extensions.push(Box::new(extend));
        self
    }

    /// Knows a user by a bearer token.
    #[must_use]
    pub fn token(mut self, token: &str, user: &str, groups: &[&str]) -> Self {
        let groups = groups.join(",");
        self.tokens
            .push_str(&format!("{token},{user},,\"{groups}\"\n"));
        self
    }

    /// Keeps its data in SQLite, in a directory that goes when the server goes.
    #[must_use]
    pub fn sqlite(mut self) -> Self {
        self.sqlite = true;
        self
    }

    /// Opens the store with other options, such as a short history.
    #[must_use]
    pub fn store_options(mut self, options: StoreOptions) -> Self {
        self.options = options;
        self
    }

    /// Creates the first namespaces and then leaves everything to you.
    #[must_use]
    pub fn without_controllers(mut self) -> Self {
        self.controllers = false;
        self
    }

    /// Has the default roles and bindings (`cluster-admin`, `view`, `system:discovery` and so on), as `bareboat serve`
    /// does. Without them a test starts faster; members of `system:masters` may do everything anyway.
    #[must_use]
    pub fn default_roles(mut self) -> Self {
        self.default_roles = true;
        self
    }

    /// Serves as many built-in kinds as a profile has.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.control_plane = Some(profile);
        self
    }

    /// Serves nothing but what [`Builder::with`] adds; no controllers either.
    #[must_use]
    pub fn bare(mut self) -> Self {
        self.control_plane = None;
        self.controllers = false;
        self
    }

    /// Listens on a free port of this machine, with TLS.
    #[must_use]
    pub fn listening(mut self) -> Self {
        self.listening = true;
        self
    }

    /// Starts it.
    pub async fn start(self) -> TestServer {
        TestServer::begin(self).await
    }

    pub(crate) fn serves_control_plane(&self) -> bool {
        self.control_plane.is_some()
    }

    /// Where this server keeps its data, made once and kept over restarts.
    pub(crate) fn place(&self) -> Place {
        if self.sqlite {
            Place::File(tempfile::tempdir().expect("a temporary directory can be made"))
        } else {
            Place::Memory(Arc::new(MemoryBackend::new()))
        }
    }

    /// A server on the data of a place; `more` adds what only the caller knows.
    pub(crate) fn build(
        &self,
        place: &Place,
        more: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> Server {
        let mut builder = Server::builder().storage(place.open(self.options.clone()));
        if let Some(profile) = self.control_plane {
            builder = builder.control_plane_with(&Settings::default().profile(profile));
        }
        builder = more(builder);
        if !self.tokens.is_empty() {
            let tokens = StaticTokens::parse(&self.tokens).expect("the tokens are well formed");
            builder = builder.authenticator(tokens);
        }
        for extend in &self.extensions {
            builder = extend(builder);
        }
        builder.build().expect("a test server can be built")
    }
}

/// Where data lives while servers come and go.
pub(crate) enum Place {
    Memory(Arc<MemoryBackend>),
    File(TempDir),
}

impl Place {
    fn open(&self, options: StoreOptions) -> Store {
        match self {
            Place::Memory(backend) => {
                Store::open(backend.clone(), options).expect("memory can be opened")
            }
            Place::File(_) => {
                let path = self.path().expect("a file has a path");
                bareboat::open_sqlite(path, options).expect("the database can be opened")
            }
        }
    }

    pub(crate) fn path(&self) -> Option<PathBuf> {
        match self {
            Place::Memory(_) => None,
            Place::File(dir) => Some(dir.path().join("state.db")),
        }
    }
}
