//! APIServices at bad destinations: what is refused, and what their conditions tell.

use super::peers::Peers;
use super::{forbidden, server};
use crate::aggregation::until;
use crate::support::*;
use bareboat_testing::TestServer;

/// Registers a group at a destination; returns what its condition says about a failure, without the address.
async fn probe(server: &TestServer, case: &str, client: &Value) -> String {
    let group = format!("{case}.aggregated.example.com");
    let name = format!("v1.{group}");
    let service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": name, "annotations": {"bareboat.dev/url": client["url"]}},
        "spec": {
            "group": group, "version": "v1", "groupPriorityMinimum": 2000, "versionPriority": 20,
            "service": {"namespace": "default", "name": "remote"},
            "caBundle": client["caBundle"],
        },
    });
    let services = "/apis/apiregistration.k8s.io/v1/apiservices";
    server.post(services, &service).await.expect(201);
    let said = until(server, &name, "False", "FailedDiscoveryCheck").await;
    let things = format!("/apis/{group}/v1/things");
    let refused = server.get(&things).await.expect(503);
    assert_eq!(refused.text().trim(), "service unavailable", "{case}");
    // The server is at the root of its host.
    let url: http::Uri = text(&client["url"]).parse().unwrap();
    let address = format!("https://{}/apis/{group}/v1", url.authority().unwrap());
    let rest = said.strip_prefix(&format!("failing or missing response from {address}: "));
    rest.unwrap_or_else(|| panic!("{case}: {said}")).to_owned()
}

#[tokio::test]
async fn the_addresses_of_other_servers_are_judged() {
    let peers = Peers::start().await;
    let open = server(None, None).await;
    let closed = server(Some(false), Some(true)).await;
    for (loopback, case, url, expected) in forbidden(&open) {
        let server = if loopback { &closed } else { &open };
        let client = json!({"url": url, "caBundle": peers.bundle()});
        let said = probe(server, case, &client).await;
        assert!(said.contains(expected), "{case}: {said}");
    }
}

#[tokio::test]
async fn a_condition_tells_only_those_who_may_know_why_a_server_does_not_answer() {
    let peers = Peers::start().await;
    let open = server(None, None).await;
    let discreet = server(None, Some(false)).await;
    let mut running = Vec::new();
    for (case, client, cause, passes_on) in peers.cases() {
        // A probe needs no more than the code of an answer.
        if passes_on {
            continue;
        }
        let (open, discreet) = (&open, &discreet);
        running.push(async move {
            if let Some(cause) = cause {
                let said = probe(open, case, &client).await;
                assert!(said.contains(cause), "{case}: {said}");
            }
            let said = probe(discreet, case, &client).await;
            let sentence = "the call failed; the cause is in the log of the server";
            assert_eq!(said, sentence, "{case}");
        });
    }
    futures_util::future::join_all(running).await;
}
