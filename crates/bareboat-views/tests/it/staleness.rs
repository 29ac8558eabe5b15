//! What clients learn about members that are not up to date.

use crate::rig::{BIRTHDAY, P, Rig, member, pod};

#[tokio::test]
async fn stale_members_are_mentioned() {
    let rig = Rig::start().await;
    rig.put("c1", pod("a", "x", "Running"));
    let mut stale = member("c1");
    stale.ready = false;
    stale.in_sync = false;
    stale.reason = "NotReachable".to_owned();
    stale.heard = Some(BIRTHDAY - 192_000);
    rig.join(stale);
    let one = rig.get(&format!("{P}/clusters/c1/api/v1/pods")).await;
    assert_eq!(one.names(), ["c1/a/x"], "rows are served all the same");
    assert_eq!(
        one.warnings(),
        [
            "299 - \"c1 is not ready and the resources obtained may be inaccurate, reason: NotReachable\""
        ]
    );
    let merged = rig.get(&format!("{P}/api/v1/pods")).await.expect(200);
    assert_eq!(merged.warnings(), ["299 - \"c1 was last heard 3m12s ago\""]);
    assert_eq!(merged.headers["fleet-clusters"], "total=3 fresh=2");
    let refused = rig
        .get(&format!("{P}/api/v1/pods?maxStaleness=30s"))
        .await
        .expect(503);
    assert!(refused.message().contains("c1"), "{}", refused.message());
    rig.get(&format!("{P}/api/v1/pods?maxStaleness=5m"))
        .await
        .expect(200);
    rig.get(&format!("{P}/api/v1/pods?maxStaleness=30s&clusters=c2,c3"))
        .await
        .expect(200);
}

#[tokio::test]
async fn at_most_five_stale_members_are_named() {
    let rig = Rig::start().await;
    for number in 1..9 {
        let mut stale = member(&format!("s{number}"));
        stale.in_sync = false;
        stale.heard = None;
        rig.join(stale);
    }
    let warnings = rig
        .get(&format!("{P}/api/v1/pods"))
        .await
        .expect(200)
        .warnings();
    assert_eq!(warnings.len(), 6);
    assert_eq!(warnings[0], "299 - \"s1 was never heard\"");
    assert_eq!(warnings[5], "299 - \"3 more clusters are not up to date\"");
}
