//! Members that decide themselves who reads their objects.

use crate::rig::{P, Rig, pod, user};
use crate::rights::{filled, grant, members, read};

/// Three members, of which c2 and c3 decide themselves.
async fn with_judges() -> Rig {
    let rig = filled().await;
    for name in ["c2", "c3"] {
        let mut member = crate::rig::member(name);
        member.judges = true;
        rig.join(member);
    }
    rig.put("c3", pod("a", "x", "Running"));
    grant(&rig, "gus", "", members(&[])).await;
    rig
}

fn allow(rig: &Rig, rights: &[&str]) {
    let mut allows = rig.data.allows.lock();
    allows.extend(rights.iter().map(|right| (*right).to_owned()));
}

#[tokio::test]
async fn members_may_decide_themselves() {
    let rig = with_judges().await;
    let pods = format!("{P}/api/v1/pods");
    // Neither the hub nor a member allows anything.
    rig.get_as("gus", &pods).await.expect(403);
    let one = |name: &str| format!("{P}/clusters/{name}/api/v1/namespaces/a/pods");
    let refused = rig.get_as("gus", &one("c2")).await.expect(403);
    assert!(
        refused.message().contains("the cluster c2 decides"),
        "{}",
        refused.message()
    );
    rig.get_as("gus", &format!("{}/x", one("c2")))
        .await
        .expect(403);
    rig.get_as("gus", &one("c1")).await.expect(403);
    allow(
        &rig,
        &["c2 hal list pods", "c2 hal get pods a", "c2 hal watch pods"],
    );
    grant(&rig, "hal", "", members(&[])).await;
    // The right in the member suffices for it, and for no other.
    let list = rig.get_as("hal", &pods).await;
    assert_eq!(list.names(), ["c2/a/x", "c2/b/y"]);
    let warnings = list.warnings().join(" ");
    assert!(
        warnings.contains("c3 is left out") && warnings.contains("1 clusters are left out"),
        "{warnings}"
    );
    rig.get_as("hal", &format!("{}/x", one("c2")))
        .await
        .expect(200);
    rig.get_as("hal", &format!("{P}/clusters/c3/api/v1/pods"))
        .await
        .expect(403);
    rig.get_as("hal", &format!("{P}/clusters/c1/api/v1/pods"))
        .await
        .expect(403);
    // A right in the hub does not count for members that decide themselves.
    grant(&rig, "ida", "", members(&[])).await;
    grant(&rig, "ida", "", read(&["pods"])).await;
    let list = rig.get_as("ida", &pods).await;
    assert_eq!(list.names(), ["c1/a/x", "c1/b/y"]);
    rig.get_as("ida", &one("c2")).await.expect(403);
    // Both together.
    allow(&rig, &["c3 ida list pods"]);
    // An answer holds for a while, so another user asks.
    let asked = rig.data.reviews.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(rig.get_as("ida", &pods).await.names(), ["c1/a/x", "c1/b/y"]);
    assert_eq!(
        rig.data.reviews.load(std::sync::atomic::Ordering::Relaxed),
        asked
    );
    // The right to the member itself is needed in any case.
    allow(&rig, &["c2 jim list pods"]);
    rig.get_as("jim", &pods).await.expect(403);
}

#[tokio::test]
async fn what_is_visible_is_the_union_over_members() {
    let rig = with_judges().await;
    grant(&rig, "gus", "b", read(&["pods"])).await;
    allow(
        &rig,
        &[
            "c2 gus list pods a",
            "c3 gus list pods",
            "c2 gus watch pods a",
            "c3 gus watch pods",
        ],
    );
    let pods = format!("{P}/api/v1/pods?visible=true");
    assert_eq!(
        rig.get_as("gus", &pods).await.names(),
        ["c2/a/x", "c3/a/x", "c1/b/y"]
    );
    let mut events = rig
        .watch_as(user("gus"), &format!("{pods}&watch=true"), &[])
        .await;
    assert_eq!(
        events.take(3).await,
        ["ADDED c2/a/x", "ADDED c3/a/x", "ADDED c1/b/y"]
    );
    for (cluster, namespace) in [
        ("c1", "a"),
        ("c2", "b"),
        ("c1", "b"),
        ("c2", "a"),
        ("c3", "b"),
    ] {
        rig.put(cluster, pod(namespace, "new", "Running"));
    }
    assert_eq!(
        events.take(3).await,
        ["ADDED c1/b/new", "ADDED c2/a/new", "ADDED c3/b/new"]
    );
    // Events of objects are the member's, too.
    let list = rig
        .get_as("gus", &format!("{pods}&injectEvents=true"))
        .await;
    assert!(
        list.warnings()
            .join(" ")
            .contains("events of c2 are left out"),
        "{:?}",
        list.warnings()
    );
    // Collections leave such members out.
    let any = "/apis/clusterpedia.io/v1beta1/collectionresources/any?resources=/pods";
    let found = rig.get(any).await.expect(200);
    assert_eq!(found.json()["items"].as_array().map(Vec::len), Some(4));
    assert!(
        found.warnings()[0].contains("2 clusters are left out"),
        "{:?}",
        found.warnings()
    );
}

#[tokio::test]
async fn a_member_that_decided_does_so_after_it_has_left() {
    let rig = with_judges().await;
    grant(&rig, "ida", "", members(&[])).await;
    grant(&rig, "ida", "", read(&["pods"])).await;
    allow(&rig, &["c3 ida list pods", "c3 ida watch pods"]);
    let pods = format!("{P}/api/v1/pods?watch=true");
    let mut events = rig.watch_as(user("ida"), &pods, &[]).await;
    let mut state = events.take(3).await;
    state.sort();
    assert_eq!(state, ["ADDED c1/a/x", "ADDED c1/b/y", "ADDED c3/a/x"]);
    rig.put("c3", pod("a", "new", "Running"));
    assert_eq!(events.take(1).await, ["ADDED c3/a/new"]);
    // Both leave, as the controller does it: first the member, then its rows.
    for name in ["c2", "c3"] {
        rig.leave(name);
        let number = rig.number(name);
        rig.shelf.remove_member(number, 1).expect("rows go");
    }
    rig.put("c1", pod("b", "last", "Running"));
    let mut left = events.take(3).await;
    left.sort();
    assert_eq!(
        left,
        ["ADDED c1/b/last", "DELETED c3/a/new", "DELETED c3/a/x"]
    );
}

#[tokio::test]
async fn a_member_that_decides_and_does_not_answer_shows_nothing() {
    let rig = with_judges().await;
    let mut away = crate::rig::member("away");
    away.judges = true;
    rig.join(away);
    rig.put("away", pod("a", "x", "Running"));
    allow(&rig, &["c2 gus list pods"]);
    let list = rig.get_as("gus", &format!("{P}/api/v1/pods")).await;
    assert_eq!(list.names(), ["c2/a/x", "c2/b/y"]);
    assert!(
        list.warnings()
            .join(" ")
            .contains("away is left out: nobody answers"),
        "{:?}",
        list.warnings()
    );
    rig.get_as("gus", &format!("{P}/clusters/away/api/v1/pods"))
        .await
        .expect(503);
}
