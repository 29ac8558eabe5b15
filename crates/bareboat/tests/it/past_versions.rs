//! GET of past versions of an object.

use crate::support::*;
use bareboat_testing::TestServer;

#[tokio::test]
async fn a_past_version_of_an_object_can_be_read() {
    let server = TestServer::builder().without_controllers().start().await;
    let path = format!("{MAPS}/a");
    let version = |object: &Value| text(&object["metadata"]["resourceVersion"]).to_owned();
    let first = server.post(MAPS, &config_map("a")).await.expect(201).json();
    let mut second = first.clone();
    second["data"] = json!({"key": "second"});
    let second = server.put(&path, &second).await.expect(200).json();
    server.delete(&path).await.expect(200);
    let other = server.post(MAPS, &config_map("b")).await.expect(201).json();
    let exact =
        |version: &str| format!("{path}?resourceVersion={version}&resourceVersionMatch=Exact");
    for (expected, code) in [(&first, 200), (&second, 200), (&other, 404)] {
        let found = server.get(&exact(&version(expected))).await.expect(code);
        if code == 200 {
            assert_eq!(found.json(), *expected);
        }
    }
    server.get(&path).await.expect(404);
    server.get(&exact("0")).await.expect(400);
    server.get(&exact("")).await.expect(400);
    let future = version(&other).parse::<u64>().unwrap() + 1_000;
    server.get(&exact(&future.to_string())).await.expect(504);
    // Without the match a version means that the object must be as new, as in Kubernetes.
    let newer = format!("{MAPS}/b?resourceVersion={}", version(&first));
    server.get(&newer).await.expect(200);
}
