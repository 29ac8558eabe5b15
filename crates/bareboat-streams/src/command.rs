//! Sessions of exec and attach: the streams of the client, over SPDY or a WebSocket, and how a session ends.

mod spdy;
mod streams;
mod websocket;

pub(crate) use streams::Sizes;
pub use streams::{CommandStreams, Input, Output, TerminalSize};

use crate::options::CommandOptions;
use crate::upgrade::{self, Asked};
use bareboat_api::{Map, Status, Value};
use bareboat_server::Life;
use bareboat_server::reply::Response;
use bareboat_server::request::body::RequestBody;
use bytes::Bytes;
use std::time::Duration;

/// The timeout for a client to open its streams.
const CREATION: Duration = Duration::from_secs(30);
/// The timeout for a client to read the remaining output after the end, and to close the connection.
pub(crate) const FAREWELL: Duration = Duration::from_secs(300);

/// The interval of pings to a client while nothing else is sent. A ping fails after the client has left, even while the
/// client's input is not being read.
pub(crate) const PING: Duration = Duration::from_secs(30);

/// The result of a session.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The command ended with this exit code.
    Exit(i32),
    /// There is no command, or it cannot be run.
    Failed(Box<Status>),
    /// The Status in JSON that a kubelet sent.
    Kubelet(Bytes),
}

/// The form of a session's last message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndForm {
    /// A Status in JSON, also for success.
    Status,
    /// The text of an error; empty for success.
    Text,
}

impl Outcome {
    /// Returns the last message of a session.
    fn message(self, form: EndForm) -> Bytes {
        let value = match self {
            Outcome::Kubelet(bytes) if form == EndForm::Status => return bytes,
            Outcome::Kubelet(bytes) => match bareboat_wire::json::parse(&bytes) {
                Ok(parsed) => parsed.value,
                Err(_) => return bytes,
            },
            Outcome::Exit(0) => success(),
            Outcome::Exit(code) => exit(code),
            Outcome::Failed(status) => status.to_value(),
        };
        match form {
            EndForm::Status => Bytes::from(value.to_json()),
            EndForm::Text if value.get("status").and_then(Value::as_str) == Some("Success") => {
                Bytes::new()
            }
            EndForm::Text => {
                let message = value.get("message").and_then(Value::as_str).unwrap_or("");
                Bytes::from(message.to_owned())
            }
        }
    }
}

fn success() -> Value {
    let mut map = Map::new();
    map.insert("metadata", Value::Object(Map::new()));
    map.insert("status", Value::string("Success"));
    Value::Object(map)
}

/// Returns the Status of a command that ended with a code other than 0.
fn exit(code: i32) -> Value {
    let mut cause = Map::new();
    cause.insert("reason", Value::string("ExitCode"));
    cause.insert("message", Value::string(code.to_string()));
    let mut details = Map::new();
    details.insert("causes", Value::Array(vec![Value::Object(cause)]));
    let mut map = Map::new();
    map.insert("metadata", Value::Object(Map::new()));
    map.insert("status", Value::string("Failure"));
    let message = format!("command terminated with non-zero exit code: exit status {code}");
    map.insert("message", Value::string(message));
    map.insert("reason", Value::string("NonZeroExitCode"));
    map.insert("details", Value::Object(details));
    Value::Object(map)
}

/// Accepts the client's upgrade, and calls `run` with the client's streams. The session ends when `run` returns, the
/// client leaves, or `life` ends.
pub(crate) fn serve<F, R>(
    request: &http::Request<RequestBody>,
    options: CommandOptions,
    life: Life,
    run: F,
) -> Result<Response, Status>
where
    F: FnOnce(CommandStreams) -> R + Send + 'static,
    R: Future<Output = Outcome> + Send + 'static,
{
    let (asked, connection) = upgrade::asked(request)?;
    if !(options.stdin || options.stdout || options.stderr) {
        return Err(Status::bad_request(
            "you must specify at least 1 of stdin, stdout, stderr",
        ));
    }
    let headers = request.headers();
    match asked {
        Asked::WebSocket => {
            let protocol = websocket::Protocol::choose(headers)?;
            let response = upgrade::accept_websocket(headers, protocol.name())?;
            tokio::spawn(async move {
                let session = async {
                    if let Some(io) = upgrade::take(connection).await {
                        websocket::session(io, protocol, options, FAREWELL, run).await;
                    }
                };
                until(life, session).await;
            });
            Ok(response)
        }
        Asked::Spdy => {
            let protocol = upgrade::stream_protocol(headers, &spdy::PROTOCOLS)?;
            tokio::spawn(async move {
                let session = async {
                    if let Some(io) = upgrade::take(connection).await {
                        spdy::session(io, protocol, options, FAREWELL, run).await;
                    }
                };
                until(life, session).await;
            });
            Ok(upgrade::accept_spdy(protocol))
        }
    }
}

/// Runs `session` until it ends or `life` ends.
pub(crate) async fn until(life: Life, session: impl Future<Output = ()>) {
    tokio::select! {
        () = session => {}
        () = life.ended() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;

    /// Writes until the client accepts no more data and all tasks of this thread wait.
    pub(super) async fn fill(output: &mut Output) {
        let settled = async || {
            for _ in 0..1000 {
                tokio::task::yield_now().await;
            }
        };
        loop {
            tokio::select! {
                biased;
                written = output.write(&[7; 1024]) => drop(written.expect("the client is there")),
                () = settled() => return,
            }
        }
    }

    #[test]
    fn the_last_message_has_the_exit_code() {
        let json = Outcome::Exit(7).message(EndForm::Status);
        let text = String::from_utf8(json.to_vec()).expect("text");
        assert!(text.contains("\"reason\":\"NonZeroExitCode\""), "{text}");
        assert!(
            text.contains("{\"message\":\"7\",\"reason\":\"ExitCode\"}"),
            "{text}"
        );
        assert_eq!(
            Outcome::Exit(0).message(EndForm::Status),
            "{\"metadata\":{},\"status\":\"Success\"}"
        );
        assert!(Outcome::Exit(0).message(EndForm::Text).is_empty());
        let kubelet = Bytes::from_static(b"{\"status\":\"Failure\",\"message\":\"gone\"}");
        assert_eq!(Outcome::Kubelet(kubelet).message(EndForm::Text), "gone");
    }
}
