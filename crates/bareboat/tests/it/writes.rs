//! Writes: metadata, patches, validation, races.

use crate::support::*;
use bareboat_testing::TestServer;
use std::sync::Arc;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "one"}]},
            },
        },
    })
}

#[tokio::test]
async fn the_server_sets_metadata() {
    let server = TestServer::start().await;
    let mut object = config_map("a");
    object["metadata"] = json!({
        "name": "a", "uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 7,
        "deletionTimestamp": "2001-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5, "selfLink": "/x",
    });
    let made = server.post(MAPS, &object).await.expect(201).json();
    let meta = &made["metadata"];
    assert_eq!(text(&meta["uid"]).len(), 36);
    assert!(text(&meta["creationTimestamp"]) > "2020");
    assert_eq!(meta["namespace"], "default");
    for absent in [
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
    ] {
        assert_eq!(meta.get(absent), None, "{absent}");
    }
    let mut changed = made.clone();
    changed["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    changed["metadata"]["deletionTimestamp"] = json!("2001-01-01T00:00:00Z");
    changed["metadata"].as_object_mut().unwrap().remove("uid");
    changed["data"] = json!({"a": "c"});
    let after = server
        .put(&format!("{MAPS}/a"), &changed)
        .await
        .expect(200)
        .json();
    assert_eq!(
        after["metadata"]["creationTimestamp"],
        meta["creationTimestamp"]
    );
    assert_eq!(after["metadata"]["uid"], meta["uid"]);
    assert_eq!(after["metadata"].get("deletionTimestamp"), None);
    assert!(version(&after) > version(&made));
    let mut other = after.clone();
    other["metadata"]["uid"] = json!("0c3f4ab0-57fa-4a02-9b6a-000000000000");
    let refused = server.put(&format!("{MAPS}/a"), &other).await.expect(409);
    assert!(
        refused
            .status()
            .2
            .contains("Precondition failed: UID in precondition: "),
        "{}",
        refused.text()
    );
}

#[tokio::test]
async fn names_can_be_generated() {
    let server = TestServer::start().await;
    let mut object = config_map("");
    object["metadata"] = json!({"generateName": "base-"});
    let made = server.post(MAPS, &object).await.expect(201).json();
    let (made_name, base) = (name(&made), "base-");
    assert!(
        made_name.starts_with(base) && made_name.len() == base.len() + 5,
        "{made_name}"
    );
    let end = &made_name[base.len()..];
    assert!(
        end.chars()
            .all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c)),
        "{end}"
    );
    object["metadata"] = json!({"generateName": "x".repeat(200)});
    let long = server.post(MAPS, &object).await.expect(201).json();
    assert_eq!(name(&long).len(), 63);
    object["metadata"] = json!({});
    server.post(MAPS, &object).await.expect(422);
}

#[tokio::test]
async fn generation_counts_changes_of_the_desired_state() {
    let server = TestServer::start().await;
    let made = server
        .post(DEPLOYMENTS, &deployment("d"))
        .await
        .expect(201)
        .json();
    assert_eq!(made["metadata"]["generation"], 1);
    let at = format!("{DEPLOYMENTS}/d");
    let steps = [
        (json!({"metadata": {"labels": {"x": "y"}}}), "", 1),
        (json!({"spec": {"replicas": 3}}), "", 2),
        (json!({"spec": {"replicas": 3}}), "", 2),
        (json!({"status": {"replicas": 3}}), "", 2),
        (json!({"status": {"replicas": 2}}), "/status", 2),
        (json!({"spec": {"replicas": 9}}), "/status", 2),
        (json!({"metadata": {"generation": 77}}), "", 2),
    ];
    for (patch, part, generation) in steps {
        let after = server
            .patch(&format!("{at}{part}"), MERGE, &patch)
            .await
            .expect(200)
            .json();
        assert_eq!(
            after["metadata"]["generation"], generation,
            "{patch} at {part}"
        );
    }
    let after = server.get(&at).await.json();
    assert_eq!(
        after["spec"]["replicas"], 3,
        "the status endpoint changes the status only"
    );
    assert_eq!(after["status"]["replicas"], 2, "the main endpoint does not");
    let map = server.post(MAPS, &config_map("a")).await.expect(201).json();
    assert_eq!(map["metadata"].get("generation"), None);
}

