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

/// The token of a list that expired after `m001`: it continues at the newest version.
const ONWARD: &str = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoibTAwMVx1MDAwMCJ9";

#[tokio::test]
async fn the_pages_after_an_expired_token_show_one_state() {
    let server = TestServer::builder().without_controllers().start().await;
    fill(&server, 6).await;
    let path = format!("{MAPS}?limit=2&continue={ONWARD}");
    let first = server.get(&path).await.expect(200);
    assert_eq!(first.names(), ["m002", "m003"]);
    server.post(MAPS, &config_map("m0045")).await.expect(201);
    let token = text(&first.json()["metadata"]["continue"]).to_owned();
    let path = format!("{MAPS}?limit=2&continue={token}");
    let second = server.get(&path).await.expect(200);
    assert_eq!(second.names(), ["m004", "m005"]);
    assert_eq!(version(&second.json()), version(&first.json()));
}
