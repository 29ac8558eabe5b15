//! Requests that would fill the server's memory: it stays bounded whatever clients leave unread.

use crate::client::Connection;
use crate::http2::{Streams, wait_for};
use crate::victim::Victim;
use serde_json::{Value, json};
use std::time::Duration;

/// Live data of the victim: 40 objects of 512 KiB, 20 MiB in all.
const OBJECTS: usize = 40;
const EACH: usize = 512 * 1024;
/// What an attack may add, in MiB. Bounds of the server are smaller; a debug build, TLS and the
/// allocator take their share.
const ALLOWED: u64 = 256;

const PATH: &str = "/api/v1/namespaces/large/configmaps";

/// Sends a request by many, and leaves all answers unread for a while.
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
    // Long enough to fill whatever there is to fill: the answers are made in a fraction of it.
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
    let victim = Victim::start(&[]);
    victim.fill("large", OBJECTS, EACH);
    let version = victim.version();
    // More than the 64 MiB of events that are kept in memory.
    victim.fill("later", 132, EACH);
    let list = format!("{PATH}?resourceVersionMatch=Exact&resourceVersion={version}");
    victim.attack(1, |_| {
        victim.grows_at_most(ALLOWED, || {
            drop(unread(&victim, 20, &list, "application/json"))
        });
    });
}

#[test]
fn protobuf_bodies_of_many_small_parts() {
    let victim = Victim::start(&[]);
    // An empty owner reference is two bytes on the wire: field 13 of metadata, length 0.
    let metadata: Vec<u8> = [0x6a, 0x00].repeat(300_000);
    let object = field(1, &metadata);
    let mut body = b"k8s\0".to_vec();
    body.extend(field(
        1,
        &[field(1, b"v1"), field(2, b"ConfigMap")].concat(),
    ));
    body.extend(field(2, &object));
    let path = "/api/v1/namespaces/default/configmaps";
    victim.attack(1, |_| {
        victim.grows_at_most(ALLOWED, || {
            std::thread::scope(|scope| {
                for _ in 0..6 {
                    scope.spawn(|| {
                        let kind = "application/vnd.kubernetes.protobuf";
                        let answer = victim.admin.call("POST", path, kind, &body);
                        assert!(answer.code >= 400, "{}", answer.code);
                    });
                }
            });
        });
    });
}

/// A protobuf field of bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    out.push(u8::try_from(length).unwrap());
    out.extend_from_slice(bytes);
    out
}

#[test]
fn expressions_that_multiply_strings() {
    let victim = Victim::start(&[]);
    let text = json!({
        "type": "string", "maxLength": 1200,
        "x-kubernetes-validations": [{"rule": "self.replace('a', self).replace('a', self).size() >= 0"}],
    });
    let schema = json!({"type": "object", "properties": {"a": text}});
    // A rule that is refused for its cost is as good.
    if victim.define("texts", schema).is_err() {
        return;
    }
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

/// A schema of lists in lists, each of which is ten empty ones by default.
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
    if victim.define("nests", nested(7)).is_err() {
        return;
    }
    let object = json!({"apiVersion": "hostile.example/v1", "kind": "NEST", "metadata": {"generateName": "one-"}});
    victim.attack(1, |_| {
        victim.grows_at_most(ALLOWED, || {
            let answer = victim.admin.post("/apis/hostile.example/v1/nests", &object);
            assert!(answer.code >= 400, "{}", answer.code);
        });
    });
}
