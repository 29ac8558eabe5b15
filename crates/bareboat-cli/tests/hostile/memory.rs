//! Requests that would fill the server's memory: it stays bounded, however much clients leave unread.

use crate::client::Connection;
use crate::http2::{Streams, wait_for};
use crate::victim::Victim;
use serde_json::{Value, json};
use std::time::Duration;

/// Live data of the victim: 40 objects of 512 KiB, 20 MiB in total.
const OBJECTS: usize = 40;
const EACH: usize = 512 * 1024;
/// How much memory an attack may add, in MiB. The server's own limits are lower; a debug build, TLS and the allocator
/// need more.
const ALLOWED: u64 = 256;

const PATH: &str = "/api/v1/namespaces/large/configmaps";

/// Sends a request on many connections, and leaves all answers unread for a while.
fn unread(victim: &Victim, count: usize, path: &str, accept: &str) -> Vec<Connection> {
    let accept = format!("Accept: {accept}");
    let connections: Vec<_> = (0..count)
        .filter_map(|_| {
            let mut connection = victim.admin.connect().ok()?;
            connection
                .send_with("GET", path, "", &[&accept], b"")
                .ok()?;
            Some(connection)
        })
        .collect();
    // Long enough to fill every buffer: the answers are made in a fraction of this time.
    std::thread::sleep(Duration::from_secs(4));
    connections
}

fn holds_unread(path: impl Fn(&Victim) -> String, accept: &str) {
    let victim = Victim::start(&[]);
    let version = victim.version();
    victim.fill("large", OBJECTS, EACH);
    let path = path(&victim).replace("VERSION", &version);
    victim.attack(1, |_| {
        victim.grows_at_most(ALLOWED, || drop(unread(&victim, 40, &path, accept)));
    });
}

#[test]
fn watches_that_resume_over_large_events_and_do_not_read() {
    holds_unread(
        |_| format!("{PATH}?watch=true&resourceVersion=VERSION"),
        "application/json",
    );
}

#[test]
fn watches_that_begin_with_large_objects_and_do_not_read() {
    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    holds_unread(|_| format!("{PATH}?{query}"), "application/json");
}

#[test]
fn pretty_lists_that_are_not_read() {
    holds_unread(|_| format!("{PATH}?pretty=true"), "application/json");
}

#[test]
fn protobuf_lists_that_are_not_read() {
    holds_unread(|_| PATH.to_owned(), "application/vnd.kubernetes.protobuf");
}

#[test]
fn lists_on_many_streams_that_are_not_read() {
    let victim = Victim::start(&[]);
    victim.fill("large", OBJECTS, EACH);
    let list = format!("{PATH}?pretty=true");
    victim.attack(1, |_| {
        victim.grows_at_most(ALLOWED, || {
            wait_for(async {
                let mut requests = tokio::task::JoinSet::new();
                for _ in 0..2 {
                    let streams = Streams::open(&victim.admin).await;
                    for _ in 0..60 {
                        let (mut streams, list) = (streams.clone(), list.clone());
                        requests.spawn(async move { streams.get(&list, "application/json").await });
                    }
                }
                // Refused, ended or answered: no body is read.
                tokio::time::sleep(Duration::from_secs(6)).await;
            });
        });
    });
}

#[test]
fn exact_lists_below_the_ring_share_one_copy() {
    // On disk: in memory the log would share its values with the lists.
    let victim = Victim::on_disk();
    victim.fill("large", OBJECTS, EACH);
    let version = victim.version();
    // More than the 64 MiB of events that are kept in memory, and no object is the same as then.
    for round in 0..4 {
        rewrite(&victim, round);
    }
    let list = format!("{PATH}?resourceVersionMatch=Exact&resourceVersion={version}");
    victim.attack(1, |_| {
        victim.grows_at_most(ALLOWED, || {
            drop(unread(&victim, 20, &list, "application/json"))
        });
    });
}

