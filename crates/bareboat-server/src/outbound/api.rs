//! Calls of the program's own to API servers that objects name, within the rules for outbound calls.
//!
//! Unlike `proxy`, no client waits for the answer, and answers may be streams without an end.

use super::disclosure::HIDDEN_IN_CONDITION;
use super::{Destination, Load, OutboundError, Protocol, Shown};
use crate::request::body::RequestBody;
use crate::server::Server;
use crate::server::state::State;
use crate::tls::ClientIdentity;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the same cause is not logged again.
const SAID_FOR: Duration = Duration::from_secs(300);

/// How an API server is reached.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct OutboundAccess {
    /// Its `https` URL.
    pub url: String,
    /// The CAs of its certificate in PEM; `None` for those of the system.
    pub authorities: Option<String>,
    /// Whether any certificate is accepted.
    pub insecure: bool,
    /// The client certificate.
    pub identity: Option<ClientIdentity>,
    /// The bearer token.
    pub token: Option<String>,
}

bareboat_api::opaque_debug!(OutboundAccess);

/// Why an API server gave no usable answer.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutboundApiError {
    /// The address or a credential cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// The server was not reached, or the connection failed. Holds what may be shown to clients.
    #[error("{0}")]
    Failed(String),
    /// The answer did not begin in time.
    #[error("no answer within {} s", .0.as_secs_f64())]
    Late(Duration),
}

/// An API server that an object names. Its address is judged at every connection.
#[derive(Clone)]
pub struct OutboundApi {
    state: Arc<State>,
    destination: Destination,
    authorization: Option<HeaderValue>,
    /// The last cause that was logged.
    said: Arc<Mutex<Option<(String, Instant)>>>,
}

bareboat_api::opaque_debug!(OutboundApi);

impl Server {
    /// Returns a client for an API server that an object names, such as a member of a fleet. The rules for destinations of
    /// clients apply: see [`crate::ServerBuilder::loopback_destinations`].
    pub fn outbound_api(&self, access: &OutboundAccess) -> Result<OutboundApi, OutboundApiError> {
        let bundle = access.authorities.as_ref();
        let bundle = bundle.map_or(String::new(), |pem| BASE64_STANDARD.encode(pem));
        let unusable = |error: OutboundError| OutboundApiError::Unusable(error.to_string());
        let address = super::Address::Url(access.url.clone());
        let mut destination = Destination::new(&address, "", &bundle).map_err(unusable)?;
        if access.insecure {
            destination = destination.unverified();
        }
        if let Some(identity) = &access.identity {
            destination = destination.showing(Shown::Given(identity.clone()));
        }
        let authorization = match &access.token {
            None => None,
            Some(token) => {
                let value = HeaderValue::try_from(format!("Bearer {token}"));
                let mut value = value.map_err(|_| {
                    OutboundApiError::Unusable("the token cannot be sent in a header".to_owned())
                })?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        Ok(OutboundApi {
            state: self.state.clone(),
            destination,
            authorization,
            said: Arc::default(),
        })
    }
}

impl OutboundApi {
    /// Sends a request, and returns the answer as soon as its head has arrived, which has a time limit. The target is a path
    /// with a query, below the path of the URL.
    pub async fn send(
        &self,
        method: Method,
        target: &str,
        headers: &[(header::HeaderName, &str)],
        body: Bytes,
        patience: Duration,
    ) -> Result<OutboundAnswer, OutboundApiError> {
        let unusable = |error: OutboundError| OutboundApiError::Unusable(error.to_string());
        let uri = self.destination.below(target).map_err(unusable)?;
        let mut request = Request::new(RequestBody::Memory(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        let map = request.headers_mut();
        map.insert(header::USER_AGENT, HeaderValue::from_static("bareboat"));
        for (name, text) in headers {
            let value = HeaderValue::try_from(*text);
            let value = value.map_err(|error| OutboundApiError::Unusable(error.to_string()))?;
            map.append(name, value);
        }
        if let Some(value) = &self.authorization {
            map.insert(header::AUTHORIZATION, value.clone());
        }
        let outbound = self.state.proxy.outbound();
        let sending = outbound.send(&self.destination, request, Protocol::Best);
        match tokio::time::timeout(patience, sending).await {
            Err(_) => Err(OutboundApiError::Late(patience)),
            Ok(Err(error)) => Err(OutboundApiError::Failed(self.disclose(&error))),
            Ok(Ok((response, load))) => {
                let (head, body) = response.into_parts();
                Ok(OutboundAnswer {
                    code: head.status,
                    headers: head.headers,
                    body,
                    _load: load,
                })
            }
        }
    }
}

impl OutboundApi {
    /// Returns what may be shown about a failed call. A server that does not answer may be called every few seconds, so the
    /// same cause is logged now and then only.
    fn disclose(&self, error: &OutboundError) -> String {
        let cause = error.without_page();
        let is_new = {
            let mut said = self.said.lock();
            let known = said
                .as_ref()
                .is_some_and(|(known, since)| *known == cause && since.elapsed() < SAID_FOR);
            if !known {
                *said = Some((cause, Instant::now()));
            }
            !known
        };
        let outbound = self.state.proxy.outbound();
        match is_new || outbound.shows_causes() {
            true => outbound.disclose_in_condition(&self.destination.to_string(), error),
            false => HIDDEN_IN_CONDITION.to_owned(),
        }
    }
}

/// An answer whose body is still to be read.
pub struct OutboundAnswer {
    /// The code.
    pub code: StatusCode,
    /// The headers.
    pub headers: http::HeaderMap,
    body: Incoming,
    _load: Load,
}

bareboat_api::opaque_debug!(OutboundAnswer);

impl OutboundAnswer {
    /// Returns the next piece of the body; `None` at its end. The error is a reason without details of the network.
    pub async fn piece(&mut self) -> Option<Result<Bytes, String>> {
        loop {
            match self.body.frame().await? {
                Ok(frame) => match frame.into_data() {
                    Ok(data) => return Some(Ok(data)),
                    Err(_) => continue,
                },
                Err(_) => return Some(Err("the connection was lost".to_owned())),
            }
        }
    }
}