#[tokio::test]
async fn a_stale_write_is_a_conflict() {
    let server = TestServer::start().await;
    let made = server.post(MAPS, &config_map("a")).await.expect(201).json();
    let at = format!("{MAPS}/a");
    let mut first = made.clone();
    first["data"] = json!({"a": "1"});
    server.put(&at, &first).await.expect(200);
    first["data"] = json!({"a": "2"});
    let conflict = server.put(&at, &first).await.expect(409);
    let (_, reason, message) = conflict.status();
    assert_eq!(reason, "Conflict");
    assert_eq!(
        message,
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again"
    );
    let stale = json!({"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"a": "3"}});
    server.patch(&at, MERGE, &stale).await.expect(409);
    // Without a version the write is unconditional.
    server.put(&at, &config_map("a")).await.expect(200);
}

#[tokio::test]
async fn a_dry_run_does_everything_but_write() {
    let server = TestServer::builder().without_controllers().start().await;
    let before = server.get(MAPS).await.version();
    let made = server
        .post(&format!("{MAPS}?dryRun=All"), &config_map("a"))
        .await
        .expect(201)
        .json();
    assert!(made["metadata"]["uid"].is_string());
    server.get(&format!("{MAPS}/a")).await.expect(404);
    server
        .post(&format!("{MAPS}?dryRun=All"), &config_map("Bad_Name"))
        .await
        .expect(422);
    assert_eq!(server.get(MAPS).await.version(), before);
    server.post(MAPS, &config_map("a")).await.expect(201);
    server
        .post(&format!("{MAPS}?dryRun=All"), &config_map("a"))
        .await
        .expect(409);
    let mut changed = config_map("a");
    changed["data"] = json!({"x": "y"});
    let after = server
        .put(&format!("{MAPS}/a?dryRun=All"), &changed)
        .await
        .expect(200)
        .json();
    assert_eq!(after["data"]["x"], "y");
    let patched = server
        .patch(
            &format!("{MAPS}/a?dryRun=All"),
            MERGE,
            &json!({"data": {"z": "1"}}),
        )
        .await
        .expect(200);
    assert_eq!(patched.json()["data"]["z"], "1");
    assert_eq!(
        server.get(&format!("{MAPS}/a")).await.json()["data"],
        json!({"a": "b"})
    );
    server
        .delete(&format!("{MAPS}/a?dryRun=All"))
        .await
        .expect(200);
    server.get(&format!("{MAPS}/a")).await.expect(200);
}

#[tokio::test]
async fn every_type_of_patch_is_applied() {
    let server = TestServer::start().await;
    server.post(DEPLOYMENTS, &deployment("d")).await.expect(201);
    let at = format!("{DEPLOYMENTS}/d");
    let containers = |answer: &Answer| -> Vec<String> {
        let object = answer.json();
        let list = object["spec"]["template"]["spec"]["containers"]
            .as_array()
            .unwrap();
        list.iter()
            .map(|c| format!("{}={}", text(&c["name"]), text(&c["image"])))
            .collect()
    };
    let template = |list: Value| json!({"spec": {"template": {"spec": {"containers": list}}}});
    let strategic = template(json!([{"name": "side", "image": "two"}]));
    let after = server.patch(&at, STRATEGIC, &strategic).await.expect(200);
    assert_eq!(
        containers(&after),
        ["side=two", "c=one"],
        "a strategic patch merges by name"
    );
    let gone = template(json!([{"name": "side", "$patch": "delete"}]));
    assert_eq!(
        containers(&server.patch(&at, STRATEGIC, &gone).await.expect(200)),
        ["c=one"]
    );
    let merged = template(json!([{"name": "c", "image": "three"}, {"name": "e", "image": "four"}]));
    let after = server.patch(&at, MERGE, &merged).await.expect(200);
    assert_eq!(
        containers(&after),
        ["c=three", "e=four"],
        "a merge patch replaces lists"
    );
    let operations = json!([
        {"op": "test", "path": "/spec/template/spec/containers/0/image", "value": "three"},
        {"op": "remove", "path": "/spec/template/spec/containers/1"},
        {"op": "add", "path": "/metadata/labels", "value": {"x~y": "z"}},
    ]);
    let after = server.patch(&at, JSON_PATCH, &operations).await;
    // A label key with a tilde is invalid, so the whole patch is rejected.
    assert_eq!(after.code, 422, "{}", after.text());
    let operations = json!([
        {"op": "remove", "path": "/spec/template/spec/containers/1"},
        {"op": "add", "path": "/metadata/labels", "value": {"x": "z"}},
    ]);
    let after = server.patch(&at, JSON_PATCH, &operations).await.expect(200);
    assert_eq!(containers(&after), ["c=three"]);
    assert_eq!(after.json()["metadata"]["labels"]["x"], "z");
    let failing = json!([{"op": "test", "path": "/spec/replicas", "value": 77}]);
    assert_eq!(
        server
            .patch(&at, JSON_PATCH, &failing)
            .await
            .expect(422)
            .status()
            .1,
        "Invalid"
    );

    let mut applied = deployment("d");
    applied["apiVersion"] = json!("apps/v1");
    applied["kind"] = json!("Deployment");
    applied["spec"]["replicas"] = json!(4);
    server.patch(&at, APPLY, &applied).await.expect(422);
    let forced = format!("{at}?fieldManager=me&force=true");
    let after = server.patch(&forced, APPLY, &applied).await.expect(200);
    assert_eq!(after.json()["spec"]["replicas"], 4);
    let missing = format!("{DEPLOYMENTS}/new?fieldManager=me");
    applied["metadata"]["name"] = json!("new");
    server.patch(&missing, APPLY, &applied).await.expect(201);
    server
        .patch(&format!("{DEPLOYMENTS}/none"), MERGE, &json!({}))
        .await
        .expect(404);
    let wrong = server
        .patch(&at, "text/plain", &json!({}))
        .await
        .expect(415);
    assert_eq!(wrong.status().1, "UnsupportedMediaType");
}

#[tokio::test]
async fn unknown_fields_are_ignored_warned_about_or_rejected() {
    let server = TestServer::start().await;
    let body = r#"{"metadata":{"name":"a","zeal":1},"dta":{"y":"1","y":"2"},"data":{"x":"1","x":"2"},"a":1}"#;
    // In document order.
    let findings = [
        r#"unknown field "metadata.zeal""#,
        r#"unknown field "dta""#,
        r#"duplicate field "data.x""#,
        r#"unknown field "a""#,
    ];
    let post = async |query: &str| {
        let path = format!("{MAPS}?dryRun=All{query}");
        server.send("POST", &path, &[], body).await
    };
    for query in ["", "&fieldValidation=Warn"] {
        let warned = post(query).await.expect(201);
        let quoted = findings.map(|finding| format!("299 - {finding:?}"));
        assert_eq!(warned.headers("warning"), quoted);
        assert_eq!(warned.json()["data"]["x"], "2");
        assert_eq!(warned.json().get("dta"), None);
    }
    assert!(
        post("&fieldValidation=Ignore")
            .await
            .expect(201)
            .headers("warning")
            .is_empty()
    );
    let refused = post("&fieldValidation=Strict").await.expect(400);
    let (_, reason, message) = refused.status();
    assert_eq!(reason, "BadRequest");
    let expected = format!(
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: {}",
        findings.join(", ")
    );
    assert_eq!(message, expected);
    post("&fieldValidation=Sometimes").await.expect(422);
    server.post(MAPS, &config_map("a")).await.expect(201);
    let path = format!("{MAPS}/a?fieldValidation=Strict");
    let refused = server
        .patch(&path, MERGE, &json!({"dta": {}}))
        .await
        .expect(422);
    assert_eq!(
        refused.json()["details"]["causes"][0]["field"],
        "patch",
        "{}",
        refused.text()
    );
    let yaml = "metadata:\n  name: yaml\ndata:\n  k: a\n  k: b\n";
    let headers = [("content-type", "application/yaml")];
    let warned = server
        .send("POST", &format!("{MAPS}?dryRun=All"), &headers, yaml)
        .await
        .expect(201);
    assert_eq!(
        warned.headers("warning"),
        [r#"299 - "line 5: key \"k\" already set in map""#]
    );
}

#[tokio::test]
async fn protobuf_bodies_are_written_and_read() {
    let server = TestServer::start().await;
    let headers = [("content-type", PROTOBUF), ("accept", PROTOBUF)];
    let made = server
        .send("POST", MAPS, &headers, proto::config_map("p"))
        .await
        .expect(201);
    let (kind, object) = proto::open(&made.bytes);
    assert_eq!(kind, "ConfigMap");
    assert_eq!(
        proto::get(proto::get(object, 1).unwrap(), 1),
        Some(b"p".as_slice())
    );
    let at = format!("{MAPS}/p");
    assert_eq!(
        server.get(&at).await.expect(200).json()["data"],
        json!({"a": "b"})
    );
    let refused = server
        .send("POST", MAPS, &headers, proto::config_map("p"))
        .await
        .expect(409);
    assert_eq!(proto::open(&refused.bytes).0, "Status");
    server
        .send("PUT", &at, &headers, made.bytes.clone())
        .await
        .expect(200);
    let options = proto::envelope("v1", "DeleteOptions", &proto::field(4, b"Background"));
    server
        .send("DELETE", &at, &headers, options)
        .await
        .expect(200);
    server.get(&at).await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writers_lose_no_update() {
    const WRITERS: usize = 8;
    const EACH: usize = 12;
    let server = Arc::new(TestServer::builder().sqlite().start().await);
    let mut counter = config_map("counter");
    counter["data"] = json!({"n": "0"});
    server.post(MAPS, &counter).await.expect(201);
    let at = format!("{MAPS}/counter");
    let mut tasks = Vec::new();
    for writer in 0..WRITERS {
        let (server, at) = (server.clone(), at.clone());
        tasks.push(tokio::spawn(async move {
            for round in 0..EACH {
                loop {
                    let mut object = server.get(&at).await.expect(200).json();
                    let n: usize = text(&object["data"]["n"]).parse().unwrap();
                    object["data"]["n"] = json!((n + 1).to_string());
                    let answer = server.put(&at, &object).await;
                    if answer.code == 200 {
                        break;
                    }
                    answer.expect(409);
                }
                // A patch without a version never conflicts.
                let patch = json!({"data": {format!("w{writer}-{round}"): "x"}});
                server.patch(&at, MERGE, &patch).await.expect(200);
            }
        }));
    }
    for task in tasks {
        soon(task).await.unwrap();
    }
    let object = server.get(&at).await.json();
    assert_eq!(object["data"]["n"], (WRITERS * EACH).to_string());
    assert_eq!(
        object["data"].as_object().unwrap().len(),
        WRITERS * EACH + 1
    );
}

#[tokio::test]
async fn a_restart_loses_nothing_and_repeats_no_version() {
    let mut server = TestServer::builder().sqlite().start().await;
    let made = server.post(MAPS, &config_map("a")).await.expect(201).json();
    let gone = server.post(MAPS, &config_map("b")).await.expect(201).json();
    server.delete(&format!("{MAPS}/b")).await.expect(200);
    server.restart().await;
    assert_eq!(
        server.get(&format!("{MAPS}/a")).await.expect(200).json(),
        made
    );
    server.get(&format!("{MAPS}/b")).await.expect(404);
    let next = server
        .post(MAPS, &config_map("c"))
        .await
        .expect(201)
        .version();
    assert!(next > version(&gone) + 1);
    let path = format!("{MAPS}?watch=1&resourceVersion={}", version(&made));
    let mut watch = server.watch(&path).await;
    for expected in ["ADDED b", "DELETED b", "ADDED c"] {
        assert_eq!(watch.brief().await, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicate_owners_are_dropped_with_one_warning() {
    let server = bareboat_testing::TestServer::start().await;
    // The owner exists: garbage collection would delete the dependent of a missing one.
    let owner = server.post(MAPS, &config_map("owner")).await.expect(201);
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
        "uid": owner.json()["metadata"]["uid"]});
    let mut object = config_map("twice");
    object["metadata"]["ownerReferences"] = json!([owner, owner]);
    let made = server.post(MAPS, &object).await.expect(201);
    let warnings = made.headers("warning");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("contains duplicate entries; API server"));
    let patch = json!([{"op": "copy", "from": "/metadata/ownerReferences/0", "path": "/metadata/ownerReferences/-"}]);
    let path = format!("{MAPS}/twice");
    let patched = server.patch(&path, JSON_PATCH, &patch).await.expect(200);
    let warnings = patched.headers("warning");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("contains duplicate entries after mutating admission happens;"));
    let owners = &patched.json()["metadata"]["ownerReferences"];
    assert_eq!(*owners, json!([owner]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replacing_an_object_with_an_unknown_uid_creates_nothing() {
    let server = bareboat_testing::TestServer::start().await;
    let path = "/api/v1/namespaces/default/events/e";
    let mut event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "uid": "u-1"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}});
    let put = |event: &Value| server.send("PUT", path, &[], event.to_string());
    let (code, reason, _) = put(&event).await.status();
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    server.get(path).await.expect(404);
    event["metadata"]["uid"] = Value::Null;
    put(&event).await.expect(201);
}
