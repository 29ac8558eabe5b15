//! kube-rs clients that call a server in the same process, without socket and credentials. Everything else works as
//! over a socket. Controllers in the same process use them. [`PathClient`] is for another server.

mod paths;

pub use paths::{PathClient, owned_by};

use bareboat_api::kind::{Kind, User};
use bareboat_api::value::to_value;
use bareboat_server::Server;
use bareboat_server::kinds::kind_of_definition;
use bareboat_server::request::body::RequestBody;
use http_body_util::BodyExt as _;
use std::convert::Infallible;

/// Returns the kind of a type with kube's derive macro `CustomResource`.
///
/// ```
/// use bareboat::prelude::*;
/// use kube::CustomResource;
///
/// #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
/// #[kube(group = "sea.example.com", version = "v1", kind = "Boat", namespaced)]
/// struct BoatSpec {
///     berths: u32,
/// }
///
/// # fn main() -> Result<(), bareboat::client::DefinitionError> {
/// let boats = bareboat::client::kind_of::<Boat>()?;
/// assert_eq!(boats.names.plural, "boats");
/// # Ok(()) }
/// ```
pub fn kind_of<K: kube::CustomResourceExt>() -> Result<Kind, DefinitionError> {
    let definition = to_value(&K::crd()).map_err(|error| DefinitionError(error.to_string()))?;
    kind_of_definition(&definition).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        DefinitionError(errors.join("; "))
    })
}

/// Why a type is not a kind.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the definition is invalid: {0}")]
pub struct DefinitionError(String);

/// Returns a client whose requests are made as `user`, as if the server had authenticated it.
pub fn in_process(server: &Server, user: User) -> kube::Client {
    calling(server, user, false)
}

/// Like [`in_process`], but writes are stored also where a function answers those of other clients
/// ([`ServerBuilder::writes`](bareboat_server::ServerBuilder::writes)).
pub fn of_store(server: &Server, user: User) -> kube::Client {
    calling(server, user, true)
}

fn calling(server: &Server, user: User, stores: bool) -> kube::Client {
    let server = server.clone();
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (server, user) = (server.clone(), user.clone());
        async move {
            let request =
                request.map(|body| RequestBody::Boxed(Box::pin(body.map_err(Into::into))));
            Ok::<_, Infallible>(match stores {
                true => server.call_store(user, request).await,
                false => server.call(user, request).await,
            })
        }
    });
    kube::Client::new(service, "default")
}
