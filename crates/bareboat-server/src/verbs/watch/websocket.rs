//! A watch over a WebSocket: the handshake, one message per event, and the close.
//!
//! `body` produces the events. Messages from the client are read and dropped; its pings are answered.

use super::body::WatchBody;
use crate::authn::{subprotocols, wants_websocket};
use crate::connections::Streaming;
use crate::reply::{Body, Response, plain_text};
use crate::request::ask::Ask;
use crate::request::negotiate::Media;
use bytes::{Buf as _, Bytes};
use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderValue, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

/// How long the upgrade of the connection may take after the answer.
const HANDOVER: Duration = Duration::from_secs(30);
/// Timeout of the closing handshake.
const FAREWELL: Duration = Duration::from_secs(5);
/// Clients of a watch send pings and a close, which are at most 125 bytes.
const READ_BUFFER: usize = 4 * 1024;
/// A longer message from a client ends the watch.
const LONGEST_MESSAGE: usize = 64 * 1024;
/// Longer events bypass the buffer of the WebSocket, which grows to its longest message and never shrinks.
const BUFFERED: usize = 16 * 1024;

/// The connection and the handshake of a watch over a WebSocket.
pub(super) struct Upgrade {
    connection: OnUpgrade,
    key: HeaderValue,
    protocol: Option<HeaderValue>,
}

impl Upgrade {
    /// Parses the handshake: `None` for a plain stream, an error response for an invalid handshake.
    pub(super) fn of(ask: &Ask) -> Result<Option<Upgrade>, Box<Response>> {
        if !wants_websocket(&ask.headers) {
            return Ok(None);
        }
        // Requests from inside the process have no connection.
        let Some(connection) = ask.upgrade.clone() else {
            return Ok(None);
        };
        let bad = |text: &str| Box::new(plain_text(StatusCode::BAD_REQUEST, text));
        let Some(key) = ask.headers.get(header::SEC_WEBSOCKET_KEY) else {
            return Err(bad("mismatch challenge/response"));
        };
        let version = ask.headers.get(header::SEC_WEBSOCKET_VERSION);
        if version.is_none_or(|version| version != "13") {
            let mut response = bad("missing or bad WebSocket Version");
            let known = HeaderValue::from_static("13");
            (response.headers_mut()).insert(header::SEC_WEBSOCKET_VERSION, known);
            return Err(response);
        }
        // Upstream: golang.org/x/net/websocket, checkOrigin.
        let origin = ask.headers.get(header::ORIGIN);
        if origin.is_none_or(HeaderValue::is_empty) {
            return Err(Box::new(forbidden()));
        }
        let mut protocols = subprotocols(&ask.headers);
        let protocol = protocols.next();
        if protocols.next().is_some() {
            return Err(bad("missing or bad WebSocket protocol"));
        }
        Ok(Some(Upgrade {
            connection,
            key: key.clone(),
            protocol: protocol.and_then(|name| HeaderValue::from_str(name).ok()),
        }))
    }

    /// Answers 101 and sends the events once the connection is upgraded.
    pub(super) fn respond(self, events: WatchBody, media: Media) -> Response {
        let mut response = http::Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        if let Ok(accept) = HeaderValue::from_str(&derive_accept_key(self.key.as_bytes())) {
            headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
        }
        if let Some(protocol) = self.protocol {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        response.extensions_mut().insert(Streaming);
        tokio::spawn(serve(self.connection, events, media));
        response
    }
}

fn forbidden() -> Response {
    let mut response = http::Response::new(Body::empty());
    *response.status_mut() = StatusCode::FORBIDDEN;
    response
}

async fn serve(connection: OnUpgrade, events: WatchBody, media: Media) {
    let connection = match tokio::time::timeout(HANDOVER, connection).await {
        Ok(Ok(connection)) => TokioIo::new(connection),
        Ok(Err(error)) => {
            tracing::debug!(%error, "upgrade to a WebSocket failed");
            return;
        }
        Err(_) => return,
    };
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        .max_message_size(Some(LONGEST_MESSAGE))
        .max_frame_size(Some(LONGEST_MESSAGE));
    let mut socket = WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await;
    if let Err(error) = send_all(&mut socket, events, media).await {
        tracing::debug!(%error, "a watch over a WebSocket ended early");
        return;
    }
    let farewell = async {
        let normal = CloseFrame {
            code: CloseCode::Normal,
            reason: Utf8Bytes::default(),
        };
        // Fails if the client has closed already; otherwise the client answers it.
        let _ = socket.close(Some(normal)).await;
        while let Some(Ok(_)) = socket.next().await {}
        let _ = socket.get_mut().shutdown().await;
    };
    let _ = tokio::time::timeout(FAREWELL, farewell).await;
}

/// Sends events until the stream ends or the client closes.
async fn send_all<S>(
    socket: &mut WebSocketStream<S>,
    events: WatchBody,
    media: Media,
) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut events = std::pin::pin!(events);
    loop {
        tokio::select! {
            frame = events.frame() => {
                let Some(Ok(frame)) = frame else { return Ok(()) };
                let Ok(mut bytes) = frame.into_data() else { continue };
                while let Some(message) = next_message(&mut bytes, media) {
                    send(socket, message).await?;
                }
                socket.flush().await?;
            }
            message = socket.next() => match message {
                None | Some(Ok(Message::Close(_))) => return Ok(()),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error),
            },
        }
    }
}

