//! The Kubernetes API without Kubernetes: the face of the library.
//!
//! ```no_run
//! use bareboat::prelude::*;
//!
//! #[derive(Clone, Serialize, Deserialize, JsonSchema)]
//! struct Post { spec: PostSpec }
//! #[derive(Clone, Serialize, Deserialize, JsonSchema)]
//! struct PostSpec { title: String }
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let posts = TypedKind::new("blog.example.com", "posts", "Post").version::<Post>("v1").build();
//! let server = Server::builder()
//!     .kind(posts)
//!     .authenticator(Anonymous)
//!     .authorizer(AllowAll)
//!     .build()?;
//! server.listen("127.0.0.1:8080".parse()?, None).await?;
//! tokio::signal::ctrl_c().await?;
//! server.shut_down().await;
//! # Ok(()) }
//! ```
//!
//! | module | what is in it |
//! |---|---|
//! | [`typed`] | kinds from Rust structs |
//! | [`control_plane`] | everything `bareboat serve` serves |
//! | [`rbac`] | roles and bindings that decide |
//! | [`service_accounts`] | tokens of service accounts |
//! | `client`, with the feature `kube` | clients of kube-rs without a socket |
//! | re-exports | the server, the store, the vocabulary |

mod certificates;
#[cfg(feature = "kube")]
pub mod client;
pub mod control_plane;
pub mod prelude;
pub mod rbac;
mod reviews;
pub mod service_accounts;
pub mod typed;

pub use bareboat_api as api;
pub use bareboat_builtin as builtin;
pub use bareboat_controllers as controllers;
pub use bareboat_server as server;
pub use bareboat_sqlite as sqlite;
pub use bareboat_storage as storage;

pub use bareboat_server::{
    ClientIdentity, Computed, Connector, RemoteServer, Server, ServerBuilder, Tls, Visit,
};
pub use control_plane::{ControlPlane, Profile, open_sqlite};
pub use typed::TypedKind;

/// Programs in the documentation are compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/subresources.md")]
mod documentation {}
