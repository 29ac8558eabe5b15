//! Clusterpedia's URLs over the shelf: the objects of many API servers, called members, as one API.
//!
//! This crate reads the shelf and has no connections of its own. What it needs to know about members, and the requests that a
//! member must answer itself, go through [`Members`]. [`install`] adds the views to a server.
//!
//! ```
//! use bareboat_api::Status;
//! use bareboat_api::kind::BoxFuture;
//! use bareboat_server::Server;
//! use bareboat_server::reply::Response;
//! use bareboat_shelf::Shelf;
//! use bareboat_views::{Fleet, LiveRequest, Member, Members, Settings, Views, install};
//! use std::sync::Arc;
//!
//! /// One member, which is never reached.
//! struct Berlin;
//!
//! impl Members for Berlin {
//!     fn fleet(&self) -> Arc<Fleet> {
//!         let member = Member { name: "berlin".to_owned(), ..Member::default() };
//!         Arc::new(Fleet { members: [("berlin".to_owned(), Arc::new(member))].into() })
//!     }
//!
//!     fn now(&self) -> i64 {
//!         1_648_166_400_000
//!     }
//!
//!     fn forward(&self, request: LiveRequest) -> BoxFuture<'static, Result<Response, Status>> {
//!         let why = format!("{} cannot be reached", request.member);
//!         Box::pin(async move { Err(Status::unavailable(why)) })
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let shelf = Arc::new(Shelf::open(folder.path().join("shelf.db"), Default::default())?);
//! shelf.add_member("berlin", "")?;
//! let views = Views::new(shelf, Arc::new(Berlin), Settings::default())?;
//! let builder = install(Server::builder(), views).expect("the definition of collections is valid");
//! # let _ = builder;
//! # Ok(()) }
//! ```

mod annex;
mod collections;
mod documents;
mod events;
mod filter;
mod get;
mod items;
mod judges;
mod list;
mod live;
pub mod members;
mod relay;
mod render;
mod reviews;
mod rights;
mod scope;
mod search;
mod selection;
mod spelling;
mod stream;
mod target;
mod times;
mod twins;
mod types;
mod versions;
mod views;
mod watch;
mod workers;

pub use annex::ViewsAnnex;
pub use live::read_answer;
pub use members::{
    Fleet, LiveRequest, Member, Members, OtherVersion, Place, Review, SyncedType, VersionSource,
};
pub use target::{COLLECTIONS, GROUP, RESOURCES, VERSION};
pub use types::built_in;
pub use views::{Authorization, Settings, Views};

use bareboat_api::{FieldError, Status, value};
use bareboat_server::kinds::kind_of_definition;
use bareboat_server::{Computed, ServerBuilder};
use std::sync::Arc;

/// The path below which the views are.
pub const PREFIX: &str = "/apis/clusterpedia.io/v1beta1/resources";

/// Adds the views to a server: their paths, and the kinds that discovery lists.
///
/// The error names what is wrong with the definition of collections, which does not happen.
pub fn install(
    builder: ServerBuilder,
    views: Arc<Views>,
) -> Result<ServerBuilder, Vec<FieldError>> {
    Ok(builder
        .kind(kind_of_definition(&collections::definition())?)
        .computed(resources()?)
        .annex(Arc::new(ViewsAnnex(views))))
}

/// Returns the kind that stands for the views in discovery. Its requests are answered before they reach it.
fn resources() -> Result<Computed, Vec<FieldError>> {
    let kind = kind_of_definition(&value!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "resources.clusterpedia.io"},
        "spec": {
            "group": "clusterpedia.io", "scope": "Cluster",
            "names": {"plural": "resources", "singular": "resource", "kind": "Resources"},
            "versions": [{"name": "v1beta1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "description": "Views of clusters: whole Kubernetes APIs below this path. Objects of different clusters may have the same namespace and name in the view of all clusters.",
                    "x-kubernetes-preserve-unknown-fields": true,
                },
            }}],
        },
    }))?;
    Ok(Computed::new(kind).get(|_| async { Err(Status::no_such_route()) }))
}
