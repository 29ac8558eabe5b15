//! What controllers do with objects that exist when they start.

use crate::fixture::{DEFINITIONS, Fixture, blocking, config, configs, definition, owner};
use bareboat_api::value;
use bareboat_controllers::Options;

fn nothing() -> Options {
    let names = [
        "namespaces",
        "garbage",
        "definitions",
        "expiry",
        "pods",
        "service-accounts",
    ];
    Options::without(names).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn deletions_that_began_before_the_start_are_finished() {
    let fixture = Fixture::with(nothing(), |_| {}).await;
    fixture.namespace("space").await;
    fixture.config_in("space", "content", vec![], &[]).await;
    let space = "/api/v1/namespaces/space";
    fixture.delete(space, "Background").await;

    let gone = fixture.config("gone", vec![], &[]).await;
    fixture.config("left-behind", vec![owner(&gone)], &[]).await;
    fixture.delete(&config("gone"), "Background").await;
    let first = fixture.config("first", vec![], &[]).await;
    fixture.config("second", vec![blocking(&first)], &[]).await;
    fixture.delete(&config("first"), "Foreground").await;
    let leaving = fixture.config("leaving", vec![], &[]).await;
    fixture.config("orphan", vec![owner(&leaving)], &[]).await;
    fixture.delete(&config("leaving"), "Orphan").await;

    let gadgets = definition("gadgets", "Gadget", "Cluster");
    fixture.create(DEFINITIONS, gadgets).await;
    let gadget =
        value!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}});
    fixture.create("/apis/example.com/v1/gadgets", gadget).await;
    let gadgets = format!("{DEFINITIONS}/gadgets.example.com");
    fixture.delete(&gadgets, "Background").await;
    for path in [space, &config("first"), &config("leaving"), &gadgets] {
        assert!(
            fixture.exists(path).await,
            "{path} exists while no controller runs"
        );
    }

    let fixture = fixture.restarted(Options::default()).await;
    for path in [
        space,
        &config("left-behind"),
        &config("first"),
        &config("second"),
        &config("leaving"),
        &gadgets,
    ] {
        fixture.until_gone(path).await;
    }
    assert!(
        !fixture
            .exists(&format!("{}/content", configs("space")))
            .await
    );
    let orphan = fixture.get(&config("orphan")).await.unwrap();
    assert_eq!(orphan.meta("ownerReferences"), None);
}
