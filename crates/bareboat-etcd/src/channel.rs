//! A connection to one member: gRPC over HTTP/2, for calls with one answer and for streams of answers.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bareboat_storage::BoxError;
use bytes::{Buf as _, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::address::{Address, Endpoint};
use crate::error::{CallError, EtcdError};
use crate::messages::{self, Done, Found, Range, Status, compaction, method};
use crate::tls;

/// The timeout for opening a connection.
const DIAL: Duration = Duration::from_secs(5);
/// The timeout for releasing unused space, which takes about a minute for some GiB.
const DEFRAGMENT: Duration = Duration::from_secs(600);
/// The maximum duration of a compaction.
const COMPACT: Duration = Duration::from_secs(600);
/// The timeout of a call. etcd itself gives up after about 7 s.
const CALL: Duration = Duration::from_secs(10);
/// The maximum size of an answer.
const MAX_ANSWER: usize = 256 << 20;
/// The interval of HTTP/2 pings while a call is open. etcd refuses more than one ping in 5 s.
const TEST_EVERY: Duration = Duration::from_secs(10);
const WINDOW: u32 = 8 << 20;

/// An open connection.
#[derive(Clone)]
pub(crate) struct Channel {
    sender: SendRequest<Body>,
    /// The beginning of every URL: `http://host:port`.
    base: String,
    token: Option<HeaderValue>,
}

/// The body of a request: one message. Then the body ends, or stays open without more data.
pub(crate) struct Body {
    message: Option<Bytes>,
    stays_open: bool,
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match (self.message.take(), self.stays_open) {
            (Some(message), _) => Poll::Ready(Some(Ok(Frame::data(message)))),
            // The body stays open until the answer is dropped.
            (None, true) => Poll::Pending,
            (None, false) => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.message.is_none() && !self.stays_open
    }
}

impl Channel {
    /// Connects to a member, and authenticates if the address names a user.
    pub(crate) async fn open(address: &Address, endpoint: &Endpoint) -> Result<Self, EtcdError> {
        let opened = tokio::time::timeout(DIAL, Self::dial(address, endpoint)).await;
        let late = || unreachable(endpoint, "no answer within 5 s");
        let mut channel = opened.map_err(|_| late())??;
        if let Some(user) = &address.user {
            let password = password(address)?;
            let message = messages::credentials(user, &password);
            let answer = channel.call(method::AUTHENTICATE, message).await;
            let answer = answer.map_err(|error| EtcdError::Refused(error.into()))?;
            let token = messages::token(&answer).unwrap_or_default();
            let token = HeaderValue::from_maybe_shared(token)
                .map_err(|error| EtcdError::Refused(error.into()))?;
            channel.token = Some(token);
        }
        Ok(channel)
    }

    async fn dial(address: &Address, endpoint: &Endpoint) -> Result<Self, EtcdError> {
        let failed = |error: BoxError| unreachable(endpoint, error);
        let stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await;
        let stream = stream.map_err(|error| failed(error.into()))?;
        // Messages are small, and the caller waits for each answer.
        let _ = stream.set_nodelay(true);
        let (sender, scheme) = match address.tls {
            false => (handshake(stream).await, "http"),
            true => {
                let connector = tokio_rustls::TlsConnector::from(tls::config(address)?);
                let name = rustls_pki_types::ServerName::try_from(endpoint.host.clone());
                let name = name.map_err(|error| failed(error.into()))?;
                let stream = connector.connect(name, stream).await;
                let stream = stream.map_err(|error| failed(error.into()))?;
                (handshake(stream).await, "https")
            }
        };
        Ok(Self {
            sender: sender.map_err(|error| failed(error.into()))?,
            base: format!("{scheme}://{endpoint}"),
            token: None,
        })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Sends `message` and returns the answer.
    pub(crate) async fn call(
        &self,
        method: &'static str,
        message: Vec<u8>,
    ) -> Result<Bytes, CallError> {
        let late = || CallError::Lost("no answer within 10 s".into());
        let answer = tokio::time::timeout(CALL, self.exchange(method, message)).await;
        answer.unwrap_or_else(|_| Err(late()))
    }

    /// Makes the cluster forget what no revision from `upto` on needs. Returns when the member has freed the space.
    pub(crate) async fn compact(&self, upto: u64) -> Result<(), CallError> {
        let late = || CallError::Lost("no answer within ten minutes".into());
        let done = self.exchange(method::COMPACT, compaction(upto));
        let done = tokio::time::timeout(COMPACT, done).await;
        done.unwrap_or_else(|_| Err(late())).map(drop)
    }

    /// Makes the member release unused space. It does not answer other calls in the meantime.
    pub(crate) async fn defragment(&self) -> Result<(), CallError> {
        let late = || CallError::Lost("no answer within ten minutes".into());
        let done = self.exchange(method::DEFRAGMENT, Vec::new());
        let done = tokio::time::timeout(DEFRAGMENT, done).await;
        done.unwrap_or_else(|_| Err(late())).map(drop)
    }

    async fn exchange(&self, method: &'static str, message: Vec<u8>) -> Result<Bytes, CallError> {
        let (head, body) = self.send(method, message, false).await?.into_parts();
        let collected = Limited::new(body, MAX_ANSWER).collect().await;
        let collected = collected.map_err(CallError::Lost)?;
        let trailers = collected.trailers().cloned().unwrap_or_default();
        refusal(&trailers, &head.headers)?;
        let bytes = collected.to_bytes();
        match (bytes.first(), bytes.get(1..5)) {
            (Some(0), Some(len)) if len == u32::to_be_bytes(bytes.len() as u32 - 5) => {
                Ok(bytes.slice(5..))
            }
            _ => Err(CallError::Unreadable(
                "it does not have exactly one message",
            )),
        }
    }

    /// Sends `message`, and keeps the call open for more answers.
    pub(crate) async fn stream(
        &self,
        method: &'static str,
        message: Vec<u8>,
    ) -> Result<Answers, CallError> {
        let sent = tokio::time::timeout(CALL, self.send(method, message, true)).await;
        let late = |_| CallError::Lost("no answer within 10 s".into());
        let (head, body) = sent.map_err(late)??.into_parts();
        Ok(Answers {
            headers: head.headers,
            body,
            buffer: BytesMut::new(),
        })
    }

    async fn send(
        &self,
        method: &'static str,
        message: Vec<u8>,
        stays_open: bool,
    ) -> Result<Response<Incoming>, CallError> {
        let mut framed = Vec::with_capacity(message.len() + 5);
        framed.push(0);
        framed.extend_from_slice(&(message.len() as u32).to_be_bytes());
        framed.extend_from_slice(&message);
        let mut request = Request::builder()
            .method(Method::POST)
            .version(Version::HTTP_2)
            .uri(format!("{}{method}", self.base))
            .header(header::CONTENT_TYPE, "application/grpc")
            .header(header::TE, "trailers")
            .header(header::USER_AGENT, "bareboat")
            // With this header, a member without a leader refuses at once instead of waiting.
            .header("hasleader", "true");
        if let Some(token) = &self.token {
            request = request.header("token", token);
        }
        let body = Body {
            message: Some(framed.into()),
            stays_open,
        };
        let request = request.body(body);
        let request = request.map_err(|error| CallError::Lost(error.into()))?;
        let sent = self.sender.clone().send_request(request).await;
        let response = sent.map_err(|error| CallError::Lost(error.into()))?;
        match response.status() {
            StatusCode::OK => Ok(response),
            _ => Err(CallError::Lost("the answer is not gRPC".into())),
        }
    }

    pub(crate) async fn txn(&self, message: Vec<u8>) -> Result<Done, CallError> {
        let answer = self.call(method::TXN, message).await?;
        Done::decode(&answer).ok_or(CallError::Unreadable("the result of a transaction"))
    }

    pub(crate) async fn range(&self, range: &Range) -> Result<Found, CallError> {
        let answer = self.call(method::RANGE, range.encode()).await?;
        Found::decode(&answer).ok_or(CallError::Unreadable("keys and values"))
    }

    pub(crate) async fn status(&self) -> Result<Status, CallError> {
        let answer = self.call(method::STATUS, Vec::new()).await?;
        Status::decode(&answer).ok_or(CallError::Unreadable("the status of a member"))
    }
}

/// The answers of a streaming call.
pub(crate) struct Answers {
    headers: HeaderMap,
    body: Incoming,
    buffer: BytesMut,
}

impl Answers {
    /// Returns the next answer, or an error when there are no more. Dropping the future before it completes loses no
    /// data.
    pub(crate) async fn next(&mut self) -> Result<Bytes, CallError> {
        loop {
            if let Some(len) = self.buffer.get(1..5) {
                let len = u32::from_be_bytes([len[0], len[1], len[2], len[3]]) as usize;
                if len > MAX_ANSWER {
                    return Err(CallError::Unreadable("it is too long"));
                }
                if self.buffer.len() >= len + 5 {
                    self.buffer.advance(5);
                    return Ok(self.buffer.split_to(len).freeze());
                }
            }
            let ended = || CallError::Lost("the stream ended".into());
            let frame = self.body.frame().await.ok_or_else(ended)?;
            let frame = frame.map_err(|error| CallError::Lost(error.into()))?;
            match frame.into_data() {
                Ok(data) => self.buffer.extend_from_slice(&data),
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    refusal(&trailers, &self.headers)?;
                    return Err(ended());
                }
            }
        }
    }
}

async fn handshake<S>(stream: S) -> hyper::Result<SendRequest<Body>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(TEST_EVERY)
        .keep_alive_timeout(Duration::from_secs(5))
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(2 * WINDOW)
        .handshake(TokioIo::new(stream))
        .await?;
    tokio::spawn(async move {
        // The calls return the same error.
        let _ = connection.await;
    });
    Ok(sender)
}

