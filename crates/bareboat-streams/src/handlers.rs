//! Serves the streams of pods with functions of a program.

use crate::command::{self, CommandStreams, Outcome};
use crate::objects::{self, Opening};
use crate::options::{self, CommandOptions, LogOptions};
use crate::ports::{self, PortStream};
use bareboat_api::kind::User;
use bareboat_api::{Object, Status};
use bareboat_server::Connector;
use bareboat_server::reply::{Body, Response};
use bareboat_server::request::body::BodyError;
use bytes::Bytes;
use http::{HeaderValue, header};
use http_body::Frame;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// A request to run a command, or to attach to one.
#[derive(Debug)]
#[non_exhaustive]
pub struct CommandRequest {
    /// The requesting user.
    pub user: Arc<User>,
    /// The pod.
    pub pod: Object,
    /// The parameters of the request. The container exists in the pod.
    pub options: CommandOptions,
}

/// A request to read a log.
#[derive(Debug)]
#[non_exhaustive]
pub struct LogRequest {
    /// The requesting user.
    pub user: Arc<User>,
    /// The pod.
    pub pod: Object,
    /// The parameters of the request. The container exists in the pod.
    pub options: LogOptions,
}

/// A request to connect to a port of a pod.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PortRequest {
    /// The requesting user.
    pub user: Arc<User>,
    /// The pod.
    pub pod: Arc<Object>,
    /// The port.
    pub port: u16,
}

/// Serves `pods/exec` with `function`, which returns the exit code of the command. Its error is shown to the client.
///
/// The future of `function` is dropped when the client leaves or loses its permission.
pub fn exec<F, R>(function: F) -> Connector
where
    F: Fn(CommandRequest, CommandStreams) -> R + Send + Sync + 'static,
    R: Future<Output = Result<i32, Status>> + Send + 'static,
{
    commands("exec", function)
}

/// Serves `pods/attach` with `function`, like [`exec`].
pub fn attach<F, R>(function: F) -> Connector
where
    F: Fn(CommandRequest, CommandStreams) -> R + Send + Sync + 'static,
    R: Future<Output = Result<i32, Status>> + Send + 'static,
{
    commands("attach", function)
}

fn commands<F, R>(subresource: &'static str, function: F) -> Connector
where
    F: Fn(CommandRequest, CommandStreams) -> R + Send + Sync + 'static,
    R: Future<Output = Result<i32, Status>> + Send + 'static,
{
    let function = Arc::new(function);
    Connector::program(move |visit| {
        let function = function.clone();
        async move {
            let opening = Opening::of(&visit);
            let options = command_options(opening, subresource).await?;
            let pod = pod(visit.object)?;
            let mut options = options.with_terminal_rules();
            options.container = objects::container(&pod, &options.container)?;
            let request = CommandRequest {
                user: visit.question.user.clone(),
                pod,
                options: options.clone(),
            };
            let life = visit.calls.life();
            command::serve(&visit.request, options, life, move |streams| async move {
                match function(request, streams).await {
                    Ok(code) => Outcome::Exit(code),
                    Err(status) => Outcome::Failed(Box::new(status)),
                }
            })
        }
    })
}

/// Checks whether the user may open the stream, and parses its parameters.
pub(crate) async fn command_options(
    opening: Opening<'_>,
    subresource: &str,
) -> Result<CommandOptions, Status> {
    let query = options::query(opening.uri)?;
    let options = CommandOptions::parse(&query, subresource);
    opening.may_create("pods").await?;
    Ok(options)
}

pub(crate) fn pod(object: Option<Object>) -> Result<Object, Status> {
    object.ok_or_else(|| Status::internal("the pod of the request is missing"))
}

/// Serves `pods/log` with `function`, which returns the log; see [`log_body`].
pub fn logs<F, R>(function: F) -> Connector
where
    F: Fn(LogRequest) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Body, Status>> + Send + 'static,
{
    let function = Arc::new(function);
    Connector::program(move |visit| {
        let function = function.clone();
        async move {
            let query = options::query(visit.request.uri())?;
            let mut options = LogOptions::parse(&query, &visit.question.name)?;
            let pod = pod(visit.object)?;
            options.container = objects::container(&pod, &options.container)?;
            let request = LogRequest {
                user: visit.question.user.clone(),
                pod,
                options,
            };
            Ok(text(function(request).await?))
        }
    })
}

/// Returns a plain text response.
pub(crate) fn text(body: Body) -> Response {
    let mut response = http::Response::new(body);
    let plain = HeaderValue::from_static("text/plain");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

/// Writes a log to a client.
#[derive(Clone, Debug)]
pub struct LogWriter(mpsc::Sender<Bytes>);

impl LogWriter {
    /// Sends bytes, and waits while the client does not read. Returns false if the client has left.
    pub async fn write(&self, bytes: impl Into<Bytes>) -> bool {
        self.0.send(bytes.into()).await.is_ok()
    }

    /// Waits until the client stops reading.
    pub async fn closed(&self) {
        self.0.closed().await;
    }
}

/// Returns a body, and a writer for it. The body ends when the last writer is dropped.
pub fn log_body() -> (LogWriter, Body) {
    let (sender, pieces) = mpsc::channel(4);
    (LogWriter(sender), Body::stream(Pieces(pieces)))
}

struct Pieces(mpsc::Receiver<Bytes>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = self.0.poll_recv(cx);
        polled.map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// Serves `pods/portforward` with `function`, which is called for each connection to a port. Its error is shown to the
/// client.
pub fn port_forward<F, R>(function: F) -> Connector
where
    F: Fn(PortRequest, PortStream) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), String>> + Send + 'static,
{
    let function = Arc::new(function);
    Connector::program(move |visit| {
        let function = function.clone();
        async move {
            let opening = Opening::of(&visit);
            port_options(opening).await?;
            let user = visit.question.user.clone();
            let pod = Arc::new(pod(visit.object)?);
            let life = visit.calls.life();
            ports::serve(&visit.request, life, move |port, stream| {
                let request = PortRequest {
                    user: user.clone(),
                    pod: pod.clone(),
                    port,
                };
                function(request, stream)
            })
        }
    })
}

/// Checks whether the user may open connections, and parses the parameters.
pub(crate) async fn port_options(opening: Opening<'_>) -> Result<Vec<u16>, Status> {
    let query = options::query(opening.uri)?;
    let ports = options::ports(&query)?;
    opening.may_create("pods").await?;
    Ok(ports)
}
