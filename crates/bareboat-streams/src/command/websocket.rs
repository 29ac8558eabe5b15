//! A session over a WebSocket. Each message starts with the number of its channel.

use super::streams::ChannelReader;
use super::{CommandStreams, EndForm, Input, Outcome, Output, PING, Sizes};
use crate::options::CommandOptions;
use crate::upgrade::subprotocols;
use crate::websocket::{PIECE, goodbye, start};
use bareboat_api::Status;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::{SinkExt as _, StreamExt as _};
use http::HeaderMap;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_util::sync::PollSender;

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
/// The channel of protocol version 5 whose messages close other channels. The message contains the number of the
/// channel to close.
const CLOSE: u8 = 255;

/// The maximum number of messages that wait to be sent, and of those that wait to be read.
const WAITING: usize = 4;

/// The subprotocol of a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Protocol {
    name: &'static str,
    is_base64: bool,
    has_status: bool,
    has_close: bool,
}

const fn protocol(name: &'static str, base64: bool, status: bool, close: bool) -> Protocol {
    Protocol {
        name,
        is_base64: base64,
        has_status: status,
        has_close: close,
    }
}

const PROTOCOLS: [Protocol; 6] = [
    protocol("v5.channel.k8s.io", false, true, true),
    protocol("v4.channel.k8s.io", false, true, false),
    protocol("v4.base64.channel.k8s.io", true, true, false),
    protocol("channel.k8s.io", false, false, false),
    protocol("base64.channel.k8s.io", true, false, false),
    // The protocol for a client that offers no subprotocol.
    protocol("", false, false, false),
];

impl Protocol {
    /// Returns the first protocol that the client offers and that is known.
    pub(super) fn choose(headers: &HeaderMap) -> Result<Protocol, Status> {
        let mut offered = subprotocols(headers).peekable();
        if offered.peek().is_none() {
            return Ok(PROTOCOLS[PROTOCOLS.len() - 1]);
        }
        let find = |name: &str| PROTOCOLS.into_iter().find(|known| known.name == name);
        offered.find_map(find).ok_or_else(|| {
            let offered: Vec<&str> = subprotocols(headers).collect();
            Status::bad_request(format!(
                "requested protocol(s) are not supported: {offered:?}"
            ))
        })
    }

    pub(super) fn name(&self) -> Option<&'static str> {
        (!self.name.is_empty()).then_some(self.name)
    }

    fn message(&self, channel: u8, data: &[u8]) -> Message {
        if self.is_base64 {
            let digit = (b'0' + channel) as char;
            return Message::text(format!("{digit}{}", BASE64_STANDARD.encode(data)));
        }
        let mut bytes = BytesMut::with_capacity(1 + data.len());
        bytes.put_u8(channel);
        bytes.extend_from_slice(data);
        Message::Binary(bytes.freeze())
    }

    /// Returns the channel and the data of a client's message.
    fn read(&self, message: Message) -> Option<(u8, Bytes)> {
        match (self.is_base64, message) {
            (false, Message::Binary(mut bytes)) if !bytes.is_empty() => {
                let channel = bytes.split_to(1)[0];
                Some((channel, bytes))
            }
            (true, Message::Text(text)) => {
                let channel = text.as_bytes().first()?.checked_sub(b'0')?;
                let data = BASE64_STANDARD.decode(text.get(1..)?).ok()?;
                Some((channel, data.into()))
            }
            _ => None,
        }
    }

    fn form(&self) -> EndForm {
        match self.has_status {
            true => EndForm::Status,
            false => EndForm::Text,
        }
    }
}

