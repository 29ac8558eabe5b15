//! The imports that most programs need.

#[cfg(feature = "builtin")]
pub use crate::control_plane::{ControlPlane, Profile, Settings};
#[cfg(feature = "rbac")]
pub use crate::rbac::Rbac;
#[cfg(feature = "outbound")]
pub use crate::server::{ClientIdentity, RemoteApi, RemoteServer};
pub use crate::server::{Computed, Connector, Server, ServerBuilder, Tls, Visit};
#[cfg(feature = "sqlite")]
pub use crate::sqlite::open_sqlite;
pub use crate::typed::TypedKind;
pub use bareboat_api::kind::{Kind, Names, Scope, Strategy, Subresource, User, WriteContext};
pub use bareboat_api::{FieldError, FieldPath, Object, Status, Value, value};
pub use bareboat_server::authn::{Anonymous, StaticTokens};
pub use bareboat_server::authz::{AllowAll, MastersOnly};
pub use bareboat_storage::{MemoryBackend, Store, StoreOptions};
pub use schemars::JsonSchema;
pub use serde::{Deserialize, Serialize};
