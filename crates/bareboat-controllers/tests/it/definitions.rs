//! Deletion of custom kinds.

use crate::world::{DEFINITIONS, World, condition, definition, no_finalizers};
use bareboat_api::{Object, Value, value};

const GADGETS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.example.com";

fn gadgets(namespace: &str) -> String {
    format!("/apis/example.com/v1/namespaces/{namespace}/gadgets")
}

async fn gadget(world: &World, name: &str, finalizers: &[&str]) -> Object {
    let finalizers: Vec<Value> = finalizers.iter().map(Value::string).collect();
    let object = value!({
        "apiVersion": "example.com/v1",
        "kind": "Gadget",
        "metadata": {"name": name, "finalizers": finalizers},
    });
    world.create(&gadgets("default"), object).await
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_go_before_their_definition_and_finalizers_are_honoured() {
    let world = World::new().await;
    world
        .create(DEFINITIONS, definition("gadgets", "Gadget", "Namespaced"))
        .await;
    gadget(&world, "free", &[]).await;
    gadget(&world, "held", &["example.com/hold"]).await;
    world.delete(GADGETS, "Background").await;
    world
        .until_gone(&format!("{}/free", gadgets("default")))
        .await;
    world
        .until_it(GADGETS, |it| {
            condition(it, "Terminating", "reason") == "InstanceDeletionInProgress"
        })
        .await;
    let held = format!("{}/held", gadgets("default"));
    world
        .until_it(&held, |it| it.deletion_timestamp().is_some())
        .await;
    world.client.merge(&held, &no_finalizers()).await.unwrap();
    world.until_gone(GADGETS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_can_be_recreated_right_after_and_has_no_instances() {
    let world = World::new().await;
    for _ in 0..3 {
        world
            .create(DEFINITIONS, definition("gadgets", "Gadget", "Namespaced"))
            .await;
        for index in 0..20 {
            gadget(&world, &format!("g{index}"), &[]).await;
        }
        world.delete(GADGETS, "Background").await;
        world.until_gone(GADGETS).await;
        let left = world
            .client
            .server()
            .store()
            .resource("example.com/gadgets")
            .len();
        assert_eq!(left, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_become_free_go_to_the_definition_that_waits_for_them() {
    let world = World::new().await;
    world
        .create(DEFINITIONS, definition("gadgets", "Gadget", "Namespaced"))
        .await;
    // Another plural, but the same kind.
    let waiting = world
        .create(DEFINITIONS, definition("gizmos", "Gadget", "Namespaced"))
        .await;
    assert_eq!(condition(&waiting, "NamesAccepted", "status"), "False");
    world.delete(GADGETS, "Background").await;
    let path = format!("{DEFINITIONS}/gizmos.example.com");
    world
        .until_it(&path, |it| condition(it, "Established", "status") == "True")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_was_never_established_goes_as_well() {
    let world = World::new().await;
    world
        .create(DEFINITIONS, definition("gadgets", "Gadget", "Namespaced"))
        .await;
    world
        .create(DEFINITIONS, definition("gizmos", "Gadget", "Namespaced"))
        .await;
    let path = format!("{DEFINITIONS}/gizmos.example.com");
    world.delete(&path, "Background").await;
    world.until_gone(&path).await;
    assert!(world.exists(GADGETS).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_that_come_while_their_definition_goes_do_not_outlive_it() {
    let world = World::new().await;
    for round in 0..10 {
        world
            .create(DEFINITIONS, definition("gadgets", "Gadget", "Namespaced"))
            .await;
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..8 {
            let client = world.client.clone();
            writers.spawn(async move {
                for index in 0..10_000 {
                    let object = value!({
                        "apiVersion": "example.com/v1",
                        "kind": "Gadget",
                        "metadata": {"name": (format!("g{writer}-{index}"))},
                    });
                    if client.create(&gadgets("default"), &object).await.is_err() {
                        return index;
                    }
                }
                panic!("the definition never went");
            });
        }
        world
            .until("there are instances", async || {
                world
                    .client
                    .server()
                    .store()
                    .resource("example.com/gadgets")
                    .len()
                    > 20
            })
            .await;
        world.delete(GADGETS, "Background").await;
        let written: usize = writers.join_all().await.into_iter().sum();
        world.until_gone(GADGETS).await;
        let store = world.client.server().store();
        let left = store.resource("example.com/gadgets").len();
        assert_eq!(left, 0, "of {written} in round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_held_by_another_finalizer_takes_no_new_objects() {
    let world = World::new().await;
    let mut held = definition("gadgets", "Gadget", "Namespaced");
    let finalizers = value!(["example.com/hold"]);
    let metadata = held.make_object().object_mut("metadata");
    metadata.insert("finalizers", finalizers);
    world.create(DEFINITIONS, held).await;
    gadget(&world, "one", &[]).await;
    world.delete(GADGETS, "Background").await;
    world
        .until_it(GADGETS, |it| {
            condition(it, "Terminating", "reason") == "InstanceDeletionCompleted"
        })
        .await;
    let object = value!({
        "apiVersion": "example.com/v1",
        "kind": "Gadget",
        "metadata": {"name": "late"},
    });
    let why = r#"gadgets.example.com "late" is forbidden: create not allowed while custom resource definition is terminating"#;
    let refused = world.client.create(&gadgets("default"), &object).await;
    let refused = refused.unwrap_err();
    assert_eq!((refused.code, &*refused.message), (403, why));
    world.client.merge(GADGETS, &no_finalizers()).await.unwrap();
    world.until_gone(GADGETS).await;
}
