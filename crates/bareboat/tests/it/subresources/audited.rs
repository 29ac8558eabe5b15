//! Audit events of connections at start and end.

use super::streams::until;
use super::*;
use crate::audit::{Log, stages};
use crate::socket::tls;
use tokio::io::AsyncWriteExt as _;

#[tokio::test]
async fn a_tunnel_is_complete_when_it_is_closed() {
    let log = Log::new(
        "[{level: RequestResponse, resources: [{group: vms.example.com, resources: ['machines/*']}]}]",
    );
    let (callers, builder) = builder();
    let backend = TestBackend::start(&callers, Speaks::Http1).await;
    let server = log.of(builder).listening().start().await;
    define(&server, &declared(&backend)).await;
    let mut stream = tls(&server, As::Nobody, "http/1.1").await;
    let head = format!(
        "GET {ONE}/console/vnc?do=upgrade HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
         audit-id: tunnel\r\nauthorization: Bearer secret-of-jane\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    until(&mut stream, "hello ").await;
    let events = log.events("tunnel");
    assert_eq!(stages(&events), ["RequestReceived", "ResponseStarted"]);
    assert_eq!(events[1]["user"]["username"], "jane");
    assert_eq!(events[1]["responseStatus"]["code"], 101);
    assert_eq!(events[1]["objectRef"]["subresource"], "console");
    stream.shutdown().await.unwrap();
    drop(stream);
    let events = log.eventually("tunnel", 3).await;
    assert_eq!(events[2]["stage"], "ResponseComplete");
    assert!(!log.text().contains("secret-of-jane"));
}
