//! Socket to store and back: the API server as a library.
//!
//! A request walks one corridor (`server::serve`): parse → authenticate → impersonate → flow
//! control → authorize → find who serves it → verb → reply. Each room is a module.
//! Nothing here knows a particular kind; kinds are data ([`bareboat_api::Kind`]).

mod admission;
pub mod authn;
pub mod authz;
pub mod discovery;
mod flow;
pub mod kinds;
mod managed;
mod metrics;
pub mod openapi;
mod outbound;
pub mod protobuf;
pub mod reply;
pub mod request;
pub mod server;
mod tables;
mod verbs;

pub use kinds::computed::Computed;
pub use server::{Server, ServerBuilder, Tls};
