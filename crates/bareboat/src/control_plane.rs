//! Everything `bareboat serve` serves: built-in kinds, custom kinds, admission, protobuf, controllers.

use crate::reviews;
use bareboat_api::Kind;
use bareboat_api::kind::SubresourceRole;
use bareboat_builtin::admission::{Completion, NamespaceLifecycle};
use bareboat_builtin::{describe, facts, kinds};
use bareboat_controllers::{Controllers, Options};
use bareboat_server::{Server, ServerBuilder};
use bareboat_sqlite::{Sqlite, SqliteError};
use bareboat_storage::{OpenError, Store, StoreOptions};
use std::path::Path;
use std::sync::Arc;

/// Why the embedded store could not be opened.
#[derive(Debug)]
pub enum OpenSqliteError {
    /// The file cannot be used.
    File(SqliteError),
    /// What is in it cannot be read.
    Content(OpenError),
}

impl std::fmt::Display for OpenSqliteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OpenSqliteError::File(error) => error.fmt(f),
            OpenSqliteError::Content(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenSqliteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenSqliteError::File(error) => error.source(),
            OpenSqliteError::Content(error) => error.source(),
        }
    }
}

/// Opens the embedded store in a file, or makes it.
pub fn open_sqlite(
    path: impl AsRef<Path>,
    options: StoreOptions,
) -> Result<Store, OpenSqliteError> {
    let backend = Sqlite::open(path).map_err(OpenSqliteError::File)?;
    Store::open(Arc::new(backend), options).map_err(OpenSqliteError::Content)
}

/// The kind CustomResourceDefinition.
const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

/// Adds the default control plane to a server.
pub trait ControlPlane {
    /// Serves the built-in kinds and custom kinds, with their admission and in protobuf.
    #[must_use]
    fn control_plane(self) -> Self;
}

impl ControlPlane for ServerBuilder {
    fn control_plane(self) -> Self {
        let mut builder = self
            .mutator(NamespaceLifecycle)
            .mutator(Completion)
            .protobuf(facts::message, facts::kind)
            .descriptions(describe::definition);
        for kind in kinds::all() {
            let place = (kind.group.as_str(), kind.names.plural.as_str());
            builder = match reviews::computed(without_connections(kind.clone())) {
                Ok(review) => builder.computed(review),
                Err(kind) if place == DEFINITIONS => builder.custom_resources(*kind),
                Err(kind) => builder.kind(*kind),
            };
        }
        builder
    }
}

/// A kind without the parts that need somebody who runs containers, or issues tokens.
fn without_connections(mut kind: Kind) -> Kind {
    for version in &mut kind.versions {
        version.subresources.retain(|part| match part.role {
            SubresourceRole::Action => part.action.is_some(),
            SubresourceRole::Connect { .. } => false,
            _ => true,
        });
    }
    kind
}

/// Creates what must be there from the start, and starts the controllers.
pub async fn start(server: &Server) -> Controllers {
    start_with(server, Options::default()).await
}

/// The same, with controllers switched off or told what they cannot know.
pub async fn start_with(server: &Server, options: Options) -> Controllers {
    Controllers::start_with(server.clone(), options).await
}
