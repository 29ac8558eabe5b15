//! Backends that are down, slow, faulty or untrusted: error responses, and no effect on other requests.

use super::*;
use bareboat::api::kind::User;
use bareboat::server::request::body::{BodyError, RequestBody};
use tokio::net::TcpSocket;

/// Defines subresources with one faulty backend each, and one with a good backend.
async fn surrounded(server: &TestServer, callers: &Ca) -> (TestBackend, TcpSocket) {
    let good = TestBackend::start(callers, Speaks::Http1).await;
    let babbling = Speaks::Bytes(b"SSH-2.0-hello\r\n\r\n".to_vec());
    let babbling = TestBackend::start(callers, babbling).await;
    let wordy = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(1 << 20));
    let wordy = TestBackend::start(callers, Speaks::Bytes(wordy.into())).await;
    let mute = TestBackend::start(callers, Speaks::Bytes(Vec::new())).await;
    let proud = TestBackend::start(&Ca::new(), Speaks::Http1).await;
    // A bound port without a listener refuses connections and cannot be reused.
    let closed = TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = closed.local_addr().unwrap().port();
    let mut dead = good.by_url("");
    dead["url"] = json!(format!("https://localhost:{port}"));
    let mut stranger = good.by_url("");
    stranger["caBundle"] = babbling.by_url("")["caBundle"].clone();
    let mut misnamed = good.by_url("");
    misnamed["url"] = json!(format!("https://127.0.0.1:{}", good.port));
    let service = json!({"service": {"namespace": "default", "name": "nobody"}});
    let part = |name: &str, client: Value| json!({"name": name, "verbs": ["get", "create"], "clientConfig": client});
    let mut slow = part("slow", good.by_url(""));
    slow["timeoutSeconds"] = json!(1);
    let parts = json!([
        part("good", good.by_url("")),
        slow,
        part("dead", dead),
        part("stranger", stranger),
        part("misnamed", misnamed),
        part("proud", proud.by_url("")),
        part("babbling", babbling.by_url("")),
        part("wordy", wordy.by_url("")),
        part("mute", mute.by_url("")),
        part("nobody", service),
    ]);
    define(server, &parts).await;
    (good, closed)
}

#[tokio::test]
async fn an_error_names_its_source() {
    let (callers, builder) = builder();
    let server = builder.start().await;
    let _others = surrounded(&server, &callers).await;
    let cases = [
        (
            "good?do=redirect",
            502,
            "the backend attempted to redirect this request, which is not permitted",
        ),
        ("slow?do=hang", 504, "did not answer within 1 s"),
        (
            "dead",
            503,
            "error trying to reach service: dial tcp 127.0.0.1:",
        ),
        (
            "stranger",
            503,
            "x509: certificate signed by unknown authority",
        ),
        ("misnamed", 503, "x509: "),
        ("proud", 502, "returned an invalid answer: "),
        ("babbling", 502, "returned an invalid answer: "),
        ("wordy", 502, "returned an invalid answer: "),
        ("mute", 502, "returned an invalid answer: "),
        ("nobody", 503, "service \"nobody\" not found"),
    ];
    for (path, code, expected) in cases {
        let (found, reason, message) = server.get(&format!("{ONE}/{path}")).await.status();
        assert_eq!(found, code, "{path}: {reason} {message}");
        assert!(message.contains(expected), "{path}: {message}");
    }
}

#[tokio::test]
async fn a_truncated_response_is_an_error() {
    let (server, backend) = start(Speaks::Http2(100)).await;
    for http2 in [false, true] {
        let mut connection = if http2 {
            Connection::http2(&server, As::Admin).await
        } else {
            Connection::http1(&server, As::Admin).await
        };
        let path = format!("{ONE}/console?do=die");
        let response = connection.start("GET", &path, &[], "").await;
        assert_eq!(response.status(), 200);
        backend.go_on();
        let body = http_body_util::BodyExt::collect(response.into_body());
        assert!(soon(body).await.is_err());
    }
}

