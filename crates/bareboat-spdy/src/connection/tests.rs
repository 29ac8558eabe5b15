//! Two ends of a connection over an in-memory pipe.

use super::*;
use crate::{Decoder, HeaderEncoder, ResetCode, encode};
use bytes::BytesMut;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::DuplexStream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fn pair(settings: Settings) -> (Connection, Connection, Incoming) {
    let (one, two) = tokio::io::duplex(4 * 1024);
    let (client, _, driver) = Connection::new(one, Role::Client, Settings::default());
    tokio::spawn(driver.run());
    let (server, incoming, driver) = Connection::new(two, Role::Server, settings);
    tokio::spawn(driver.run());
    (client, server, incoming)
}

/// Lets the tasks of this thread run until all of them wait, and returns the count.
async fn settled(count: &AtomicUsize) -> usize {
    let (mut seen, mut rounds) = (0, 0);
    while rounds < 1000 {
        tokio::task::yield_now().await;
        rounds += 1;
        let now = count.load(Ordering::Relaxed);
        if now != seen {
            (seen, rounds) = (now, 0);
        }
    }
    seen
}

/// A server whose peer is a bare pipe of 64 bytes with one open stream.
struct Narrow {
    raw: DuplexStream,
    server: Connection,
    writer: StreamWriter,
    driving: tokio::task::JoinHandle<Result<(), SpdyError>>,
    /// The start of what the server wrote: the beginning of a write that waits for its peer.
    read: BytesMut,
}

/// Sends bytes on a stream until the driver waits in the middle of them.
async fn narrow(farewell: Duration, sent: &[u8]) -> Narrow {
    let (mut raw, io) = tokio::io::duplex(64);
    let settings = Settings {
        farewell,
        ..Settings::default()
    };
    let (server, mut incoming, driver) = Connection::new(io, Role::Server, settings);
    let driving = tokio::spawn(driver.run());
    raw.write_all(&opening(1)).await.expect("it is sent");
    let (_, mut writer) = incoming.next().await.expect("a stream").split();
    let bytes = Bytes::copy_from_slice(sent);
    writer.send(bytes).await.expect("it is queued");
    let mut read = BytesMut::new();
    while read.len() < 256 {
        raw.read_buf(&mut read).await.expect("a part");
    }
    Narrow {
        raw,
        server,
        writer,
        driving,
        read,
    }
}

/// The first frame of a stream.
fn opening(stream: u32) -> BytesMut {
    let frame = Frame::SynStream {
        stream,
        headers: Headers::default(),
        fin: false,
        unidirectional: false,
    };
    let mut bytes = BytesMut::new();
    encode(&frame, &mut HeaderEncoder::default(), &mut bytes);
    bytes
}

#[tokio::test]
async fn a_peer_that_ends_in_the_middle_of_a_write_gets_the_rest() {
    let sent: Vec<u8> = (0..64 * 1024u32).map(|n| (n / 251) as u8).collect();
    let mut narrow = narrow(Duration::from_secs(300), &sent).await;
    narrow.raw.shutdown().await.expect("it ends");
    let mut bytes = narrow.read;
    while narrow.raw.read_buf(&mut bytes).await.expect("the rest") > 0 {}
    let (mut decoder, mut arrived) = (Decoder::default(), Vec::new());
    while let Some(frame) = decoder.next(&mut bytes).expect("valid frames") {
        if let Frame::Data { data, .. } = frame {
            arrived.extend_from_slice(&data);
        }
    }
    assert_eq!(arrived.len(), sent.len());
    assert!(arrived == sent, "bytes changed on the way");
    let driven = narrow.driving.await.expect("it runs");
    driven.expect("it ends with the peer");
}

#[tokio::test]
async fn a_peer_that_stops_reading_does_not_keep_a_closed_connection() {
    let mut narrow = narrow(Duration::from_millis(10), &[7; 64 * 1024]).await;
    for _ in 0..OUTGOING {
        let sending = narrow.writer.send(Bytes::from_static(b"more"));
        sending.await.expect("it is queued");
    }
    narrow.server.close();
    let driven = tokio::time::timeout(Duration::from_secs(60), narrow.driving).await;
    let driven = driven.expect("it ends").expect("it runs");
    assert!(matches!(driven, Err(SpdyError::Timeout)), "{driven:?}");
}

