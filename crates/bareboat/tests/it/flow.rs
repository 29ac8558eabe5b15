//! Seats: slow clients do not block other clients.

use crate::socket::{As, Connection, tls};
use crate::support::*;
use bareboat::ServerBuilder;
use bareboat::prelude::AllowAll;
use bareboat_testing::TestServer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const WRITERS: usize = 2;

#[tokio::test]
async fn clients_that_stall_in_a_body_do_not_block_writes() {
    stall(|builder| builder.without_flow_control()).await;
}

#[tokio::test]
async fn stalled_clients_do_not_block_writes_with_priority_and_fairness() {
    stall(|builder| builder).await;
}

/// Stalls clients of a user that is not exempt while other clients write.
async fn stall(with: fn(ServerBuilder) -> ServerBuilder) {
    let server = TestServer::builder()
        .with(move |builder| with(builder.max_in_flight(WRITERS, WRITERS).authorizer(AllowAll)))
        .token("ann-token", "ann", &[])
        .listening()
        .start()
        .await;
    let mut stalled = Vec::new();
    for number in 0..WRITERS * 10 {
        let body = config_map(&format!("slow-{number}")).to_string();
        let (early, late) = body.split_at(body.len() / 2);
        let mut stream = tls(&server, As::Nobody, "http/1.1").await;
        let head = format!(
            "POST {MAPS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ann-token\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // The server sends 100 Continue when it starts to wait for the body.
        let mut asked = [0; 25];
        soon(stream.read_exact(&mut asked)).await.unwrap();
        assert!(asked.starts_with(b"HTTP/1.1 100 Continue"), "{asked:?}");
        stream.write_all(early.as_bytes()).await.unwrap();
        stalled.push((stream, late.to_owned()));
    }
    let mut connection = Connection::http1(&server, As::Nobody).await;
    let ann = [("authorization", "Bearer ann-token")];
    for number in 0..5 {
        let body = config_map(&format!("quick-{number}")).to_string();
        let answer = connection.send("POST", MAPS, &ann, body).await;
        answer.expect(201);
    }
    // The slow clients are served when the rest arrives.
    for (mut stream, late) in stalled {
        stream.write_all(late.as_bytes()).await.unwrap();
        let mut answer = [0; 20];
        soon(stream.read_exact(&mut answer)).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 201"), "{answer:?}");
    }
}
