//! Tunnels between pipes: how the second direction ends after the first.

use super::*;
use tokio::io::{DuplexStream, duplex, split};
use tokio::time::{Instant, timeout};

/// Only one of the limits matters to a test; the other one is longer than it.
const LONG: Duration = Duration::from_secs(300);
const SHORT: Duration = Duration::from_millis(10);

/// Copies between two connections until the tunnel ends by itself.
async fn tunnel(client: DuplexStream, backend: DuplexStream, patience: Patience) -> bool {
    let (mut client, mut backend) = (split(client), split(backend));
    let copying = copy_both(&mut client, &mut backend, patience);
    let copied = timeout(LONG / 3, copying).await;
    copied.expect("the tunnel ends").is_ok()
}

#[tokio::test]
async fn the_last_bytes_of_a_backend_that_stops_reading_arrive() {
    let (mut kubectl, client) = duplex(1 << 20);
    let (mut kubelet, backend) = duplex(64);
    // More than the kubelet ever reads.
    kubectl.write_all(&[b'x'; 4096]).await.unwrap();
    kubelet.write_all(b"done").await.unwrap();
    drop(kubelet);
    let patience = Patience {
        farewell: LONG,
        silence: LONG,
    };
    assert!(!tunnel(client, backend, patience).await);
    let mut answer = Vec::new();
    kubectl.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, b"done");
}

#[tokio::test]
async fn a_client_does_not_keep_a_tunnel_whose_backend_has_ended() {
    let (mut kubectl, client) = duplex(1 << 20);
    let (mut kubelet, backend) = duplex(64);
    kubectl.write_all(&[b'x'; 4096]).await.unwrap();
    kubelet.write_all(b"done").await.unwrap();
    // It does not read either, but the connection stays open.
    kubelet.shutdown().await.unwrap();
    let patience = Patience {
        farewell: SHORT,
        silence: LONG,
    };
    assert!(tunnel(client, backend, patience).await);
    let mut answer = Vec::new();
    kubectl.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, b"done");
}

#[tokio::test]
async fn a_client_that_has_sent_everything_gets_the_output_of_its_command() {
    let (mut kubectl, client) = duplex(64);
    let (mut kubelet, backend) = duplex(64);
    kubectl.write_all(b"input").await.unwrap();
    kubectl.shutdown().await.unwrap();
    let command = tokio::spawn(async move {
        let mut input = Vec::new();
        kubelet.read_to_end(&mut input).await.unwrap();
        // More than the pipes hold.
        kubelet.write_all(&[b'y'; 4096]).await.unwrap();
        kubelet.write_all(&input).await.unwrap();
    });
    let patience = Patience {
        farewell: SHORT,
        silence: LONG,
    };
    let reading = tokio::spawn(async move {
        let mut answer = Vec::new();
        kubectl.read_to_end(&mut answer).await.unwrap();
        answer
    });
    assert!(tunnel(client, backend, patience).await);
    command.await.unwrap();
    assert_eq!(
        reading.await.unwrap(),
        [&[b'y'; 4096][..], b"input"].concat()
    );
}

#[tokio::test]
async fn a_silent_backend_does_not_keep_a_tunnel_whose_client_has_ended() {
    let (mut kubectl, client) = duplex(64);
    let (_kubelet, backend) = duplex(64);
    kubectl.shutdown().await.unwrap();
    let patience = Patience {
        farewell: LONG,
        silence: SHORT,
    };
    assert!(tunnel(client, backend, patience).await);
}

#[tokio::test]
async fn every_byte_starts_the_silence_anew() {
    let count = AtomicU64::new(0);
    let start = Instant::now();
    let sending = async {
        while start.elapsed() < 20 * SHORT {
            count.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        // In this order there is always a byte between two looks at the count.
        biased;
        () = sending => {}
        () = silence(&count, SHORT) => panic!("bytes were sent all the time"),
    }
}
