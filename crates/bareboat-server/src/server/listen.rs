//! Accepts connections: TCP, TLS, HTTP/1.1 and HTTP/2.

use super::Server;
use super::serve::{self, Door, SocketClient};
use super::state::{Ending, State};
use crate::authn::{ConnectionIdentity, Peer};
use crate::bell::Bell;
use crate::connections::{Close, Line, Metered, Streaming};
use crate::reply::{Body, Response};
use crate::request::body::RequestBody;
use crate::sockets::Socket;
use crate::tls::Tls;
use futures_util::FutureExt as _;
use http::{HeaderValue, Method, StatusCode, header};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// TLS handshake timeout.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Timeout of a request's head; hyper also applies it to idle kept-alive connections.
const HEAD: Duration = Duration::from_secs(90);
/// Maximum size of a request's head, as in kube-apiserver; larger ones are answered with 431.
const LARGEST_HEAD: usize = 1 << 20;
/// Maximum number of headers; more are answered with 431, too.
const MOST_HEADERS: usize = 1024;
/// HTTP/2 send buffer of a stream.
const SEND_BUFFER: usize = 256 * 1024;

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
        return http(state, stream, peer, false, line).await;
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
        stream,
        Peer::new(certificates, Some(address), true),
        http2,
        line,
    )
    .await;
}

async fn http(
    state: Arc<State>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    http2: bool,
    line: Arc<Line>,
) {
    if http2 {
        line.set_http2();
    }
    let ending = state.ending();
    let door = Arc::new(Door::Socket(Arc::new(SocketClient {
        identity: ConnectionIdentity::new(&state.authn, &peer),
        peer,
        line: line.clone(),
    })));
    let of_requests = line.clone();
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (state, door, line) = (state.clone(), door.clone(), of_requests.clone());
        // Boxed while it runs: inside the connection it would take memory for as long as a watch lives.
        Box::pin(async move {
            let busy = line.begin();
            // A client that does not read its answers gets no more of them.
            line.room().await;
            if state.is_ending() {
                return Ok::<_, Infallible>(serve::unavailable().map(|it| Metered::new(it, busy)));
            }
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
            Ok(response.map(|body| Metered::new(body, busy)))
        })
    });
    let io = TokioIo::new(stream);
    let result = if http2 {
        let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(250)
            .max_send_buf_size(SEND_BUFFER)
            .max_header_list_size(LARGEST_HEAD as u32)
            .keep_alive_interval(Some(Duration::from_secs(30)));
        let connection = builder.serve_connection(io, service);
        until_done(pin!(connection), |it| it.graceful_shutdown(), ending, &line).await
    } else {
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_header_size(LARGEST_HEAD)
            .max_headers(MOST_HEADERS)
            .max_buf_size(LARGEST_HEAD + 4096)
            .half_close(false);
        let connection = builder.serve_connection(io, service).with_upgrades();
        let mut connection = pin!(connection);
        let result = until_done(
            connection.as_mut(),
            |it| it.graceful_shutdown(),
            ending,
            &line,
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

/// Drops the body of an answer, and keeps its head.
fn without_body(mut response: Response) -> Response {
    let length = response.body().size_hint().exact();
    let headers = response.headers_mut();
    if let Some(length) = length.filter(|_| !headers.contains_key(header::CONTENT_LENGTH)) {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    response.map(|_| Body::empty())
}

/// Serves a connection until it ends or is closed. Once the server or the connection is to end, it completes running
/// requests and accepts no more.
///
/// Pinned by the caller: passed by value it would take its memory twice.
async fn until_done<C: Future>(
    mut connection: Pin<&mut C>,
    finish: impl Fn(Pin<&mut C>),
    ending: Ending,
    line: &Line,
) -> Option<C::Output> {
    let mut ending = pin!(ending.begun().fuse());
    let bell = Bell::new();
    poll_fn(|cx| {
        if let Some(waker) = bell.rung(cx) {
            let cx = &mut Context::from_waker(&waker);
            let close = line.poll_close(cx);
            if close == Poll::Ready(Close::Now) {
                return Poll::Ready(None);
            }
            if ending.as_mut().poll(cx).is_ready() || close.is_ready() {
                finish(connection.as_mut());
            }
        }
        connection.as_mut().poll(cx).map(Some)
    })
    .await
}
