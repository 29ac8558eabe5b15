//! Requests without credentials: refused, accepted, or accepted on chosen paths.

use crate::socket::{As, Connection};
use bareboat::server::authn::{AnonymousAccess, AnonymousRule};
use bareboat_testing::TestServer;

async fn server() -> (TestServer, AnonymousAccess) {
    let access = AnonymousAccess::new();
    let installed = access.clone();
    let server = TestServer::builder()
        .with(move |builder| builder.anonymous_access(&installed))
        .default_roles()
        .listening()
        .start()
        .await;
    (server, access)
}

async fn codes(connection: &mut Connection, paths: &[&str]) -> Vec<u16> {
    let mut codes = Vec::new();
    for path in paths {
        codes.push(connection.send("GET", path, &[], "").await.code);
    }
    codes
}

const PATHS: [&str; 4] = ["/livez", "/version", "/api", "/api/v1/pods"];

#[tokio::test]
async fn the_rule_is_replaced_while_the_server_runs() {
    let (server, access) = server().await;
    let mut connection = Connection::http1(&server, As::Nobody).await;
    assert_eq!(codes(&mut connection, &PATHS).await, [200, 200, 401, 401]);
    access.set(AnonymousRule::Off);
    assert_eq!(codes(&mut connection, &PATHS).await, [401, 401, 401, 401]);
    access.set(AnonymousRule::Everywhere);
    assert_eq!(codes(&mut connection, &PATHS).await, [200, 200, 403, 403]);
    access.set(AnonymousRule::Paths(vec!["/livez".to_owned()]));
    assert_eq!(codes(&mut connection, &PATHS).await, [200, 401, 401, 401]);
}

#[tokio::test]
async fn chosen_paths_are_matched_exactly() {
    let (server, access) = server().await;
    access.set(AnonymousRule::Paths(vec!["/livez".to_owned()]));
    let mut connection = Connection::http1(&server, As::Nobody).await;
    for path in [
        "/livez/",
        "//livez",
        "/LIVEZ",
        "/livez;x",
        "/livez/../api",
        "/livez%2f..%2fapi",
        "/livez/ping",
        "/./livez",
    ] {
        assert_eq!(codes(&mut connection, &[path]).await, [401], "{path}");
    }
    assert_eq!(codes(&mut connection, &["/livez?verbose"]).await, [200]);
}

#[tokio::test]
async fn bad_credentials_do_not_make_anonymous() {
    let (server, access) = server().await;
    access.set(AnonymousRule::Everywhere);
    let mut connection = Connection::http1(&server, As::Nobody).await;
    for path in PATHS {
        let bad = [("authorization", "Bearer nonsense")];
        let answer = connection.send("GET", path, &bad, "").await;
        assert_eq!(answer.code, 401, "{path}");
    }
}

#[tokio::test]
async fn open_paths_lead_nowhere_else() {
    let (server, _) = server().await;
    let mut connection = Connection::http1(&server, As::Nobody).await;
    let tricks = [
        "/livez/../api",
        "/livez/../metrics",
        "/livez/../../api/v1/secrets",
        "/livez/%2e%2e/metrics",
        "/livez%2f..%2fmetrics",
        "/livez%2fping%2f..",
        "/version/../metrics",
        "/version/metrics",
        "/livez/metrics",
        "/livez;/../metrics",
        "/livez//metrics",
    ];
    for path in tricks {
        for body in ["", "{}"] {
            let answer = connection.send("GET", path, &[], body).await;
            assert!(
                matches!(answer.code, 401 | 403 | 404),
                "{path}: {} {}",
                answer.code,
                answer.text()
            );
            assert!(!answer.text().contains("apiserver_"), "{path}");
        }
    }
    for path in [
        "/LIVEZ",
        "/livez;x",
        "/livezz",
        "/.livez",
        "/api/livez",
        "/apis/../livez",
        "/%6dletrics",
        "/%2flivez/../metrics",
    ] {
        let code = connection.send("GET", path, &[], "").await.code;
        assert!(matches!(code, 401 | 404), "{path}: {code}");
    }
    // What health answers is the same for every spelling of its path, and for a request with a body.
    for path in [
        "/livez",
        "/livez/",
        "//livez",
        "/%6civez",
        "/livez?x=/../metrics",
    ] {
        let answer = connection.send("GET", path, &[], "{}").await.expect(200);
        assert_eq!(answer.text(), "ok", "{path}");
    }
}
