//! The HTTPS client for webhooks, converters and proxied requests.
//!
//! Connections are pooled per host and shared by destinations with the same trusted certificates. Redirects are not
//! followed, and proxies of the environment are not used. `reach` decides where clients may lead this server, and
//! `disclosure` what they may read about failures. Callers decide what to send and how long it may take.

mod api;
mod clients;
mod destination;
mod dial;
mod disclosure;
mod error;
mod kubeconfig;
mod manifest;
mod outward;
mod reach;
mod remote;
mod services;

pub use api::{OutboundAccess, OutboundAnswer, OutboundApi, OutboundApiError};
pub(crate) use clients::Load;
pub(crate) use destination::{Address, ChosenBy, Destination, Protocol, Shown};
pub(crate) use disclosure::hidden_under;
pub(crate) use error::OutboundError;
pub use kubeconfig::KubeconfigError;
pub(crate) use kubeconfig::{Token, UserCredentials, users as kubeconfig_users};
pub(crate) use outward::{Outgoing, Outward};
pub(crate) use reach::Reach;
pub(crate) use remote::HttpsClient;
pub use remote::{RemoteApi, RemoteApiError};

use crate::request::body::RequestBody;
use crate::tls::ClientIdentity;
use bareboat_api::resolver::ServiceResolver;
use bareboat_storage::Store;
use bytes::{Bytes, BytesMut};
use clients::Clients;
use http::{Method, Request, Response, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use services::Services;
use std::sync::Arc;
use std::time::Duration;

/// How much of an error page is quoted.
const EXCERPT: usize = 512;

/// Calls other servers.
pub(crate) struct Outbound {
    clients: Clients,
    reach: Arc<Reach>,
}

/// Limits of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Time from the first packet to the last byte of the answer.
    pub(crate) time: Duration,
    /// Maximum bytes of the answer.
    pub(crate) answer: usize,
}

impl Outbound {
    /// A client that resolves services from the objects of a store. `identity` is the client certificate presented to
    /// upstream servers when proxying; `reach` judges every address it dials for clients.
    pub(crate) fn new(
        store: &Store,
        resolver: Arc<dyn ServiceResolver>,
        identity: Option<ClientIdentity>,
        reach: Arc<Reach>,
    ) -> Outbound {
        let services = Services::new(store, resolver);
        Outbound {
            clients: Clients::new(services, identity, reach.clone()),
            reach,
        }
    }

    /// Calls URLs of the operator only, and presents the identity, if there is one, to destinations that are to see it.
    pub(crate) fn without_services(identity: Option<ClientIdentity>) -> Outbound {
        let reach = Arc::<Reach>::default();
        Outbound {
            clients: Clients::new(Services::none(), identity, reach.clone()),
            reach,
        }
    }

    /// Sends a request to an address of the destination, and returns the answer as soon as its head has arrived. The
    /// caller holds the load until the answer is read.
    pub(crate) async fn send(
        &self,
        to: &Destination,
        request: Request<RequestBody>,
        protocol: Protocol,
    ) -> Result<(Response<Incoming>, Load), OutboundError> {
        let (client, load) = self.clients.of(to, protocol)?;
        match client.request(request).await {
            Ok(response) => Ok((response, load)),
            Err(error) if error.is_connect() => Err(OutboundError::unreachable(&to.uri, &error)),
            Err(error) => Err(OutboundError::broken(&to.uri, &error)),
        }
    }

    /// Posts JSON and reads the answer, which must be a success.
    pub(crate) async fn post_json(
        &self,
        to: &Destination,
        body: Bytes,
        bounds: Bounds,
    ) -> Result<Bytes, OutboundError> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(&to.uri)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, "bareboat")
            .body(RequestBody::Memory(body))
            .map_err(|error| OutboundError::Target(error.to_string()))?;
        self.exchange(to, request, bounds).await
    }

    /// Sends a request and reads the answer, which must be a success.
    pub(crate) async fn exchange(
        &self,
        to: &Destination,
        request: Request<RequestBody>,
        bounds: Bounds,
    ) -> Result<Bytes, OutboundError> {
        let exchange = async {
            let (response, _load) = self.send(to, request, Protocol::Best).await?;
            let (head, body) = response.into_parts();
            if head.status.is_success() {
                return read(to, body, bounds.answer).await;
            }
            // The page is only informative, so a failure to read it is ignored.
            let page = read(to, body, EXCERPT * 8).await.unwrap_or_default();
            Err(OutboundError::Refused {
                uri: to.uri.clone(),
                code: head.status,
                page: excerpt(&page),
            })
        };
        match tokio::time::timeout(bounds.time, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(OutboundError::Timeout(to.uri.clone())),
        }
    }
}

impl Outbound {
    /// Sends a request and reads the answer, whatever its code. The body may be an error of its own.
    pub(crate) async fn fetch(
        &self,
        to: &Destination,
        request: Request<RequestBody>,
        bounds: Bounds,
    ) -> Result<(http::response::Parts, Result<Bytes, OutboundError>), OutboundError> {
        let fetch = async {
            let (response, _load) = self.send(to, request, Protocol::Best).await?;
            let (head, body) = response.into_parts();
            let body = read(to, body, bounds.answer).await;
            Ok((head, body))
        };
        match tokio::time::timeout(bounds.time, fetch).await {
            Ok(answer) => answer,
            Err(_) => Err(OutboundError::Timeout(to.uri.clone())),
        }
    }
}

/// Reads a body up to a limit.
async fn read(to: &Destination, mut body: Incoming, most: usize) -> Result<Bytes, OutboundError> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| OutboundError::broken(&to.uri, &error))?;
        let Some(data) = frame.data_ref() else {
            continue;
        };
        if whole.len() + data.len() > most {
            return Err(OutboundError::TooLarge {
                uri: to.uri.clone(),
                most,
            });
        }
        whole.extend_from_slice(data);
    }
    Ok(whole.freeze())
}

/// Returns the start of an error page, on one line.
fn excerpt(page: &[u8]) -> String {
    let text = String::from_utf8_lossy(page);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(EXCERPT).collect()
}

#[cfg(test)]
mod tests;
