//! Objects that are large when stored or in memory.

use crate::support::*;
use bareboat_testing::TestServer;

/// Objects that are too large only because of their managed fields are stored without these.
#[tokio::test]
async fn managed_fields_that_do_not_fit_are_dropped_except_from_an_apply() {
    let server = TestServer::start().await;
    let large = |name: &str, value: &str| {
        let data = (0..20_000).map(|n| (format!("{n:044}"), json!(value)));
        let data: serde_json::Map<String, Value> = data.collect();
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name}, "data": data,
        })
    };
    let managed = |answer: &Value| !answer["metadata"]["managedFields"].is_null();
    let created = server.post(MAPS, &large("large", "")).await.expect(201);
    assert!(!managed(&created.json()));
    let at = format!("{MAPS}/large");
    let replaced = server.put(&at, &large("large", "x")).await.expect(200);
    assert!(!managed(&replaced.json()));
    let patch = json!({"data": {"another": "one"}});
    let patched = server.patch(&at, MERGE, &patch).await.expect(200).json();
    assert_eq!(patched["data"]["another"], "one");
    let path = format!("{MAPS}/applied?fieldManager=me");
    let refused = server.patch(&path, APPLY, &large("applied", "")).await;
    assert_eq!(refused.expect(413).status().1, "RequestEntityTooLarge");
    // An object that fits keeps them.
    let small = server.post(MAPS, &config_map("small")).await.expect(201);
    assert!(managed(&small.json()));
}

#[tokio::test]
async fn a_small_message_that_decodes_to_much_memory_is_rejected() {
    let server = TestServer::start().await;
    let pods = "/api/v1/namespaces/default/pods";
    let headers = [("content-type", PROTOBUF)];
    let pod = |containers: usize| {
        let spec = [0x12, 0].repeat(containers);
        proto::envelope("v1", "Pod", &proto::field(2, &spec))
    };
    let refused = server.send("POST", pods, &headers, pod(1_000_000)).await;
    let (_, reason, message) = refused.expect(413).status();
    assert_eq!(reason, "RequestEntityTooLarge");
    assert!(message.contains("the decoded message would take more than"));
    // A small number is validated as usual.
    let judged = server.send("POST", pods, &headers, pod(3)).await;
    judged.expect(422);
}