/// Sends one event as one frame; a short one may stay in the buffer until the next flush.
async fn send<S>(socket: &mut WebSocketStream<S>, message: Message) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    if message.len() <= BUFFERED {
        return socket.feed(message).await;
    }
    // Earlier frames and answers to pings come first.
    socket.flush().await?;
    let opcode = match message.is_text() {
        true => OpCode::Data(Data::Text),
        false => OpCode::Data(Data::Binary),
    };
    let header = FrameHeader {
        opcode,
        ..FrameHeader::default()
    };
    let payload = message.into_data();
    let mut head = Vec::with_capacity(10);
    header.format(payload.len() as u64, &mut head)?;
    let connection = socket.get_mut();
    connection.write_all(&head).await?;
    connection.write_all(&payload).await?;
    Ok(())
}

/// Takes the first event out of a frame of the stream, which may hold several.
///
/// JSON events end with a newline and contain none; protobuf events have a length prefix, which is dropped.
fn next_message(frame: &mut Bytes, media: Media) -> Option<Message> {
    if media == Media::Protobuf {
        let length = frame.try_get_u32().ok()? as usize;
        return (length <= frame.len()).then(|| Message::Binary(frame.split_to(length)));
    }
    if frame.is_empty() {
        return None;
    }
    let end = frame.iter().position(|byte| *byte == b'\n');
    let event = frame.split_to(end.map_or(frame.len(), |end| end + 1));
    Utf8Bytes::try_from(event).ok().map(Message::Text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(frame: &'static [u8], media: Media) -> Vec<Message> {
        let mut frame = Bytes::from_static(frame);
        std::iter::from_fn(|| next_message(&mut frame, media)).collect()
    }

    #[test]
    fn a_frame_is_cut_into_one_message_per_event() {
        assert_eq!(
            messages(b"{\"a\":1}\n{\"b\":2}\n", Media::Json),
            [Message::text("{\"a\":1}\n"), Message::text("{\"b\":2}\n")]
        );
        assert_eq!(
            messages(b"\0\0\0\x02ab\0\0\0\x01c", Media::Protobuf),
            [Message::binary(&b"ab"[..]), Message::binary(&b"c"[..])]
        );
    }

    #[tokio::test]
    async fn short_and_long_events_arrive_in_order() {
        let (here, there) = tokio::io::duplex(4096);
        let texts = [10, BUFFERED, BUFFERED + 1, 70_000, 3].map(|length| "x".repeat(length));
        let sent = texts.clone();
        let sending = tokio::spawn(async move {
            let mut socket = WebSocketStream::from_raw_socket(here, Role::Server, None).await;
            for text in sent {
                send(&mut socket, Message::text(text.clone()))
                    .await
                    .unwrap();
                send(&mut socket, Message::binary(text)).await.unwrap();
            }
            socket.flush().await.unwrap();
        });
        let mut client = WebSocketStream::from_raw_socket(there, Role::Client, None).await;
        for text in texts {
            let expected = [Message::text(text.clone()), Message::binary(text)];
            for message in expected {
                assert_eq!(client.next().await.unwrap().unwrap(), message);
            }
        }
        sending.await.unwrap();
    }
}
