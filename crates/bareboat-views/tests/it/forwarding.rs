//! Requests that the member answers itself.

use crate::rig::{P, Rig, pod, synced};
use bareboat_views::{OtherVersion, VersionSource};
use std::sync::Arc;

#[tokio::test]
async fn writes_and_subresources_of_one_member_are_forwarded() {
    let rig = Rig::start().await;
    let pods = format!("{P}/clusters/c1/api/v1/namespaces/a/pods");
    let body = r#"{"metadata": {"name": "x"}}"#;
    let answer = rig
        .send("PUT", &format!("{pods}/x?dryRun=All"), body, &[])
        .await
        .expect(200);
    assert_eq!(answer.json()["from"], "member");
    rig.get(&format!("{pods}/x/log?follow=true&container=a%2Fb"))
        .await
        .expect(200);
    let header = [("x-clusterpedia-forward", "true")];
    rig.send("GET", &format!("{pods}?limit=5"), "", &header)
        .await
        .expect(200);
    let label = "labelSelector=app%3Dx,search.clusterpedia.io/forward";
    rig.get(&format!("{pods}?{label}")).await.expect(200);
    rig.get(&format!("{P}/clusters/c1/openapi/v3"))
        .await
        .expect(200);
    let forwarded = rig.data.forwarded.lock().clone();
    let seen: Vec<(&str, &str)> = forwarded
        .iter()
        .map(|one| (one.2.as_str(), one.3.as_str()))
        .collect();
    assert_eq!(
        seen,
        [
            ("PUT", "/api/v1/namespaces/a/pods/x?dryRun=All"),
            (
                "GET",
                "/api/v1/namespaces/a/pods/x/log?follow=true&container=a%2Fb"
            ),
            ("GET", "/api/v1/namespaces/a/pods?limit=5"),
            ("GET", "/api/v1/namespaces/a/pods?labelSelector=app%3Dx"),
            ("GET", "/openapi/v3"),
        ]
    );
    assert!(
        forwarded
            .iter()
            .all(|one| one.0 == "c1" && one.1 == "admin")
    );
}

#[tokio::test]
async fn only_users_of_the_proxy_may_forward() {
    let rig = Rig::start().await;
    let pods = format!("{P}/clusters/c1/api/v1/namespaces/a/pods");
    let user = crate::rig::user("ann");
    let refused = rig
        .send_as(user.clone(), "DELETE", &format!("{pods}/x"), "", &[])
        .await
        .expect(403);
    assert!(
        refused.message().contains("clusters/proxy"),
        "{}",
        refused.message()
    );
    let header = [("x-clusterpedia-forward", "true")];
    rig.send_as(user, "GET", &pods, "", &header)
        .await
        .expect(403);
    assert!(rig.data.forwarded.lock().is_empty());
    let merged = format!("{P}/api/v1/namespaces/a/pods");
    rig.send("POST", &merged, "{}", &[]).await.expect(405);
    rig.send("DELETE", &format!("{merged}/x"), "", &[])
        .await
        .expect(405);
}

#[tokio::test]
async fn versions_that_the_member_must_convert_come_from_it() {
    let rig = Rig::start().await;
    let mut c4 = crate::rig::member("c4");
    let mut boats = synced("sea.example.com", "v1", "boats", "Boat");
    boats.others = vec![OtherVersion {
        name: "v2".to_owned(),
        source: VersionSource::Member,
    }];
    c4.types.push(Arc::new(boats));
    rig.join(c4);
    rig.put("c4", pod("a", "x", "Running"));
    let one = rig
        .get(&format!("{P}/clusters/c4/apis/sea.example.com/v2/boats"))
        .await
        .expect(200);
    assert_eq!(one.json()["from"], "member");
    let merged = rig.get(&format!("{P}/apis/sea.example.com/v2/boats")).await;
    assert!(merged.names().is_empty());
    assert!(
        merged.warnings()[0].contains("c4"),
        "{:?}",
        merged.warnings()
    );
}
