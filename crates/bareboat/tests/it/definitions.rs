//! CustomResourceDefinitions: manifests of a removed version, and name conflicts.

use crate::support::*;
use bareboat_testing::TestServer;
use std::sync::Arc;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const OLD: &str = "/apis/apiextensions.k8s.io/v1beta1/customresourcedefinitions";

fn old_manifest() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "crontabs.stable.example.com"},
        "spec": {
            "group": "stable.example.com", "version": "v1", "scope": "Namespaced",
            "names": {"plural": "crontabs", "kind": "CronTab"},
            "validation": {"openAPIV3Schema": {"type": "object"}},
            "additionalPrinterColumns": [{"name": "Age", "type": "date", "JSONPath": ".metadata.creationTimestamp"}],
        },
    })
}

const ADVICE: [&str; 5] = [
    "apiVersion: write apiextensions.k8s.io/v1;",
    "spec.version: write spec.versions: [{name: v1, served: true, storage: true, schema: …}] instead",
    "spec.validation: move openAPIV3Schema to schema.openAPIV3Schema of each entry of spec.versions",
    "spec.additionalPrinterColumns: move it to each entry of spec.versions",
    "JSONPath of additionalPrinterColumns: write jsonPath",
];

#[tokio::test]
async fn an_old_manifest_gets_migration_advice() {
    let server = TestServer::start().await;
    let old = old_manifest();
    let named = format!("{OLD}/crontabs.stable.example.com");
    let apply = async |path: &str, body: &Value| {
        server
            .patch(&format!("{path}?fieldManager=t"), APPLY, body)
            .await
    };
    // The old path is not found, like any version that is not served, but the message says more.
    for answer in [
        server.post(OLD, &old).await,
        server.put(&named, &old).await,
        apply(&named, &old).await,
    ] {
        let (_, reason, message) = answer.expect(404).status();
        assert_eq!(reason, "NotFound");
        for words in ADVICE {
            assert!(message.contains(words), "{words} is not in {message}");
        }
        assert!(!message.contains("webhook"), "it has none: {message}");
    }
    for path in [OLD, &named] {
        let (_, _, message) = server.get(path).await.expect(404).status();
        assert!(
            message.contains("spec.conversion.webhookClientConfig"),
            "{message}"
        );
    }
    let yaml = "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nspec: {version: v7}";
    let headers = [("content-type", "application/yaml")];
    let answer = read(server.call(request("POST", OLD, &headers, yaml)).await).await;
    assert!(answer.expect(404).status().2.contains("name: v7"));
    let answer = read(
        server
            .call(request("POST", OLD, &headers, "\u{0}: ["))
            .await,
    )
    .await;
    answer.expect(404);

    // At the new path it is a body of another version.
    let named = format!("{DEFINITIONS}/crontabs.stable.example.com");
    for answer in [
        server.post(DEFINITIONS, &old).await,
        apply(&named, &old).await,
    ] {
        let (_, reason, message) = answer.expect(400).status();
        assert_eq!(reason, "BadRequest");
        assert!(message.starts_with("the API version in the data (apiextensions.k8s.io/v1beta1) does not match the expected API version (apiextensions.k8s.io/v1): "), "{message}");
        for words in ADVICE {
            assert!(message.contains(words), "{words} is not in {message}");
        }
    }
    server
        .get("/apis/apiextensions.k8s.io/v1beta1")
        .await
        .expect(404);
    let group = server
        .get("/apis/apiextensions.k8s.io")
        .await
        .expect(200)
        .json();
    assert_eq!(
        group["versions"].as_array().unwrap().len(),
        1,
        "charts branch on what is listed"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_concurrent_definitions_with_one_name_only_one_is_accepted() {
    for round in 0..5 {
        let server = Arc::new(TestServer::start().await);
        let begin = Arc::new(tokio::sync::Barrier::new(12));
        let mut tasks = tokio::task::JoinSet::new();
        for index in 0..12 {
            let (server, begin) = (server.clone(), begin.clone());
            tasks.spawn(async move {
                let plural = format!("boats{index}");
                let definition = json!({
                    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                    "metadata": {"name": format!("{plural}.race.example.com")},
                    "spec": {
                        "group": "race.example.com", "scope": "Cluster",
                        "names": {"plural": plural, "singular": plural, "kind": "Boat"},
                        "versions": [{"name": "v1", "served": true, "storage": true,
                            "schema": {"openAPIV3Schema": {"type": "object"}}}],
                    },
                });
                begin.wait().await;
                server
                    .post(DEFINITIONS, &definition)
                    .await
                    .expect(201)
                    .json()
            });
        }
        let made = tasks.join_all().await;
        let holds = |definition: &Value, kind: &str| {
            let conditions = definition["status"]["conditions"].as_array().unwrap();
            conditions
                .iter()
                .any(|it| it["type"] == kind && it["status"] == "True")
        };
        for kind in ["Established", "NamesAccepted"] {
            let count = made.iter().filter(|it| holds(it, kind)).count();
            assert_eq!(count, 1, "round {round}: {kind}");
        }
        let group = server
            .get("/apis/race.example.com/v1")
            .await
            .expect(200)
            .json();
        assert_eq!(group["resources"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn an_irrelevant_change_of_a_definition_does_not_end_watches() {
    let server = TestServer::start().await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "buoys.sea.example.com"},
        "spec": {
            "group": "sea.example.com", "scope": "Cluster",
            "names": {"plural": "buoys", "kind": "Buoy"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "string"}}}}}],
        },
    });
    server.post(DEFINITIONS, &definition).await.expect(201);
    let buoys = "/apis/sea.example.com/v1/buoys";
    let mut watch = server.watch(&format!("{buoys}?watch=1")).await;
    let at = format!("{DEFINITIONS}/buoys.sea.example.com");
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    server.patch(&at, MERGE, &label).await.expect(200);
    let status = json!({"status": {"storedVersions": ["v1"], "observedGeneration": 1}});
    server
        .patch(&format!("{at}/status"), MERGE, &status)
        .await
        .expect(200);
    let buoy =
        json!({"apiVersion": "sea.example.com/v1", "kind": "Buoy", "metadata": {"name": "x"}});
    server.post(buoys, &buoy).await.expect(201);
    assert_eq!(watch.brief().await, "ADDED x");
    let schema = json!([{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/b", "value": {"type": "string"}}]);
    server.patch(&at, JSON_PATCH, &schema).await.expect(200);
    assert_eq!(watch.brief().await, "END");
}

#[tokio::test]
async fn watchers_see_all_deletions_before_a_deleted_definition_ends_the_stream() {
    let server = TestServer::start().await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "buoys.sea.example.com"},
        "spec": {
            "group": "sea.example.com", "scope": "Cluster",
            "names": {"plural": "buoys", "kind": "Buoy"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    server.post(DEFINITIONS, &definition).await.expect(201);
    let buoys = "/apis/sea.example.com/v1/buoys";
    let mut watch = server.watch(&format!("{buoys}?watch=1")).await;
    let names = ["a", "b", "c"];
    for name in names {
        let buoy =
            json!({"apiVersion": "sea.example.com/v1", "kind": "Buoy", "metadata": {"name": name}});
        server.post(buoys, &buoy).await.expect(201);
        assert_eq!(watch.brief().await, format!("ADDED {name}"));
    }
    let at = format!("{DEFINITIONS}/buoys.sea.example.com");
    server.delete(&at).await.expect(200);
    let mut gone = Vec::new();
    for _ in names {
        gone.push(watch.brief().await);
    }
    gone.sort();
    assert_eq!(gone, ["DELETED a", "DELETED b", "DELETED c"]);
    assert_eq!(watch.brief().await, "END");
}
