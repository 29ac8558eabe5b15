//! Calling others: the one HTTPS client for webhooks, converters and those whom requests are passed on to.
//!
//! Connections are kept per host and shared by everybody who trusts the same certificates; redirects are not followed. What
//! is said in a call, and how long it may take, is its caller's business.

mod clients;
mod destination;
mod dial;
mod error;
mod services;

pub(crate) use clients::Load;
pub(crate) use destination::{Address, Destination, Protocol, Shown};
pub(crate) use error::OutboundError;

use crate::request::body::RequestBody;
use crate::tls::ClientIdentity;
use bareboat_storage::Store;
use bytes::{Bytes, BytesMut};
use clients::Clients;
use http::{Method, Request, Response, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use services::Services;
use std::time::Duration;

/// How much of an error page is shown.
const EXCERPT: usize = 512;

/// Calls others on behalf of the server.
pub(crate) struct Outbound {
    clients: Clients,
}

/// What a call may cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// From the first packet to the last byte of the answer.
    pub(crate) time: Duration,
    /// How many bytes the answer may have.
    pub(crate) answer: usize,
}

impl Outbound {
    /// Finds services in a store; shows the identity to those who are to know who calls.
    pub(crate) fn new(store: &Store, identity: Option<ClientIdentity>) -> Outbound {
        Outbound {
            clients: Clients::new(Services::new(store), identity),
        }
    }

    /// Sends a request whose address is one of the destination's, and gives the answer as soon as it begins. The load is to be
    /// held until the answer is read.
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
        let exchange = async {
            let (response, _load) = self.send(to, request, Protocol::Best).await?;
            let (head, body) = response.into_parts();
            if head.status.is_success() {
                return read(to, body, bounds.answer).await;
            }
            // The page is for people; that it could not be read does not matter beside the code.
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

/// Reads a body up to a bound.
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

/// The beginning of an error page, on one line.
fn excerpt(page: &[u8]) -> String {
    let text = String::from_utf8_lossy(page);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(EXCERPT).collect()
}

#[cfg(test)]
mod tests;
