//! The clients that calls go out through: connections are kept per host, and shared by everybody who trusts the same
//! certificates and shows the same one.

use super::OutboundError;
use super::destination::{Destination, Protocol, Route, Shown};
use super::dial::Dial;
use super::services::Services;
use crate::request::body::RequestBody;
use crate::tls::{ClientIdentity, Fingerprint, client_config};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use parking_lot::Mutex;
use rustls::ClientConfig;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a connection may rest before it is closed.
const IDLE: Duration = Duration::from_secs(60);
/// How many resting connections are kept for each host.
const IDLE_PER_HOST: usize = 16;
/// How often a resting or waiting HTTP/2 peer must show that it is alive, and how long it may take to.
const PING: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(10));
/// How many sets of trusted certificates have a client at a time, and how long an unused one is kept.
const CLIENTS: (usize, Duration) = (256, Duration::from_secs(600));
/// How many calls share an HTTP/2 connection. Servers allow a hundred or more, and whatever goes beyond that waits for others
/// to end, which a watch never does.
const CALLS_PER_LANE: usize = 64;
/// How many such connections there may be side by side.
const LANES: usize = 64;
/// What an HTTP/2 peer may send ahead of one reader.
const STREAM_WINDOW: u32 = 256 * 1024;
/// The same for all readers of a connection: so much that none of them can use up what another needs.
const CONNECTION_WINDOW: u32 = CALLS_PER_LANE as u32 * STREAM_WINDOW * 4;
/// How long the head of an answer may be.
const HEAD: u32 = 64 * 1024;

pub(super) type Https = Client<HttpsConnector<Dial>, RequestBody>;

/// What must be equal for two destinations to share connections.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    route: Route,
    trust: Fingerprint,
    shown: Shown,
    protocol: Protocol,
}

struct Kept {
    config: ClientConfig,
    lanes: Vec<Lane>,
    used: Instant,
}

/// A client with connections of its own.
#[derive(Clone)]
struct Lane {
    client: Https,
    /// Held by everybody whose call is under way here.
    load: Arc<()>,
}

/// Counts a call as under way on its connection, for as long as its answer is read.
pub(crate) struct Load {
    _of: Arc<()>,
}

/// All clients there are.
pub(super) struct Clients {
    services: Services,
    identity: Option<ClientIdentity>,
    kept: Mutex<HashMap<Key, Kept>>,
}

impl Clients {
    pub(super) fn new(services: Services, identity: Option<ClientIdentity>) -> Clients {
        Clients {
            services,
            identity,
            kept: Mutex::default(),
        }
    }

    /// A client for those who are reached, trusted and met in the same way.
    pub(super) fn of(
        &self,
        to: &Destination,
        protocol: Protocol,
    ) -> Result<(Https, Load), OutboundError> {
        let key = Key {
            route: to.route,
            trust: to.trust.fingerprint(),
            shown: to.shown.clone(),
            protocol,
        };
        let now = Instant::now();
        if let Some(kept) = self.kept.lock().get_mut(&key) {
            kept.used = now;
            return Ok(kept.lane(|config| self.lane(config.clone(), to.route, protocol)));
        }
        // Outside the lock: certificates take their time.
        let identity = self.identity(&to.shown);
        let config = client_config(&to.trust, identity.as_ref()).map_err(OutboundError::Trust)?;
        let mut all = self.kept.lock();
        if all.len() >= CLIENTS.0 {
            all.retain(|_, kept| now.duration_since(kept.used) < CLIENTS.1);
        }
        if all.len() >= CLIENTS.0 {
            let oldest = all.iter().min_by_key(|(_, kept)| kept.used);
            if let Some(key) = oldest.map(|(key, _)| key.clone()) {
                all.remove(&key);
            }
        }
        // Somebody may have been faster; theirs may have connections already.
        let kept = all.entry(key).or_insert_with(|| Kept {
            config,
            lanes: Vec::new(),
            used: now,
        });
        Ok(kept.lane(|config| self.lane(config.clone(), to.route, protocol)))
    }

    fn identity(&self, shown: &Shown) -> Option<ClientIdentity> {
        match shown {
            Shown::Nothing => None,
            Shown::FrontProxy => self.identity.clone(),
            Shown::Secret(key) => Some(self.services.certificate(key)),
        }
    }

    fn lane(&self, config: ClientConfig, route: Route, protocol: Protocol) -> Lane {
        let builder = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_only();
        let dial = Dial::new(route, self.services.clone());
        let connector = match protocol {
            Protocol::Best => builder.enable_all_versions().wrap_connector(dial),
            Protocol::Http1 => builder.enable_http1().wrap_connector(dial),
        };
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_PER_HOST)
            .http1_max_buf_size(2 * HEAD as usize)
            .http2_max_header_list_size(HEAD)
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .http2_keep_alive_interval(PING.0)
            .http2_keep_alive_timeout(PING.1)
            .http2_keep_alive_while_idle(true)
            .build(connector);
        Lane {
            client,
            load: Arc::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.kept.lock().len()
    }
}

impl Kept {
    /// The first lane with room; a fresh one if there is none, or the emptiest when there are enough.
    fn lane(&mut self, make: impl FnOnce(&ClientConfig) -> Lane) -> (Https, Load) {
        let load = |lane: &Lane| Arc::strong_count(&lane.load) - 1;
        let free = self.lanes.iter().find(|lane| load(lane) < CALLS_PER_LANE);
        let lane = match free {
            Some(lane) => lane,
            None if self.lanes.len() < LANES => {
                self.lanes.push(make(&self.config));
                &self.lanes[self.lanes.len() - 1]
            }
            None => self
                .lanes
                .iter()
                .min_by_key(|lane| load(lane))
                .unwrap_or(&self.lanes[0]),
        };
        let load = Load {
            _of: lane.load.clone(),
        };
        (lane.client.clone(), load)
    }
}
