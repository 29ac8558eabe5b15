//! Servers that share a store: the one that does not have the members' objects, and the one that takes over.

use crate::rig::{P, Rig, pod};

#[tokio::test]
async fn a_server_without_members_asks_clients_to_wait() {
    let rig = Rig::start().await;
    rig.put("c1", pod("a", "x", "Running"));
    let pods = format!("{P}/api/v1/pods");
    let mut events = rig.watch(&format!("{pods}?watch=true")).await;
    assert_eq!(events.take(1).await, ["ADDED c1/a/x"]);
    rig.data.away.send_replace(Some("another server leads"));
    // Watches end, because nothing comes to this shelf any more.
    assert!(events.next().await.is_none());
    for path in [
        pods.as_str(),
        &format!("{P}/clusters/c1/api/v1/pods"),
        &format!("{P}/apis"),
        "/apis/clusterpedia.io/v1beta1/collectionresources/any?groups=",
    ] {
        let answer = rig.get(path).await.expect(503);
        assert_eq!(answer.headers["retry-after"], "1", "{path}");
        assert_eq!(answer.message(), "another server leads", "{path}");
    }
    let body = r#"{"metadata": {"name": "x"}}"#;
    let path = format!("{P}/clusters/c1/api/v1/namespaces/a/pods/x");
    rig.send("PUT", &path, body, &[]).await.expect(503);
    // Rights come first: what a user may not read is not told by a server that cannot answer, either.
    rig.get_as("nobody", &path).await.expect(403);
    rig.data.away.send_replace(None);
    assert_eq!(rig.get(&pods).await.names(), ["c1/a/x"]);
}

#[tokio::test]
async fn versions_and_tokens_of_another_server_are_expired() {
    let rig = Rig::start().await;
    for name in ["x", "y", "z"] {
        rig.put("c1", pod("a", name, "Running"));
    }
    let pods = format!("{P}/api/v1/pods");
    let page = rig.get(&format!("{pods}?limit=1")).await.json();
    let text = |name: &str| page["metadata"][name].as_str().unwrap_or("").to_owned();
    let (version, token) = (text("resourceVersion"), text("continue"));
    rig.shelf.count_apart(5).expect("the shelf counts apart");
    let next = format!("{pods}?limit=1&continue={token}");
    let expired = rig.get(&next).await.expect(410);
    assert_eq!(expired.json()["reason"], "Expired");
    let all = "/apis/clusterpedia.io/v1beta1/collectionresources/any?resources=/pods";
    rig.get(&format!("{all}&continue={token}"))
        .await
        .expect(410);
    let mut events = rig
        .watch(&format!("{pods}?watch=true&resourceVersion={version}"))
        .await;
    let event = events.next().await.expect("an event");
    assert_eq!(
        (event["type"].as_str(), event["object"]["code"].as_u64()),
        (Some("ERROR"), Some(410))
    );
    // A list that need not be newer than the old version is one of today, and its own pages go on.
    let page = rig
        .get(&format!("{pods}?limit=2&resourceVersion={version}"))
        .await
        .expect(200);
    let page = page.json();
    let token = page["metadata"]["continue"].as_str().expect("a token");
    let rest = rig.get(&format!("{pods}?limit=2&continue={token}")).await;
    assert_eq!(rest.names(), ["c1/a/z"]);
    let version = page["metadata"]["resourceVersion"].as_str();
    let version = version.expect("a version").to_owned();
    let mut events = rig
        .watch(&format!("{pods}?watch=true&resourceVersion={version}"))
        .await;
    rig.put("c1", pod("a", "new", "Running"));
    assert_eq!(events.take(1).await, ["ADDED c1/a/new"]);
}

#[tokio::test]
async fn a_client_of_one_member_that_knows_more_than_the_shelf_gets_nothing_twice() {
    let rig = Rig::start().await;
    let known = rig.put("c1", pod("a", "x", "Running"));
    // The client has seen two more changes at another server.
    let version = known + 2;
    let watch = format!("{P}/clusters/c1/api/v1/pods?watch=true&resourceVersion={version}");
    let mut events = rig.watch(&watch).await;
    // Another watch sees these changes one after the other.
    let watch = format!("{P}/clusters/c1/api/v1/pods?watch=true&resourceVersion={known}");
    let mut all = rig.watch(&watch).await;
    for (name, phase, event) in [("x", "Failed", "MODIFIED"), ("seen", "Running", "ADDED")] {
        rig.put("c1", pod("a", name, phase));
        assert_eq!(all.take(1).await, [format!("{event} c1/a/{name}")]);
    }
    rig.put("c1", pod("a", "new", "Running"));
    assert_eq!(events.take(1).await, ["ADDED c1/a/new"]);
}
