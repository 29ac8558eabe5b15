//! Content negotiation: response formats, and errors for unsupported ones.

use crate::support::*;
use bareboat_testing::TestServer;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const BOATS: &str = "/apis/wire.example.com/v1/namespaces/default/boats";
const ALL: &str = "only the following media types are accepted: application/json, application/yaml, \
                   application/vnd.kubernetes.protobuf";

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]}}},
    })
}

async fn with_boats() -> TestServer {
    let server = TestServer::start().await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.wire.example.com"},
        "spec": {"group": "wire.example.com", "scope": "Namespaced",
            "names": {"plural": "boats", "kind": "Boat"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.sails",
                    "statusReplicasPath": ".status.sails"}},
                "schema": {"openAPIV3Schema": {"type": "object",
                    "x-kubernetes-preserve-unknown-fields": true}}}]},
    });
    server.post(DEFINITIONS, &definition).await.expect(201);
    let boat = json!({"apiVersion": "wire.example.com/v1", "kind": "Boat", "metadata": {"name": "b"},
        "spec": {"sails": 3}});
    server.post(BOATS, &boat).await.expect(201);
    server
}

fn columns(table: &Value) -> Vec<(&str, &str, &str)> {
    let columns = table["columnDefinitions"].as_array().expect("columns");
    columns
        .iter()
        .map(|column| {
            (
                text(&column["name"]),
                text(&column["type"]),
                text(&column["format"]),
            )
        })
        .collect()
}

