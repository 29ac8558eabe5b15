//! OpenAPI: hashes, redirects, references, and protobuf.

use crate::support::*;
use bareboat_testing::TestServer;

const V2: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const V3: &str = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";

/// Collects every `$ref` of a document.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(target)) = map.get("$ref") {
                found.push(target.clone());
            }
            map.values().for_each(|member| references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn assert_closed(path: &str, document: &Value) {
    let mut found = Vec::new();
    references(document, &mut found);
    for target in found {
        let pointer = target
            .strip_prefix('#')
            .expect("references stay in their document");
        assert!(document.pointer(pointer).is_some(), "{path}: {target}");
    }
}

#[tokio::test]
async fn every_reference_of_every_document_resolves() {
    let server = TestServer::start().await;
    let index = server.get("/openapi/v3").await.expect(200).json();
    let paths = index["paths"].as_object().unwrap();
    assert!(paths.contains_key("api/v1") && paths.contains_key("apis/apps/v1"));
    for (path, entry) in paths {
        let url = text(&entry["serverRelativeURL"]);
        let answer = server.get(url).await.expect(200);
        assert_eq!(answer.header("cache-control"), "public, immutable", "{url}");
        assert!(!answer.header("expires").is_empty());
        let document = answer.json();
        assert!(text(&document["openapi"]).starts_with("3.0"), "{path}");
        assert_closed(path, &document);
        let binary = server.get_as(url, V3).await.expect(200);
        assert_eq!(
            binary.header("content-type"),
            "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
        );
        // Document: openapi = 1, info = 2 {title = 1}.
        assert_eq!(
            proto::get(&binary.bytes, 1),
            Some(text(&document["openapi"]).as_bytes())
        );
        assert!(proto::get(&binary.bytes, 2).is_some_and(|info| proto::get(info, 1).is_some()));
    }
    let document = server.get("/openapi/v2").await.expect(200).json();
    assert_eq!(document["swagger"], "2.0");
    assert_closed("v2", &document);
}

#[tokio::test]
async fn version_2_is_served_as_protobuf_for_kubectl() {
    let server = TestServer::start().await;
    let binary = server.get_as("/openapi/v2", V2).await.expect(200);
    assert_eq!(
        binary.header("content-type"),
        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    );
    // Document: swagger = 1, info = 2 {title = 1}.
    assert_eq!(proto::get(&binary.bytes, 1), Some(b"2.0".as_slice()));
    assert_eq!(
        proto::get(proto::get(&binary.bytes, 2).unwrap(), 1),
        Some(b"Kubernetes".as_slice())
    );
}

#[tokio::test]
async fn etags_hashes_and_redirects_avoid_transfers() {
    let server = TestServer::start().await;
    let first = server.get("/openapi/v2").await.expect(200);
    let etag = first.header("etag").to_owned();
    let headers = [("if-none-match", etag.as_str())];
    assert!(
        server
            .send("GET", "/openapi/v2", &headers, "")
            .await
            .expect(304)
            .bytes
            .is_empty()
    );
    let index = server.get("/openapi/v3").await.json();
    let url = text(&index["paths"]["apis/apps/v1"]["serverRelativeURL"]).to_owned();
    let document = server.get(&url).await.expect(200);
    let headers = [("if-none-match", document.header("etag"))];
    server.send("GET", &url, &headers, "").await.expect(304);
    let moved = server
        .get("/openapi/v3/apis/apps/v1?hash=OLD")
        .await
        .expect(301);
    assert_eq!(moved.header("location"), url);
    let plain = server.get("/openapi/v3/apis/apps/v1").await.expect(200);
    assert_eq!(plain.json(), document.json());
    assert_ne!(plain.header("cache-control"), "public, immutable");
    server
        .get("/openapi/v3/apis/nope.example.com/v1")
        .await
        .expect(404);
    let packed = server
        .send("GET", "/openapi/v2", &[("accept-encoding", "gzip")], "")
        .await
        .expect(200);
    assert_eq!(packed.header("content-encoding"), "gzip");
}

#[tokio::test]
async fn documents_contain_what_kubectl_reads() {
    let server = TestServer::start().await;
    let document = server.get("/openapi/v3/apis/apps/v1").await.json();
    let patch =
        &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "apps", "version": "v1", "kind": "Deployment"})
    );
    assert_eq!(patch["x-kubernetes-action"], "patch");
    let parameters = patch["parameters"].as_array().unwrap();
    assert!(
        parameters
            .iter()
            .any(|parameter| parameter["name"] == "fieldValidation"),
        "{patch}"
    );
    let media = patch["requestBody"]["content"].as_object().unwrap();
    assert!(media.contains_key(STRATEGIC) && media.contains_key(APPLY));
    let schemas = &document["components"]["schemas"];
    let kind = &schemas["io.k8s.api.apps.v1.Deployment"];
    assert_eq!(
        kind["x-kubernetes-group-version-kind"][0]["kind"],
        "Deployment"
    );
    let containers = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(containers["x-kubernetes-list-type"], "map");
}

#[tokio::test]
async fn enum_values_are_listed() {
    let server = TestServer::start().await;
    let third = server.get("/openapi/v3/api/v1").await.expect(200).json();
    let second = server.get("/openapi/v2").await.expect(200).json();
    for schemas in [&third["components"]["schemas"], &second["definitions"]] {
        let of = |ty: &str, field: &str| {
            schemas[format!("io.k8s.api.core.v1.{ty}")]["properties"][field].clone()
        };
        assert_eq!(
            of("ContainerPort", "protocol")["enum"],
            json!(["SCTP", "TCP", "UDP"])
        );
        assert_eq!(
            of("ServiceSpec", "type")["enum"],
            json!(["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"])
        );
        // Elements of lists have them, too.
        let modes = json!([
            "ReadOnlyMany",
            "ReadWriteMany",
            "ReadWriteOnce",
            "ReadWriteOncePod"
        ]);
        assert_eq!(
            of("PersistentVolumeSpec", "accessModes")["items"]["enum"],
            modes
        );
        assert_eq!(of("HostPathVolumeSource", "type")["enum"][0], "");
        assert_eq!(of("Container", "image").get("enum"), None);
    }
    let usages = &second["definitions"]["io.k8s.api.certificates.v1.CertificateSigningRequestSpec"]
        ["properties"]["usages"];
    assert_eq!(usages["items"]["enum"][1], "cert sign");
}
