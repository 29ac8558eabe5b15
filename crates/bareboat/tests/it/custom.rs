//! Custom kinds: served at once, with every verb, and removed with their definition.

use crate::support::*;
use crate::vectors;
use bareboat_testing::TestServer;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const SHIPS: &str = "/apis/sea.example.com/v1/namespaces/default/ships";

fn spec_schema(properties: Value) -> Value {
    json!({"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "properties": properties},
        "status": {"type": "object", "properties": {"afloat": {"type": "boolean"}, "masts": {"type": "integer"}}},
    }}})
}

fn version_of(name: &str, storage: bool, properties: Value) -> Value {
    json!({
        "name": name, "served": true, "storage": storage, "schema": spec_schema(properties),
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.masts", "statusReplicasPath": ".status.masts"}},
        "additionalPrinterColumns": [{"name": "Masts", "type": "integer", "jsonPath": ".spec.masts"}],
    })
}

fn properties() -> Value {
    json!({"masts": {"type": "integer", "minimum": 0, "default": 1}, "flag": {"type": "string"}})
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "ships.sea.example.com"},
        "spec": {
            "group": "sea.example.com", "scope": "Namespaced",
            "names": {"plural": "ships", "singular": "ship", "kind": "Ship", "shortNames": ["sh"], "categories": ["all"]},
            "versions": [version_of("v1", true, properties())],
        },
    })
}

