//! Objects with a time to live.

use crate::fixture::Fixture;
use bareboat_api::{Object, value};
use bareboat_controllers::Options;
use std::time::{Duration, Instant};

const EVENTS: &str = "/api/v1/namespaces/default/events";

async fn event(fixture: &Fixture, name: &str) -> Object {
    let event = value!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "Test",
        "message": "m",
        "type": "Normal",
    });
    fixture.create(EVENTS, event).await
}

async fn short_lived(seconds: u64) -> Fixture {
    Fixture::with(Options::default(), |kind| {
        if kind.policy.ttl_seconds.is_some() {
            kind.policy.ttl_seconds = Some(seconds);
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_deleted_after_their_time_to_live() {
    let fixture = short_lived(1).await;
    let begun = Instant::now();
    event(&fixture, "short").await;
    fixture.until_gone(&format!("{EVENTS}/short")).await;
    assert!(begun.elapsed() >= Duration::from_millis(900));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_extends_the_life_of_an_event() {
    let fixture = short_lived(2).await;
    let path = format!("{EVENTS}/long");
    loop {
        event(&fixture, "long").await;
        tokio::time::sleep(Duration::from_millis(1000)).await;
        let changed = Instant::now();
        match fixture.client.merge(&path, &value!({"count": 2})).await {
            // On a busy machine it may have expired already.
            Err(status) if status.code == 404 => continue,
            other => other.expect("it can be changed"),
        };
        fixture.until_gone(&path).await;
        assert!(changed.elapsed() >= Duration::from_millis(1900));
        return;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_objects_do_not_expire() {
    let fixture = short_lived(1).await;
    fixture.config("lasting", vec![], &[]).await;
    event(&fixture, "short").await;
    fixture.until_gone(&format!("{EVENTS}/short")).await;
    assert!(fixture.exists(&crate::fixture::config("lasting")).await);
}
