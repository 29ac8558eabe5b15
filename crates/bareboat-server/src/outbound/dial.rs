//! From the host of a URL to a connection: by DNS, or by way of a service's endpoints.

use super::destination::Route;
use super::services::{Place, Services};
use crate::sockets;
use bareboat_api::kind::BoxFuture;
use http::Uri;
use hyper_util::rt::TokioIo;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tower::Service;

/// How long one address may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many addresses of one host are tried.
const TRIES: usize = 4;

/// Makes TCP connections.
#[derive(Clone)]
pub(super) struct Dial {
    route: Route,
    services: Services,
}

impl Dial {
    pub(super) fn new(route: Route, services: Services) -> Dial {
        Dial { route, services }
    }

    async fn connect(self, uri: Uri) -> io::Result<TokioIo<TcpStream>> {
        let host = uri.host().unwrap_or("");
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = uri.port_u16().unwrap_or(443);
        let places = match self.route {
            Route::Dns => vec![Place::new(host, port)],
            Route::Service => self.services.find(host, port).map_err(io::Error::other)?,
        };
        let mut last = None;
        for address in addresses(places, &mut last).await {
            match connect_to(address).await {
                Ok(stream) => {
                    sockets::tune(&stream);
                    return Ok(TokioIo::new(stream));
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| io::Error::other(format!("lookup {host}: no such host"))))
    }
}

async fn addresses(places: Vec<Place>, trouble: &mut Option<io::Error>) -> Vec<SocketAddr> {
    let mut found = Vec::new();
    for place in places {
        if found.len() >= TRIES {
            break;
        }
        if let Ok(ip) = place.host.parse::<IpAddr>() {
            found.push(SocketAddr::new(ip, place.port));
            continue;
        }
        match tokio::net::lookup_host((place.host.as_str(), place.port)).await {
            Ok(more) => found.extend(more),
            Err(error) => {
                let why = format!("lookup {}: {error}", place.host);
                *trouble = Some(io::Error::other(why));
            }
        }
    }
    found.truncate(TRIES);
    found
}

async fn connect_to(address: SocketAddr) -> io::Result<TcpStream> {
    let why = match tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => return Ok(stream),
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
            "connect: connection refused".to_owned()
        }
        Ok(Err(error)) => format!("connect: {error}"),
        Err(_) => "i/o timeout".to_owned(),
    };
    Err(io::Error::other(format!("dial tcp {address}: {why}")))
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