/// Fails if the gRPC status of a call is not 0. The status of a failure without a message is in the headers, any other
/// status in the trailers.
fn refusal(trailers: &HeaderMap, headers: &HeaderMap) -> Result<(), CallError> {
    let text = |name: &str| {
        let value = trailers.get(name).or_else(|| headers.get(name))?;
        value.to_str().ok()
    };
    match text("grpc-status").and_then(|code| code.parse().ok()) {
        Some(0) => Ok(()),
        Some(code) => Err(CallError::Refused {
            code,
            message: text("grpc-message")
                .unwrap_or_default()
                .chars()
                .take(500)
                .collect(),
        }),
        None => Err(CallError::Lost("an answer without a status".into())),
    }
}

fn unreachable(endpoint: &Endpoint, source: impl Into<BoxError>) -> EtcdError {
    EtcdError::Unreachable {
        endpoint: endpoint.to_string(),
        source: source.into(),
    }
}

/// Reads the password. It is read for every connection, so that it can be changed.
fn password(address: &Address) -> Result<String, EtcdError> {
    match &address.password_file {
        Some(path) => {
            let text = std::fs::read_to_string(path);
            let text = text.map_err(|error| tls::unusable(path.display().to_string(), error))?;
            Ok(text.trim_end_matches(['\r', '\n']).to_owned())
        }
        None => std::env::var("ETCDCTL_PASSWORD").map_err(|_| {
            let why = "neither password-file= in the address nor ETCDCTL_PASSWORD is set";
            tls::unusable("the password", why)
        }),
    }
}
