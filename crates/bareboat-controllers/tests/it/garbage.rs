//! Garbage collection.

use crate::fixture::{
    DEFINITIONS, Fixture, blocking, config, configs, definition, ghost, no_finalizers, owner,
};
use bareboat_api::{Object, Value, value};

fn owners(object: &Object) -> usize {
    let owners = object.meta("ownerReferences").and_then(Value::as_array);
    owners.map_or(0, <[Value]>::len)
}

#[tokio::test(flavor = "multi_thread")]
async fn background_deletion_deletes_dependents() {
    let fixture = Fixture::new().await;
    let root = fixture.config("root", vec![], &[]).await;
    let child = fixture.config("child", vec![owner(&root)], &[]).await;
    fixture.config("grandchild", vec![owner(&child)], &[]).await;
    fixture.settle().await;
    assert!(fixture.exists(&config("grandchild")).await);
    fixture.delete(&config("root"), "Background").await;
    fixture.until_gone(&config("child")).await;
    fixture.until_gone(&config("grandchild")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn foreground_deletion_waits_for_blocking_dependents() {
    let fixture = Fixture::new().await;
    let root = fixture.config("root", vec![], &[]).await;
    let child = fixture.config("child", vec![blocking(&root)], &[]).await;
    fixture
        .config("grandchild", vec![blocking(&child)], &["example.com/hold"])
        .await;
    // The collector knows all of them; otherwise it may look at the child before it knows the grandchild.
    fixture.settle().await;
    fixture.delete(&config("root"), "Foreground").await;
    fixture
        .until_it(&config("grandchild"), |it| {
            it.deletion_timestamp().is_some()
        })
        .await;
    fixture.settle().await;
    let child = fixture.get(&config("child")).await.unwrap();
    assert!(child.finalizers().any(|name| name == "foregroundDeletion"));
    assert!(fixture.exists(&config("root")).await);
    let patch = no_finalizers();
    fixture
        .client
        .merge(&config("grandchild"), &patch)
        .await
        .unwrap();
    fixture.until_gone(&config("root")).await;
    assert!(!fixture.exists(&config("child")).await);
    assert!(!fixture.exists(&config("grandchild")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn foreground_deletion_does_not_wait_for_other_dependents() {
    let fixture = Fixture::new().await;
    let root = fixture.config("root", vec![], &[]).await;
    fixture
        .config("child", vec![owner(&root)], &["example.com/hold"])
        .await;
    fixture.delete(&config("root"), "Foreground").await;
    fixture.until_gone(&config("root")).await;
    fixture
        .until_it(&config("child"), |it| it.deletion_timestamp().is_some())
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn foreground_deletion_without_dependents_is_immediate() {
    let fixture = Fixture::new().await;
    fixture.config("root", vec![], &[]).await;
    fixture.delete(&config("root"), "Foreground").await;
    fixture.until_gone(&config("root")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orphan_deletion_removes_the_owner_from_dependents() {
    let fixture = Fixture::new().await;
    let root = fixture.config("root", vec![], &[]).await;
    let other = fixture.config("other", vec![], &[]).await;
    for index in 0..40 {
        let references = vec![owner(&root), owner(&other)];
        fixture
            .config(&format!("child{index}"), references, &[])
            .await;
    }
    fixture.config("only", vec![owner(&root)], &[]).await;
    fixture.delete(&config("root"), "Orphan").await;
    fixture.until_gone(&config("root")).await;
    fixture.settle().await;
    for index in 0..40 {
        let child = fixture
            .get(&config(&format!("child{index}")))
            .await
            .unwrap();
        assert_eq!((owners(&child), child.deletion_timestamp()), (1, None));
    }
    assert_eq!(owners(&fixture.get(&config("only")).await.unwrap()), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_whose_owner_never_existed_is_deleted() {
    let fixture = Fixture::new().await;
    fixture.config("child", vec![ghost("nobody")], &[]).await;
    fixture.until_gone(&config("child")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn references_to_absent_owners_are_removed_while_one_owner_exists() {
    let fixture = Fixture::new().await;
    let living = fixture.config("living", vec![], &[]).await;
    let dying = fixture.config("dying", vec![], &[]).await;
    fixture
        .config("child", vec![owner(&living), owner(&dying)], &[])
        .await;
    fixture.delete(&config("dying"), "Background").await;
    fixture
        .until_it(&config("child"), |child| owners(child) == 1)
        .await;
    fixture.delete(&config("living"), "Background").await;
    fixture.until_gone(&config("child")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cycles_of_owners_are_deleted() {
    let fixture = Fixture::new().await;
    let first = fixture.config("first", vec![], &[]).await;
    let second = fixture.config("second", vec![blocking(&first)], &[]).await;
    let patch = value!({"metadata": {"ownerReferences": [(blocking(&second))]}});
    fixture
        .client
        .merge(&config("first"), &patch)
        .await
        .unwrap();
    fixture.settle().await;
    fixture.delete(&config("first"), "Foreground").await;
    fixture.until_gone(&config("first")).await;
    fixture.until_gone(&config("second")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_in_another_namespace_counts_as_absent() {
    let fixture = Fixture::new().await;
    fixture.namespace("elsewhere").await;
    let root = fixture.config("root", vec![], &[]).await;
    fixture
        .config_in("elsewhere", "child", vec![owner(&root)], &[])
        .await;
    fixture
        .until_gone(&format!("{}/child", configs("elsewhere")))
        .await;
    assert!(fixture.exists(&config("root")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_scoped_object_with_an_owner_in_a_namespace_stays() {
    let fixture = Fixture::new().await;
    let references = vec![ghost("nobody")];
    let role = value!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "role", "ownerReferences": references},
        "rules": [],
    });
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    fixture.create(roles, role).await;
    fixture.settle().await;
    let role = fixture.get(&format!("{roles}/role")).await.unwrap();
    assert_eq!((owners(&role), role.deletion_timestamp()), (1, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_scoped_owner_may_have_dependents_in_namespaces() {
    let fixture = Fixture::new().await;
    let role = value!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "role:with colon"},
        "rules": [],
    });
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let role = fixture.create(roles, role).await;
    fixture.config("child", vec![owner(&role)], &[]).await;
    fixture.settle().await;
    assert!(fixture.exists(&config("child")).await);
    fixture
        .delete(&format!("{roles}/role:with%20colon"), "Foreground")
        .await;
    fixture.until_gone(&config("child")).await;
    fixture
        .until_gone(&format!("{roles}/role:with%20colon"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_with_an_owner_of_an_unknown_kind_stays() {
    let fixture = Fixture::new().await;
    let reference = value!({
        "apiVersion": "example.com/v1",
        "kind": "Gadget",
        "name": "g",
        "uid": "00000000-0000-4000-8000-000000000001",
    });
    fixture.config("child", vec![reference], &[]).await;
    fixture.settle().await;
    assert!(fixture.exists(&config("child")).await);
    fixture
        .create(DEFINITIONS, definition("gadgets", "Gadget", "Namespaced"))
        .await;
    fixture.until_gone(&config("child")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_dependents_are_deleted() {
    let fixture = Fixture::new().await;
    let root = fixture.config("root", vec![], &[]).await;
    for index in 0..1000 {
        fixture
            .config(&format!("child{index}"), vec![blocking(&root)], &[])
            .await;
    }
    let begun = std::time::Instant::now();
    fixture.delete(&config("root"), "Foreground").await;
    fixture.until_gone(&config("root")).await;
    println!("1000 dependents went in {:?}", begun.elapsed());
    let left = fixture
        .client
        .server()
        .store()
        .resource("core/configmaps")
        .len();
    assert_eq!(left, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_report_owners_in_other_namespaces() {
    let fixture = Fixture::new().await;
    fixture.namespace("elsewhere").await;
    let away = fixture.config_in("elsewhere", "away", vec![], &[]).await;
    fixture.config("stray", vec![owner(&away)], &[]).await;
    fixture.until_gone(&config("stray")).await;
    // A cluster-scoped object with an owner in a namespace stays.
    let node = value!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "node", "ownerReferences": [(owner(&away))]},
    });
    fixture.create("/api/v1/nodes", node).await;
    let reported = async |kind: &str, message: String| {
        let list = fixture
            .client
            .get("/api/v1/namespaces/default/events")
            .await;
        let list = list.expect("events can be listed");
        let items = list.get("items").and_then(Value::as_array).unwrap_or(&[]);
        items.iter().any(|event| {
            let text = |path: &[&str]| event.at(path).and_then(Value::as_str);
            text(&["involvedObject", "kind"]) == Some(kind)
                && text(&["reason"]) == Some("OwnerRefInvalidNamespace")
                && text(&["type"]) == Some("Warning")
                && text(&["message"]) == Some(&message)
        })
    };
    let message = |namespace: &str| {
        format!(
            "ownerRef [v1/ConfigMap, namespace: {namespace}, name: away, uid: {}] does not exist in namespace {namespace:?}",
            away.uid()
        )
    };
    for (kind, namespace) in [("ConfigMap", "default"), ("Node", "")] {
        fixture
            .until(kind, async || reported(kind, message(namespace)).await)
            .await;
    }
    assert!(fixture.exists("/api/v1/nodes/node").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_with_another_uid_is_another_owner() {
    let fixture = Fixture::new().await;
    let first = fixture.config("root", vec![], &[]).await;
    fixture.delete(&config("root"), "Background").await;
    let second = fixture.config("root", vec![], &[]).await;
    fixture.config("stale", vec![owner(&first)], &[]).await;
    fixture.config("true", vec![owner(&second)], &[]).await;
    fixture.until_gone(&config("stale")).await;
    fixture.settle().await;
    assert!(fixture.exists(&config("true")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn foreground_deletion_does_not_wait_for_objects_in_other_namespaces() {
    let fixture = Fixture::new().await;
    let root = fixture.config("root", vec![], &[]).await;
    let node = value!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "node", "ownerReferences": [(blocking(&root))]},
    });
    fixture.create("/api/v1/nodes", node).await;
    fixture.delete(&config("root"), "Foreground").await;
    fixture.until_gone(&config("root")).await;
    fixture.settle().await;
    assert!(fixture.exists("/api/v1/nodes/node").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn dependents_are_deleted_if_the_kind_of_their_owner_is_deleted() {
    let fixture = Fixture::new().await;
    let gadgets = definition("gadgets", "Gadget", "Namespaced");
    fixture.create(DEFINITIONS, gadgets).await;
    let gadget =
        value!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}});
    let gadget = fixture
        .create("/apis/example.com/v1/namespaces/default/gadgets", gadget)
        .await;
    for index in 0..300 {
        let name = format!("child{index}");
        fixture.config(&name, vec![owner(&gadget)], &[]).await;
    }
    let gadgets = format!("{DEFINITIONS}/gadgets.example.com");
    fixture.delete(&gadgets, "Background").await;
    fixture.until_gone(&gadgets).await;
    let configs = fixture.client.server().store().resource("core/configmaps");
    fixture
        .until("no dependent is left", async || configs.is_empty())
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dependents_created_during_the_deletion_of_their_owner_are_deleted() {
    let fixture = Fixture::new().await;
    let root = fixture.config("root", vec![], &[]).await;
    for index in 0..50 {
        let name = format!("child{index}");
        fixture.config(&name, vec![blocking(&root)], &[]).await;
    }
    let root_path = config("root");
    let deleted = fixture.delete(&root_path, "Foreground");
    let more = async {
        for index in 0..100 {
            let name = format!("late{index}");
            fixture.config(&name, vec![blocking(&root)], &[]).await;
        }
    };
    tokio::join!(deleted, more);
    fixture.until_gone(&config("root")).await;
    let configs = fixture.client.server().store().resource("core/configmaps");
    fixture
        .until("no dependent is left", async || configs.is_empty())
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_about_owners_in_other_namespaces_are_limited() {
    let fixture = Fixture::new().await;
    fixture.namespace("elsewhere").await;
    let mut owners = Vec::new();
    for index in 0..40 {
        let away = fixture
            .config_in("elsewhere", &format!("away{index}"), vec![], &[])
            .await;
        owners.push(owner(&away));
    }
    fixture.config("stray", owners, &[]).await;
    fixture.until_gone(&config("stray")).await;
    // Events are written before the object is deleted.
    let events = fixture.client.server().store().resource("core/events");
    let reported = events.len();
    assert!((1..40).contains(&reported), "{reported} events");
}
