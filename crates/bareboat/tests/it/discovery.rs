//! Discovery: both formats agree, have ETags, and follow the kinds.

use crate::socket::{As, Connection};
use crate::support::*;
use bareboat_testing::TestServer;
use std::collections::BTreeSet;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

#[tokio::test]
async fn both_formats_list_the_same_resources() {
    let server = TestServer::start().await;
    let mut aggregated = BTreeSet::new();
    for root in ["/api", "/apis"] {
        let list = server.get_as(root, AGGREGATED).await.expect(200).json();
        assert_eq!(list["kind"], "APIGroupDiscoveryList");
        for group in list["items"].as_array().unwrap() {
            for version in group["versions"].as_array().unwrap() {
                let base = match group["metadata"]["name"].as_str() {
                    None | Some("") => format!("/api/{}", text(&version["version"])),
                    Some(group) => format!("/apis/{group}/{}", text(&version["version"])),
                };
                assert_eq!(version["freshness"], "Current");
                for resource in version["resources"].as_array().unwrap() {
                    assert!(resource["responseKind"].is_object(), "{resource}");
                    let resource_name = text(&resource["resource"]).to_owned();
                    aggregated.insert(format!("{base} {resource_name} {}", resource["verbs"]));
                    for part in resource["subresources"].as_array().into_iter().flatten() {
                        let part_name = text(&part["subresource"]);
                        aggregated.insert(format!(
                            "{base} {resource_name}/{part_name} {}",
                            part["verbs"]
                        ));
                    }
                }
            }
        }
    }
    let mut bases = vec!["/api/v1".to_owned()];
    for group in server.get("/apis").await.json()["groups"]
        .as_array()
        .unwrap()
    {
        let group_name = text(&group["name"]);
        assert_eq!(
            server.get(&format!("/apis/{group_name}")).await.json()["name"],
            group_name
        );
        for version in group["versions"].as_array().unwrap() {
            bases.push(format!("/apis/{}", text(&version["groupVersion"])));
        }
    }
    let mut plain = BTreeSet::new();
    for base in bases {
        let list = server.get(&base).await.expect(200).json();
        for resource in list["resources"].as_array().unwrap() {
            plain.insert(format!(
                "{base} {} {}",
                text(&resource["name"]),
                resource["verbs"]
            ));
        }
    }
    assert_eq!(plain, aggregated);
}

#[tokio::test]
async fn unchanged_documents_are_not_sent_again() {
    let server = TestServer::start().await;
    for path in ["/api", "/apis"] {
        let first = server.get_as(path, AGGREGATED).await.expect(200);
        assert_eq!(first.header("content-type"), AGGREGATED);
        assert_eq!(first.header("vary"), "Accept");
        assert_eq!(first.header("cache-control"), "public");
        let etag = first.header("etag").to_owned();
        assert_eq!(
            etag.trim_matches('"').len(),
            128,
            "upper-case SHA-512: {etag}"
        );
        let headers = [("accept", AGGREGATED), ("if-none-match", etag.as_str())];
        let second = server.send("GET", path, &headers, "").await.expect(304);
        assert!(second.bytes.is_empty());
        assert_eq!(second.header("etag"), etag);
        let headers = [("accept", AGGREGATED), ("if-none-match", "\"other\"")];
        server.send("GET", path, &headers, "").await.expect(200);
    }
    let before = server
        .get_as("/apis", AGGREGATED)
        .await
        .header("etag")
        .to_owned();
    let definition = json!({
        "metadata": {"name": "ships.sea.example.com"},
        "spec": {"group": "sea.example.com", "scope": "Cluster", "names": {"plural": "ships", "kind": "Ship"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]},
    });
    server
        .post(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            &definition,
        )
        .await
        .expect(201);
    assert_ne!(
        server.get_as("/apis", AGGREGATED).await.header("etag"),
        before
    );
}

#[tokio::test]
async fn the_first_supported_format_of_a_client_is_chosen() {
    let server = TestServer::start().await;
    let beta = AGGREGATED.replace("v=v2", "v=v2beta1");
    let offers = [
        (
            format!("{AGGREGATED},{beta},application/json"),
            "APIGroupDiscoveryList",
        ),
        (
            "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io;profile=nopeer"
                .to_owned(),
            "APIGroupDiscoveryList",
        ),
        (format!("{beta},application/json"), "APIGroupList"),
        ("application/json".to_owned(), "APIGroupList"),
        ("*/*".to_owned(), "APIGroupList"),
    ];
    for (accept, kind) in offers {
        assert_eq!(
            server.get_as("/apis", &accept).await.expect(200).json()["kind"],
            kind,
            "{accept}"
        );
    }
    for (path, kind) in [
        ("/api", "APIVersions"),
        ("/apis", "APIGroupList"),
        ("/apis/apps", "APIGroup"),
        ("/apis/apps/v1", "APIResourceList"),
    ] {
        let binary = server.get_as(path, PROTOBUF).await.expect(200);
        assert_eq!(proto::open(&binary.bytes).0, kind, "{path}");
        let yaml = server.get_as(path, "application/yaml").await.expect(200);
        assert!(yaml.text().contains(&format!("kind: {kind}")));
    }
}

#[tokio::test]
async fn every_listable_resource_can_be_listed() {
    let server = TestServer::start().await;
    let mut count = 0;
    for root in ["/api", "/apis"] {
        let list = server.get_as(root, AGGREGATED).await.json();
        for group in list["items"].as_array().unwrap() {
            for version in group["versions"].as_array().unwrap() {
                for resource in version["resources"].as_array().unwrap() {
                    if !resource["verbs"]
                        .as_array()
                        .unwrap()
                        .contains(&json!("list"))
                    {
                        continue;
                    }
                    let base = match group["metadata"]["name"].as_str() {
                        None | Some("") => "/api".to_owned(),
                        Some(group) => format!("/apis/{group}"),
                    };
                    let path = format!(
                        "{base}/{}/{}",
                        text(&version["version"]),
                        text(&resource["resource"])
                    );
                    let answer = server.get(&path).await.expect(200).json();
                    assert!(answer["items"].is_array(), "{path}");
                    for accept in [TABLE, PROTOBUF, "application/yaml"] {
                        let answer = server.get_as(&path, accept).await;
                        assert_eq!(answer.code, 200, "{path} as {accept}: {}", answer.text());
                    }
                    count += 1;
                }
            }
        }
    }
    assert!(count > 40, "{count}");
}

#[tokio::test]
async fn clients_learn_the_address_that_they_used() {
    let server = TestServer::builder().listening().start().await;
    for mut connection in [
        Connection::http1(&server, As::Admin).await,
        Connection::http2(&server, As::Admin).await,
    ] {
        let answer = soon(connection.send("GET", "/api", &[], ""))
            .await
            .expect(200);
        let addresses = &answer.json()["serverAddressByClientCIDRs"];
        assert_eq!(addresses[0]["serverAddress"], "localhost");
    }
}
