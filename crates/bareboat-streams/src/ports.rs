//! Port-forward: pairs of streams over SPDY, directly or inside a WebSocket. One stream of a pair carries the data, the
//! other carries the error.

use crate::command::{PING, until};
use crate::upgrade::{self, Asked};
use crate::websocket::Tunnel;
use bareboat_api::Status;
use bareboat_server::Life;
use bareboat_server::reply::Response;
use bareboat_server::request::body::RequestBody;
use bareboat_spdy::{Connection, Incoming, Role, Settings, Stream, StreamReader, StreamWriter};
use http::HeaderMap;
use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::JoinSet;

/// The protocol above SPDY.
pub(crate) const PROTOCOL: &str = "portforward.k8s.io";
/// The WebSocket subprotocol that carries SPDY with port-forward.
pub(crate) const TUNNELLED: &str = "SPDY/3.1+portforward.k8s.io";
/// The maximum number of streams that wait for the other stream of their pair.
const UNPAIRED: usize = 16;

/// Returns whether a client offers the tunnel over a WebSocket.
pub(crate) fn offers_tunnel(headers: &HeaderMap) -> bool {
    upgrade::subprotocols(headers).any(|name| name == TUNNELLED)
}

/// The byte stream of one connection to a port.
#[derive(Debug)]
pub struct PortStream {
    reader: StreamReader,
    writer: StreamWriter,
}

impl AsyncRead for PortStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.reader).poll_read(cx, into)
    }
}

impl AsyncWrite for PortStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.writer).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_shutdown(cx)
    }
}

/// Accepts the client's upgrade, and calls `connect` for each connection to a port.
pub(crate) fn serve<F, R>(
    request: &http::Request<RequestBody>,
    life: Life,
    connect: F,
) -> Result<Response, Status>
where
    F: Fn(u16, PortStream) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), String>> + Send + 'static,
{
    let (asked, connection) = upgrade::asked(request)?;
    let headers = request.headers();
    let response = match asked {
        Asked::Spdy => upgrade::accept_spdy(upgrade::stream_protocol(headers, &[PROTOCOL])?),
        Asked::WebSocket if offers_tunnel(headers) => {
            upgrade::accept_websocket(headers, Some(TUNNELLED))?
        }
        Asked::WebSocket => {
            return Err(Status::bad_request(
                "unable to upgrade: no tunneling spdy protocols provided",
            ));
        }
    };
    tokio::spawn(async move {
        let forwarding = async {
            match (upgrade::take(connection).await, asked) {
                (None, _) => {}
                (Some(io), Asked::Spdy) => forward(io, connect).await,
                (Some(io), Asked::WebSocket) => forward(Tunnel::new(io).await, connect).await,
            }
        };
        until(life, forwarding).await;
    });
    Ok(response)
}

async fn forward<S, F, R>(io: S, connect: F)
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
    F: Fn(u16, PortStream) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), String>> + Send + 'static,
{
    let settings = Settings::default().ping(PING);
    let (_connection, incoming, driver) = Connection::new(io, Role::Server, settings);
    tokio::select! {
        ended = driver.run() => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a port-forward ended early");
            }
        }
        () = accept(incoming, Arc::new(connect)) => {}
    }
}

/// A stream that waits for the other stream of its pair. Its headers are not kept, because they may be long.
enum Half {
    Data(Target),
    Error(StreamWriter),
}

/// The data stream of a connection. `port` is `None` if the client did not name a port.
struct Target {
    port: Option<u16>,
    stream: PortStream,
}

impl Half {
    /// Returns the half that `stream` is; `None` if the stream has no known type.
    fn of(stream: Stream) -> Option<Half> {
        let port = stream.headers().get("port");
        let port = port.and_then(|port| port.parse().ok());
        match stream.headers().get("streamtype") {
            Some("data") => {
                let (reader, writer) = stream.split();
                let stream = PortStream { reader, writer };
                Some(Half::Data(Target { port, stream }))
            }
            Some("error") => Some(Half::Error(stream.split().1)),
            _ => None,
        }
    }
}

async fn accept<F, R>(mut incoming: Incoming, connect: Arc<F>)
where
    F: Fn(u16, PortStream) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), String>> + Send + 'static,
{
    let mut halves: HashMap<String, Half> = HashMap::new();
    // All connections end when this function ends, because it drops the set.
    let mut running = JoinSet::new();
    while let Some(stream) = incoming.next().await {
        while running.try_join_next().is_some() {}
        let id = stream.headers().get("requestid").unwrap_or("").to_owned();
        let Some(half) = Half::of(stream) else {
            continue;
        };
        match (half, halves.remove(&id)) {
            (Half::Data(data), Some(Half::Error(error)))
            | (Half::Error(error), Some(Half::Data(data))) => {
                running.spawn(connection(error, data, connect.clone()));
            }
            (half, _) if halves.len() < UNPAIRED => {
                halves.insert(id, half);
            }
            // Dropping a stream ends it.
            _ => {}
        }
    }
}

async fn connection<F, R>(mut error: StreamWriter, data: Target, connect: Arc<F>)
where
    F: Fn(u16, PortStream) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), String>> + Send + 'static,
{
    let outcome = match data.port {
        Some(port) if port > 0 => connect(port, data.stream)
            .await
            .map_err(|why| format!("error forwarding port {port}: {why}")),
        _ => Err("the stream has no port".to_owned()),
    };
    if let Err(why) = outcome {
        let _ = error.send(why.into()).await;
    }
    let _ = error.finish().await;
}

#[cfg(test)]
mod tests;