fn ship(name: &str) -> Value {
    json!({"apiVersion": "sea.example.com/v1", "kind": "Ship", "metadata": {"name": name}, "spec": {"flag": "red"}})
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a str {
    let found = object["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    found
        .filter(|condition| condition["type"] == kind)
        .map(|condition| text(&condition["status"]))
        .next()
        .unwrap_or("")
}

#[tokio::test]
async fn a_definition_is_established_and_served_at_once() {
    let server = TestServer::start().await;
    let index = server.get("/openapi/v3").await.json();
    assert_eq!(index["paths"].get("apis/sea.example.com/v1"), None);
    let made = server
        .post(DEFINITIONS, &definition())
        .await
        .expect(201)
        .json();
    let read = server
        .get(&format!("{DEFINITIONS}/ships.sea.example.com"))
        .await
        .json();
    for object in [&made, &read] {
        assert_eq!(condition(object, "NamesAccepted"), "True", "{object}");
        assert_eq!(condition(object, "Established"), "True");
        assert_eq!(object["status"]["storedVersions"], json!(["v1"]));
        assert_eq!(object["status"]["acceptedNames"]["listKind"], "ShipList");
    }
    let resources = server
        .get("/apis/sea.example.com/v1")
        .await
        .expect(200)
        .json();
    let names: Vec<&str> = resources["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| text(&r["name"]))
        .collect();
    assert_eq!(names, ["ships", "ships/status", "ships/scale"]);
    assert_eq!(resources["resources"][0]["shortNames"], json!(["sh"]));
    let groups = server.get("/apis").await.json().to_string();
    assert!(groups.contains("sea.example.com"));
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    assert!(
        server
            .get_as("/apis", aggregated)
            .await
            .text()
            .contains("\"ships\"")
    );
    let index = server.get("/openapi/v3").await.json();
    let url = text(&index["paths"]["apis/sea.example.com/v1"]["serverRelativeURL"]).to_owned();
    let document = server.get(&url).await.expect(200).json();
    assert!(document["components"]["schemas"]["com.example.sea.v1.Ship"]["properties"]["spec"]["properties"]["masts"].is_object());
    assert!(
        server
            .get("/openapi/v2")
            .await
            .text()
            .contains("com.example.sea.v1.Ship")
    );
    server.post(SHIPS, &ship("a")).await.expect(201);
}

#[tokio::test]
async fn every_verb_works_on_a_custom_kind() {
    let server = TestServer::start().await;
    server.post(DEFINITIONS, &definition()).await.expect(201);
    let mut watch = server.watch(&format!("{SHIPS}?watch=1")).await;
    let made = server.post(SHIPS, &ship("a")).await.expect(201).json();
    assert_eq!(
        (&made["spec"]["masts"], &made["metadata"]["generation"]),
        (&json!(1), &json!(1))
    );
    let at = format!("{SHIPS}/a");
    let mut changed = made.clone();
    changed["spec"]["masts"] = json!(2);
    changed["status"] = json!({"afloat": true});
    let after = server.put(&at, &changed).await.expect(200).json();
    assert_eq!(
        (&after["metadata"]["generation"], after.get("status")),
        (&json!(2), None)
    );
    let stale = server.put(&at, &changed).await.expect(409);
    assert_eq!(stale.json()["details"]["group"], "sea.example.com");
    let mut unconditional = changed.clone();
    unconditional["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("resourceVersion");
    let refused = server.put(&at, &unconditional).await.expect(422);
    assert!(
        refused.status().2.starts_with(
            "ships.sea.example.com \"a\" is invalid: metadata.resourceVersion: Invalid value: "
        ),
        "{}",
        refused.text()
    );
    let patched = server
        .patch(
            &format!("{at}/status"),
            MERGE,
            &json!({"status": {"afloat": true, "masts": 1}, "spec": {"masts": 9}}),
        )
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&patched["status"]["afloat"], &patched["spec"]["masts"]),
        (&json!(true), &json!(2))
    );
    assert_eq!(patched["metadata"]["generation"], 2);
    let wrong = json!({"status": {"afloat": "yes"}});
    let refused = server.patch(&format!("{at}/status"), MERGE, &wrong).await;
    assert_eq!(
        refused.expect(422).status().2,
        "Ship.sea.example.com \"a\" is invalid: status.afloat: Invalid value: \"string\": \
         afloat in body must be of type boolean: \"string\""
    );
    let operations = json!([{"op": "replace", "path": "/spec/flag", "value": "blue"}]);
    server.patch(&at, JSON_PATCH, &operations).await.expect(200);
    server.patch(&at, STRATEGIC, &json!({})).await.expect(415);
    let mut applied = ship("b");
    applied["spec"]["masts"] = json!(3);
    server
        .patch(&format!("{SHIPS}/b?fieldManager=me"), APPLY, &applied)
        .await
        .expect(201);
    let scale = server.get(&format!("{at}/scale")).await.expect(200).json();
    assert_eq!(
        (text(&scale["kind"]), &scale["spec"]["replicas"]),
        ("Scale", &json!(2))
    );
    let scaled = server
        .patch(
            &format!("{at}/scale"),
            MERGE,
            &json!({"spec": {"replicas": 5}}),
        )
        .await
        .expect(200)
        .json();
    assert_eq!(scaled["spec"]["replicas"], 5);
    assert_eq!(server.get(&at).await.json()["spec"]["masts"], 5);
    let table = server.get_as(SHIPS, TABLE).await.expect(200).json();
    assert_eq!(table["rows"][0]["cells"], json!(["a", 5]));
    let list = server.get(SHIPS).await.expect(200);
    assert_eq!(list.names(), ["a", "b"]);
    assert_eq!(
        list.json()["items"][0]["kind"],
        "Ship",
        "items of custom lists carry their type"
    );
    server.get_as(&at, PROTOBUF).await.expect(406);
    let metadata = format!("{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
    let metadata = server.get_as(&at, &metadata).await.expect(200);
    assert_eq!(proto::open(&metadata.bytes).0, "PartialObjectMetadata");
    server.delete(&at).await.expect(200);
    assert_eq!(server.delete(SHIPS).await.expect(200).names(), ["b"]);
    let mut seen = Vec::new();
    for _ in 0..8 {
        seen.push(watch.brief().await);
    }
    assert_eq!(seen[0], "ADDED a");
    assert_eq!(seen[7], "DELETED b");
}

#[tokio::test]
async fn schemas_prune_default_and_validate() {
    let server = TestServer::start().await;
    server.post(DEFINITIONS, &definition()).await.expect(201);
    let mut object = ship("a");
    object["spec"]["sails"] = json!(7);
    let made = server
        .post(&format!("{SHIPS}?dryRun=All"), &object)
        .await
        .expect(201);
    assert_eq!(made.json()["spec"], json!({"flag": "red", "masts": 1}));
    assert_eq!(
        made.headers("warning"),
        [r#"299 - "unknown field \"spec.sails\"""#]
    );
    object["spec"] = json!({"masts": -1});
    let refused = server.post(SHIPS, &object).await.expect(422).json();
    let causes = refused["details"]["causes"].as_array().unwrap();
    assert!(
        causes.iter().any(|cause| cause["field"] == "spec.masts"),
        "{refused}"
    );
    object["spec"] = json!({"masts": "two"});
    let refused = server.post(SHIPS, &object).await.expect(422).json();
    let causes = refused["details"]["causes"].as_array().unwrap();
    assert!(
        causes
            .iter()
            .any(|cause| cause["reason"] == "FieldValueTypeInvalid"),
        "{refused}"
    );
    let mut nameless = ship("a");
    nameless.as_object_mut().unwrap().remove("kind");
    server.post(SHIPS, &nameless).await.expect(400);
}

#[tokio::test]
async fn several_versions_show_the_same_object() {
    let server = TestServer::start().await;
    let mut two = definition();
    two["spec"]["versions"] = json!([
        version_of("v1", true, properties()),
        version_of("v2", false, properties()),
        version_of("v3alpha1", false, properties())
    ]);
    two["spec"]["versions"][2]["served"] = json!(false);
    server.post(DEFINITIONS, &two).await.expect(201);
    server.post(SHIPS, &ship("a")).await.expect(201);
    let other = SHIPS.replace("/v1/", "/v2/");
    let seen = server.get(&format!("{other}/a")).await.expect(200).json();
    assert_eq!(seen["apiVersion"], "sea.example.com/v2");
    assert_eq!(seen["spec"]["flag"], "red");
    assert_eq!(
        server.get(&other).await.json()["items"][0]["apiVersion"],
        "sea.example.com/v2"
    );
    let mut watch = server.watch(&format!("{other}?watch=1")).await;
    assert_eq!(
        watch.next().await.unwrap()["object"]["apiVersion"],
        "sea.example.com/v2"
    );
    let mut second = ship("b");
    second["apiVersion"] = json!("sea.example.com/v2");
    server.post(&other, &second).await.expect(201);
    assert_eq!(
        server.get(&format!("{SHIPS}/b")).await.expect(200).json()["apiVersion"],
        "sea.example.com/v1"
    );
    assert_eq!(
        watch.next().await.unwrap()["object"]["apiVersion"],
        "sea.example.com/v2"
    );
    server
        .get(&SHIPS.replace("/v1/", "/v3alpha1/"))
        .await
        .expect(404);
    let group = server.get("/apis/sea.example.com").await.json();
    assert_eq!(group["preferredVersion"]["version"], "v2");
}

#[tokio::test]
async fn a_changed_schema_applies_to_reads_at_once() {
    let server = TestServer::start().await;
    server.post(DEFINITIONS, &definition()).await.expect(201);
    let before = server.post(SHIPS, &ship("a")).await.expect(201).version();
    let at = format!("{DEFINITIONS}/ships.sea.example.com");
    let wider = json!([version_of(
        "v1",
        true,
        json!({
            "masts": {"type": "integer", "default": 1}, "port": {"type": "string", "default": "home"},
        })
    )]);
    server
        .patch(&at, MERGE, &json!({"spec": {"versions": wider}}))
        .await
        .expect(200);
    let after = server.get(&format!("{SHIPS}/a")).await.expect(200);
    assert_eq!(
        after.json()["spec"],
        json!({"masts": 1, "port": "home"}),
        "defaulted and pruned on the way out"
    );
    assert_eq!(after.version(), before, "without a write");
    assert_eq!(
        server.get(SHIPS).await.json()["items"][0]["spec"]["port"],
        "home"
    );
}

#[tokio::test]
async fn deleting_a_definition_deletes_its_objects_and_paths() {
    let server = TestServer::start().await;
    server.post(DEFINITIONS, &definition()).await.expect(201);
    server.post(SHIPS, &ship("a")).await.expect(201);
    let mut watch = server.watch(&format!("{SHIPS}?watch=1")).await;
    assert_eq!(watch.brief().await, "ADDED a");
    let at = format!("{DEFINITIONS}/ships.sea.example.com");
    server.delete(&at).await.expect(200);
    for attempt in 0.. {
        if server.get(&at).await.code == 404 {
            break;
        }
        assert!(attempt < 30_000, "the definition does not go");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    server.get(SHIPS).await.expect(404);
    server.get("/apis/sea.example.com/v1").await.expect(404);
    assert_eq!(
        server.get("/openapi/v3").await.json()["paths"].get("apis/sea.example.com/v1"),
        None
    );
    while watch.next().await.is_some() {}
    server.post(DEFINITIONS, &definition()).await.expect(201);
    assert!(
        server.get(SHIPS).await.expect(200).names().is_empty(),
        "nothing of the old kind comes back"
    );
}

#[tokio::test]
async fn invalid_definitions_are_rejected() {
    let server = TestServer::start().await;
    let broken: [(&str, Value); 8] = [
        ("/metadata/name", json!("ships.other.example.com")),
        ("/spec/scope", json!("Universal")),
        ("/spec/names/kind", json!("")),
        ("/spec/names/plural", json!("Ships")),
        ("/spec/versions/0/storage", json!(false)),
        (
            "/spec/versions/0/schema/openAPIV3Schema/type",
            json!("string"),
        ),
        (
            "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/masts/default",
            json!("many"),
        ),
        (
            "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations",
            json!([{"rule": "self.(("}]),
        ),
    ];
    for (path, value) in broken {
        let mut bad = definition();
        let (parent, key) = path.rsplit_once('/').unwrap();
        bad.pointer_mut(parent).unwrap()[key] = value;
        let answer = server.post(DEFINITIONS, &bad).await;
        assert_eq!(answer.code, 422, "{path}: {}", answer.text());
    }
    let mut none = definition();
    none["spec"]["versions"] = json!([]);
    server.post(DEFINITIONS, &none).await.expect(422);
}

#[tokio::test]
async fn published_definitions_install_and_serve() {
    let Some(folder) = vectors::folder("crds") else {
        return;
    };
    let server = TestServer::start().await;
    let mut count = 0;
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .flat_map(|project| std::fs::read_dir(project.unwrap().path()).unwrap())
        .map(|file| file.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|end| end == "yaml" || end == "yml")
        })
        .collect();
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for document in text.split("\n---") {
            if !document.contains("kind: CustomResourceDefinition") {
                continue;
            }
            let headers = [("content-type", "application/yaml")];
            let path = format!("{DEFINITIONS}?fieldValidation=Strict");
            let made = server
                .send("POST", &path, &headers, document.to_owned())
                .await;
            assert_eq!(made.code, 201, "{}: {}", file.display(), made.text());
            let made = made.json();
            assert_eq!(condition(&made, "Established"), "True", "{}", name(&made));
            let spec = &made["spec"];
            for version in spec["versions"].as_array().unwrap() {
                let path = format!(
                    "/apis/{}/{}/{}",
                    self::text(&spec["group"]),
                    self::text(&version["name"]),
                    self::text(&spec["names"]["plural"])
                );
                let code = if version["served"] == true { 200 } else { 404 };
                server.get(&path).await.expect(code);
            }
            count += 1;
        }
    }
    assert!(count > 30, "only {count} definitions were found");
    server.get("/openapi/v2").await.expect(200);
}
