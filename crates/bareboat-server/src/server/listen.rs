//! From sockets to the corridor: accept, TLS, HTTP/1.1 and HTTP/2.

use super::Server;
use super::serve::{self, Door};
use super::state::{Ending, State};
use crate::authn::{self, Peer};
use crate::bell::Bell;
use crate::request::body::RequestBody;
use crate::sockets::Socket;
use crate::tls::Tls;
use futures_util::FutureExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::convert::Infallible;
use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A handshake that takes longer is none.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// A request whose head takes longer than this is none; hyper counts idle time of a kept connection, too.
const HEAD: Duration = Duration::from_secs(90);
/// A page of memory for reading heads is plenty; bodies get what they need.
const READ_BUFFER: usize = 16 * 1024;
/// What one HTTP/2 stream may have in flight towards a slow client.
const SEND_BUFFER: usize = 256 * 1024;

/// Why a server cannot listen.
#[derive(Debug)]
pub struct ListenError {
    address: SocketAddr,
    source: std::io::Error,
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot listen on {}", self.address)?;
        if self.source.kind() == std::io::ErrorKind::AddrInUse {
            f.write_str(": something else does already")?;
        }
        Ok(())
    }
}

impl std::error::Error for ListenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl Server {
    /// Listens on an address and serves until the server is shut down; tells the address it got.
    pub async fn listen(
        &self,
        address: SocketAddr,
        tls: Option<Tls>,
    ) -> Result<SocketAddr, ListenError> {
        let failed = |source| ListenError { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        self.accept_on(listener, tls).map_err(failed)
    }

    /// Serves on a socket that listens already, until the server is shut down; tells its address.
    ///
    /// Whoever keeps a clone of the socket keeps its port: connections wait there for the next server.
    pub async fn listen_on(
        &self,
        listener: std::net::TcpListener,
        tls: Option<Tls>,
    ) -> std::io::Result<SocketAddr> {
        listener.set_nonblocking(true)?;
        self.accept_on(TcpListener::from_std(listener)?, tls)
    }

    fn accept_on(&self, listener: TcpListener, tls: Option<Tls>) -> std::io::Result<SocketAddr> {
        let bound = listener.local_addr()?;
        tokio::spawn(accept(self.state.clone(), listener, tls));
        Ok(bound)
    }
}

async fn accept(state: Arc<State>, listener: TcpListener, tls: Option<Tls>) {
    let ending = state.ending();
    let accepting = async {
        loop {
            match listener.accept().await {
                Ok((stream, address)) => {
                    tokio::spawn(connection(state.clone(), stream, address, tls.clone()));
                }
                Err(error) => {
                    // Out of file descriptors, mostly: wait for some to come back.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    };
    tokio::select! {
        () = accepting => {}
        () = ending.begun() => {}
    }
}

async fn connection(state: Arc<State>, stream: TcpStream, address: SocketAddr, tls: Option<Tls>) {
    let stream = Socket::of(stream);
    let Some(tls) = tls else {
        let peer = Peer::new(Vec::new(), Some(address), false);
        return http(state, stream, peer, false).await;
    };
    let handshake = TlsAcceptor::from(tls.config.clone()).accept(stream);
    let stream = match tokio::time::timeout(HANDSHAKE, handshake).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%address, %error, "a TLS handshake failed");
            return;
        }
        Err(_) => return,
    };
    let session = stream.get_ref().1;
    let http2 = session.alpn_protocol() == Some(b"h2");
    let certificates = session
        .peer_certificates()
        .unwrap_or(&[])
        .iter()
        .map(|found| found.clone().into_owned())
        .collect();
    http(
        state,
        stream,
        Peer::new(certificates, Some(address), true),
        http2,
    )
    .await;
}

async fn http(
    state: Arc<State>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    http2: bool,
) {
    let user = state
        .authn
        .of_connection(&peer)
        .map(|found| found.map(|user| Arc::new(authn::authenticated(user))));
    let door = Arc::new(Door::Socket { peer, user });
    let ending = state.ending();
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (state, door) = (state.clone(), door.clone());
        // On the heap only while it runs: inside the connection its room would stay taken for as
        // long as a watch lives.
        Box::pin(async move {
            if state.is_ending() {
                return Ok::<_, Infallible>(serve::unavailable());
            }
            Ok(serve::serve(state, &door, request.map(RequestBody::Socket)).await)
        })
    });
    let io = TokioIo::new(stream);
    let result = if http2 {
        let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(250)
            .max_send_buf_size(SEND_BUFFER)
            .max_header_list_size(64 * 1024)
            .keep_alive_interval(Some(Duration::from_secs(30)));
        let connection = builder.serve_connection(io, service);
        until_done(pin!(connection), |it| it.graceful_shutdown(), ending).await
    } else {
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_buf_size(READ_BUFFER)
            .half_close(false);
        let connection = builder.serve_connection(io, service).with_upgrades();
        until_done(pin!(connection), |it| it.graceful_shutdown(), ending).await
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended badly");
    }
}

/// Serves a connection to its end; once the server ends, it finishes what it has begun and takes nothing more.
///
/// It is pinned by the caller: handed over by value it would take its room twice.
async fn until_done<C: Future>(
    mut connection: Pin<&mut C>,
    finish: impl Fn(Pin<&mut C>),
    ending: Ending,
) -> C::Output {
    let mut ending = pin!(ending.begun().fuse());
    let bell = Bell::new();
    poll_fn(|cx| {
        if let Some(waker) = bell.rung(cx)
            && (ending.as_mut().poll(&mut Context::from_waker(&waker))).is_ready()
        {
            finish(connection.as_mut());
        }
        connection.as_mut().poll(cx)
    })
    .await
}
