//! Bareboat is the Kubernetes API without Kubernetes: a library to build API servers that kubectl, client-go, kube-rs and
//! every other client of Kubernetes can talk to.
//!
//! A server here has resources with watches, CustomResourceDefinitions, server-side apply, admission, RBAC and durable
//! storage. It runs no containers. The binary `bareboat` is [`Server::builder`] with everything enabled; your own
//! program takes what it needs.
//!
//! # Getting started
//!
//! Three steps lead to a running server. First, the dependencies; the crate is used from a checkout of the repository:
//!
//! ```toml
//! [dependencies]
//! bareboat = { path = "../bareboat/crates/bareboat" }
//! # The derive macros below name these two.
//! schemars = "1"
//! serde = { version = "1", features = ["derive"] }
//! tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
//! ```
//!
//! Second, the program: a server for one kind, defined by a Rust struct.
//!
//! ```no_run
//! use bareboat::prelude::*;
//!
//! #[derive(Serialize, Deserialize, JsonSchema)]
//! struct Post {
//!     spec: PostSpec,
//! }
//! #[derive(Serialize, Deserialize, JsonSchema)]
//! struct PostSpec {
//!     /// The headline.
//!     title: String,
//!     #[serde(default)]
//!     draft: bool,
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let posts = TypedKind::new("blog.example.com", "posts", "Post")
//!         .version::<Post>("v1")
//!         .column("Title", ".spec.title")
//!         .build()?;
//!     let server = Server::builder()
//!         .kind(posts)
//!         .authenticator(Anonymous)
//!         .authorizer(AllowAll)
//!         .build()?;
//!     let address = server.listen("127.0.0.1:8080".parse()?, None).await?;
//!     println!("listening on http://{address}");
//!     Ok(bareboat::run_until_signal(&server).await?)
//! }
//! ```
//!
//! Third, `cargo run`, and in another terminal any client of Kubernetes:
//!
//! ```text
//! $ alias k='kubectl --kubeconfig /dev/null --server http://127.0.0.1:8080'
//! $ k apply --server-side -f - <<'YAML'
//! {apiVersion: blog.example.com/v1, kind: Post, metadata: {name: first}, spec: {title: Hello}}
//! YAML
//! post.blog.example.com/first serverside-applied
//! $ k get posts
//! NAME    TITLE
//! first   Hello
//! $ k explain posts.spec
//! ```
//!
//! [`ControlPlane`] shows the next step: the API of Kubernetes with definitions, RBAC and controllers, on disk.
//!
//! # High-level features
//!
//! - **Custom kinds**: from Rust structs ([`TypedKind`]), from kube's derive macro (`client::kind_of`), from
//!   CustomResourceDefinitions, or answered by a function ([`Computed`]). All use the same pipeline.
//! - **Who sees what**: a [`api::kind::ReadFilter`] is right in `get`, lists, pages and watches; an [`api::kind::Search`] answers
//!   field selectors by a function.
//! - **Life of a program**: [`ServerBuilder::on_start`], [`ServerBuilder::task`] and [`ServerBuilder::on_stop`];
//!   [`run_until_signal`].
//! - **The whole protocol**: all verbs and patch types, watches with bookmarks, paging, selectors, tables, discovery,
//!   OpenAPI; JSON, YAML and protobuf.
//! - **Rules**: defaults and validation of a kind ([`api::kind::Strategy`]), and admission across kinds
//!   ([`api::admission::Mutator`], [`api::admission::Validator`]).
//! - **Users**: [`server::authn::Authenticator`] and [`server::authz::Authorizer`] are small traits; certificates,
//!   tokens and RBAC are included.
//! - **Storage**: memory, SQLite, PostgreSQL, or your own engine behind [`storage::Backend`].
//! - **No socket needed**: [`Server::call`] answers a request inside the process, so a server can run in a test or in
//!   another HTTP program, for example with axum.
//! - **The default control plane**: [`ControlPlane::control_plane`] adds the built-in kinds, and the controllers manage
//!   them.
//!
//! # Modules
//!
//! | module | what is in it |
//! |---|---|
//! | [`prelude`] | the imports that most programs need |
//! | [`typed`] | kinds from Rust structs |
//! | [`api`] | API types: values, objects, kinds, errors, admission |
//! | [`server`] | the server, its builder, authentication, authorization, bodies |
//! | [`storage`] | the store, and the interface of storage engines |
//! | `control_plane`, `admission`, `builtin`, `controllers` | everything `bareboat serve` serves |
//! | `rbac`, `service_accounts`, `bootstrap_tokens` | roles and bindings; tokens |
//! | `certificates` | certificates and the authorities that issue them |
//! | `encryption` | encryption at rest |
//! | `extension`, `local_access` | a server behind another API server; TLS and an administrator for a server by itself |
//! | `sqlite`, `postgres`, `mysql`, `etcd` | the embedded engine, and those that several servers share |
//! | `fleet` | other API servers whose objects can be searched |
//! | `streams` | exec, attach, log, port-forward and proxy, by functions or by kubelets |
//! | `client` | a kube-rs client without a socket |
//!
//! # Complete programs
//!
//! They are in the folder `examples/` of the repository. The README of each is a session that is run as a test.
//!
//! | program | what it shows |
//! |---|---|
//! | `hello`, `hello-extended` | a kind with two versions; subresources, actions, rules, delegated access |
//! | `blog` | MariaDB, a read filter, full-text search, an authorizer, an informer in the process |
//! | `kubestack` | kinds by kube's derive macro, a placement controller, quotas |
//! | `proxy-kind` | the pods of several servers in one list; writes that go to their owner |
//! | `sample-controller` | a controller with kube-rs |
//! | `own-backend`, `admission`, `axum` | a storage engine, admission rules, a server inside axum |
//!
//! # Feature flags
//!
//! All but `postgres`, `mysql`, `etcd`, `fleet` and `otlp` are on by default. `default-features = false` leaves a server for typed
//! and computed kinds, in memory: all verbs, server-side apply, watches, tables, discovery, OpenAPI, TLS, tokens and client
//! certificates. Such a server is small, see `examples/smallest`. Objects are still validated by the schema of their struct; a
//! schema with a `pattern` is refused by [`TypedKind::build`], and [`TypedKind::validate`] takes a function instead.
//!
//! | feature | what it adds |
//! |---|---|
//! | `audit` | records of requests in files and by webhooks |
//! | `builtin` | the built-in kinds with their rules, and `ControlPlane`; includes `dynamic`, `fairness`, `rbac`, `websockets` and `yaml` |
//! | `controllers` | garbage collection, namespaces, quotas and the other controllers; includes `builtin` |
//! | `dynamic` | what clients extend a running server with: definitions, aggregated servers, policies and webhooks; includes `outbound` |
//! | `encryption` | encryption at rest |
//! | `etcd` | the log in an etcd cluster that several servers share |
//! | `expressions` | CEL rules and patterns in schemas, `TypedKind::rule` |
//! | `extension` | certificates made at start: for a server behind another API server, with its registration, or by itself; includes `outbound` |
//! | `fairness` | API priority and fairness; without it, there is one limit for reads and one for writes |
//! | `fleet` | objects of other API servers, synced to a file and searched through this server |
//! | `gzip` | compression of large answers for clients that accept it |
//! | `http2` | HTTP/2 for clients that offer it; without it, a server speaks HTTP/1.1 |
//! | `kube` | a kube-rs client that calls a server of the same process; includes `dynamic` |
//! | `mysql` | the log in a MySQL or MariaDB database that several servers share |
//! | `otlp` | spans of requests, sent to a collector; includes `outbound` |
//! | `outbound` | calls to other servers: remote subresources, delegated access, webhooks that authenticate and authorize, issuers of tokens; includes `expressions`, `gzip`, `http2` and `tls12` |
//! | `postgres` | the log in a PostgreSQL database that several servers share |
//! | `rbac` | authorization by roles and bindings |
//! | `sqlite` | the embedded store in a file, `open_sqlite` |
//! | `streams` | exec, attach, log, port-forward and proxy of pods; includes `builtin` |
//! | `tls12` | TLS 1.2 for clients that do not have TLS 1.3 |
//! | `tokens` | service account tokens; includes `builtin` |
//! | `websockets` | watches over WebSockets, for browsers |
//! | `yaml` | YAML in requests and files; without it, only JSON is read, and YAML is still written |

