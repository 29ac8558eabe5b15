//! Calling others: the one HTTPS client for webhooks and converters.
//!
//! Connections are kept per host and shared by everybody who trusts the same certificates. Each call has one time limit for
//! everything and a bound on the answer; redirects are not followed. What is said in a call is its caller's business.

mod destination;
mod dial;
mod error;
mod services;
mod trust;

pub(crate) use destination::{Address, Destination};
pub(crate) use error::OutboundError;

use bareboat_storage::Store;
use bytes::{Bytes, BytesMut};
use destination::Route;
use dial::Dial;
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use parking_lot::Mutex;
use rustls::ClientConfig;
use services::Services;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use trust::Fingerprint;

/// How long a connection may rest before it is closed.
const IDLE: Duration = Duration::from_secs(60);
/// How many resting connections are kept for each host.
const IDLE_PER_HOST: usize = 16;
/// How often a resting or waiting HTTP/2 peer must show that it is alive, and how long it may take to.
const PING: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(10));
/// How many sets of trusted certificates have a client at a time, and how long an unused one is kept.
const CLIENTS: (usize, Duration) = (256, Duration::from_secs(600));
/// How much of an error page is shown.
const EXCERPT: usize = 512;

type Https = Client<HttpsConnector<Dial>, Full<Bytes>>;

/// Calls others on behalf of the server.
pub(crate) struct Outbound {
    services: Services,
    clients: Mutex<HashMap<(Route, Fingerprint), Kept>>,
    /// TLS with the roots of the system, read when first needed.
    system: OnceLock<Result<Arc<ClientConfig>, OutboundError>>,
}

struct Kept {
    client: Https,
    used: Instant,
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
    /// Finds services in a store.
    pub(crate) fn new(store: &Store) -> Outbound {
        Outbound {
            services: Services::new(store),
            clients: Mutex::default(),
            system: OnceLock::new(),
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
            .body(Full::new(body))
            .map_err(|error| OutboundError::Target(error.to_string()))?;
        let client = self.client(to)?;
        let exchange = async {
            let response = client
                .request(request)
                .await
                .map_err(|error| OutboundError::unreachable(&to.uri, &error))?;
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

    /// The client for those who are reached and trusted in the same way.
    fn client(&self, to: &Destination) -> Result<Https, OutboundError> {
        let key = (to.route, to.trust.fingerprint());
        let now = Instant::now();
        if let Some(kept) = self.clients.lock().get_mut(&key) {
            kept.used = now;
            return Ok(kept.client.clone());
        }
        // Outside the lock: certificates take their time.
        let config = match to.trust.bundle() {
            Some(pem) => trust::of_bundle(pem)?,
            None => {
                let config = self.system.get_or_init(|| trust::of_system().map(Arc::new));
                ClientConfig::clone(config.as_ref().map_err(Clone::clone)?)
            }
        };
        let client = https(config, Dial::new(to.route, self.services.clone()));
        let mut clients = self.clients.lock();
        if clients.len() >= CLIENTS.0 {
            clients.retain(|_, kept| now.duration_since(kept.used) < CLIENTS.1);
        }
        if clients.len() >= CLIENTS.0 {
            let oldest = clients.iter().min_by_key(|(_, kept)| kept.used);
            if let Some(key) = oldest.map(|(key, _)| *key) {
                clients.remove(&key);
            }
        }
        // Somebody may have been faster; theirs may have connections already.
        let kept = clients
            .entry(key)
            .or_insert_with(|| Kept { client, used: now });
        Ok(kept.client.clone())
    }
}

fn https(config: ClientConfig, dial: Dial) -> Https {
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_only()
        .enable_all_versions()
        .wrap_connector(dial);
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_PER_HOST)
        .http2_keep_alive_interval(PING.0)
        .http2_keep_alive_timeout(PING.1)
        .http2_keep_alive_while_idle(true)
        .build(connector)
}

/// Reads a body up to a bound.
async fn read(to: &Destination, mut body: Incoming, most: usize) -> Result<Bytes, OutboundError> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| OutboundError::unreachable(&to.uri, &error))?;
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
