//! What functions find that answer writes, and whole groups.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::authn::{Anonymous, AnonymousAccess};
use crate::authz::AllowAll;
use crate::reply::Body;
use crate::work;
use crate::{Connector, Server};
use bareboat_api::AnonymousRule;
use bareboat_api::kind::{
    BoxFuture, Names, PublishedSchema, ReadFilter, Reader, Scope, User, Visibility,
};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Says whether its work has a seat, which the server's own calls to other servers leave.
async fn seated(_: Visit) -> Result<Response, Status> {
    let seated = work::seat().is_some();
    Ok(Response::new(Body::full(format!("seated: {seated}"))))
}

/// Counts how often it is asked for a request with a seat.
#[derive(Default)]
struct Counts(AtomicUsize);

impl ReadFilter for Counts {
    fn visibility<'a>(&'a self, _: &'a Reader<'a>) -> BoxFuture<'a, Visibility> {
        Box::pin(async {
            if work::seat().is_some() {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
            Visibility::All
        })
    }
}

async fn ask(address: SocketAddr, method: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn the_work_of_functions_has_the_seat_of_its_request() {
    let access = AnonymousAccess::new();
    access.set(AnonymousRule::Everywhere);
    let version = crate::openapi::sample::version("v1", PublishedSchema::Untyped, Vec::new());
    let names = Names::new("things", "Thing");
    let mut kind = Kind::new("example.com", names, Scope::Cluster).into_custom();
    let counts = Arc::new(Counts::default());
    kind.reader = Some(counts.clone());
    let server = Server::builder().authenticator(Anonymous);
    let server = server.anonymous_access(&access).authorizer(AllowAll);
    let server = server.kind(kind.with_version(version));
    let server = server.writes("example.com", "things", Connector::program(seated));
    let server = server.computed(Computed::group("tides.example.com", &["v1"], seated));
    let server = server.build().unwrap();
    let address = server.listen("127.0.0.1:0".parse().unwrap(), None);
    let address = address.await.unwrap();

    let things = "/apis/example.com/v1/things";
    let body = r#"{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}}"#;
    let body = RequestBody::Memory(body.into());
    let stored = http::Request::post(things).header("content-type", "application/json");
    let stored = server.call_store(User::default(), stored.body(body).unwrap());
    assert_eq!(stored.await.status(), http::StatusCode::CREATED);

    let thing = format!("{things}/a");
    let harbour = "/apis/tides.example.com/v1/harbours/north";
    for (method, path) in [("DELETE", thing.as_str()), ("POST", harbour)] {
        let answer = ask(address, method, path).await;
        assert!(answer.ends_with("seated: true"), "{answer}");
    }
    assert_eq!(counts.0.load(Ordering::Relaxed), 1);
}
