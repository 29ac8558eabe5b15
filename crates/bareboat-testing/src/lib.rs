//! A whole API server inside your test, with a kube-rs client, in one line.
//!
//! ```
//! use bareboat_testing::TestServer;
//! use kube::Api;
//! use k8s_openapi::api::core::v1::Namespace;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), kube::Error> {
//! let server = TestServer::start().await;
//! let namespaces: Api<Namespace> = Api::all(server.client());
//! assert_eq!(namespaces.get("default").await?.metadata.name.as_deref(), Some("default"));
//! # Ok(()) }
//! ```
//!
//! | for | call |
//! |---|---|
//! | no socket, nothing on disk | [`TestServer::start`] |
//! | a port, TLS and a kubeconfig for programs in other languages | [`TestServer::listening`] |
//! | your own kinds, users, SQLite, no controllers | [`TestServer::builder`] |
//! | to see what your controller does after a restart | [`TestServer::restart`] |
//! | times in objects that do not change from run to run | [`Builder::clock`] |
//! | a client of another user | [`TestServer::client_as`] |
//!
//! The server stops when its value is dropped. Everything here panics with a plain message where
//! production code would return an error, because that fails the test.

mod builder;
mod certificates;
mod client;
mod clock;
mod server;

pub use builder::Builder;
pub use clock::HeldClock;
pub use server::TestServer;
