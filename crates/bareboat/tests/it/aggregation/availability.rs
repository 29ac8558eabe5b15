//! The condition `Available`: every reason, and how changes of other objects are noticed.

use super::*;

const CORE: &str = "/api/v1/namespaces/default/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

/// Returns the address of this machine.
fn own_address() -> Option<String> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    // A connected datagram socket knows its source address without sending anything.
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback()).then(|| address.to_string())
}

#[tokio::test]
async fn the_service_and_its_endpoints_decide() {
    let (callers, builder) = builder();
    let backend = TestBackend::start(&callers, Speaks::Http1).await;
    let server = builder.start().await;
    // Endpoints may not be on loopback.
    let Some(address) = own_address() else {
        return eprintln!("skipped: this machine has no address but loopback");
    };
    let mut service = at_url(&backend);
    service["metadata"] = json!({"name": NAME});
    server.post(SERVICES, &service).await.expect(201);
    let why = until(&server, NAME, "False", "ServiceNotFound").await;
    assert_eq!(why, "service/vms in \"default\" is not present");
    let answer = server.get(THINGS).await.expect(503);
    assert_eq!(answer.text(), "service unavailable\n");
    assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");

    let vms = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "vms"},
        "spec": {"ports": [{"port": 8443, "name": "api"}]}});
    server.post(CORE, &vms).await.expect(201);
    let why = until(&server, NAME, "False", "ServicePortError").await;
    assert_eq!(
        why,
        "service/vms in \"default\" is not listening on port 443"
    );
    let ports = json!({"spec": {"ports": [{"port": 443, "name": "api"}]}});
    server
        .patch(&format!("{CORE}/vms"), MERGE, &ports)
        .await
        .expect(200);
    let why = until(&server, NAME, "False", "EndpointsNotFound").await;
    assert_eq!(
        why,
        "cannot find endpointslices for service/vms in \"default\""
    );

    let mut slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": "vms-1", "labels": {"kubernetes.io/service-name": "vms"}},
        "addressType": "IPv4", "ports": [{"name": "other", "port": backend.port}],
        "endpoints": [{"addresses": [address], "conditions": {"ready": true}}]});
    server.post(SLICES, &slice).await.expect(201);
    let why = until(&server, NAME, "False", "MissingEndpoints").await;
    assert_eq!(
        why,
        "endpointslices for service/vms in \"default\" have no addresses with port name \"api\""
    );
    slice["ports"][0]["name"] = json!("api");
    let path = format!("{SLICES}/vms-1");
    server.patch(&path, MERGE, &slice).await.expect(200);
    let why = until(&server, NAME, "True", "Passed").await;
    assert_eq!(why, "all checks passed");
    assert_eq!(
        server.get(THINGS).await.expect(200).header("x-backend"),
        "yes"
    );
    let table = [("accept", TABLE)];
    let table = server
        .send("GET", &format!("{SERVICES}/{NAME}"), &table, "")
        .await;
    let cells = &table.expect(200).json()["rows"][0]["cells"];
    assert_eq!(cells[1], "default/vms");
    assert_eq!(cells[2], "True");

    server.delete(&path).await.expect(200);
    until(&server, NAME, "False", "EndpointsNotFound").await;
    let metrics = server.get("/metrics").await.expect(200).text();
    assert!(metrics.contains("aggregator_unavailable_apiservice{name=\"v1.agg.example.com\"} 1"));
    let total = "aggregator_unavailable_apiservice_total{name=\"v1.agg.example.com\",reason=\"EndpointsNotFound\"} 1";
    assert!(metrics.contains(total), "{metrics}");
    server
        .delete(&format!("{SERVICES}/{NAME}"))
        .await
        .expect(200);
    server.get(THINGS).await.expect(404);
}

