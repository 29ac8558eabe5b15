//! Connects to the host of a URL: by DNS, or through a service's endpoints. Each address is judged when it is dialled.

use super::destination::Route;
use super::reach::Reach;
use super::services::Services;
use crate::sockets;
use bareboat_api::kind::BoxFuture;
use bareboat_api::resolver::Endpoint;
use http::Uri;
use hyper_util::rt::TokioIo;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tower::Service;

/// Connect timeout of one address.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many addresses of one host are tried.
const TRIES: usize = 4;

/// Makes TCP connections.
#[derive(Clone)]
pub(super) struct Dial {
    pub(super) route: Route,
    pub(super) services: Services,
    pub(super) names: Names,
    /// Judges every address; absent for destinations of the operator.
    pub(super) reach: Option<Arc<Reach>>,
}

impl Dial {
    async fn connect(self, uri: Uri) -> io::Result<TokioIo<TcpStream>> {
        let host = uri.host().unwrap_or("");
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let usual = if uri.scheme_str() == Some("http") {
            80
        } else {
            443
        };
        let port = uri.port_u16().unwrap_or(usual);
        let endpoints = match self.route {
            Route::Dns | Route::Plain => vec![Endpoint::new(host, port)],
            Route::Service => self.services.find(host, port).map_err(io::Error::other)?,
            Route::At(address) => vec![Endpoint::new(&address.ip().to_string(), address.port())],
        };
        let mut last = None;
        for address in self.names.addresses(endpoints, &mut last).await {
            match self.connect_to(address).await {
                Ok(stream) => {
                    sockets::tune(&stream);
                    return Ok(TokioIo::new(stream));
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last
            .unwrap_or_else(|| io::Error::other(format!("dial tcp: lookup {host}: no such host"))))
    }
}

/// How names of hosts are resolved.
#[derive(Clone)]
pub(super) enum Names {
    /// By the system.
    System,
    /// The answers of a test, in order; the last one is repeated.
    #[cfg(test)]
    Given(Arc<parking_lot::Mutex<Vec<Vec<IpAddr>>>>),
}

impl Names {
    async fn lookup(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        match self {
            Names::System => Ok(tokio::net::lookup_host((host, port)).await?.collect()),
            #[cfg(test)]
            Names::Given(answers) => {
                let mut answers = answers.lock();
                let answer = match answers.len() {
                    0 | 1 => answers.first().cloned().unwrap_or_default(),
                    _ => answers.remove(0),
                };
                let addresses = answer.into_iter().map(|ip| SocketAddr::new(ip, port));
                Ok(addresses.collect())
            }
        }
    }

    /// Returns the addresses to try.
    async fn addresses(
        &self,
        endpoints: Vec<Endpoint>,
        trouble: &mut Option<io::Error>,
    ) -> Vec<SocketAddr> {
        let mut found = Vec::new();
        for endpoint in endpoints {
            if found.len() >= TRIES {
                break;
            }
            if let Ok(ip) = endpoint.host.parse::<IpAddr>() {
                found.push(SocketAddr::new(ip, endpoint.port));
                continue;
            }
            match self.lookup(&endpoint.host, endpoint.port).await {
                Ok(more) => found.extend(more),
                Err(error) => {
                    let error = error.to_string();
                    let why = lookup_failure(&error);
                    let why = format!("dial tcp: lookup {}: {why}", endpoint.host);
                    *trouble = Some(io::Error::other(why));
                }
            }
        }
        found.truncate(TRIES);
        found
    }
}

/// Returns why a name cannot be resolved, in the words of Go, which people search for.
fn lookup_failure(why: &str) -> &str {
    let unknown = [
        "Name or service not known",
        "Name does not resolve",
        "No address associated",
        "nodename nor servname provided",
    ];
    match unknown.iter().any(|text| why.contains(text)) {
        true => "no such host",
        false => why,
    }
}

impl Dial {
    async fn connect_to(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let judged = self.reach.as_ref().map_or(Ok(()), |it| it.judge(address));
        let why = match judged {
            Err(forbidden) => forbidden.to_string(),
            Ok(()) => match tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    "connect: connection refused".to_owned()
                }
                Ok(Err(error)) => format!("connect: {error}"),
                Err(_) => "i/o timeout".to_owned(),
            },
        };
        Err(io::Error::other(format!("dial tcp {address}: {why}")))
    }
}

impl Service<Uri> for Dial {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<TokioIo<TcpStream>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}
