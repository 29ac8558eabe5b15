//! Servers that are down, slow, faulty or hostile: the right answer, and no effect on anything else.

use super::*;
use std::time::Instant;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[tokio::test]
async fn a_faulty_answer_has_the_text_of_kubernetes() {
    let (server, _backend) = start(Speaks::Http1).await;
    let answer = server
        .get(&format!("{THINGS}?do=redirect"))
        .await
        .expect(502);
    assert_eq!(
        answer.text(),
        "the backend attempted to redirect this request, which is not permitted"
    );
    let begun = Instant::now();
    let answer = server.get(&format!("{THINGS}?do=hang&timeout=1s")).await;
    assert_eq!(answer.status().0, 504);
    // Without its own, the request would have a minute.
    assert!(begun.elapsed() < Duration::from_secs(40));
    for path in ["%2e%2e/things", "things/a%2Fb", "things//a"] {
        let answer = server
            .get(&format!("{ROOT}/namespaces/default/{path}"))
            .await;
        assert_eq!(answer.status().0, 400, "{path}");
    }
}

#[tokio::test]
async fn a_dead_server_hurts_only_its_own_group() {
    let (callers, builder) = builder();
    let server = builder.start().await;
    let backend = TestBackend::start(&callers, Speaks::Http1).await;
    server.post(SERVICES, &at_url(&backend)).await.expect(201);
    until(&server, NAME, "True", "Passed").await;
    let accept = [("accept", AGGREGATED)];
    let documents = async || {
        let begun = Instant::now();
        let all = server.send("GET", "/apis", &accept, "").await.expect(200);
        server.get("/openapi/v3").await.expect(200);
        server.get("/openapi/v2").await.expect(200);
        (all.json(), begun.elapsed())
    };
    let (_, quiet) = documents().await;
    let garbage =
        TestBackend::start(&callers, Speaks::Bytes(b"SSH-2.0-hello\r\n\r\n".to_vec())).await;
    let proud = TestBackend::start(&Ca::new(), Speaks::Http1).await;
    let mut bundle_of_another = at_url(&backend);
    bundle_of_another["spec"]["caBundle"] = garbage.by_url("")["caBundle"].clone();
    let mut closed = at_url(&backend);
    closed["metadata"]["annotations"]["bareboat.dev/url"] = json!("https://localhost:1");
    let cases = [
        ("garbage", at_url(&garbage), "failing or missing response"),
        ("proud", at_url(&proud), "failing or missing response"),
        (
            "stranger",
            bundle_of_another,
            "x509: certificate signed by unknown authority",
        ),
        ("closed", closed, "connect: connection refused"),
    ];
    for (group, service, expected) in cases {
        let mut service = service;
        let name = format!("v1.{group}.example.com");
        service["metadata"]["name"] = json!(name);
        service["spec"]["group"] = json!(format!("{group}.example.com"));
        server.post(SERVICES, &service).await.expect(201);
        let why = until(&server, &name, "False", "FailedDiscoveryCheck").await;
        assert!(why.contains(expected), "{group}: {why}");
        let things = format!("/apis/{group}.example.com/v1/things");
        assert_eq!(
            server.get(&things).await.expect(503).text(),
            "service unavailable\n"
        );
        server
            .get(&format!("/apis/{group}.example.com/v1"))
            .await
            .expect(503);
    }
    let (all, taken) = documents().await;
    let freshness = |group: &str| {
        let items = all["items"].as_array().unwrap();
        let found = items.iter().find(|item| item["metadata"]["name"] == group);
        text(&found.unwrap()["versions"][0]["freshness"]).to_owned()
    };
    assert_eq!(freshness("closed.example.com"), "Stale");
    assert_eq!(freshness("agg.example.com"), "Current");
    assert_eq!(freshness("apps"), "Current");
    assert!(
        taken < Duration::from_secs(3) + 10 * quiet,
        "nobody waits for the dead: {taken:?}, {quiet:?} without them"
    );
    assert_eq!(
        server.get(THINGS).await.expect(200).header("x-backend"),
        "yes"
    );
}

#[tokio::test]
async fn a_server_that_dies_in_a_watch_breaks_only_that_answer() {
    let (server, backend) = start(Speaks::Http2(100)).await;
    let mut connection = Connection::http1(&server, As::Admin).await;
    let response = connection
        .start("GET", &format!("{THINGS}?watch=1&do=die"), &[], "")
        .await;
    let mut body = response.into_body();
    assert_eq!(frame(&mut body).await, "so far");
    backend.go_on();
    let end = http_body_util::BodyExt::frame(&mut body).await;
    assert!(
        end.unwrap().is_err(),
        "the client notices that the answer is cut"
    );
    assert_eq!(
        server.get(THINGS).await.expect(200).header("x-backend"),
        "yes"
    );
}

