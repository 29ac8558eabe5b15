//! Two ends of a connection over an in-memory pipe.

use super::*;
use crate::ResetCode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fn pair(settings: Settings) -> (Connection, Connection, Incoming) {
    let (one, two) = tokio::io::duplex(4 * 1024);
    let (client, _, driver) = Connection::new(one, Role::Client, Settings::default());
    tokio::spawn(driver.run());
    let (server, incoming, driver) = Connection::new(two, Role::Server, settings);
    tokio::spawn(driver.run());
    (client, server, incoming)
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
    let sent = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = sent.clone();
    let sending = tokio::spawn(async move {
        for _ in 0..200 {
            let piece = Bytes::from(vec![7; 16 * 1024]);
            writer.send(piece).await.expect("it is sent");
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let early = sent.load(std::sync::atomic::Ordering::Relaxed);
    assert!(early < 60, "{early} pieces were taken without a reader");
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
    let (mut encoder, mut bytes) = (crate::HeaderEncoder::default(), bytes::BytesMut::new());
    let frame = Frame::SynStream {
        stream: 2,
        headers: Headers::default(),
        fin: false,
        unidirectional: false,
    };
    crate::encode(&frame, &mut encoder, &mut bytes);
    raw.write_all(&bytes).await.expect("it is sent");
    assert!(matches!(driver.run().await, Err(SpdyError::Protocol(_))));
    assert!(incoming.next().await.is_none());
}