/// Calls `run` with the streams of a WebSocket. After `run` returns, the client has `farewell` to read the
/// remaining output and to close the connection.
pub(super) async fn session<S, F, R>(
    io: S,
    protocol: Protocol,
    options: CommandOptions,
    farewell: Duration,
    run: F,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    F: FnOnce(CommandStreams) -> R,
    R: Future<Output = Outcome>,
{
    let (mut sink, mut incoming) = start(io).await.split();
    let (outgoing, mut messages) = mpsc::channel::<Message>(WAITING);
    let (typed, stdin) = mpsc::channel(WAITING);
    let (resized, resize) = mpsc::channel(WAITING);
    let output = |channel| -> Output {
        Box::new(ChannelWriter {
            channel,
            protocol,
            outgoing: PollSender::new(outgoing.clone()),
        })
    };
    let input = |pieces| -> Input {
        Box::new(ChannelReader {
            pieces,
            rest: Bytes::new(),
        })
    };
    let streams = CommandStreams {
        stdin: options.stdin.then(|| input(stdin)),
        stdout: options.stdout.then(|| output(STDOUT)),
        stderr: options.stderr.then(|| output(STDERR)),
        resize,
    };
    let lowest = match (options.stdout, options.stderr) {
        (true, _) => STDOUT,
        (false, true) => STDERR,
        _ => ERROR,
    };
    let (over, is_over) = oneshot::channel();
    let working = async move {
        // An empty message shows the client that the session has begun.
        let _ = outgoing.send(protocol.message(lowest, b"")).await;
        let outcome = run(streams).await;
        let _ = over.send(());
        let last = outcome.message(protocol.form());
        if !last.is_empty() {
            let _ = outgoing.send(protocol.message(ERROR, &last)).await;
        }
        let _ = outgoing.send(goodbye()).await;
        Ok::<(), Error>(())
    };
    let writing = async {
        loop {
            let message = match tokio::time::timeout(PING, messages.recv()).await {
                Ok(Some(message)) => message,
                Ok(None) => return Ok::<(), Error>(()),
                Err(_) => Message::Ping(Bytes::new()),
            };
            let is_last = message.is_close();
            sink.send(message).await?;
            if is_last {
                return Ok(());
            }
        }
    };
    let reading = async {
        let mut typed = options.stdin.then_some(typed);
        let mut sizes = Sizes::default();
        while let Some(Ok(message)) = incoming.next().await {
            if matches!(message, Message::Close(_)) {
                return;
            }
            match protocol.read(message) {
                Some((STDIN, data)) if !data.is_empty() => {
                    if let Some(sender) = &typed
                        && sender.send(data).await.is_err()
                    {
                        // The command reads no more input.
                        typed = None;
                    }
                }
                Some((RESIZE, data)) => {
                    for size in sizes.take(&data) {
                        let _ = resized.send(size).await;
                    }
                }
                Some((CLOSE, data)) if protocol.has_close && *data == [STDIN] => typed = None,
                _ => {}
            }
        }
    };
    tokio::select! {
        () = reading => {}
        () = async {
            // A client that has left ends the session, even while the other direction waits for the command.
            if tokio::try_join!(working, writing).is_ok() {
                std::future::pending::<()>().await;
            }
        } => {}
        () = async {
            // A client that does not read also blocks the last messages.
            let _ = is_over.await;
            tokio::time::sleep(farewell).await;
        } => {}
    }
}

/// Writes bytes to a channel.
struct ChannelWriter {
    channel: u8,
    protocol: Protocol,
    outgoing: PollSender<Message>,
}

impl AsyncWrite for ChannelWriter {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let closed = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        ready!(self.outgoing.poll_reserve(cx)).map_err(closed)?;
        let piece = &bytes[..bytes.len().min(PIECE)];
        let message = self.protocol.message(self.channel, piece);
        self.outgoing.send_item(message).map_err(closed)?;
        Poll::Ready(Ok(piece.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::FAREWELL;
    use crate::command::tests::fill;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::protocol::Role;

    fn options() -> CommandOptions {
        let query = bareboat_server::request::query::Query::parse("stdin=1&stdout=1&stderr=1");
        CommandOptions::parse(&query.expect("a query"), "exec")
    }

    #[tokio::test]
    async fn input_ends_with_the_close_signal_and_the_status_comes_last() {
        let (client, server) = tokio::io::duplex(64 * 1024);
        let session = tokio::spawn(session(
            server,
            PROTOCOLS[0],
            options(),
            FAREWELL,
            |streams| async {
                let (mut stdin, mut stdout) =
                    (streams.stdin.expect("it"), streams.stdout.expect("it"));
                let mut all = Vec::new();
                stdin.read_to_end(&mut all).await.expect("input");
                stdout.write_all(&all).await.expect("output");
                Outcome::Exit(3)
            },
        ));
        let mut client = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
        for message in [&b"\0hello"[..], b"\0 world", &[CLOSE, STDIN]] {
            client
                .send(Message::binary(message))
                .await
                .expect("it is sent");
        }
        let mut read = Vec::new();
        while let Some(Ok(message)) = client.next().await {
            match message {
                Message::Binary(bytes) => read.push(bytes),
                Message::Close(_) => break,
                _ => {}
            }
        }
        assert_eq!(read[0], &[STDOUT][..]);
        assert_eq!(read[1], &b"\x01hello world"[..]);
        assert_eq!(read[2][0], ERROR);
        assert!(String::from_utf8_lossy(&read[2]).contains("NonZeroExitCode"));
        assert_eq!(read.len(), 3);
        drop(client);
        session.await.expect("it ends with the client");
    }

    #[tokio::test]
    async fn a_client_that_leaves_ends_the_command() {
        let (client, server) = tokio::io::duplex(1024);
        drop(client);
        session(server, PROTOCOLS[1], options(), FAREWELL, |_streams| {
            std::future::pending()
        })
        .await;
    }

    #[tokio::test]
    async fn a_client_that_leaves_while_its_input_is_not_read_ends_the_command() {
        let (client, server) = tokio::io::duplex(64 * 1024);
        let mut client = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
        for _ in 0..3 * WAITING {
            let sent = client.send(Message::binary(&b"\0hello"[..])).await;
            sent.expect("it is sent");
        }
        drop(client);
        let session = session(server, PROTOCOLS[1], options(), FAREWELL, |streams| async {
            let (_stdin, mut stdout) = (streams.stdin, streams.stdout.expect("it"));
            while stdout.write_all(b"more").await.is_ok() {}
            std::future::pending::<Outcome>().await
        });
        let ended = tokio::time::timeout(PING / 3, session).await;
        ended.expect("it ends with the client");
    }

    #[tokio::test]
    async fn a_client_that_stops_reading_does_not_keep_a_session_that_is_over() {
        let (_client, server) = tokio::io::duplex(64);
        let farewell = Duration::from_millis(10);
        let session = session(server, PROTOCOLS[0], options(), farewell, |streams| async {
            fill(&mut streams.stdout.expect("it")).await;
            Outcome::Exit(0)
        });
        let ended = tokio::time::timeout(Duration::from_secs(60), session).await;
        ended.expect("it ends");
    }

    #[test]
    fn base64_messages_start_with_a_digit() {
        let protocol = PROTOCOLS[2];
        let message = protocol.message(STDOUT, b"hi");
        assert_eq!(message, Message::text("1aGk="));
        let read = protocol.read(Message::text("0aGk="));
        assert_eq!(read, Some((STDIN, Bytes::from_static(b"hi"))));
        assert_eq!(protocol.read(Message::text("")), None);
        assert_eq!(protocol.read(Message::text("0é")), None);
    }

    #[test]
    fn the_first_known_protocol_of_the_client_is_chosen() {
        let choose = |offered: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            if let Some(offered) = offered {
                let value = http::HeaderValue::from_static(offered);
                headers.insert(http::header::SEC_WEBSOCKET_PROTOCOL, value);
            }
            Protocol::choose(&headers).map(|protocol| protocol.name)
        };
        let v4 = Some("x, v4.channel.k8s.io, v5.channel.k8s.io");
        assert_eq!(choose(v4), Ok("v4.channel.k8s.io"));
        assert_eq!(choose(None), Ok(""));
        assert!(choose(Some("v9.channel.k8s.io")).is_err());
    }
}
