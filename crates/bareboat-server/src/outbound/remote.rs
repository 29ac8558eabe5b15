//! Clients for servers that an operator configures: token issuers, webhooks, other API servers.
//!
//! Every call has a time limit, answers have a maximum size, and redirects are errors.

use super::kubeconfig::{self, KubeconfigError, Token};
use super::{Address, Bounds, ChosenBy, Destination, Outbound, OutboundError, Shown};
use crate::flow;
use crate::request::body::RequestBody;
use bareboat_api::Value;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{Method, Request, Uri, header};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Maximum size of an answer.
const LARGEST: usize = 1 << 20;
/// How long applying an object may take.
const APPLYING: Duration = Duration::from_secs(30);

/// Fetches documents by URL.
#[derive(Clone)]
pub(crate) struct HttpsClient(Arc<Outbound>);

impl HttpsClient {
    pub(crate) fn new() -> HttpsClient {
        HttpsClient(Arc::new(Outbound::without_services(None)))
    }

    /// Fetches a document from a server whose certificate one of the CAs signed (PEM; empty for those of the system).
    pub(crate) async fn get(
        &self,
        url: &str,
        authorities: &str,
        time: Duration,
    ) -> Result<Bytes, RemoteApiError> {
        let bundle = BASE64_STANDARD.encode(authorities);
        let to = Destination::new(&Address::Url(url.to_owned()), "", &bundle)?
            .chosen_by(ChosenBy::Operator);
        let request = Request::builder()
            .method(Method::GET)
            .uri(&to.uri)
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, "bareboat")
            .body(RequestBody::Memory(Bytes::new()))
            .map_err(|error| OutboundError::Target(error.to_string()))?;
        let bounds = Bounds {
            time,
            answer: LARGEST,
        };
        Ok(flow::away(self.0.exchange(&to, request, bounds)).await?)
    }
}

/// An error of another server. It does not include the server's answer, which may be confidential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteApiError(String);

impl RemoteApiError {
    pub(super) fn new(text: String) -> RemoteApiError {
        RemoteApiError(text)
    }
}

impl fmt::Display for RemoteApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RemoteApiError {}

impl From<OutboundError> for RemoteApiError {
    fn from(error: OutboundError) -> RemoteApiError {
        RemoteApiError(match error {
            OutboundError::Refused { uri, code, .. } => {
                format!("{uri} answered with status {code}")
            }
            OutboundError::Timeout(uri) => format!("{uri} did not answer in time"),
            OutboundError::TooLarge { uri, most } => {
                format!("the answer of {uri} has more than {most} bytes")
            }
            OutboundError::Unreachable { uri, why } | OutboundError::Broken { uri, why } => {
                format!("{uri} could not be asked: {why}")
            }
            other => other.to_string(),
        })
    }
}

/// Another server, with the address, CA and credentials of a kubeconfig.
///
/// ```no_run
/// # mod bareboat { pub mod server { pub use bareboat_server::*; } }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let hub = bareboat::server::RemoteApi::from_kubeconfig("/etc/hub.kubeconfig")?;
/// # drop(hub);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct RemoteApi {
    outbound: Arc<Outbound>,
    destination: Destination,
    token: Option<Token>,
}

impl fmt::Debug for RemoteApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteApi({})", self.destination)
    }
}

impl RemoteApi {
    /// Reads the current context of a kubeconfig. Client certificates and tokens are supported.
    pub fn from_kubeconfig(path: impl AsRef<Path>) -> Result<RemoteApi, KubeconfigError> {
        let access = kubeconfig::read(path.as_ref())?;
        let unusable =
            |error: OutboundError| KubeconfigError::new(path.as_ref(), error.to_string());
        let bundle = BASE64_STANDARD.encode(&access.authorities);
        let mut destination =
            Destination::new(&Address::Url(access.server), "", &bundle).map_err(unusable)?;
        destination = destination.chosen_by(ChosenBy::Operator);
        if access.identity.is_some() {
            destination = destination.showing(Shown::FrontProxy);
        }
        Ok(RemoteApi {
            outbound: Arc::new(Outbound::without_services(access.identity)),
            destination,
            token: access.token,
        })
    }

    /// Posts an object to a path below the address of the kubeconfig, or to that address if the path is empty.
    pub(crate) async fn post(
        &self,
        path: &str,
        body: &Value,
        time: Duration,
    ) -> Result<Value, RemoteApiError> {
        let uri = match path.is_empty() {
            true => self.destination.uri.clone(),
            false => self.destination.below(path)?,
        };
        let answer = self.exchange(Method::POST, uri, body.to_json().into(), time);
        self.parse(&answer.await?)
    }

    /// Applies an object under a path below the address of the kubeconfig, by server-side apply as a field manager that
    /// takes fields from others.
    pub async fn apply(
        &self,
        path: &str,
        object: &Value,
        manager: &str,
    ) -> Result<Value, RemoteApiError> {
        let query = format!("{path}?fieldManager={manager}&force=true");
        let uri = self.destination.below(&query)?;
        let answer = self.exchange(Method::PATCH, uri, object.to_json().into(), APPLYING);
        self.parse(&answer.await?)
    }

    /// Reads an object under a path below the address of the kubeconfig.
    pub(crate) async fn get(&self, path: &str, time: Duration) -> Result<Value, RemoteApiError> {
        let uri = self.destination.below(path)?;
        let answer = self.exchange(Method::GET, uri, Bytes::new(), time);
        self.parse(&answer.await?)
    }

    /// Posts a document to the address of the kubeconfig; any successful answer is accepted.
    pub(crate) async fn deliver(&self, body: Bytes, time: Duration) -> Result<(), OutboundError> {
        let uri = self.destination.uri.clone();
        let answer = self.exchange(Method::POST, uri, body, time);
        answer.await.map(drop)
    }

    /// Sends a request with the credentials of the kubeconfig. The request that waits for it holds no seat.
    async fn exchange(
        &self,
        method: Method,
        uri: Uri,
        body: Bytes,
        time: Duration,
    ) -> Result<Bytes, OutboundError> {
        let mut request = Request::builder()
            .method(&method)
            .uri(uri)
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, "bareboat");
        let content = match method {
            Method::POST => Some("application/json"),
            Method::PATCH => Some("application/apply-patch+yaml"),
            _ => None,
        };
        if let Some(content) = content {
            request = request.header(header::CONTENT_TYPE, content);
        }
        if let Some(token) = &self.token {
            let token = token.read().await.map_err(OutboundError::Target)?;
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(RequestBody::Memory(body)).map_err(|_| {
            OutboundError::Target("the token cannot be sent in a header".to_owned())
        })?;
        let bounds = Bounds {
            time,
            answer: LARGEST,
        };
        flow::away(self.outbound.exchange(&self.destination, request, bounds)).await
    }

    fn parse(&self, answer: &[u8]) -> Result<Value, RemoteApiError> {
        let parsed = bareboat_wire::json::parse(answer)
            .map_err(|_| RemoteApiError(format!("{} did not answer in JSON", self.destination)))?;
        Ok(parsed.value)
    }
}
