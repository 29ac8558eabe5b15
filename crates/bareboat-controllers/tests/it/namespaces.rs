//! Deletion of namespaces.

use crate::world::{DEFINITIONS, World, condition, configs, definition, no_finalizers};
use bareboat_api::{Value, value};
use std::time::Instant;

const SPACE: &str = "/api/v1/namespaces/space";

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_namespace_disappears_with_its_content() {
    let world = World::new().await;
    world.namespace("space").await;
    world.config_in("space", "a", vec![], &[]).await;
    world
        .create(DEFINITIONS, definition("gadgets", "Gadget", "Namespaced"))
        .await;
    let gadgets = "/apis/example.com/v1/namespaces/space/gadgets";
    let gadget =
        value!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}});
    world.create(gadgets, gadget).await;
    world.delete(SPACE, "Background").await;
    world.until_gone(SPACE).await;
    assert!(!world.exists(&format!("{}/a", configs("space"))).await);
    assert!(!world.exists(&format!("{gadgets}/g")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_waits_for_the_finalizers_in_it_and_says_so() {
    let world = World::new().await;
    world.namespace("space").await;
    world
        .config_in("space", "held", vec![], &["example.com/hold"])
        .await;
    world.config_in("space", "free", vec![], &[]).await;
    world.delete(SPACE, "Background").await;
    let remaining = "Some resources are remaining: configmaps. has 1 resource instances";
    world
        .until_it(SPACE, |space| {
            condition(space, "NamespaceContentRemaining", "message") == remaining
        })
        .await;
    let space = world.get(SPACE).await.unwrap();
    assert_eq!(
        condition(&space, "NamespaceFinalizersRemaining", "reason"),
        "SomeFinalizersRemain"
    );
    assert_eq!(
        condition(&space, "NamespaceFinalizersRemaining", "message"),
        "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
    );
    assert_eq!(
        condition(&space, "NamespaceDeletionContentFailure", "status"),
        "False"
    );
    let held = format!("{}/held", configs("space"));
    world.client.merge(&held, &no_finalizers()).await.unwrap();
    world.until_gone(SPACE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_else_waits_for_the_pods() {
    let world = World::new().await;
    world.namespace("space").await;
    world.config_in("space", "last", vec![], &[]).await;
    let pod = value!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "first", "finalizers": ["example.com/hold"]},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let pods = "/api/v1/namespaces/space/pods";
    world.create(pods, pod).await;
    world.delete(SPACE, "Background").await;
    world
        .until_it(SPACE, |space| {
            condition(space, "NamespaceContentRemaining", "message")
                == "Some resources are remaining: pods. has 1 resource instances"
        })
        .await;
    let last = world
        .get(&format!("{}/last", configs("space")))
        .await
        .unwrap();
    assert_eq!(last.deletion_timestamp(), None);
    let pod = format!("{pods}/first");
    world.client.merge(&pod, &no_finalizers()).await.unwrap();
    world.until_gone(SPACE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_keeps_its_own_finalizers() {
    let world = World::new().await;
    let namespace = value!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "space", "finalizers": ["example.com/hold"]},
    });
    world.create("/api/v1/namespaces", namespace).await;
    world.delete(SPACE, "Background").await;
    let held = |space: &bareboat_api::Object| {
        space
            .at(&["spec", "finalizers"])
            .and_then(Value::as_array)
            .is_none_or(<[Value]>::is_empty)
    };
    world.until_it(SPACE, held).await;
    world.client.merge(SPACE, &no_finalizers()).await.unwrap();
    world.until_gone(SPACE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_can_be_recreated_right_after() {
    let world = World::new().await;
    for round in 0..3 {
        world.namespace("space").await;
        let name = format!("a{round}");
        world.config_in("space", &name, vec![], &[]).await;
        world.delete(SPACE, "Background").await;
        world.until_gone(SPACE).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lands_after_the_end_of_its_namespace_goes_too() {
    let world = World::without_admission().await;
    world.namespace("space").await;
    world.delete(SPACE, "Background").await;
    world.until_gone(SPACE).await;
    world.config_in("space", "late", vec![], &[]).await;
    world
        .until_gone(&format!("{}/late", configs("space")))
        .await;
    // A namespace that never was is none of the controller's business.
    world.config_in("never", "kept", vec![], &[]).await;
    world.settle().await;
    assert!(world.exists(&format!("{}/kept", configs("never"))).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_objects_go_quickly() {
    let world = World::new().await;
    world.namespace("space").await;
    for index in 0..2000 {
        world
            .config_in("space", &format!("c{index}"), vec![], &[])
            .await;
    }
    let begun = Instant::now();
    world.delete(SPACE, "Background").await;
    world.until_gone(SPACE).await;
    println!("2000 objects went in {:?}", begun.elapsed());
    assert_eq!(
        world
            .client
            .server()
            .store()
            .resource("core/configmaps")
            .len(),
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_was_let_go_by_force_leaves_nothing() {
    let world = World::new().await;
    world.namespace("space").await;
    world.config_in("space", "left", vec![], &[]).await;
    let mut space = world.get(SPACE).await.unwrap();
    let spec = space.map_mut().object_mut("spec");
    spec.insert("finalizers", Value::Array(Vec::new()));
    let finalize = format!("{SPACE}/finalize");
    world.client.update(&finalize, space.value()).await.unwrap();
    world.delete(SPACE, "Background").await;
    world.until_gone(SPACE).await;
    world
        .until_gone(&format!("{}/left", configs("space")))
        .await;
}