#[tokio::test]
async fn a_service_may_be_the_name_of_a_host() {
    let (callers, builder) = builder();
    let backend = TestBackend::start(&callers, Speaks::Http1).await;
    let server = builder.start().await;
    let mut service = at_url(&backend);
    service["metadata"] = json!({"name": NAME});
    service["spec"]["service"]["port"] = json!(backend.port);
    server.post(SERVICES, &service).await.expect(201);
    until(&server, NAME, "False", "ServiceNotFound").await;
    let vms = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "vms"},
        "spec": {"type": "ExternalName", "externalName": "localhost"}});
    server.post(CORE, &vms).await.expect(201);
    let why = until(&server, NAME, "True", "Passed").await;
    assert_eq!(why, "all checks passed");
    let found = server.get(THINGS).await.expect(200);
    assert_eq!(found.header("x-backend"), "yes");
    // No one is called over connections to the host that it named before.
    let moved = json!({"spec": {"externalName": "moved.invalid"}});
    let path = format!("{CORE}/vms");
    server.patch(&path, MERGE, &moved).await.expect(200);
    let why = until(&server, NAME, "False", "FailedDiscoveryCheck").await;
    assert!(why.contains("lookup moved.invalid"), "{why}");
    server.get(THINGS).await.expect(503);
    let back = json!({"spec": {"externalName": "localhost"}});
    server.patch(&path, MERGE, &back).await.expect(200);
    until(&server, NAME, "True", "Passed").await;
    server.get(THINGS).await.expect(200);
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_not_available() {
    let (callers, builder) = builder();
    let backend = TestBackend::start(&callers, Speaks::Http1).await;
    let server = builder.start().await;
    let mut service = at_url(&backend);
    service["spec"]["group"] = json!("missing.example.com");
    service["metadata"]["name"] = json!("v1.missing.example.com");
    service["metadata"]["annotations"]["bareboat.dev/url"] = json!("https://localhost:1");
    server.post(SERVICES, &service).await.expect(201);
    let why = until(
        &server,
        "v1.missing.example.com",
        "False",
        "FailedDiscoveryCheck",
    )
    .await;
    let begins = "failing or missing response from https://localhost:1/apis/missing.example.com/v1: Get \"https://localhost:1/apis/missing.example.com/v1\": dial tcp ";
    assert!(why.starts_with(begins), "{why}");
    // The address is corrected, and no one waits for the next probe.
    let url = backend.by_url("")["url"].clone();
    let patch = json!({"metadata": {"annotations": {"bareboat.dev/url": url}}});
    let path = format!("{SERVICES}/v1.missing.example.com");
    server.patch(&path, MERGE, &patch).await.expect(200);
    until(&server, "v1.missing.example.com", "True", "Passed").await;
    // An insecure one needs no bundle.
    let patch = json!({"spec": {"caBundle": null, "insecureSkipTLSVerify": true}});
    server.patch(&path, MERGE, &patch).await.expect(200);
    let things = "/apis/missing.example.com/v1/namespaces/default/things";
    assert_eq!(
        server.get(things).await.expect(200).header("x-backend"),
        "yes"
    );
}

#[tokio::test]
async fn bad_urls_are_refused() {
    let (callers, builder) = builder();
    let backend = TestBackend::start(&callers, Speaks::Http1).await;
    let server = builder.start().await;
    for (url, expected) in [
        ("http://localhost:1", "https"),
        ("https://user@localhost", "user information"),
        ("https://localhost?a=b", "query"),
        ("https://", "host"),
    ] {
        let mut service = at_url(&backend);
        service["metadata"]["annotations"]["bareboat.dev/url"] = json!(url);
        let (code, _, message) = server.post(SERVICES, &service).await.status();
        assert_eq!(code, 422, "{url}: {message}");
        assert!(message.contains(expected), "{url}: {message}");
    }
    let mut service = at_url(&backend);
    service["spec"]["service"] = Value::Null;
    service["spec"]["caBundle"] = Value::Null;
    let (code, _, message) = server.post(SERVICES, &service).await.status();
    assert_eq!(code, 422, "{message}");
    assert!(message.contains("needs spec.service"), "{message}");
}
