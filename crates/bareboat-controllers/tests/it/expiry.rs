//! Objects that do not last.

use crate::world::World;
use bareboat_api::{Object, value};
use bareboat_controllers::Options;
use std::time::{Duration, Instant};

const EVENTS: &str = "/api/v1/namespaces/default/events";

async fn event(world: &World, name: &str) -> Object {
    let event = value!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "Test",
        "message": "m",
        "type": "Normal",
    });
    world.create(EVENTS, event).await
}

async fn short_lived(seconds: u64) -> World {
    World::with(Options::default(), |kind| {
        if kind.policy.ttl_seconds.is_some() {
            kind.policy.ttl_seconds = Some(seconds);
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn events_expire_when_their_time_is_over() {
    let world = short_lived(1).await;
    let begun = Instant::now();
    event(&world, "short").await;
    world.until_gone(&format!("{EVENTS}/short")).await;
    assert!(begun.elapsed() >= Duration::from_millis(900));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_gives_an_event_new_time() {
    let world = short_lived(2).await;
    let path = format!("{EVENTS}/long");
    loop {
        event(&world, "long").await;
        tokio::time::sleep(Duration::from_millis(1000)).await;
        let changed = Instant::now();
        match world.client.merge(&path, &value!({"count": 2})).await {
            // A busy machine may have slept through its life.
            Err(status) if status.code == 404 => continue,
            other => other.expect("it can be changed"),
        };
        world.until_gone(&path).await;
        assert!(changed.elapsed() >= Duration::from_millis(1900));
        return;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_objects_last() {
    let world = short_lived(1).await;
    world.config("lasting", vec![], &[]).await;
    event(&world, "short").await;
    world.until_gone(&format!("{EVENTS}/short")).await;
    assert!(world.exists(&crate::world::config("lasting")).await);
}
