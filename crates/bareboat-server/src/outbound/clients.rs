//! HTTP clients for outbound calls: connections are shared by all calls to a host with the same trusted certificates and the same
//! client certificate.

use super::OutboundError;
use super::destination::{ChosenBy, Destination, Protocol, Route, Shown};
use super::dial::{Dial, Names};
use super::reach::Reach;
use super::services::{Services, Whereabouts};
use crate::request::body::RequestBody;
use crate::tls::{ClientIdentity, Fingerprint, client_config};
use http::uri::Authority;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use parking_lot::Mutex;
use rustls::ClientConfig;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long an idle connection is kept.
const IDLE: Duration = Duration::from_secs(60);
/// How many idle connections are kept per host.
const IDLE_PER_HOST: usize = 16;
/// Interval of HTTP/2 pings, and their timeout: a connection without a sign of life ends after both.
const PING: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(10));
/// Maximum number of sets of clients (one per set of trusted certificates, and per set of endpoints of services), and how
/// long an unused one is kept.
const CLIENTS: (usize, Duration) = (1024, Duration::from_secs(600));
/// How many hosts one set has clients for; beyond that, those without running calls are dropped.
const HOSTS: usize = 1024;
/// How many calls share an HTTP/2 connection. Servers allow a hundred or more; calls beyond that wait for others to
/// end, which a watch never does.
pub(super) const CALLS_PER_LANE: usize = 64;
/// Maximum number of parallel HTTP/2 connections to a host.
const LANES: usize = 64;
/// HTTP/2 flow control window of a stream.
const STREAM_WINDOW: u32 = 256 * 1024;
/// HTTP/2 flow control window of a connection: large enough that no stream can use up what another needs.
const CONNECTION_WINDOW: u32 = CALLS_PER_LANE as u32 * STREAM_WINDOW * 4;
/// Maximum size of an answer's head.
const HEAD: u32 = 64 * 1024;

pub(super) type Https = Client<HttpsConnector<Dial>, RequestBody>;

/// Destinations with equal keys share connections, if they have the same host.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    route: Route,
    /// A connection to a service must not outlive a change of its endpoints.
    whereabouts: Whereabouts,
    /// A connection that was not judged must not serve a destination that is.
    chosen_by: ChosenBy,
    trust: Fingerprint,
    shown: Shown,
    protocol: Protocol,
}

struct Kept {
    config: ClientConfig,
    /// Each host has its own lanes. If hosts shared lanes, every lane would open a connection to every host.
    hosts: HashMap<Authority, Vec<Lane>>,
    used: Instant,
}

/// A client with its own connections.
#[derive(Clone)]
struct Lane {
    client: Https,
    /// Held by every running call of this lane.
    load: Arc<()>,
}

/// Counts a call as running until its answer is read.
pub(crate) struct Load {
    _of: Arc<()>,
}

/// All clients.
pub(super) struct Clients {
    services: Services,
    identity: Option<ClientIdentity>,
    reach: Arc<Reach>,
    pub(super) names: Names,
    kept: Mutex<HashMap<Key, Kept>>,
}

impl Clients {
    pub(super) fn new(
        services: Services,
        identity: Option<ClientIdentity>,
        reach: Arc<Reach>,
    ) -> Clients {
        Clients {
            services,
            identity,
            reach,
            names: Names::System,
            kept: Mutex::default(),
        }
    }

    /// Returns the client for destinations with the same route, trust, protocol and host.
    pub(super) fn of(
        &self,
        to: &Destination,
        protocol: Protocol,
    ) -> Result<(Https, Load), OutboundError> {
        let key = Key {
            route: to.route,
            whereabouts: match to.route {
                Route::Service => self.services.whereabouts(&to.uri),
                Route::Dns | Route::Plain | Route::At(_) => None,
            },
            chosen_by: to.chosen_by,
            trust: to.trust.fingerprint(),
            shown: to.shown.clone(),
            protocol,
        };
        let now = Instant::now();
        let host = to.uri.authority();
        let host = host.cloned().unwrap_or(Authority::from_static("localhost"));
        let make = |config: &ClientConfig| self.lane(config.clone(), to, protocol);
        if let Some(kept) = self.kept.lock().get_mut(&key) {
            kept.used = now;
            return Ok(kept.lane(host, make));
        }
        // Outside the lock, because parsing certificates takes a while.
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
        // Another task may have added one first; its client may have connections already.
        let kept = all.entry(key).or_insert_with(|| Kept {
            config,
            hosts: HashMap::new(),
            used: now,
        });
        Ok(kept.lane(host, make))
    }

    fn identity(&self, shown: &Shown) -> Option<ClientIdentity> {
        match shown {
            Shown::Nothing => None,
            Shown::FrontProxy => self.identity.clone(),
            Shown::Secret(key) => Some(self.services.certificate(key)),
            Shown::Given(identity) => Some(identity.clone()),
        }
    }

    fn lane(&self, config: ClientConfig, to: &Destination, protocol: Protocol) -> Lane {
        let builder = HttpsConnectorBuilder::new().with_tls_config(config);
        let builder = match to.route {
            Route::Plain => builder.https_or_http(),
            Route::Dns | Route::Service | Route::At(_) => builder.https_only(),
        };
        let reach = match (to.chosen_by, to.route) {
            (ChosenBy::Operator, Route::Dns | Route::At(_)) => None,
            // Clients write the endpoints of a service, whatever names the service.
            _ => Some(self.reach.clone()),
        };
        let dial = Dial {
            route: to.route,
            services: self.services.clone(),
            names: self.names.clone(),
            reach,
        };
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
    /// Returns the first lane to a host with capacity; otherwise a new one, or the least loaded if there are enough.
    fn lane(&mut self, host: Authority, make: impl FnOnce(&ClientConfig) -> Lane) -> (Https, Load) {
        let load = |lane: &Lane| Arc::strong_count(&lane.load) - 1;
        if self.hosts.len() >= HOSTS && !self.hosts.contains_key(&host) {
            self.hosts
                .retain(|_, lanes| lanes.iter().any(|lane| load(lane) > 0));
        }
        let lanes = self.hosts.entry(host).or_default();
        let free = lanes.iter().find(|lane| load(lane) < CALLS_PER_LANE);
        let lane = match free {
            Some(lane) => lane,
            None if lanes.len() < LANES => {
                lanes.push(make(&self.config));
                &lanes[lanes.len() - 1]
            }
            None => lanes
                .iter()
                .min_by_key(|lane| load(lane))
                .unwrap_or(&lanes[0]),
        };
        let load = Load {
            _of: lane.load.clone(),
        };
        (lane.client.clone(), load)
    }
}
