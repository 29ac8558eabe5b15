//! Deletion of CustomResourceDefinitions.

use crate::fixture::{DEFINITIONS, Fixture, condition, definition, no_finalizers};
use bareboat_api::{Object, Value, value};

const GADGETS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.example.com";

fn gadgets(namespace: &str) -> String {
    format!("/apis/example.com/v1/namespaces/{namespace}/gadgets")
}

async fn gadget(fixture: &Fixture, name: &str, finalizers: &[&str]) -> Object {
    let finalizers: Vec<Value> = finalizers.iter().map(Value::string).collect();
    let object = value!({
        "apiVersion": "example.com/v1",
        "kind": "Gadget",
        "metadata": {"name": name, "finalizers": finalizers},
    });
    fixture.create(&gadgets("default"), object).await
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_are_deleted_before_their_definition() {
    let fixture = Fixture::new().await;
    fixture
        .create(DEFINITIONS, definition("gadgets", "Gadget", "Namespaced"))
        .await;
    gadget(&fixture, "free", &[]).await;
    gadget(&fixture, "held", &["example.com/hold"]).await;
    fixture.delete(GADGETS, "Background").await;
    fixture
        .until_gone(&format!("{}/free", gadgets("default")))
        .await;
    fixture
        .until_it(GADGETS, |it| {
            condition(it, "Terminating", "reason") == "InstanceDeletionInProgress"
        })
        .await;
    let held = format!("{}/held", gadgets("default"));
    fixture
        .until_it(&held, |it| it.deletion_timestamp().is_some())
        .await;
    fixture.client.merge(&held, &no_finalizers()).await.unwrap();
    fixture.until_gone(GADGETS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_definition_can_be_created_again() {
    let fixture = Fixture::new().await;
    for _ in 0..3 {
        fixture
            .create(DEFINITIONS, definition("gadgets", "Gadget", "Namespaced"))
            .await;
        for index in 0..20 {
            gadget(&fixture, &format!("g{index}"), &[]).await;
        }
        fixture.delete(GADGETS, "Background").await;
        fixture.until_gone(GADGETS).await;
        let left = fixture
            .client
            .server()
            .store()
            .resource("example.com/gadgets")
            .len();
        assert_eq!(left, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_becomes_free_goes_to_a_definition_that_waits_for_it() {
    let fixture = Fixture::new().await;
    fixture
        .create(DEFINITIONS, definition("gadgets", "Gadget", "Namespaced"))
        .await;
    // Another plural but the same kind.
    let waiting = fixture
        .create(DEFINITIONS, definition("gizmos", "Gadget", "Namespaced"))
        .await;
    assert_eq!(condition(&waiting, "NamesAccepted", "status"), "False");
    fixture.delete(GADGETS, "Background").await;
    let path = format!("{DEFINITIONS}/gizmos.example.com");
    fixture
        .until_it(&path, |it| condition(it, "Established", "status") == "True")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_was_never_established_can_be_deleted() {
    let fixture = Fixture::new().await;
    fixture
        .create(DEFINITIONS, definition("gadgets", "Gadget", "Namespaced"))
        .await;
    fixture
        .create(DEFINITIONS, definition("gizmos", "Gadget", "Namespaced"))
        .await;
    let path = format!("{DEFINITIONS}/gizmos.example.com");
    fixture.delete(&path, "Background").await;
    fixture.until_gone(&path).await;
    assert!(fixture.exists(GADGETS).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_created_during_the_deletion_of_their_definition_are_deleted() {
    let fixture = Fixture::new().await;
    for round in 0..10 {
        fixture
            .create(DEFINITIONS, definition("gadgets", "Gadget", "Namespaced"))
            .await;
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..8 {
            let client = fixture.client.clone();
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
        fixture
            .until("there are instances", async || {
                fixture
                    .client
                    .server()
                    .store()
                    .resource("example.com/gadgets")
                    .len()
                    > 20
            })
            .await;
        fixture.delete(GADGETS, "Background").await;
        let written: usize = writers.join_all().await.into_iter().sum();
        fixture.until_gone(GADGETS).await;
        let store = fixture.client.server().store();
        let left = store.resource("example.com/gadgets").len();
        assert_eq!(left, 0, "of {written} in round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_instances_are_created_while_a_definition_is_being_deleted() {
    let fixture = Fixture::new().await;
    let mut held = definition("gadgets", "Gadget", "Namespaced");
    let finalizers = value!(["example.com/hold"]);
    let metadata = held.make_object().object_mut("metadata");
    metadata.insert("finalizers", finalizers);
    fixture.create(DEFINITIONS, held).await;
    gadget(&fixture, "one", &[]).await;
    fixture.delete(GADGETS, "Background").await;
    fixture
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
    let refused = fixture.client.create(&gadgets("default"), &object).await;
    let refused = refused.unwrap_err();
    assert_eq!((refused.code, &*refused.message), (403, why));
    fixture
        .client
        .merge(GADGETS, &no_finalizers())
        .await
        .unwrap();
    fixture.until_gone(GADGETS).await;
}
