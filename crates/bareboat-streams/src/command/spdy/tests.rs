//! Tests of sessions over SPDY, with a client in memory.

use super::*;
use crate::command::FAREWELL;
use crate::command::tests::fill;
use bareboat_spdy::Headers;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fn options(query: &str) -> CommandOptions {
    let query = bareboat_server::request::query::Query::parse(query);
    CommandOptions::parse(&query.expect("a query"), "exec")
}

#[tokio::test]
async fn a_command_sees_its_streams_and_the_client_its_code() {
    let (client, server) = tokio::io::duplex(4096);
    let options = options("stdin=1&stdout=1&tty=1");
    let command = |mut streams: CommandStreams| async move {
        let size = streams.resize.recv().await.expect("a size");
        let (mut stdin, mut stdout) = (streams.stdin.expect("it"), streams.stdout.expect("it"));
        let mut all = Vec::new();
        stdin.read_to_end(&mut all).await.expect("input");
        let text = format!("{}x{} {}", size.width, size.height, all.len());
        stdout.write_all(text.as_bytes()).await.expect("output");
        Outcome::Exit(1)
    };
    let session = tokio::spawn(session(
        server,
        Some("v4.channel.k8s.io"),
        options,
        FAREWELL,
        command,
    ));
    let (connection, _, driver) = Connection::new(client, Role::Client, Settings::default());
    tokio::spawn(driver.run());
    let open = async |kind: &str| {
        let headers = Headers::of(&[("streamType", kind)]);
        connection.open(headers).await.expect("a stream").split()
    };
    let (mut error, _e) = open("error").await;
    let (mut input_end, mut stdin) = open("stdin").await;
    let (mut stdout, _o) = open("stdout").await;
    let (_r, mut resize) = open("resize").await;
    resize
        .send("{\"Width\":80,\"Height\":24}\n".into())
        .await
        .expect("sent");
    stdin.send(vec![1; 100_000].into()).await.expect("sent");
    let early = tokio::time::timeout(std::time::Duration::from_millis(50), input_end.next());
    assert!(
        early.await.is_err(),
        "the input is closed while the command reads"
    );
    stdin.finish().await.expect("sent");
    let mut text = String::new();
    stdout.read_to_string(&mut text).await.expect("output");
    assert_eq!(text, "80x24 100000");
    let status = error.next().await.expect("a status");
    assert!(String::from_utf8_lossy(&status).contains("NonZeroExitCode"));
    connection.close();
    session.await.expect("it ends with the client");
}

#[tokio::test]
async fn a_client_that_stops_reading_does_not_keep_a_session_that_is_over() {
    let (client, server) = tokio::io::duplex(4096);
    let command = |streams: CommandStreams| async {
        fill(&mut streams.stdout.expect("it")).await;
        Outcome::Exit(0)
    };
    let farewell = Duration::from_millis(10);
    let options = options("stdout=1");
    let session = tokio::spawn(session(server, None, options, farewell, command));
    let (connection, _, driver) = Connection::new(client, Role::Client, Settings::default());
    tokio::spawn(driver.run());
    let mut unread = Vec::new();
    for kind in ["error", "stdout"] {
        let headers = Headers::of(&[("streamType", kind)]);
        unread.push(connection.open(headers).await.expect("a stream"));
    }
    let ended = tokio::time::timeout(Duration::from_secs(60), session).await;
    ended.expect("it ends").expect("it runs");
}
