//! Addresses are judged when they are dialled, and failures differ in words only for those who may know.

use super::*;
use crate::outbound::dial::Names;
use crate::outbound::reach::ReachSettings;
use parking_lot::Mutex;
use std::net::IpAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fn reaching(loopback: bool, causes: bool, lookups: &[&[&str]]) -> Outbound {
    let mut outbound = outbound_with(ReachSettings {
        loopback: Some(loopback),
        causes: Some(causes),
    });
    if !lookups.is_empty() {
        let parse =
            |ips: &&[&str]| -> Vec<IpAddr> { ips.iter().map(|ip| ip.parse().unwrap()).collect() };
        let lookups = lookups.iter().map(parse).collect();
        outbound.clients.names = Names::Given(Arc::new(Mutex::new(lookups)));
    }
    outbound
}

fn at(host: &str, port: u16, pem: &str) -> Destination {
    let url = format!("https://{host}:{port}/echo");
    Destination::new(&Address::Url(url), "", &BASE64_STANDARD.encode(pem)).unwrap()
}

#[tokio::test]
async fn a_name_is_judged_by_the_address_that_is_dialled() {
    let (certificate, pem, key) = self_signed(IsCa::NoCa);
    let peer = Peer::start(certificate, &key, false).await;
    let to = at("localhost", peer.port, &pem);
    // The answers of one name server, one for each connection.
    let loopback: &[&str] = &["127.0.0.1"];
    let cases: [(bool, &[&str], &str); 8] = [
        (true, loopback, "{}"),
        (true, &["169.254.169.254"], "link-local addresses"),
        (true, &["::ffff:169.254.169.254"], "link-local addresses"),
        (true, &["fd00:ec2::254"], "metadata services"),
        (true, &["0.0.0.0"], "unspecified addresses"),
        (false, loopback, "loopback addresses"),
        // The addresses that are refused are not dialled; the other one is.
        (true, &["169.254.169.254", "fe80::1", "127.0.0.1"], "{}"),
        (false, &["169.254.169.254", "::1"], "loopback addresses"),
    ];
    for (allowed, answer, expected) in cases {
        let outbound = reaching(allowed, true, &[answer]);
        let found = said(&outbound, &to, BOUNDS).await;
        assert!(found.contains(expected), "{answer:?}: {found}");
    }
    // A name that answers differently the second time.
    let outbound = reaching(true, true, &[loopback, &["169.254.169.254"]]);
    let first = outbound.send(&to, call(&to), Protocol::Best).await;
    assert_eq!(first.unwrap().0.status(), 200);
    let second = outbound.send(&to, call(&to), Protocol::Http1).await;
    let error = second.err().unwrap().to_string();
    assert!(error.contains("link-local addresses"), "{error}");
    assert_eq!(peer.connections.load(Ordering::Relaxed), 3);
}

fn call(to: &Destination) -> Request<RequestBody> {
    let body = RequestBody::Memory(Bytes::from_static(b"{}"));
    Request::post(&to.uri).body(body).unwrap()
}

#[tokio::test]
async fn the_server_does_not_call_itself_but_calls_what_its_operator_configured() {
    let (certificate, pem, key) = self_signed(IsCa::NoCa);
    let peer = Peer::start(certificate, &key, false).await;
    let outbound = reaching(false, true, &[]);
    let to = at("localhost", peer.port, &pem);
    let refused = said(&outbound, &to, BOUNDS).await;
    assert!(refused.contains("loopback addresses"), "{refused}");
    let trusted = to.clone().chosen_by(ChosenBy::Operator);
    assert_eq!(said(&outbound, &trusted, BOUNDS).await, "{}");
    // The connection of the operator's destination is not used for that of clients.
    let refused = said(&outbound, &to, BOUNDS).await;
    assert!(refused.contains("loopback addresses"), "{refused}");

    let outbound = reaching(true, true, &[]);
    outbound
        .reach
        .listens_on(([127, 0, 0, 1], peer.port).into());
    let own = said(&outbound, &at("127.0.0.1", peer.port, &pem), BOUNDS).await;
    assert!(own.contains("this server may not call itself"), "{own}");
}

#[tokio::test]
async fn no_redirect_is_followed() {
    let (certificate, pem, key) = self_signed(IsCa::NoCa);
    let peer = Peer::start(certificate, &key, false).await;
    for code in [301, 302, 303, 307, 308] {
        let to = peer.at(&format!("/redirect/{code}"), &pem);
        let found = said(&outbound(), &to, BOUNDS).await;
        let expected = format!("the server responded with the status code {code} but did not");
        assert!(found.starts_with(&expected), "{found}");
    }
}

/// A port that accepts connections and answers every one with these bytes.
async fn speaking(bytes: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 512]).await;
                let _ = stream.write_all(bytes).await;
            });
        }
    });
    port
}

#[tokio::test]
async fn clients_who_may_not_know_read_the_same_about_every_failure() {
    let (certificate, pem, key) = self_signed(IsCa::NoCa);
    let peer = Peer::start(certificate, &key, false).await;
    let closed = tokio::net::TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let plain = speaking(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    let alert = speaking(b"\x15\x03\x01\x00\x02\x02\x46").await;
    let (_, other, _) = self_signed(IsCa::NoCa);
    let short = Bounds {
        time: Duration::from_millis(300),
        ..BOUNDS
    };
    let cases = [
        at("localhost", closed.local_addr().unwrap().port(), &pem),
        at("localhost", plain, &pem),
        at("localhost", alert, &pem),
        at("localhost", peer.port, &other),
        at("169.254.169.254", 80, &pem),
        at("no-such-host.invalid", 443, &pem),
        peer.at("/redirect/302", &pem),
        peer.at("/large", &pem),
        peer.at("/hang", &pem),
        peer.at("/no", &pem),
    ];
    let outbound = reaching(true, false, &[]);
    for to in cases {
        let answer = outbound.post_json(&to, Bytes::new(), short).await;
        let message = outbound.disclose(&answer.unwrap_err());
        let sentence = "the call failed; the cause is in the log of the server under audit-id ";
        let id = message.strip_prefix(sentence).map(str::len);
        assert_eq!(id, Some(36), "{}: {message}", to.uri);
    }
}
