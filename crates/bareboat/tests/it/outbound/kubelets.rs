//! Nodes and pods as destinations: their addresses come from clients, so they are judged like all others.

use super::peers::Peers;
use super::server;
use crate::support::*;
use bareboat_testing::TestServer;

/// Creates a node at an address, and a pod on it.
async fn node(server: &TestServer, name: &str, address: &str, port: u16) {
    let nodes = "/api/v1/nodes";
    let made = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
    server.post(nodes, &made).await.expect(201);
    let status = json!({"status": {
        "addresses": [{"type": "InternalIP", "address": address}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }});
    let path = format!("{nodes}/{name}/status");
    let media = "application/merge-patch+json";
    server.patch(&path, media, &status).await.expect(200);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"nodeName": name, "containers": [{"name": "a", "image": "i"}]}});
    let pods = "/api/v1/namespaces/default/pods";
    server.post(pods, &pod).await.expect(201);
}

#[tokio::test]
async fn nodes_do_not_lead_to_forbidden_addresses() {
    let open = server(None, None).await;
    let closed = server(Some(false), Some(true)).await;
    let own = open.address().port();
    let link = "link-local addresses may not be called";
    let itself = "this server may not call itself";
    let loopback = "loopback addresses may not be called";
    let metadata = "metadata services may not be called";
    let unspecified = "unspecified addresses may not be called";
    for (server, name, address, port, expected) in [
        (&open, "metadata", "169.254.169.254", 443, link),
        (&open, "own", "127.0.0.1", own, itself),
        (&open, "link", "::ffff:169.254.1.1", 443, link),
        (&open, "six", "fe80::1", 443, link),
        (&open, "cloud", "fd00:ec2::254", 443, metadata),
        (&open, "any", "0.0.0.0", 443, unspecified),
        (&closed, "loopback", "127.0.0.1", 9, loopback),
        (&closed, "mapped", "::ffff:127.0.0.1", 9, loopback),
    ] {
        node(server, name, address, port).await;
        for path in [
            format!("/api/v1/nodes/{name}/proxy/healthz"),
            format!("/api/v1/namespaces/default/pods/{name}/log"),
        ] {
            let answer = server.get(&path).await;
            let message = answer.text();
            assert!(answer.code >= 500, "{path}: {} {message}", answer.code);
            assert!(message.contains(expected), "{path}: {message}");
        }
    }
}

#[tokio::test]
async fn redirects_of_nodes_are_not_followed() {
    let peers = Peers::start().await;
    let server = server(None, None).await;
    let url: http::Uri = text(&peers.https("/")["url"]).parse().unwrap();
    node(&server, "moved", "127.0.0.1", url.port_u16().unwrap()).await;
    for code in [301, 302, 303, 307, 308] {
        let path = format!("/api/v1/nodes/moved/proxy/redirect/{code}");
        let answer = server.get(&path).await;
        // The node was asked, and its answer is passed on or refused.
        let found = answer.code;
        assert!(
            found == code || found == 502,
            "{path}: {found} {}",
            answer.text()
        );
    }
    assert_eq!(peers.followed(), 0);
}