#[tokio::test]
async fn bytes_pass_both_ways_and_each_way_ends_alone() {
    let (client, _server, mut incoming) = pair(Settings::default());
    let opening = client.open(Headers::of(&[("streamtype", "stdin")]));
    let stream = opening.await.expect("a stream");
    let other = incoming.next().await.expect("the same stream");
    assert_eq!(other.headers().get("streamType"), Some("stdin"));
    let (mut from_server, mut to_server) = stream.split();
    let (mut from_client, mut to_client) = other.split();
    let big: Vec<u8> = (0..200_000u32).map(|n| n as u8).collect();
    let sent = big.clone();
    let sending = tokio::spawn(async move {
        to_server.write_all(&sent).await.expect("it is sent");
        to_server.shutdown().await.expect("it ends");
        to_server
    });
    let mut read = Vec::new();
    from_client
        .read_to_end(&mut read)
        .await
        .expect("it arrives");
    assert_eq!(read, big);
    to_client
        .send(Bytes::from_static(b"after"))
        .await
        .expect("the other way is open");
    to_client.finish().await.expect("it ends");
    assert_eq!(from_server.next().await.as_deref(), Some(&b"after"[..]));
    assert_eq!(from_server.next().await, None);
    let _ = sending.await;
    assert!(client.shared.table.lock().streams.is_empty());
}

#[tokio::test]
async fn a_reset_ends_both_ways() {
    let (client, _server, mut incoming) = pair(Settings::default());
    let stream = client.open(Headers::default()).await.expect("a stream");
    let (_, mut other) = incoming.next().await.expect("it").split();
    other.reset(ResetCode::Cancel).await;
    let (mut reader, mut writer) = stream.split();
    assert_eq!(reader.next().await, None);
    writer.dead().await;
    assert!(writer.send(Bytes::from_static(b"x")).await.is_err());
}

#[tokio::test]
async fn streams_beyond_the_limit_are_refused() {
    let settings = Settings {
        most_streams: 1,
        ..Settings::default()
    };
    let (client, _server, mut incoming) = pair(settings);
    let first = client.open(Headers::default()).await.expect("a stream");
    let _held = incoming.next().await;
    let second = client.open(Headers::default()).await;
    assert!(matches!(second, Err(SpdyError::Reset(ResetCode::Refused))));
    drop(first);
}

#[tokio::test]
async fn closing_ends_the_streams_of_the_peer() {
    let (client, server, mut incoming) = pair(Settings::default());
    let stream = client.open(Headers::default()).await.expect("a stream");
    let (_, mut writer) = incoming.next().await.expect("it").split();
    writer
        .send(Bytes::from_static(b"last"))
        .await
        .expect("it is sent");
    server.close();
    let (mut reader, _writer) = stream.split();
    assert_eq!(reader.next().await.as_deref(), Some(&b"last"[..]));
    assert_eq!(reader.next().await, None);
    client.closed().await;
    assert!(client.open(Headers::default()).await.is_err());
}

#[tokio::test]
async fn a_slow_reader_stops_the_sender() {
    let (client, _server, mut incoming) = pair(Settings::default());
    let (_, mut writer) = client
        .open(Headers::default())
        .await
        .expect("a stream")
        .split();
    let (mut reader, _other) = incoming.next().await.expect("it").split();
    let sent = Arc::new(AtomicUsize::new(0));
    let count = sent.clone();
    let sending = tokio::spawn(async move {
        for _ in 0..200 {
            let piece = Bytes::from(vec![7; 16 * 1024]);
            writer.send(piece).await.expect("it is sent");
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    let early = settled(&sent).await;
    assert!(
        (OUTGOING..60).contains(&early),
        "{early} pieces were taken without a reader"
    );
    let mut bytes = 0;
    while let Some(piece) = reader.next().await {
        bytes += piece.len();
    }
    assert_eq!(bytes, 200 * 16 * 1024);
    sending.await.expect("it ends");
}

#[tokio::test]
async fn a_wrong_stream_id_ends_the_connection() {
    let (mut raw, io) = tokio::io::duplex(4 * 1024);
    let (_server, mut incoming, driver) = Connection::new(io, Role::Server, Settings::default());
    raw.write_all(&opening(2)).await.expect("it is sent");
    assert!(matches!(driver.run().await, Err(SpdyError::Protocol(_))));
    assert!(incoming.next().await.is_none());
}
