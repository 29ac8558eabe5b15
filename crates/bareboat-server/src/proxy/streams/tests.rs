//! Answers of other servers while this one stops.
#![allow(clippy::unwrap_used)]

use crate::authn::{Anonymous, AnonymousAccess};
use crate::request::info::RequestInfo;
use crate::request::query::Query;
use crate::{Annex, Claim, Server, Upstream, UpstreamTrust, Visit, reply::Response};
use bareboat_api::kind::BoxFuture;
use bareboat_api::{AnonymousRule, Status};
use http::{HeaderMap, Method};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Lets another server answer.
struct Forwards(Upstream);

impl Annex for Forwards {
    fn claim(&self, _: &Method, info: &RequestInfo, _: &Query, _: &HeaderMap) -> Option<Claim> {
        info.path.starts_with("/away/").then(|| Claim {
            info: info.clone(),
            authorizes: true,
            streams: info.path.ends_with("/stream"),
            judged: true,
        })
    }

    fn answer(&self, visit: Visit) -> BoxFuture<'static, Result<Response, Status>> {
        let to = self.0.clone();
        Box::pin(async move { visit.calls.forward(&to, "/", visit.request).await })
    }
}

/// Reads up to a text, or to the end.
async fn read(from: &mut TcpStream, up_to: &str) -> String {
    let mut read = Vec::new();
    while !read.ends_with(up_to.as_bytes()) {
        match from.read_u8().await {
            Ok(byte) => read.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(read).unwrap()
}

#[tokio::test]
async fn an_answer_without_a_length_is_completed_while_the_server_stops_and_a_stream_is_not() {
    for (path, completed) in [("/away/x", true), ("/away/stream", false)] {
        let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", other.local_addr().unwrap());
        let (trust, patience) = (UpstreamTrust::System, Duration::from_secs(300));
        let to = Upstream::new(&url, &trust, None, patience, &Arc::default());
        let access = AnonymousAccess::new();
        access.set(AnonymousRule::Everywhere);
        let server = Server::builder().authenticator(Anonymous);
        let server = server.anonymous_access(&access);
        let server = server.annex(Arc::new(Forwards(to))).build().unwrap();
        let address = server.listen("127.0.0.1:0".parse().unwrap(), None);
        let mut client = TcpStream::connect(address.await.unwrap()).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        let (mut other, _) = other.accept().await.unwrap();
        read(&mut other, "\r\n\r\n").await;
        let begun = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n";
        other.write_all(begun.as_bytes()).await.unwrap();
        let seen = read(&mut client, "first\r\n").await;
        assert!(seen.ends_with("first\r\n"), "{seen}");

        server.state.ending.send_replace(true);
        if completed {
            other.write_all(b"4\r\nlast\r\n0\r\n\r\n").await.unwrap();
        }
        let rest = read(&mut client, "0\r\n\r\n").await;
        let expected = if completed {
            "4\r\nlast\r\n0\r\n\r\n"
        } else {
            ""
        };
        assert_eq!(rest, expected, "{path}");
    }
}
