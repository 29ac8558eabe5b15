//! What an annex finds when it is asked.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::Server;
use crate::authn::{Anonymous, AnonymousAccess};
use crate::reply::Body;
use crate::work;
use bareboat_api::AnonymousRule;
use bareboat_api::kind::User;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Says whether its work has a seat, which the server's own calls to other servers leave.
struct Seated;

impl Annex for Seated {
    fn claim(&self, _: &Method, info: &RequestInfo, _: &Query, _: &HeaderMap) -> Option<Claim> {
        info.path.starts_with("/seated/").then(|| Claim {
            info: info.clone(),
            authorizes: true,
            streams: info.path.ends_with("/stream"),
            judged: true,
        })
    }

    fn answer(&self, _: Visit) -> BoxFuture<'static, Result<Response, Status>> {
        Box::pin(async {
            let seated = work::seat().is_some();
            Ok(Response::new(Body::full(format!("seated: {seated}"))))
        })
    }
}

#[tokio::test]
async fn the_work_of_an_annex_has_the_seat_of_its_request() {
    let access = AnonymousAccess::new();
    access.set(AnonymousRule::Everywhere);
    let server = Server::builder().authenticator(Anonymous);
    let server = server.anonymous_access(&access).annex(Arc::new(Seated));
    let server = server.build().unwrap();
    let address = server.listen("127.0.0.1:0".parse().unwrap(), None);
    let address = address.await.unwrap();
    for (path, expected) in [
        ("/seated/x", "seated: true"),
        ("/seated/stream", "seated: false"),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with(expected), "{answer}");
    }
}

#[tokio::test]
async fn a_stream_of_an_annex_is_answered_while_the_server_stops() {
    let server = Server::builder().annex(Arc::new(Seated)).build().unwrap();
    server.state.ending.send_replace(true);
    let request = http::Request::get("/seated/stream").body(RequestBody::default());
    let answer = server.call(User::default(), request.unwrap()).await;
    assert_eq!(answer.status(), http::StatusCode::OK);
}
