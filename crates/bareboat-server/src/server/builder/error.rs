//! Why a server cannot be built.

use bareboat_storage::OpenError;

/// Why a server could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The store could not be opened.
    #[error("the store could not be opened")]
    Store(#[source] OpenError),
    /// Two kinds have the same group and plural.
    #[error("two kinds are called {0}")]
    SameResource(String),
    /// A kind has no version.
    #[error("the kind {0} has no version")]
    NoVersion(String),
    /// A handler was added for a subresource that no kind has as a connect subresource.
    #[error("no stored kind has the connection {0}")]
    NoSuchSubresource(String),
    /// The remote server of a subresource has an invalid configuration.
    #[error("the server that answers for {subresource} cannot be called: {why}")]
    Remote {
        /// The subresource as `group/resource/subresource`.
        subresource: String,
        /// The error in its configuration.
        why: String,
    },
    /// Two metrics have the same name.
    #[error("two metrics have the same name")]
    Metrics(#[source] prometheus::Error),
}