/// Changes every object.
fn rewrite(victim: &Victim, round: usize) {
    let mut connection = victim.admin.connect().unwrap();
    let patch = format!(r#"{{"data":{{"round":"{round}"}}}}"#);
    for at in 0..OBJECTS {
        let path = format!("{PATH}/filled-{at:05}");
        let kind = "application/merge-patch+json";
        connection
            .send("PATCH", &path, kind, patch.as_bytes())
            .unwrap();
        connection.receive().unwrap().accepted();
    }
}

#[test]
fn continue_tokens_are_limited_by_the_bytes_they_keep() {
    let victim = Victim::on_disk();
    victim.fill("large", OBJECTS, EACH);
    let attack = || {
        for round in 0..10 {
            let page = victim
                .admin
                .get(&format!("{PATH}?limit=1"))
                .accepted()
                .json();
            assert_ne!(page["metadata"]["continue"], Value::Null);
            rewrite(&victim, round);
        }
    };
    // Every token keeps 20 MiB of objects that were replaced since; ten of them would keep 200 MiB.
    victim.grows_at_most(160, || victim.attack(1, |_| attack()));
}

#[test]
fn memory_is_given_back_after_a_peak() {
    let victim = Victim::start(&[]);
    victim.fill("large", OBJECTS, EACH);
    let read_all = || {
        std::thread::scope(|scope| {
            for _ in 0..12 {
                scope.spawn(|| victim.admin.get(&format!("{PATH}?pretty=true")).accepted());
            }
        });
    };
    let bodies = || {
        std::thread::scope(|scope| {
            for _ in 0..12 {
                scope.spawn(|| {
                    let body = crate::bodies::of_small_values("ConfigMap", "v1", 600_000);
                    let answer = victim.admin.call(
                        "POST",
                        "/api/v1/namespaces/default/configmaps",
                        "application/json",
                        body.as_bytes(),
                    );
                    assert!(answer.code >= 400, "{}", answer.code);
                });
            }
        });
    };
    victim.gives_back(32, || {
        victim.attack(1, |_| {
            read_all();
            bodies();
        });
    });
}

#[test]
fn expressions_that_multiply_strings() {
    let victim = Victim::start(&[]);
    let text = json!({
        "type": "string", "maxLength": 1200,
        "x-kubernetes-validations": [{"rule": "self.replace('a', self).replace('a', self).size() >= 0"}],
    });
    let schema = json!({"type": "object", "properties": {"a": text}});
    victim.define("texts", schema).unwrap();
    let object = json!({
        "apiVersion": "hostile.example/v1", "kind": "TEXT",
        "metadata": {"generateName": "one-"}, "a": "a".repeat(1000),
    });
    victim.attack(1, |_| {
        victim.grows_at_most(ALLOWED, || {
            victim.admin.post("/apis/hostile.example/v1/texts", &object);
        });
    });
}

/// A schema of nested lists, each of which defaults to ten empty ones.
fn nested(depth: usize) -> Value {
    let mut schema =
        json!({"type": "object", "properties": {"leaf": {"type": "string", "default": "x"}}});
    for _ in 0..depth {
        let empty = vec![json!({}); 10];
        schema = json!({
            "type": "object",
            "properties": {"a": {"type": "array", "items": schema, "default": empty}},
        });
    }
    schema
}

#[test]
fn defaults_that_multiply() {
    let victim = Victim::start(&[]);
    // Below a field that an object may lack: only for an empty object would the definition be refused.
    let schema = json!({"type": "object", "properties": {"spec": nested(7)}});
    victim.define("nests", schema).unwrap();
    let object = json!({
        "apiVersion": "hostile.example/v1", "kind": "NEST", "metadata": {"generateName": "one-"}, "spec": {},
    });
    victim.attack(1, |_| {
        victim.grows_at_most(ALLOWED, || {
            let answer = victim.admin.post("/apis/hostile.example/v1/nests", &object);
            assert_eq!(answer.code, 413, "{:.300}", answer.text());
        });
    });
}

#[test]
fn defaults_of_many_small_values() {
    let victim = Victim::start(&[]);
    let text = json!({"type": "string", "default": "x".repeat(200)});
    let item = json!({"type": "object", "properties": {"a": text, "b": text, "c": text}});
    let list = json!({"type": "array", "items": item});
    let schema = json!({"type": "object", "properties": {"list": list}});
    victim.define("smalls", schema).unwrap();
    // 24 KiB that become more than 5 MiB.
    let object = json!({
        "apiVersion": "hostile.example/v1", "kind": "SMALL",
        "metadata": {"generateName": "one-"}, "list": vec![json!({}); 8_000],
    });
    victim.attack(1, |_| {
        victim.grows_at_most(ALLOWED, || {
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        let path = "/apis/hostile.example/v1/smalls?dryRun=All";
                        let answer = victim.admin.post(path, &object);
                        assert!(
                            [201, 413, 429].contains(&answer.code),
                            "{}: {:.300}",
                            answer.code,
                            answer.text()
                        );
                    });
                }
            });
        });
    });
}
