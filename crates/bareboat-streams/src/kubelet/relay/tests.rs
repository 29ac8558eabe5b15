//! Tests of a session with a kubelet in memory.

use super::*;
use tokio::io::duplex;
use tokio::sync::mpsc;

#[tokio::test]
async fn a_client_that_stops_reading_does_not_keep_a_session_whose_kubelet_has_left() {
    let (kubelet, io) = duplex(64 * 1024);
    let (connection, mut incoming, driver) =
        Connection::new(kubelet, Role::Server, Settings::default());
    tokio::spawn(driver.run());
    tokio::spawn(async move {
        let (_, mut error) = incoming.next().await.expect("the error").split();
        let (_, mut stdout) = incoming.next().await.expect("the output").split();
        stdout.send(vec![7; 1024].into()).await.expect("it is sent");
        error.send("{}".into()).await.expect("it is sent");
        connection.close();
        connection.closed().await;
    });
    let query = bareboat_server::request::query::Query::parse("stdout=1");
    let options = CommandOptions::parse(&query.expect("a query"), "exec");
    let (_unread, output) = duplex(64);
    let (_resized, resize) = mpsc::channel(1);
    let streams = CommandStreams {
        stdin: None,
        stdout: Some(Box::new(output)),
        stderr: None,
        resize,
    };
    let session = over(io, options, streams, Duration::from_millis(10));
    let outcome = tokio::time::timeout(Duration::from_secs(60), session).await;
    let outcome = outcome.expect("it ends");
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
}
