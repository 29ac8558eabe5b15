//! Hooks at start and stop, and tasks.

use crate::calls::send;
use bareboat::prelude::*;
use bareboat::server::authn::Peer;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

#[tokio::test]
async fn hooks_run_around_the_life_of_a_server() {
    let said = Arc::new(Mutex::new(Vec::new()));
    let say = |text: &'static str| {
        let said = said.clone();
        move || said.lock().unwrap().push(text)
    };
    let (go, wait) = oneshot::channel::<()>();
    let (ended, stopped) = (say("task ended"), say("stopped"));
    let server = Server::builder()
        .authorizer(AllowAll)
        .on_start("fill", |_| async move {
            wait.await.map_err(|_| "nothing to fill")
        })
        .task(|_, stopping| async move {
            stopping.begun().await;
            ended();
        })
        .on_stop("last", |_| async move { stopped() })
        .build()
        .unwrap();
    let ready = async || send(&server, "ada", "GET", "/readyz", None).await.0;
    assert_eq!(ready().await, 500, "it has not been started");
    server.start();
    server.start();
    assert_eq!(ready().await, 500, "the hook waits");
    go.send(()).unwrap();
    while ready().await != 200 {
        tokio::task::yield_now().await;
    }
    let check = send(&server, "ada", "GET", "/readyz/poststarthook/fill", None).await;
    assert_eq!(check.0, 200);
    server.shut_down().await;
    assert_eq!(*said.lock().unwrap(), ["stopped", "task ended"]);
}

#[tokio::test]
async fn a_hook_that_fails_keeps_the_server_unready() {
    let builder = Server::builder().authorizer(AllowAll);
    let server = builder.on_start("fill", |_| async { Err::<(), _>("no disk") });
    let server = server.build().unwrap();
    server.start();
    tokio::task::yield_now().await;
    assert_eq!(send(&server, "ada", "GET", "/readyz", None).await.0, 500);
    server.shut_down().await;
}

#[tokio::test]
async fn a_program_that_listens_itself_can_authenticate() {
    let tokens = StaticTokens::parse("secret,ada,1\n").unwrap();
    let server = Server::builder().authenticator(tokens).build().unwrap();
    let request = |token: &str| {
        let request = http::Request::get("/apis").header("authorization", token);
        request.body(()).unwrap()
    };
    let peer = Peer::default();
    let user = server.authenticate(&request("Bearer secret"), &peer).await;
    assert_eq!(user.unwrap().unwrap().name, "ada");
    let stranger = server.authenticate(&request("Bearer other"), &peer).await;
    assert!(stranger.is_err());
    let nobody = http::Request::get("/apis").body(()).unwrap();
    assert_eq!(server.authenticate(&nobody, &peer).await.unwrap(), None);
    let health = http::Request::get("/healthz").body(()).unwrap();
    let found = server.authenticate(&health, &peer).await.unwrap();
    assert_eq!(found.unwrap().name, "system:anonymous");
}
