//! Seats: clients that take their time keep nobody from working.

use crate::socket::{As, Connection, tls};
use crate::support::*;
use bareboat_testing::TestServer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const WRITERS: usize = 2;

#[tokio::test]
async fn clients_that_stall_in_the_middle_of_a_body_keep_nobody_from_writing() {
    let server = TestServer::builder()
        .with(|builder| builder.max_in_flight(WRITERS, WRITERS))
        .listening()
        .start()
        .await;
    let mut stalled = Vec::new();
    for number in 0..WRITERS * 10 {
        let body = config_map(&format!("slow-{number}")).to_string();
        let (early, late) = body.split_at(body.len() / 2);
        let mut stream = tls(&server, As::Admin, "http/1.1").await;
        let head = format!(
            "POST {MAPS} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // The server asks for the body when it begins to wait for it.
        let mut asked = [0; 25];
        soon(stream.read_exact(&mut asked)).await.unwrap();
        assert!(asked.starts_with(b"HTTP/1.1 100 Continue"), "{asked:?}");
        stream.write_all(early.as_bytes()).await.unwrap();
        stalled.push((stream, late.to_owned()));
    }
    let mut connection = Connection::http1(&server, As::Admin).await;
    for number in 0..5 {
        let body = config_map(&format!("quick-{number}")).to_string();
        let answer = connection.send("POST", MAPS, &[], body).await;
        answer.expect(201);
    }
    // Whoever was slow is served when the rest arrives.
    for (mut stream, late) in stalled {
        stream.write_all(late.as_bytes()).await.unwrap();
        let mut answer = [0; 20];
        soon(stream.read_exact(&mut answer)).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 201"), "{answer:?}");
    }
}