#[tokio::test]
async fn bodies_have_the_usual_limit() {
    let (server, backend) = start(Speaks::Http1).await;
    let path = format!("{ONE}/start?do=mirror");
    let large = vec![b'x'; 3 << 20];
    let mirrored = server
        .send("POST", &path, &[], large.clone())
        .await
        .expect(200);
    assert_eq!(mirrored.bytes.len(), large.len());
    let calls = backend.calls();
    let too_large = vec![b'x'; (3 << 20) + 1];
    let answer = server.send("POST", &path, &[], too_large.clone()).await;
    assert_eq!(answer.status().1, "RequestEntityTooLarge");
    assert_eq!(
        backend.calls(),
        calls,
        "it was rejected before the backend was called"
    );

    // Unknown length, and a backend that responds only after the whole body.
    let pieces = too_large.chunks(1 << 16).map(bytes::Bytes::copy_from_slice);
    let pieces: Vec<_> = pieces
        .map(|piece| Ok::<_, BodyError>(http_body::Frame::data(piece)))
        .collect();
    let body = http_body_util::StreamBody::new(futures_util::stream::iter(pieces));
    let request =
        http::Request::post(format!("{ONE}/start")).body(RequestBody::Boxed(Box::pin(body)));
    let answer = read(server.server().call(admin("admin"), request.unwrap()).await).await;
    assert_eq!(answer.status().1, "RequestEntityTooLarge");
}

#[tokio::test]
async fn requests_that_wait_for_a_backend_hold_no_seats() {
    let (callers, builder) = builder();
    let backend = TestBackend::start(&callers, Speaks::Http2(100)).await;
    let server = builder
        .with(|builder| builder.max_in_flight(1, 1).without_flow_control())
        .listening()
        .start()
        .await;
    define(&server, &declared(&backend)).await;
    let mut waiting = Vec::new();
    for number in 1..=8 {
        let mut connection = Connection::http1(&server, As::Admin).await;
        waiting.push(tokio::spawn(async move {
            let path = format!("{ONE}/console?do=hang");
            connection.start("GET", &path, &[], "").await
        }));
        while backend.calls() < number {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }
    let mut connection = Connection::http1(&server, As::Admin).await;
    connection.send("GET", ONE, &[], "").await.expect(200);
    let body = machine("two").to_string();
    connection
        .send("POST", MACHINES, &[], body)
        .await
        .expect(201);
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn a_hanging_backend_uses_up_only_its_own_limit() {
    let (callers, builder) = builder();
    let backend = TestBackend::start(&callers, Speaks::Http2(100)).await;
    let server = builder.start().await;
    define(&server, &declared(&backend)).await;
    let ask = |name: &str, path: String| {
        let (server, user) = (server.server().clone(), admin(name));
        let request = http::Request::get(path)
            .body(RequestBody::default())
            .unwrap();
        async move { server.call(user, request).await }
    };
    let mut waiting = tokio::task::JoinSet::new();
    // One user has at most a quarter of the limit, so four users take all of it.
    for name in ["ann", "bob", "cid", "dot"] {
        let answer = ask(name, format!("{ONE}/console")).await;
        read(answer).await.expect(200);
        let before = backend.calls();
        for _ in 0..256 {
            waiting.spawn(ask(name, format!("{ONE}/console?do=hang")));
        }
        while backend.calls() < before + 256 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let answer = read(ask(name, format!("{ONE}/console")).await).await;
        let answer = answer.expect(429);
        assert_eq!(answer.header("retry-after"), "1");
        let message = answer.status().2;
        let share = "256 of yours are under way, the most that one user may have; end some of them, then try again";
        assert!(message.ends_with(share), "{name}: {message}");
    }
    let answer = read(ask("eve", format!("{ONE}/console")).await).await;
    let answer = answer.expect(429);
    assert_eq!(answer.header("retry-after"), "1");
    let message = answer.status().2;
    let full = "too many are under way, please try again later";
    assert!(message.ends_with(full), "{message}");
    server
        .post(&format!("{ONE}/start"), &json!({}))
        .await
        .expect(200);
    server.get(ONE).await.expect(200);
    // A disconnected client makes room.
    waiting.shutdown().await;
    let answer = read(ask("ann", format!("{ONE}/console")).await).await;
    answer.expect(200);
}

fn admin(name: &str) -> User {
    User {
        name: name.into(),
        groups: vec!["system:masters".into()],
        ..User::default()
    }
}
