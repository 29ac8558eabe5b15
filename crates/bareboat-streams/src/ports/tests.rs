//! Tests of port-forward with a client in memory.

use super::*;
use bareboat_spdy::Headers;
use bytes::Bytes;
use std::time::Duration;

/// Starts a server whose function answers with the port, and returns its client.
fn client() -> Connection {
    let (client, server) = tokio::io::duplex(4096);
    tokio::spawn(forward(server, |port, mut stream| async move {
        let text = format!("port {port}");
        let sent = stream.writer.send(text.into()).await;
        sent.map_err(|error| error.to_string())
    }));
    let (connection, _, driver) = Connection::new(client, Role::Client, Settings::default());
    tokio::spawn(driver.run());
    connection
}

async fn open(client: &Connection, kind: &str, id: usize) -> (StreamReader, StreamWriter) {
    let id = id.to_string();
    let headers = [("streamType", kind), ("port", "80"), ("requestID", &id)];
    let opened = client.open(Headers::of(&headers)).await;
    opened.expect("a stream").split()
}

/// Waits for the next bytes, with a time limit in case the server sends none.
async fn next(reader: &mut StreamReader) -> Option<Bytes> {
    let next = tokio::time::timeout(Duration::from_secs(60), reader.next()).await;
    next.expect("bytes or an end")
}

#[tokio::test]
async fn streams_are_paired_in_either_order() {
    let client = client();
    for (id, kinds) in [["error", "data"], ["data", "error"]].iter().enumerate() {
        let mut first = open(&client, kinds[0], id).await;
        let mut second = open(&client, kinds[1], id).await;
        let (error, data) = match id {
            0 => (&mut first.0, &mut second.0),
            _ => (&mut second.0, &mut first.0),
        };
        assert_eq!(next(data).await.as_deref(), Some(&b"port 80"[..]));
        assert_eq!(next(data).await, None);
        assert_eq!(next(error).await, None);
    }
}

#[tokio::test]
async fn a_pair_without_a_port_gets_an_error() {
    let client = client();
    let mut streams = Vec::new();
    for kind in ["error", "data"] {
        let headers = Headers::of(&[("streamType", kind), ("port", "0")]);
        streams.push(client.open(headers).await.expect("a stream").split());
    }
    let why = next(&mut streams[0].0).await;
    assert_eq!(why.as_deref(), Some(&b"the stream has no port"[..]));
}

#[tokio::test]
async fn the_seventeenth_stream_without_a_pair_ends() {
    let client = client();
    let mut waiting = Vec::new();
    for id in 0..16 {
        waiting.push(open(&client, "data", id).await);
    }
    let (mut refused, _writer) = open(&client, "data", 16).await;
    assert_eq!(next(&mut refused).await, None);
    // Earlier streams still wait for their pairs.
    let _error = open(&client, "error", 0).await;
    let answer = next(&mut waiting[0].0).await;
    assert_eq!(answer.as_deref(), Some(&b"port 80"[..]));
}
