//! Garbage collection.

use crate::world::{
    DEFINITIONS, World, blocking, config, configs, definition, ghost, no_finalizers, owner,
};
use bareboat_api::{Object, Value, value};

fn owners(object: &Object) -> usize {
    let owners = object.meta("ownerReferences").and_then(Value::as_array);
    owners.map_or(0, <[Value]>::len)
}

#[tokio::test(flavor = "multi_thread")]
async fn dependents_follow_their_owner_in_the_background() {
    let world = World::new().await;
    let root = world.config("root", vec![], &[]).await;
    let child = world.config("child", vec![owner(&root)], &[]).await;
    world.config("grandchild", vec![owner(&child)], &[]).await;
    world.settle().await;
    assert!(world.exists(&config("grandchild")).await);
    world.delete(&config("root"), "Background").await;
    world.until_gone(&config("child")).await;
    world.until_gone(&config("grandchild")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_in_the_foreground_goes_after_those_who_block_it() {
    let world = World::new().await;
    let root = world.config("root", vec![], &[]).await;
    let child = world.config("child", vec![blocking(&root)], &[]).await;
    world
        .config("grandchild", vec![blocking(&child)], &["example.com/hold"])
        .await;
    world.delete(&config("root"), "Foreground").await;
    world
        .until_it(&config("grandchild"), |it| {
            it.deletion_timestamp().is_some()
        })
        .await;
    world.settle().await;
    let child = world.get(&config("child")).await.unwrap();
    assert!(child.finalizers().any(|name| name == "foregroundDeletion"));
    assert!(world.exists(&config("root")).await);
    let patch = no_finalizers();
    world
        .client
        .merge(&config("grandchild"), &patch)
        .await
        .unwrap();
    world.until_gone(&config("root")).await;
    assert!(!world.exists(&config("child")).await);
    assert!(!world.exists(&config("grandchild")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_in_the_foreground_does_not_wait_for_those_who_do_not_block() {
    let world = World::new().await;
    let root = world.config("root", vec![], &[]).await;
    world
        .config("child", vec![owner(&root)], &["example.com/hold"])
        .await;
    world.delete(&config("root"), "Foreground").await;
    world.until_gone(&config("root")).await;
    world
        .until_it(&config("child"), |it| it.deletion_timestamp().is_some())
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_in_the_foreground_without_dependents_goes_at_once() {
    let world = World::new().await;
    world.config("root", vec![], &[]).await;
    world.delete(&config("root"), "Foreground").await;
    world.until_gone(&config("root")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orphans_stay_and_forget_their_owner() {
    let world = World::new().await;
    let root = world.config("root", vec![], &[]).await;
    let other = world.config("other", vec![], &[]).await;
    for index in 0..40 {
        let references = vec![owner(&root), owner(&other)];
        world
            .config(&format!("child{index}"), references, &[])
            .await;
    }
    world.config("only", vec![owner(&root)], &[]).await;
    world.delete(&config("root"), "Orphan").await;
    world.until_gone(&config("root")).await;
    world.settle().await;
    for index in 0..40 {
        let child = world.get(&config(&format!("child{index}"))).await.unwrap();
        assert_eq!((owners(&child), child.deletion_timestamp()), (1, None));
    }
    assert_eq!(owners(&world.get(&config("only")).await.unwrap()), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_whose_owner_never_was_is_collected() {
    let world = World::new().await;
    world.config("child", vec![ghost("nobody")], &[]).await;
    world.until_gone(&config("child")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_references_are_removed_while_one_owner_lives() {
    let world = World::new().await;
    let living = world.config("living", vec![], &[]).await;
    let dying = world.config("dying", vec![], &[]).await;
    world
        .config("child", vec![owner(&living), owner(&dying)], &[])
        .await;
    world.delete(&config("dying"), "Background").await;
    world
        .until_it(&config("child"), |child| owners(child) == 1)
        .await;
    world.delete(&config("living"), "Background").await;
    world.until_gone(&config("child")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn circles_are_broken() {
    let world = World::new().await;
    let first = world.config("first", vec![], &[]).await;
    let second = world.config("second", vec![blocking(&first)], &[]).await;
    let patch = value!({"metadata": {"ownerReferences": [(blocking(&second))]}});
    world.client.merge(&config("first"), &patch).await.unwrap();
    world.settle().await;
    world.delete(&config("first"), "Foreground").await;
    world.until_gone(&config("first")).await;
    world.until_gone(&config("second")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_in_another_namespace_counts_as_absent() {
    let world = World::new().await;
    world.namespace("elsewhere").await;
    let root = world.config("root", vec![], &[]).await;
    world
        .config_in("elsewhere", "child", vec![owner(&root)], &[])
        .await;
    world
        .until_gone(&format!("{}/child", configs("elsewhere")))
        .await;
    assert!(world.exists(&config("root")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_wide_object_is_never_collected_for_an_owner_in_a_namespace() {
    let world = World::new().await;
    let references = vec![ghost("nobody")];
    let role = value!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "role", "ownerReferences": references},
        "rules": [],
    });
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    world.create(roles, role).await;
    world.settle().await;
    let role = world.get(&format!("{roles}/role")).await.unwrap();
    assert_eq!((owners(&role), role.deletion_timestamp()), (1, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_wide_owner_takes_dependents_in_namespaces_with_it() {
    let world = World::new().await;
    let role = value!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "role:with colon"},
        "rules": [],
    });
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let role = world.create(roles, role).await;
    world.config("child", vec![owner(&role)], &[]).await;
    world.settle().await;
    assert!(world.exists(&config("child")).await);
    world
        .delete(&format!("{roles}/role:with%20colon"), "Foreground")
        .await;
    world.until_gone(&config("child")).await;
    world
        .until_gone(&format!("{roles}/role:with%20colon"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_of_an_unknown_kind_is_not_absent_until_the_kind_is_known() {
    let world = World::new().await;
    let reference = value!({
        "apiVersion": "example.com/v1",
        "kind": "Gadget",
        "name": "g",
        "uid": "00000000-0000-4000-8000-000000000001",
    });
    world.config("child", vec![reference], &[]).await;
    world.settle().await;
    assert!(world.exists(&config("child")).await);
    world
        .create(DEFINITIONS, definition("gadgets", "Gadget", "Namespaced"))
        .await;
    world.until_gone(&config("child")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_dependents_are_collected() {
    let world = World::new().await;
    let root = world.config("root", vec![], &[]).await;
    for index in 0..1000 {
        world
            .config(&format!("child{index}"), vec![blocking(&root)], &[])
            .await;
    }
    let begun = std::time::Instant::now();
    world.delete(&config("root"), "Foreground").await;
    world.until_gone(&config("root")).await;
    println!("1000 dependents went in {:?}", begun.elapsed());
    let left = world
        .client
        .server()
        .store()
        .resource("core/configmaps")
        .len();
    assert_eq!(left, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_in_other_namespaces_are_told_in_events() {
    let world = World::new().await;
    world.namespace("elsewhere").await;
    let away = world.config_in("elsewhere", "away", vec![], &[]).await;
    world.config("stray", vec![owner(&away)], &[]).await;
    world.until_gone(&config("stray")).await;
    // What is outside of namespaces has no owner in one, and stays.
    let node = value!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "node", "ownerReferences": [(owner(&away))]},
    });
    world.create("/api/v1/nodes", node).await;
    let told = async |kind: &str, message: String| {
        let list = world.client.get("/api/v1/namespaces/default/events").await;
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
        world
            .until(kind, async || told(kind, message(namespace)).await)
            .await;
    }
    assert!(world.exists("/api/v1/nodes/node").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_of_the_same_name_is_not_the_same_owner() {
    let world = World::new().await;
    let first = world.config("root", vec![], &[]).await;
    world.delete(&config("root"), "Background").await;
    let second = world.config("root", vec![], &[]).await;
    world.config("stale", vec![owner(&first)], &[]).await;
    world.config("true", vec![owner(&second)], &[]).await;
    world.until_gone(&config("stale")).await;
    world.settle().await;
    assert!(world.exists(&config("true")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_does_not_wait_for_what_it_cannot_own() {
    let world = World::new().await;
    let root = world.config("root", vec![], &[]).await;
    let node = value!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "node", "ownerReferences": [(blocking(&root))]},
    });
    world.create("/api/v1/nodes", node).await;
    world.delete(&config("root"), "Foreground").await;
    world.until_gone(&config("root")).await;
    world.settle().await;
    assert!(world.exists("/api/v1/nodes/node").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn dependents_follow_an_owner_that_goes_together_with_its_kind() {
    let world = World::new().await;
    let gadgets = definition("gadgets", "Gadget", "Namespaced");
    world.create(DEFINITIONS, gadgets).await;
    let gadget =
        value!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}});
    let gadget = world
        .create("/apis/example.com/v1/namespaces/default/gadgets", gadget)
        .await;
    for index in 0..300 {
        let name = format!("child{index}");
        world.config(&name, vec![owner(&gadget)], &[]).await;
    }
    let gadgets = format!("{DEFINITIONS}/gadgets.example.com");
    world.delete(&gadgets, "Background").await;
    world.until_gone(&gadgets).await;
    let configs = world.client.server().store().resource("core/configmaps");
    world
        .until("no dependent is left", async || configs.is_empty())
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dependents_that_come_while_their_owner_goes_do_not_stay() {
    let world = World::new().await;
    let root = world.config("root", vec![], &[]).await;
    for index in 0..50 {
        let name = format!("child{index}");
        world.config(&name, vec![blocking(&root)], &[]).await;
    }
    let root_path = config("root");
    let deleted = world.delete(&root_path, "Foreground");
    let more = async {
        for index in 0..100 {
            let name = format!("late{index}");
            world.config(&name, vec![blocking(&root)], &[]).await;
        }
    };
    tokio::join!(deleted, more);
    world.until_gone(&config("root")).await;
    let configs = world.client.server().store().resource("core/configmaps");
    world
        .until("no dependent is left", async || configs.is_empty())
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_about_owners_in_other_namespaces_are_limited() {
    let world = World::new().await;
    world.namespace("elsewhere").await;
    let mut owners = Vec::new();
    for index in 0..40 {
        let away = world
            .config_in("elsewhere", &format!("away{index}"), vec![], &[])
            .await;
        owners.push(owner(&away));
    }
    world.config("stray", owners, &[]).await;
    world.until_gone(&config("stray")).await;
    // Events are written before the object goes.
    let events = world.client.server().store().resource("core/events");
    let told = events.len();
    assert!((1..40).contains(&told), "{told} events");
}
