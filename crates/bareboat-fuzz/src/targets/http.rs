//! Any text as a request to a whole server in memory, and any bytes as a continue token.
//!
//! A request is a line with method and path, header lines, an empty line and the body. No request may make the server
//! fail: an internal error is a finding, as is a panic.

use bareboat::control_plane::ControlPlane as _;
use bareboat_api::kind::User;
use bareboat_server::Server;
use bareboat_server::authn::Anonymous;
use bareboat_server::authz::AllowAll;
use bareboat_server::request::body::RequestBody;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use std::cell::RefCell;
use std::time::Duration;
use tokio::runtime::Runtime;

/// After so many requests a server with an empty store takes over.
const REQUESTS: usize = 5000;
/// Watches never end, and some reads wait; they are left after a moment.
const PATIENCE: Duration = Duration::from_millis(100);

struct Fixture {
    runtime: Runtime,
    server: Server,
    requests: usize,
}

thread_local! {
    static FIXTURE: RefCell<Option<Fixture>> = const { RefCell::new(None) };
}

/// A request as text.
pub(crate) fn request(input: &[u8]) -> bool {
    let Some(request) = parse(input) else {
        return false;
    };
    answer(request).is_some_and(|status| status.is_success())
}

/// A continue token: as it is, and as what is inside one.
pub(crate) fn token(input: &[u8]) -> bool {
    let encoded = URL_SAFE_NO_PAD.encode(input);
    let mut accepted = false;
    for token in [Some(encoded.as_str()), std::str::from_utf8(input).ok()] {
        let Some(token) = token else { continue };
        let uri = format!("/api/v1/namespaces/default/configmaps?limit=2&continue={token}");
        let Ok(request) = Request::get(uri).body(Bytes::new()) else {
            continue;
        };
        let status = answer(request);
        let known = [StatusCode::OK, StatusCode::BAD_REQUEST, StatusCode::GONE];
        if let Some(status) = status {
            assert!(known.contains(&status), "{token}: {status}");
            accepted |= status == StatusCode::OK;
        }
    }
    accepted
}

fn parse(input: &[u8]) -> Option<Request<Bytes>> {
    let end = input.windows(2).position(|pair| pair == b"\n\n");
    let (head, body) = match end {
        Some(end) => (&input[..end], &input[end + 2..]),
        None => (input, &[][..]),
    };
    let mut lines = std::str::from_utf8(head).ok()?.lines();
    let (method, path) = lines.next()?.split_once(' ')?;
    let mut request = Request::builder().method(method).uri(path);
    for line in lines {
        let (name, value) = line.split_once(": ")?;
        request = request.header(name, value);
    }
    request.body(Bytes::copy_from_slice(body)).ok()
}

/// The status of the answer; nothing when it took too long.
fn answer(request: Request<Bytes>) -> Option<StatusCode> {
    FIXTURE.with_borrow_mut(|slot| {
        if slot
            .as_ref()
            .is_some_and(|fixture| fixture.requests == REQUESTS)
        {
            *slot = None;
        }
        let fixture = slot.get_or_insert_with(Fixture::new);
        fixture.requests += 1;
        let Fixture {
            runtime, server, ..
        } = fixture;
        runtime.block_on(async {
            tokio::time::timeout(PATIENCE, call(server, request))
                .await
                .ok()
        })
    })
}

async fn call(server: &Server, request: Request<Bytes>) -> StatusCode {
    let shown = format!("{} {}", request.method(), request.uri());
    let user = User {
        name: "fuzz".into(),
        groups: vec!["system:masters".into(), "system:authenticated".into()],
        ..User::default()
    };
    let answer = server.call(user, request.map(RequestBody::Memory)).await;
    let status = answer.status();
    let mut body = answer.into_body();
    let mut start = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        if let (Ok(data), true) = (frame.into_data(), start.len() < 1000) {
            start.extend_from_slice(&data);
        }
    }
    let start = String::from_utf8_lossy(&start);
    // A few errors of clients are 500 upstream, too, such as a patch that does not fit the type. They have no reason.
    let failed = status == StatusCode::INTERNAL_SERVER_ERROR && start.contains("InternalError");
    assert!(!failed, "{shown}: {start}");
    status
}

impl Fixture {
    fn new() -> Fixture {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime can be made");
        let server = runtime.block_on(async {
            Server::builder()
                .control_plane()
                .authenticator(Anonymous)
                .authorizer(AllowAll)
                .build()
                .expect("the default control plane can be built")
        });
        for path in ["namespaces", "namespaces/default/configmaps"] {
            for name in ["default", "one", "two", "three"] {
                let kind = if path == "namespaces" {
                    "Namespace"
                } else {
                    "ConfigMap"
                };
                let body = format!(
                    r#"{{"apiVersion":"v1","kind":"{kind}","metadata":{{"name":"{name}"}}}}"#
                );
                let request = Request::post(format!("/api/v1/{path}"))
                    .header("content-type", "application/json")
                    .body(body.into())
                    .expect("a request can be made");
                let status = runtime.block_on(call(&server, request));
                assert_eq!(status, StatusCode::CREATED);
            }
        }
        Fixture {
            runtime,
            server,
            requests: 0,
        }
    }
}
