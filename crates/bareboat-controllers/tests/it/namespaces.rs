//! Deletion of namespaces.

use crate::fixture::{DEFINITIONS, Fixture, condition, configs, definition, no_finalizers};
use bareboat_api::{Value, value};
use std::time::Instant;

const SPACE: &str = "/api/v1/namespaces/space";

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_namespace_disappears_with_its_content() {
    let fixture = Fixture::new().await;
    fixture.namespace("space").await;
    fixture.config_in("space", "a", vec![], &[]).await;
    fixture
        .create(DEFINITIONS, definition("gadgets", "Gadget", "Namespaced"))
        .await;
    let gadgets = "/apis/example.com/v1/namespaces/space/gadgets";
    let gadget =
        value!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}});
    fixture.create(gadgets, gadget).await;
    fixture.delete(SPACE, "Background").await;
    fixture.until_gone(SPACE).await;
    assert!(!fixture.exists(&format!("{}/a", configs("space"))).await);
    assert!(!fixture.exists(&format!("{gadgets}/g")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_report_finalizers_that_a_namespace_waits_for() {
    let fixture = Fixture::new().await;
    fixture.namespace("space").await;
    fixture
        .config_in("space", "held", vec![], &["example.com/hold"])
        .await;
    fixture.config_in("space", "free", vec![], &[]).await;
    fixture.delete(SPACE, "Background").await;
    let remaining = "Some resources are remaining: configmaps. has 1 resource instances";
    fixture
        .until_it(SPACE, |space| {
            condition(space, "NamespaceContentRemaining", "message") == remaining
        })
        .await;
    let space = fixture.get(SPACE).await.unwrap();
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
    fixture.client.merge(&held, &no_finalizers()).await.unwrap();
    fixture.until_gone(SPACE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_are_deleted_before_everything_else() {
    let fixture = Fixture::new().await;
    fixture.namespace("space").await;
    fixture.config_in("space", "last", vec![], &[]).await;
    let pod = value!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "first", "finalizers": ["example.com/hold"]},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let pods = "/api/v1/namespaces/space/pods";
    fixture.create(pods, pod).await;
    fixture.delete(SPACE, "Background").await;
    fixture
        .until_it(SPACE, |space| {
            condition(space, "NamespaceContentRemaining", "message")
                == "Some resources are remaining: pods. has 1 resource instances"
        })
        .await;
    let last = fixture
        .get(&format!("{}/last", configs("space")))
        .await
        .unwrap();
    assert_eq!(last.deletion_timestamp(), None);
    let pod = format!("{pods}/first");
    fixture.client.merge(&pod, &no_finalizers()).await.unwrap();
    fixture.until_gone(SPACE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn finalizers_of_others_are_kept() {
    let fixture = Fixture::new().await;
    let namespace = value!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "space", "finalizers": ["example.com/hold"]},
    });
    fixture.create("/api/v1/namespaces", namespace).await;
    fixture.delete(SPACE, "Background").await;
    let held = |space: &bareboat_api::Object| {
        space
            .at(&["spec", "finalizers"])
            .and_then(Value::as_array)
            .is_none_or(<[Value]>::is_empty)
    };
    fixture.until_it(SPACE, held).await;
    fixture.client.merge(SPACE, &no_finalizers()).await.unwrap();
    fixture.until_gone(SPACE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_namespace_can_be_created_again() {
    let fixture = Fixture::new().await;
    for round in 0..3 {
        fixture.namespace("space").await;
        let name = format!("a{round}");
        fixture.config_in("space", &name, vec![], &[]).await;
        fixture.delete(SPACE, "Background").await;
        fixture.until_gone(SPACE).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_stored_after_the_end_of_their_namespace_are_deleted() {
    let fixture = Fixture::without_admission().await;
    fixture.namespace("space").await;
    fixture.delete(SPACE, "Background").await;
    fixture.until_gone(SPACE).await;
    fixture.config_in("space", "late", vec![], &[]).await;
    fixture
        .until_gone(&format!("{}/late", configs("space")))
        .await;
    // Objects in a namespace that never existed are left alone.
    fixture.config_in("never", "kept", vec![], &[]).await;
    fixture.settle().await;
    assert!(fixture.exists(&format!("{}/kept", configs("never"))).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_with_two_thousand_objects_is_deleted() {
    let fixture = Fixture::new().await;
    fixture.namespace("space").await;
    for index in 0..2000 {
        fixture
            .config_in("space", &format!("c{index}"), vec![], &[])
            .await;
    }
    let begun = Instant::now();
    fixture.delete(SPACE, "Background").await;
    fixture.until_gone(SPACE).await;
    println!("2000 objects went in {:?}", begun.elapsed());
    assert_eq!(
        fixture
            .client
            .server()
            .store()
            .resource("core/configmaps")
            .len(),
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_whose_finalizer_a_client_removed_is_emptied() {
    let fixture = Fixture::new().await;
    fixture.namespace("space").await;
    fixture.config_in("space", "left", vec![], &[]).await;
    let mut space = fixture.get(SPACE).await.unwrap();
    let spec = space.map_mut().object_mut("spec");
    spec.insert("finalizers", Value::Array(Vec::new()));
    let finalize = format!("{SPACE}/finalize");
    fixture
        .client
        .update(&finalize, space.value())
        .await
        .unwrap();
    fixture.delete(SPACE, "Background").await;
    fixture.until_gone(SPACE).await;
    fixture
        .until_gone(&format!("{}/left", configs("space")))
        .await;
}
