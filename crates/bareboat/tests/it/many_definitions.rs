//! Two thousand definitions of 20 KiB: installed over a socket, used, reloaded after a restart, at low memory cost.

use crate::memory::{alone, resident};
use crate::socket::{As, Connection};
use crate::support::*;
use bareboat_testing::TestServer;
use std::sync::Arc;

const COUNT: usize = 2_000;
/// Number of definitions per group, as with one provider.
const A_GROUP: usize = 100;
const LANES: usize = 4;
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// How much memory one definition may add to an idle server: its own size, and little more.
const KEPT: u64 = 64 << 10;

fn group(number: usize) -> String {
    format!("g{}.example.com", number / A_GROUP)
}

/// Returns a definition of about 20 KiB. All schemas differ, as real ones do.
fn definition(number: usize) -> Value {
    let mut properties = serde_json::Map::new();
    for at in 0..100 {
        let text = format!(
            "Field {at} of kind {number}. {}",
            "The description's text. ".repeat(5)
        );
        properties.insert(
            format!("field{number}x{at}"),
            json!({"type": "string", "maxLength": 100 + at, "description": text}),
        );
    }
    properties.insert(
        "size".into(),
        json!({"type": "integer", "default": number, "minimum": 0}),
    );
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things{number}.{}", group(number))},
        "spec": {
            "group": group(number),
            "scope": "Namespaced",
            "names": {"plural": format!("things{number}"), "singular": format!("thing{number}"),
                "kind": format!("Thing{number}"), "shortNames": [format!("t{number}")]},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": properties,
                        "x-kubernetes-validations": [{"rule": "self.size < 1000000"}]},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]
        }
    })
}

fn objects(number: usize) -> String {
    format!(
        "/apis/{}/v1/namespaces/default/things{number}",
        group(number)
    )
}

async fn install(server: &Arc<TestServer>) {
    let mut lanes = tokio::task::JoinSet::new();
    for lane in 0..LANES {
        let server = server.clone();
        lanes.spawn(async move {
            let mut connection = Connection::http2(&server, As::Admin).await;
            for number in (lane..COUNT).step_by(LANES) {
                let body = definition(number).to_string();
                let answer = connection.send("POST", CRDS, &[], body).await.expect(201);
                let conditions = &answer.json()["status"]["conditions"];
                let conditions = conditions.as_array().expect("conditions");
                let established = conditions
                    .iter()
                    .any(|one| one["type"] == "Established" && one["status"] == "True");
                assert!(established, "{conditions:?}");
            }
        });
    }
    while let Some(done) = lanes.join_next().await {
        done.unwrap();
    }
}

/// Checks that every kind is in discovery, and that the first, a middle and the last one work.
async fn look_around(server: &TestServer, generation: &str) {
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let discovered = server.get_as("/apis", accept).await.expect(200).json();
    let items = discovered["items"].as_array().unwrap();
    let ours = items
        .iter()
        .filter(|item| name(item).ends_with(".example.com"));
    let resources: usize = ours
        .map(|item| item["versions"][0]["resources"].as_array().unwrap().len())
        .sum();
    assert_eq!(resources, COUNT);
    for number in [0, COUNT / 2, COUNT - 1] {
        let body = json!({"apiVersion": format!("{}/v1", group(number)), "kind": format!("Thing{number}"),
            "metadata": {"name": generation}, "spec": {}});
        let made = server
            .post(&objects(number), &body)
            .await
            .expect(201)
            .json();
        assert_eq!(made["spec"]["size"], number);
        let mut wrong = body.clone();
        wrong["metadata"]["name"] = json!("wrong");
        wrong["spec"] = json!({"size": 1_000_000});
        server.post(&objects(number), &wrong).await.expect(422);
        let path = format!("/openapi/v3/apis/{}/v1", group(number));
        let document = server.get(&path).await.expect(200).text();
        assert!(document.contains(&format!("Field 7 of kind {number}.")));
    }
}

#[test]
fn two_thousand_definitions_are_installed_used_and_kept() {
    alone(
        "many_definitions::two_thousand_definitions_are_installed_used_and_kept",
        async {
            let server = TestServer::builder().sqlite().listening().start().await;
            let before = resident();
            let server = Arc::new(server);
            install(&server).await;
            if let (Some(before), Some(after)) = (before, resident()) {
                let each = after.saturating_sub(before) / COUNT as u64;
                println!("{} bytes a definition", each);
                assert!(each < KEPT, "{each} bytes a definition");
            }
            look_around(&server, "first").await;
            let Ok(mut server) = Arc::try_unwrap(server) else {
                panic!("another task still holds the server");
            };
            server.restart().await;
            look_around(&server, "second").await;
            let names = server.get(&objects(COUNT - 1)).await.expect(200).names();
            assert_eq!(names, ["first", "second"]);
            // One is deleted, the others stay.
            let gone = name(&definition(0));
            server.delete(&format!("{CRDS}/{gone}")).await.expect(200);
            while server.get(&format!("{CRDS}/{gone}")).await.code != 404 {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            server.get(&objects(0)).await.expect(404);
            server.get(&objects(1)).await.expect(200);
        },
    );
}