#[tokio::test]
async fn a_scale_is_available_as_table_and_as_metadata() {
    let server = with_boats().await;
    server.post(DEPLOYMENTS, &deployment()).await.expect(201);
    let built_in = format!("{DEPLOYMENTS}/d/scale");
    let table = server.get_as(&built_in, TABLE).await.expect(200).json();
    assert_eq!(table["kind"], "Table");
    assert_eq!(
        columns(&table),
        [
            ("Name", "string", ""),
            ("Desired", "integer", ""),
            ("Available", "integer", ""),
            ("Age", "string", "")
        ]
    );
    let row = &table["rows"][0];
    assert_eq!(
        row["cells"].as_array().unwrap()[..3],
        [json!("d"), json!(2), json!(0)]
    );
    assert_eq!(row["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(
        table["metadata"]["resourceVersion"],
        row["object"]["metadata"]["resourceVersion"]
    );
    let whole = format!("{built_in}?includeObject=Object");
    let table = server.get_as(&whole, TABLE).await.expect(200).json();
    assert_eq!(table["rows"][0]["object"]["kind"], "Scale");

    let custom = format!("{BOATS}/b/scale");
    let table = server.get_as(&custom, TABLE).await.expect(200).json();
    assert_eq!(
        columns(&table),
        [
            ("Name", "string", "name"),
            ("Desired", "integer", ""),
            ("Available", "integer", ""),
            ("Age", "date", "")
        ]
    );
    let row = &table["rows"][0];
    assert_eq!(
        row["cells"].as_array().unwrap()[..3],
        [json!("b"), json!(3), json!(0)]
    );

    let metadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    for path in [&built_in, &custom] {
        let partial = server.get_as(path, metadata).await.expect(200).json();
        assert_eq!(partial["kind"], "PartialObjectMetadata", "{path}");
        assert!(partial.get("spec").is_none());
    }
}

#[tokio::test]
async fn an_unsupported_format_is_rejected_with_upstream_texts() {
    let server = with_boats().await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    let map = format!("{MAPS}/a");
    let boat = format!("{BOATS}/b");
    let streams = "only the following media types are accepted: application/json;stream=watch, \
                   application/vnd.kubernetes.protobuf;stream=watch";
    let routes = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
                  application/vnd.kubernetes.protobuf";
    let both = format!(
        "{routes}, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    );
    let list = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let object = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let watched = format!("{MAPS}?watch=1");
    let cases: [(&str, &str, &str); 12] = [
        (&map, "application/json;g=meta.k8s.io;v=v1", ALL),
        (&map, "application/json;as=Cake;g=meta.k8s.io;v=v1", ALL),
        (&map, "application/json;stream=other", ALL),
        (&map, "text/html", routes),
        (MAPS, "text/html", &both),
        (&watched, "application/yaml", streams),
        (&boat, "text/html", ALL),
        (&boat, PROTOBUF, ALL),
        (
            &map,
            list,
            "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)",
        ),
        (
            MAPS,
            object,
            "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)",
        ),
        (
            &boat,
            list,
            "you requested PartialObjectMetadataList, but the requested object is not a list \
             (*unstructured.Unstructured)",
        ),
        (&format!("{BOATS}/b/scale"), "text/html", ALL),
    ];
    for (path, accept, message) in cases {
        let answer = server.get_as(path, accept).await.expect(406);
        if answer.header("content-type") == PROTOBUF {
            assert!(answer.text().contains(message), "{path} as {accept}");
            continue;
        }
        if answer.header("content-type") == "application/yaml" {
            assert!(
                answer.text().contains("NotAcceptable"),
                "{path} as {accept}"
            );
            continue;
        }
        let (_, reason, found) = answer.status();
        assert_eq!(
            (reason.as_str(), found.as_str()),
            ("NotAcceptable", message),
            "{path} as {accept}"
        );
    }
    for path in [&map, &boat] {
        server.get_as(path, "application/*").await.expect(200);
    }
}

#[tokio::test]
async fn nothing_is_written_if_the_response_format_is_unsupported() {
    let server = with_boats().await;
    let html = [("accept", "text/html")];
    let answer = server
        .send("POST", MAPS, &html, config_map("x").to_string())
        .await;
    answer.expect(406);
    server.get(&format!("{MAPS}/x")).await.expect(404);
    server.post(MAPS, &config_map("x")).await.expect(201);
    for path in [format!("{MAPS}/x"), MAPS.to_owned()] {
        server.send("DELETE", &path, &html, "").await.expect(406);
    }
    server.get(&format!("{MAPS}/x")).await.expect(200);
    let patch = [("accept", "text/html"), ("content-type", MERGE)];
    let scale = format!("{BOATS}/b/scale");
    let body = json!({"spec": {"replicas": 9}}).to_string();
    server.send("PATCH", &scale, &patch, body).await.expect(406);
    assert_eq!(server.get(&scale).await.json()["spec"]["replicas"], 3);
}

#[tokio::test]
async fn only_tables_validate_include_object() {
    let server = TestServer::start().await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    for path in [format!("{MAPS}/a"), MAPS.to_owned()] {
        let odd = format!("{path}?includeObject=unrecognized");
        let (code, _, message) = server.get_as(&odd, TABLE).await.status();
        assert_eq!(code, 400);
        assert_eq!(
            message,
            "Unable to convert to Table as requested: includeObject: Invalid value: \"unrecognized\": \
             must be 'Metadata', 'Object', 'None', or empty"
        );
        server.get(&odd).await.expect(200);
    }
}

#[tokio::test]
async fn export_is_rejected() {
    let server = with_boats().await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    for path in [
        format!("{MAPS}/a"),
        format!("{BOATS}/b"),
        format!("{BOATS}/b/status"),
        format!("{BOATS}/b/scale"),
    ] {
        for query in ["export=true", "export", "export=1", "export=yes"] {
            let (code, reason, message) = server.get(&format!("{path}?{query}")).await.status();
            assert_eq!(
                (code, reason.as_str()),
                (400, "BadRequest"),
                "{path}?{query}"
            );
            assert_eq!(
                message,
                "the export parameter, deprecated since v1.14, is no longer supported"
            );
        }
        for query in ["export=false", "export=False", "export=0"] {
            server.get(&format!("{path}?{query}")).await.expect(200);
        }
    }
    server.get(&format!("{MAPS}?export=true")).await.expect(200);
}

#[tokio::test]
async fn columns_are_sent_once_in_a_watch() {
    let server = TestServer::start().await;
    for name in ["a", "b"] {
        server.post(MAPS, &config_map(name)).await.expect(201);
    }
    let query =
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let selector = "fieldSelector=metadata.name!%3Dkube-root-ca.crt";
    for (include, object) in [("", "PartialObjectMetadata"), ("&includeObject=None", "")] {
        let path = format!("{MAPS}?{query}&{selector}{include}");
        let mut watch = server.watch_as(&path, TABLE).await;
        let first = watch.next().await.unwrap();
        assert_eq!(first["type"], "ADDED");
        assert!(first["object"]["columnDefinitions"].is_array());
        let second = watch.next().await.unwrap();
        assert_eq!(second["object"]["columnDefinitions"], Value::Null);
        assert!(
            second["object"]
                .as_object()
                .unwrap()
                .contains_key("columnDefinitions"),
            "it is null, not absent"
        );
        assert_eq!(
            second["object"]["rows"][0]["object"]["kind"]
                .as_str()
                .unwrap_or(""),
            object
        );
        let end = watch.next().await.unwrap();
        assert_eq!(end["type"], "BOOKMARK");
        let table = &end["object"];
        assert_eq!(table["kind"], "Table");
        assert_eq!(table["columnDefinitions"], Value::Null);
        let rows = table["rows"].as_array().unwrap();
        assert_eq!(
            rows.len(),
            1,
            "clients look for the annotation in the one row"
        );
        let metadata = &rows[0]["object"]["metadata"];
        assert_eq!(metadata["annotations"]["k8s.io/initial-events-end"], "true");
        assert_eq!(
            metadata["resourceVersion"],
            table["metadata"]["resourceVersion"]
        );
    }
}

#[tokio::test]
async fn a_large_list_of_metadata_in_protobuf_is_complete() {
    let server = TestServer::builder().without_controllers().start().await;
    // More than the 2 MiB that are made at once.
    for number in 0..24 {
        let mut object = config_map(&format!("meta-{number:02}"));
        object["metadata"]["annotations"] = json!({"filler": "x".repeat(120_000)});
        server.post(MAPS, &object).await.expect(201);
    }
    let accept =
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let whole = server.get_as(MAPS, accept).await.expect(200);
    assert!(whole.bytes.len() > 24 * 120_000);
    let envelope = bareboat_wire::proto::decode_envelope(&whole.bytes).unwrap();
    assert_eq!(envelope.kind, "PartialObjectMetadataList");
    assert_eq!(envelope.api_version, "meta.k8s.io/v1");
    for number in 0..24 {
        // Field 1 of the metadata: the name.
        let name = format!("\x0a\x07meta-{number:02}");
        let mut parts = envelope.raw.windows(name.len());
        let found = parts.any(|part| part == name.as_bytes());
        assert!(found, "meta-{number:02} is missing");
    }
}