/// CVE-2018-1002105: an upgrade that the backend refuses must not leave a tunnel.
#[tokio::test]
async fn a_refused_upgrade_leaves_no_tunnel() {
    let (server, backend) = start(Speaks::Http1).await;
    let mut stream = crate::socket::tls(&server, As::Admin, "http/1.1").await;
    let first = format!(
        "GET {THINGS}/a/console?do=redirected HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    );
    let second = "GET /apis/secret.example.com/v1/all HTTP/1.1\r\nHost: localhost\r\nX-Remote-User: root\r\n\r\n";
    let before = backend.calls();
    stream.write_all(first.as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    while !String::from_utf8_lossy(&seen).contains("x-backend") {
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&buffer[..count]);
    }
    assert!(
        seen.starts_with(b"HTTP/1.1 200"),
        "the backend did not switch"
    );
    stream.write_all(second.as_bytes()).await.unwrap();
    let mut more = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&more).contains("HTTP/1.1 404") {
            let count = stream.read(&mut buffer).await.unwrap();
            if count == 0 {
                break;
            }
            more.extend_from_slice(&buffer[..count]);
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(5), reading).await;
    assert_eq!(
        backend.calls(),
        before + 1,
        "the second request did not arrive there"
    );
}

#[tokio::test]
async fn upgrades_become_tunnels() {
    let (server, backend) = start(Speaks::Http1).await;
    let mut stream = crate::socket::tls(&server, As::Admin, "http/1.1").await;
    let request = format!(
        "GET {THINGS}/a/console?do=upgrade HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    while !seen.ends_with(b"hello ") {
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&buffer[..count]);
    }
    assert!(seen.starts_with(b"HTTP/1.1 101"));
    stream.write_all(b"echo").await.unwrap();
    let count = stream.read(&mut buffer).await.unwrap();
    assert_eq!(&buffer[..count], b"echo");
    assert_eq!(backend.open(), 1);
}

#[tokio::test]
async fn a_namespace_waits_for_a_dead_group_and_says_so() {
    let (callers, builder) = builder();
    let server = builder.start().await;
    let backend = TestBackend::start(&callers, Speaks::Http1).await;
    let mut service = at_url(&backend);
    service["metadata"]["annotations"]["bareboat.dev/url"] = json!("https://localhost:1");
    server.post(SERVICES, &service).await.expect(201);
    until(&server, NAME, "False", "FailedDiscoveryCheck").await;
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "leaving"}});
    server
        .post("/api/v1/namespaces", &namespace)
        .await
        .expect(201);
    let maps = "/api/v1/namespaces/leaving/configmaps";
    server.post(maps, &config_map("inside")).await.expect(201);
    server
        .delete("/api/v1/namespaces/leaving")
        .await
        .expect(200);
    let mut condition = Value::Null;
    for _ in 0..200 {
        let namespace = server
            .get("/api/v1/namespaces/leaving")
            .await
            .expect(200)
            .json();
        condition = namespace["status"]["conditions"][0].clone();
        if condition["status"] == "True" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(condition["type"], "NamespaceDeletionDiscoveryFailure");
    assert_eq!(condition["reason"], "DiscoveryFailed");
    assert_eq!(
        condition["message"],
        "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: \
         agg.example.com/v1: stale GroupVersion discovery: agg.example.com/v1"
    );
    server.get(&format!("{maps}/inside")).await.expect(404);
    // The server comes back, and the namespace goes.
    let url = backend.by_url("")["url"].clone();
    let patch = json!({"metadata": {"annotations": {"bareboat.dev/url": url}}});
    server
        .patch(&format!("{SERVICES}/{NAME}"), MERGE, &patch)
        .await
        .expect(200);
    for _ in 0..400 {
        if server.get("/api/v1/namespaces/leaving").await.code == 404 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!(
        "the namespace stays: {}",
        server.get("/api/v1/namespaces/leaving").await.text()
    );
}

#[tokio::test]
async fn an_answer_that_drips_is_cut_at_its_deadline() {
    let (server, _backend) = start(Speaks::Http2(100)).await;
    let mut connection = Connection::http1(&server, As::Admin).await;
    let begun = Instant::now();
    let response = connection
        .start("GET", &format!("{THINGS}?do=stream&timeout=1s"), &[], "")
        .await;
    let mut body = response.into_body();
    assert_eq!(frame(&mut body).await, "first\n");
    let end = soon(http_body_util::BodyExt::frame(&mut body)).await;
    assert!(
        end.unwrap().is_err(),
        "the client notices that the answer is cut"
    );
    // Without its own, the request would have a minute.
    assert!(begun.elapsed() < Duration::from_secs(40));
}

#[tokio::test]
async fn endless_discovery_is_not_read_to_its_end() {
    let (callers, builder) = builder();
    let server = builder.start().await;
    let mut endless =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"resources\":[".to_vec();
    endless.resize(16 << 20, b' ');
    let backend = TestBackend::start(&callers, Speaks::Bytes(endless)).await;
    server.post(SERVICES, &at_url(&backend)).await.expect(201);
    until(&server, NAME, "True", "Passed").await;
    let accept = [("accept", AGGREGATED)];
    let all = server.send("GET", "/apis", &accept, "").await.expect(200);
    let all = all.json();
    let items = all["items"].as_array().unwrap();
    let ours = items
        .iter()
        .find(|item| item["metadata"]["name"] == "agg.example.com");
    assert_eq!(ours.unwrap()["versions"][0]["freshness"], "Stale");
    assert!(items.len() > 10, "everything else is there");
}
