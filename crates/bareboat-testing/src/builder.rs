//! The builder of a test server.

use crate::{HeldClock, TestServer};
use bareboat::ServerBuilder;
use bareboat::prelude::{ControlPlane as _, Profile, Server, Settings, StaticTokens};
use bareboat::storage::{MemoryBackend, Store, StoreOptions};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

type Extend = Box<dyn Fn(ServerBuilder) -> ServerBuilder + Send + Sync>;

/// The builder of a test server.
pub struct Builder {
    extensions: Vec<Extend>,
    settings: Box<dyn Fn(Settings) -> Settings + Send + Sync>,
    tokens: String,
    options: StoreOptions,
    sqlite: bool,
    pub(crate) controllers: bool,
    pub(crate) default_roles: bool,
    service_accounts: bool,
    pub(crate) flow_control: bool,
    control_plane: Option<Profile>,
    pub(crate) listening: bool,
}

bareboat::api::opaque_debug!(Builder);

impl Default for Builder {
    fn default() -> Self {
        Builder {
            extensions: Vec::new(),
            settings: Box::new(|settings| settings),
            tokens: String::new(),
            options: StoreOptions::default(),
            sqlite: false,
            controllers: true,
            default_roles: false,
            service_accounts: false,
            flow_control: false,
            control_plane: Some(Profile::Full),
            listening: false,
        }
    }
}

impl Builder {
    /// Adds anything that a [`ServerBuilder`] takes: kinds, admission, an authorizer.
    ///
    /// The function runs again at every restart.
    #[must_use]
    pub fn with(
        mut self,
        extend: impl Fn(ServerBuilder) -> ServerBuilder + Send + Sync + 'static,
    ) -> Self {
        self.extensions.push(Box::new(extend));
        self
    }

    /// Changes the settings of the control plane, such as what answers the streams of pods.
    ///
    /// The function runs again at every restart.
    #[must_use]
    pub fn settings(
        mut self,
        change: impl Fn(Settings) -> Settings + Send + Sync + 'static,
    ) -> Self {
        self.settings = Box::new(change);
        self
    }

    /// Adds a user with a bearer token.
    #[must_use]
    pub fn token(mut self, token: &str, user: &str, groups: &[&str]) -> Self {
        let groups = groups.join(",");
        self.tokens
            .push_str(&format!("{token},{user},,\"{groups}\"\n"));
        self
    }

    /// Gives stored objects the time of a clock that the test holds.
    #[must_use]
    pub fn clock(self, clock: &HeldClock) -> Self {
        let clock = clock.of_server();
        self.with(move |builder| builder.clock(clock.clone()))
    }

    /// Stores data in SQLite, in a temporary directory that is removed with the server.
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

    /// Creates the first namespaces but runs no controllers.
    #[must_use]
    pub fn without_controllers(mut self) -> Self {
        self.controllers = false;
        self
    }

    /// Creates the default roles and bindings (`cluster-admin`, `view`, `system:discovery` and so
    /// on), as `bareboat serve` does. Without them a test starts faster: there are only the roles
    /// of controllers, and members of `system:masters` may do everything anyway.
    #[must_use]
    pub fn default_roles(mut self) -> Self {
        self.default_roles = true;
        self
    }

    /// Gives pods service accounts and tokens, as `bareboat serve` does: the admission plug-in
    /// `ServiceAccount` runs. Without it pods can be created before their namespace has an account.
    #[must_use]
    pub fn service_account_admission(mut self) -> Self {
        self.service_accounts = true;
        self
    }

    /// Has the default flow schemas and priority levels as objects, as `bareboat serve` does. Without them they apply all the
    /// same.
    #[must_use]
    pub fn default_flow_control(mut self) -> Self {
        self.flow_control = true;
        self
    }

    /// Serves the built-in kinds of a profile.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.control_plane = Some(profile);
        self
    }

    /// Serves only the kinds that [`Builder::with`] adds, without controllers.
    #[must_use]
    pub fn bare(mut self) -> Self {
        self.control_plane = None;
        self.controllers = false;
        self
    }

    /// Listens on a free local port, with TLS.
    #[must_use]
    pub fn listening(mut self) -> Self {
        self.listening = true;
        self
    }

    /// Starts the server.
    pub async fn start(self) -> TestServer {
        TestServer::begin(self).await
    }

    pub(crate) fn serves_control_plane(&self) -> bool {
        self.control_plane.is_some()
    }

    /// Where this server keeps its data, made once and kept over restarts.
    pub(crate) fn location(&self) -> DataLocation {
        if self.sqlite {
            DataLocation::File(tempfile::tempdir().expect("a temporary directory can be made"))
        } else {
            DataLocation::Memory(Arc::new(MemoryBackend::new()))
        }
    }

    /// Builds a server on the data of a place; `more` adds the caller's settings.
    pub(crate) fn build(
        &self,
        location: &DataLocation,
        more: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> Server {
        let mut builder = Server::builder().storage(location.open(self.options.clone()));
        if let Some(profile) = self.control_plane {
            let mut settings = Settings::default().profile(profile);
            if !self.service_accounts {
                settings.disabled_admission.insert("ServiceAccount");
            }
            builder = builder.control_plane_with(&(self.settings)(settings));
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
pub(crate) enum DataLocation {
    Memory(Arc<MemoryBackend>),
    File(TempDir),
}

impl DataLocation {
    fn open(&self, options: StoreOptions) -> Store {
        match self {
            DataLocation::Memory(backend) => {
                Store::open(backend.clone(), options).expect("memory can be opened")
            }
            DataLocation::File(_) => {
                let path = self.path().expect("a file has a path");
                bareboat::open_sqlite(path, options).expect("the database can be opened")
            }
        }
    }

    pub(crate) fn path(&self) -> Option<PathBuf> {
        match self {
            DataLocation::Memory(_) => None,
            DataLocation::File(dir) => Some(dir.path().join("state.db")),
        }
    }
}
