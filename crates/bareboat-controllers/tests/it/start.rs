//! What controllers find when they start.

use crate::world::{DEFINITIONS, World, blocking, config, configs, definition, owner};
use bareboat_api::value;
use bareboat_controllers::Options;

fn nothing() -> Options {
    Options {
        namespaces: false,
        garbage: false,
        definitions: false,
        expiry: false,
        pods: false,
        residents: false,
        ..Options::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn controllers_finish_what_was_left_to_them_before_they_started() {
    let world = World::with(nothing(), |_| {}).await;
    world.namespace("space").await;
    world.config_in("space", "content", vec![], &[]).await;
    let space = "/api/v1/namespaces/space";
    world.delete(space, "Background").await;

    let gone = world.config("gone", vec![], &[]).await;
    world.config("left-behind", vec![owner(&gone)], &[]).await;
    world.delete(&config("gone"), "Background").await;
    let first = world.config("first", vec![], &[]).await;
    world.config("second", vec![blocking(&first)], &[]).await;
    world.delete(&config("first"), "Foreground").await;
    let leaving = world.config("leaving", vec![], &[]).await;
    world.config("orphan", vec![owner(&leaving)], &[]).await;
    world.delete(&config("leaving"), "Orphan").await;

    let gadgets = definition("gadgets", "Gadget", "Cluster");
    world.create(DEFINITIONS, gadgets).await;
    let gadget =
        value!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}});
    world.create("/apis/example.com/v1/gadgets", gadget).await;
    let gadgets = format!("{DEFINITIONS}/gadgets.example.com");
    world.delete(&gadgets, "Background").await;
    for path in [space, &config("first"), &config("leaving"), &gadgets] {
        assert!(world.exists(path).await, "{path} has nobody to let it go");
    }

    let world = world.restarted(Options::default()).await;
    for path in [
        space,
        &config("left-behind"),
        &config("first"),
        &config("second"),
        &config("leaving"),
        &gadgets,
    ] {
        world.until_gone(path).await;
    }
    assert!(!world.exists(&format!("{}/content", configs("space"))).await);
    let orphan = world.get(&config("orphan")).await.unwrap();
    assert_eq!(orphan.meta("ownerReferences"), None);
}