// Documentation names the features that items need, where it is built with a nightly compiler, as docs.rs does.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "builtin")]
pub mod admission;
pub mod api;
#[cfg(feature = "tokens")]
pub mod bootstrap_tokens;
#[cfg(feature = "builtin")]
pub mod builtin;
#[cfg(feature = "controllers")]
pub mod certificates;
#[cfg(feature = "kube")]
pub mod client;
#[cfg(feature = "builtin")]
pub mod control_plane;
#[cfg(feature = "controllers")]
pub mod controllers;
#[cfg(feature = "encryption")]
pub mod encryption;
#[cfg(feature = "etcd")]
pub mod etcd;
#[cfg(feature = "extension")]
pub mod extension;
#[cfg(feature = "builtin")]
mod fairness;
#[cfg(feature = "fleet")]
pub mod fleet;
#[cfg(feature = "builtin")]
mod issued;
#[cfg(feature = "extension")]
mod issuing;
#[cfg(feature = "extension")]
pub mod local_access;
#[cfg(feature = "mysql")]
pub mod mysql;
mod open;
#[cfg(feature = "builtin")]
mod pod_security;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod prelude;
#[cfg(feature = "rbac")]
pub mod rbac;
#[cfg(feature = "builtin")]
mod reviews;
mod run;
pub mod server;
#[cfg(feature = "tokens")]
pub mod service_accounts;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod storage;
#[cfg(feature = "streams")]
pub mod streams;
pub mod typed;

pub use bareboat_process::release_code;
#[cfg(feature = "builtin")]
pub use control_plane::{ControlPlane, Profile};
#[cfg(feature = "extension")]
pub use extension::Extension;
#[cfg(feature = "extension")]
pub use local_access::LocalAccess;
pub use open::{
    OpenStorageError, open_backend, open_backend_to_read, open_existing_backend, open_storage,
};
pub use run::run_until_signal;
#[cfg(feature = "outbound")]
pub use server::{ClientIdentity, RemoteApi, RemoteServer};
pub use server::{Computed, Connector, Server, ServerBuilder, Tls, Visit};
#[cfg(feature = "sqlite")]
pub use sqlite::open_sqlite;
pub use typed::{TypedKind, TypedKindError};

/// Programs in the documentation are compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/subresources.md")]
#[doc = include_str!("../../../docs/identity.md")]
#[doc = include_str!("../../../docs/aggregation.md")]
#[doc = include_str!("../../../docs/tutorial/5-own-server.md")]
mod documentation {}
