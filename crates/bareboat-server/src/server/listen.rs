//! Accepts connections: TCP, TLS, HTTP/1.1 and HTTP/2.

use super::Server;
use super::carrier::Carrier;
use super::door::{Door, SocketClient};
use super::drive::until_done;
use super::first_head::{self, Begun};
use super::http2;
use super::serve;
use super::state::{Ending, State};
use crate::authn::{ConnectionIdentity, Peer};
use crate::connections::{Close, Line, Metered, Streaming};
use crate::reply::{Body, Response};
use crate::request::body::RequestBody;
use crate::sockets::Socket;
use crate::tls::Tls;
use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// TLS handshake timeout.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Timeout of a request's head; hyper also applies it to idle kept-alive connections.
const HEAD: Duration = Duration::from_secs(90);
/// How long the end of an idle connection may take.
const FAREWELL: Duration = Duration::from_secs(1);
/// Maximum size of a request's head, as in kube-apiserver; larger ones are answered with 431.
pub(super) const LARGEST_HEAD: usize = 1 << 20;
/// Maximum number of headers on connections that may need many, see `first_head`; more are answered with 431, too.
const MOST_HEADERS: usize = 1024;

/// Why a server cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}{}", taken(source))]
pub struct ListenError {
    address: SocketAddr,
    source: std::io::Error,
}

/// What to add for the most common error.
fn taken(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => ": another program listens there",
        _ => "",
    }
}

impl Server {
    /// Listens on an address and serves until the server is shut down; returns the bound address.
    pub async fn listen(
        &self,
        address: SocketAddr,
        tls: Option<Tls>,
    ) -> Result<SocketAddr, ListenError> {
        let failed = |source| ListenError { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        self.accept_on(listener, tls).map_err(failed)
    }

    /// Serves on a listening socket until the server is shut down; returns its address.
    ///
    /// A clone of the socket keeps its port: new connections wait there for the next server.
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
        self.state.reach.listens_on(bound);
        self.start();
        if let Some(tls) = &tls {
            self.state.metrics.serve_with(tls);
        }
        let connections = self.state.connections.clone();
        tokio::spawn(connections.look_after(self.state.ending().begun()));
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
                    let Some(line) = state.connections.admit(address.ip()).await else {
                        tracing::debug!(%address, "too many unauthenticated connections");
                        continue;
                    };
                    let stream = Socket::of(stream, line.clone());
                    tokio::spawn(connection(
                        state.clone(),
                        stream,
                        address,
                        tls.clone(),
                        line,
                    ));
                }
                Err(error) => {
                    // Mostly the process is out of file descriptors: wait until some are closed.
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

async fn connection(
    state: Arc<State>,
    mut stream: Socket,
    address: SocketAddr,
    tls: Option<Tls>,
    line: Arc<Line>,
) {
    let Some(tls) = tls else {
        let peer = Peer::new(Vec::new(), Some(address), false);
        return http(state, Carrier::Plain(stream), peer, false, line).await;
    };
    let handshake = async {
        match stream.refuses_plain_http().await? {
            true => Err(std::io::Error::other("the client does not use TLS")),
            false => TlsAcceptor::from(tls.config()).accept(stream).await,
        }
    };
    let handshake = tokio::select! {
        done = tokio::time::timeout(HANDSHAKE, handshake) => done,
        () = line.cut_off() => return,
    };
    let stream = match handshake {
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
        Carrier::Tls(Box::new(stream)),
        Peer::new(certificates, Some(address), true),
        http2,
        line,
    )
    .await;
}

async fn http(state: Arc<State>, mut stream: Carrier, peer: Peer, http2: bool, line: Arc<Line>) {
    if http2 {
        line.set_http2();
    }
    let (ending, threads) = (state.ending(), state.threads.clone());
    let door = Arc::new(Door::Socket(Arc::new(SocketClient {
        identity: ConnectionIdentity::new(&state.authn, &peer),
        peer,
        line: line.clone(),
    })));
    let of_requests = line.clone();
    let shared = state.clone();
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (state, door, line) = (state.clone(), door.clone(), of_requests.clone());
        // Boxed while it runs: inside the connection it would take memory for as long as a watch lives.
        Box::pin(async move {
            let busy = line.begin();
            // A client that does not read its answers gets no more of them.
            line.room().await;
            // For HTTP/1, hyper omits bodies of answers to HEAD.
            let bodiless = http2 && request.method() == Method::HEAD;
            let mut response = serve::serve(state, &door, request.map(RequestBody::Socket)).await;
            if bodiless {
                response = without_body(response);
            }
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                line.set_upgraded(response.extensions().get::<Streaming>().is_none());
            }
            if http2 && !line.is_known() {
                // HTTP/2 gives a client many ways to cause work, so it is only kept open for authenticated clients.
                line.close(Close::Soon);
            }
            let response = response.map(|body| Metered::new(body, busy));
            if response.body().is_large() {
                line.leave_worker().await;
            }
            Ok::<_, Infallible>(response)
        })
    });
    let result = if http2 {
        http2::serve(stream, service, ending, &line, &threads).await
    } else {
        let Some(first) = first_bytes(&mut stream, &ending, &line).await else {
            if !line.is_cut_off() {
                // An error means that the client closed the connection, too.
                let _ = tokio::time::timeout(FAREWELL, stream.shutdown()).await;
            }
            return;
        };
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_header_size(LARGEST_HEAD)
            .max_buf_size(LARGEST_HEAD + 4096)
            .half_close(false);
        if first_head::may_have_many_headers(&first, &shared.credential_headers) {
            builder.max_headers(MOST_HEADERS);
        }
        drop(shared);
        let io = TokioIo::new(Begun::new(first, stream));
        let connection = Box::pin(builder.serve_connection(io, service).with_upgrades());
        let result = until_done(
            connection,
            |it| it.graceful_shutdown(),
            ending,
            &line,
            &threads,
        )
        .await;
        if let Some(Err(error)) = &result
            && error.is_parse_too_large()
        {
            line.set_linger();
        }
        result
    };
    match result {
        Some(Ok(())) => {}
        Some(Err(error)) => tracing::debug!(%error, "a connection failed"),
        None => tracing::debug!("a connection was cut off"),
    }
}

/// Waits for the first bytes of an HTTP/1.1 connection; `None` if it ends, or is to be closed, without any.
async fn first_bytes(stream: &mut Carrier, ending: &Ending, line: &Line) -> Option<Bytes> {
    let reading = tokio::time::timeout(HEAD, first_head::read(stream));
    let closing = poll_fn(|cx| line.poll_close(cx));
    tokio::select! {
        read = reading => read.ok()?.ok().filter(|first| !first.is_empty()),
        _ = closing => None,
        () = ending.clone().begun() => None,
    }
}

/// Drops the body of an answer, and keeps its head.
fn without_body(mut response: Response) -> Response {
    let length = response.body().size_hint().exact();
    let headers = response.headers_mut();
    if let Some(length) = length.filter(|_| !headers.contains_key(header::CONTENT_LENGTH)) {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    response.map(|_| Body::empty())
}
