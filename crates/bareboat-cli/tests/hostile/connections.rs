//! Connections that cost nothing to open: they do not block other clients, and are closed when idle.

use crate::http2::{Streams, read, wait_for};
use crate::process::PATIENCE;
use crate::victim::Victim;
use std::time::{Duration, Instant};

#[test]
fn silent_sockets_do_not_block_other_clients() {
    let victim = Victim::with_files(256);
    victim.attack(1, |_| {
        // The server may refuse them; other clients do not wait for them.
        let held: Vec<_> = (0..400).flat_map(|_| victim.stranger.socket()).collect();
        assert!(
            held.len() > 256,
            "the attack needs more sockets than the server may open"
        );
        std::thread::sleep(Duration::from_secs(3));
    });
}

#[test]
fn heads_without_end_are_refused() {
    let victim = Victim::start(&[]);
    victim.attack(4, |_| {
        let filler = format!("X-Filler: {}", "x".repeat(60_000));
        let headers = vec![filler.as_str(); 40];
        let Ok(mut connection) = victim.stranger.connect() else {
            return;
        };
        // 2.4 MB of headers: refused by an answer or by closing the connection.
        let sent = connection.send_with("GET", "/api", "", &headers, b"");
        if let Ok(answer) = sent.and_then(|()| connection.receive()) {
            assert_eq!(answer.code, 431, "{}", answer.text());
        }
    });
}

#[test]
fn an_unauthenticated_http2_connection_is_closed() {
    let victim = Victim::start(&[]);
    let attack = async || {
        let mut streams = Streams::open(&victim.stranger).await;
        let answer = streams
            .get("/api/v1/namespaces", "application/json")
            .await
            .unwrap();
        assert_eq!(answer.status(), 401);
        read(answer).await.unwrap();
        let deadline = Instant::now() + PATIENCE;
        while !streams.is_over() {
            assert!(
                Instant::now() < deadline,
                "the server keeps the connection of a stranger"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    victim.attack(1, |_| wait_for(attack()));
}

#[test]
fn idle_http2_connections_without_credentials_are_closed() {
    let victim = Victim::start(&[]);
    let attack = async || {
        let mut held = Vec::new();
        for at in 0..6 {
            let mut streams = Streams::open(&victim.stranger).await;
            // Some ask for health, which needs no credentials; the others send no request at all.
            if at % 2 == 0 {
                let health = streams.get("/livez", "*/*").await.unwrap();
                assert_eq!(health.status(), 200);
                read(health).await.unwrap();
            }
            held.push(streams);
        }
        let deadline = Instant::now() + PATIENCE;
        while !held.iter().all(Streams::is_over) {
            assert!(
                Instant::now() < deadline,
                "the server keeps idle connections of strangers"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    victim.attack(1, |_| wait_for(attack()));
}
