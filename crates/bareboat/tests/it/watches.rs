//! WATCH: start, events and end.

use crate::socket::{As, Connection};
use crate::support::*;
use bareboat::storage::StoreOptions;
use bareboat_testing::TestServer;
use std::time::Duration;

fn labelled(name: &str, on: bool) -> Value {
    let mut object = config_map(name);
    object["metadata"]["labels"] = json!({"on": on.to_string()});
    object
}

#[tokio::test]
async fn a_selector_turns_changes_into_added_and_deleted_events() {
    let server = TestServer::start().await;
    let now = server.get(MAPS).await.version();
    let path = format!("{MAPS}?watch=1&labelSelector=on%3Dtrue&resourceVersion={now}");
    let mut watch = server.watch(&path).await;
    server.post(MAPS, &labelled("a", false)).await.expect(201);
    let at = format!("{MAPS}/a");
    let turn = |on: bool, data: &str| json!({"metadata": {"labels": {"on": on.to_string()}}, "data": {"x": data}});
    let mut versions = Vec::new();
    for (on, data) in [
        (true, "1"),
        (true, "2"),
        (false, "3"),
        (false, "4"),
        (true, "5"),
    ] {
        versions.push(
            server
                .patch(&at, MERGE, &turn(on, data))
                .await
                .expect(200)
                .version(),
        );
    }
    server.delete(&at).await.expect(200);
    let mut last = 0;
    let expected = [
        ("ADDED", "1", Some(versions[0])),
        ("MODIFIED", "2", Some(versions[1])),
        // The deleted event has the last matching state, at the version of the change.
        ("DELETED", "2", Some(versions[2])),
        ("ADDED", "5", Some(versions[4])),
        ("DELETED", "5", None),
    ];
    for (kind, data, at) in expected {
        let event = watch.next().await.unwrap();
        assert_eq!(event["type"], kind);
        let object = &event["object"];
        assert_eq!(object["data"]["x"], data, "{kind}");
        assert_eq!(
            (text(&object["kind"]), text(&object["apiVersion"])),
            ("ConfigMap", "v1")
        );
        assert!(version(object) > last, "versions grow");
        last = version(object);
        if let Some(at) = at {
            assert_eq!(last, at, "{kind}");
        }
    }
}

#[tokio::test]
async fn a_watch_sends_the_initial_state_if_it_should() {
    let server = TestServer::start().await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    let b = server
        .post(MAPS, &config_map("b"))
        .await
        .expect(201)
        .version();
    let newest = server.get(MAPS).await.version();
    let initial =
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let table = [
        ("watch=1".to_owned(), "ADDED a, ADDED b, ADDED c"),
        (
            "watch=1&resourceVersion=0".to_owned(),
            "ADDED a, ADDED b, ADDED c",
        ),
        (
            format!("watch=1&{initial}"),
            "ADDED a, ADDED b, BOOKMARK , ADDED c",
        ),
        (
            format!("watch=1&{initial}&resourceVersion=0"),
            "ADDED a, ADDED b, BOOKMARK , ADDED c",
        ),
        (
            format!("watch=1&{initial}&resourceVersion={b}"),
            "ADDED a, ADDED b, BOOKMARK , ADDED c",
        ),
        (format!("watch=1&resourceVersion={newest}"), "ADDED c"),
        (
            format!("watch=1&resourceVersion={}", b - 1),
            "ADDED b, ADDED c",
        ),
        (
            "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan".to_owned(),
            "ADDED c",
        ),
    ];
    let mut watches = Vec::new();
    for (query, expected) in table {
        let watch = server.watch(&format!("{MAPS}?{query}")).await;
        watches.push((query, expected, watch));
    }
    server.post(MAPS, &config_map("c")).await.expect(201);
    for (query, expected, mut watch) in watches {
        let mut seen = Vec::new();
        for _ in expected.split(", ") {
            seen.push(watch.brief().await);
        }
        assert_eq!(seen.join(", "), expected, "{query}");
    }
    for query in [
        "watch=1&sendInitialEvents=true",
        "watch=1&sendInitialEvents=true&resourceVersionMatch=Exact",
        "watch=1&resourceVersionMatch=NotOlderThan",
    ] {
        server.get(&format!("{MAPS}?{query}")).await.expect(422);
    }
}

#[tokio::test]
async fn the_initial_events_end_bookmark_is_sent_for_an_empty_list() {
    let server = TestServer::start().await;
    let initial =
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    for (path, kind, group) in [
        (MAPS, "ConfigMap", "v1"),
        ("/apis/apps/v1/deployments", "Deployment", "apps/v1"),
    ] {
        let newest = server.get(path).await.version();
        let event = server
            .watch(&format!("{path}?{initial}"))
            .await
            .next()
            .await
            .unwrap();
        assert_eq!(event["type"], "BOOKMARK");
        let object = &event["object"];
        assert_eq!(
            (text(&object["kind"]), text(&object["apiVersion"])),
            (kind, group)
        );
        assert_eq!(
            object["metadata"]["annotations"]["k8s.io/initial-events-end"],
            "true"
        );
        assert!(version(object) >= newest);
    }
}

#[tokio::test]
async fn a_watch_resumes_at_any_version_without_gap_or_repetition() {
    let server = TestServer::start().await;
    let start = server.get(MAPS).await.version();
    let mut log = Vec::new();
    for number in 0..30 {
        let name = format!("m{}", number % 5);
        let answer = match number / 5 {
            0 | 3 => server.post(MAPS, &config_map(&name)).await.expect(201),
            2 | 5 => server.delete(&format!("{MAPS}/{name}")).await.expect(200),
            _ => {
                let patch = json!({"data": {"n": number.to_string()}});
                server
                    .patch(&format!("{MAPS}/{name}"), MERGE, &patch)
                    .await
                    .expect(200)
            }
        };
        drop(answer);
        // Other resources increment the same counter.
        server
            .post(
                "/api/v1/namespaces/default/secrets",
                &json!({"metadata": {"generateName": "s-"}}),
            )
            .await
            .expect(201);
    }
    let mut all = server
        .watch(&format!("{MAPS}?watch=1&resourceVersion={start}"))
        .await;
    for _ in 0..30 {
        let event = all.next().await.unwrap();
        log.push((version(&event["object"]), event));
    }
    let newest = server.get(MAPS).await.version();
    for from in start..=newest {
        let mut watch = server
            .watch(&format!("{MAPS}?watch=1&resourceVersion={from}"))
            .await;
        for (_, expected) in log.iter().filter(|(version, _)| *version > from) {
            assert_eq!(&watch.next().await.unwrap(), expected, "from {from}");
        }
    }
}

#[tokio::test]
async fn a_compacted_version_is_rejected_in_the_stream() {
    let options = StoreOptions {
        retain_revisions: 1,
        retain_for: Duration::from_millis(1),
        compact_every: Duration::from_millis(5),
        ring_bytes: 1,
        ring_floor_bytes: 1,
        ..StoreOptions::default()
    };
    let server = TestServer::builder().store_options(options).start().await;
    let old = server
        .post(MAPS, &config_map("a"))
        .await
        .expect(201)
        .version();
    soon(async {
        for round in 0.. {
            let patch = json!({"data": {"round": round.to_string()}});
            server
                .patch(&format!("{MAPS}/a"), MERGE, &patch)
                .await
                .expect(200);
            if server.server().store().floor() > old + 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let mut watch = server
        .watch(&format!("{MAPS}?watch=1&resourceVersion={old}"))
        .await;
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "ERROR");
    let status = &event["object"];
    assert_eq!(
        (&status["code"], text(&status["reason"])),
        (&json!(410), "Expired")
    );
    assert!(text(&status["message"]).starts_with(&format!("too old resource version: {old} (")));
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn a_future_version_is_rejected_in_the_stream() {
    let server = TestServer::start().await;
    let newest = server.get(MAPS).await.version();
    let (future, path) = (newest + 1000, format!("{MAPS}?watch=1&resourceVersion="));
    let mut watch = server.watch(&format!("{path}{future}")).await;
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "ERROR");
    let status = &event["object"];
    let said = (&status["code"], text(&status["reason"]));
    assert_eq!(said, (&json!(410), "Expired"));
    let message = format!("resource version {future} is newer than the newest of this server (");
    assert!(text(&status["message"]).starts_with(&message), "{status}");
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn a_watch_ends_in_time_with_a_last_bookmark() {
    let server = TestServer::start().await;
    let path = format!("{MAPS}?watch=1&timeoutSeconds=3&allowWatchBookmarks=true");
    let (newest, events) = loop {
        let begun = std::time::Instant::now();
        let mut watch = server.watch(&path).await;
        assert_eq!(watch.headers["content-type"], "application/json");
        let secret = json!({"metadata": {"generateName": "s-"}});
        let written = server.post("/api/v1/namespaces/default/secrets", &secret);
        let newest = written.await.expect(201).version();
        let in_time = begun.elapsed() < Duration::from_millis(900);
        let events = watch.rest().await;
        assert!(begun.elapsed() >= Duration::from_millis(2900));
        // The last bookmark comes two seconds before the end, on a busy machine possibly before the write.
        if in_time {
            break (newest, events);
        }
    };
    let last = events.last().expect("a bookmark before the end");
    assert_eq!(last["type"], "BOOKMARK");
    let object = &last["object"];
    assert!(
        version(object) >= newest,
        "a bookmark includes all resources"
    );
    let members: Vec<&String> = object.as_object().unwrap().keys().collect();
    assert!(
        members
            .iter()
            .all(|key| ["apiVersion", "kind", "metadata"].contains(&key.as_str())),
        "{object}"
    );
    let quiet = server
        .watch(&format!("{MAPS}?watch=1&timeoutSeconds=1"))
        .await
        .rest()
        .await;
    assert!(quiet.is_empty(), "no bookmarks unless requested: {quiet:?}");
}

#[tokio::test]
async fn one_object_can_be_watched_by_its_name() {
    let server = TestServer::start().await;
    let now = server.get(MAPS).await.version();
    let paths = [
        format!("{MAPS}?watch=1&resourceVersion={now}&fieldSelector=metadata.name%3Da"),
        format!("/api/v1/configmaps?watch=1&resourceVersion={now}&fieldSelector=metadata.name%3Da"),
        format!("/api/v1/watch/namespaces/default/configmaps/a?resourceVersion={now}"),
    ];
    let mut watches = Vec::new();
    for path in &paths {
        watches.push(server.watch(path).await);
    }
    server.post(MAPS, &config_map("b")).await.expect(201);
    server.post(MAPS, &config_map("a")).await.expect(201);
    server.delete(&format!("{MAPS}/a")).await.expect(200);
    for (path, watch) in paths.iter().zip(&mut watches) {
        assert_eq!(watch.brief().await, "ADDED a", "{path}");
        assert_eq!(watch.brief().await, "DELETED a", "{path}");
    }
}

#[tokio::test]
async fn tables_metadata_and_protobuf_can_be_watched() {
    let server = TestServer::start().await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    let path = format!("{MAPS}?watch=1");
    let mut tables = server.watch_as(&path, TABLE).await;
    let partial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    let mut partials = server.watch_as(&path, partial).await;
    let mut binary = server.watch_as(&path, PROTOBUF).await;
    server.post(MAPS, &config_map("b")).await.expect(201);

    let first = tables.next().await.unwrap();
    assert_eq!(first["object"]["kind"], "Table");
    assert_eq!(first["object"]["rows"][0]["cells"][0], "a");
    assert!(
        !first["object"]["columnDefinitions"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    let second = tables.next().await.unwrap();
    assert_eq!(second["object"]["rows"][0]["cells"][0], "b");
    assert!(
        second["object"]["columnDefinitions"]
            .as_array()
            .is_none_or(Vec::is_empty),
        "columns are sent once"
    );

    for name in ["a", "b"] {
        let event = partials.next().await.unwrap();
        assert_eq!(event["object"]["kind"], "PartialObjectMetadata");
        assert_eq!(event["object"]["metadata"]["name"], name);
        assert_eq!(event["object"].get("data"), None);
    }
    assert_eq!(
        binary.headers["content-type"],
        "application/vnd.kubernetes.protobuf;stream=watch"
    );
    for name in [b"a", b"b"] {
        let frame = binary.next_frame().await.unwrap();
        assert_eq!(proto::get(&frame, 1), Some(b"ADDED".as_slice()));
        let raw = proto::get(proto::get(&frame, 2).unwrap(), 1).unwrap();
        let (kind, object) = proto::open(raw);
        assert_eq!(kind, "ConfigMap");
        let metadata = proto::get(object, 1).unwrap();
        assert_eq!(proto::get(metadata, 1), Some(name.as_slice()));
    }
    server.get_as(&path, "application/yaml").await.expect(406);
}

#[tokio::test]
async fn a_write_without_a_change_sends_no_event() {
    let server = TestServer::start().await;
    let made = server.post(MAPS, &config_map("a")).await.expect(201);
    let mut watch = server
        .watch(&format!(
            "{MAPS}?watch=1&resourceVersion={}",
            made.version()
        ))
        .await;
    let same = server
        .put(&format!("{MAPS}/a"), &made.json())
        .await
        .expect(200);
    assert_eq!(same.version(), made.version());
    server
        .patch(&format!("{MAPS}/a"), MERGE, &json!({"data": {"a": "b"}}))
        .await
        .expect(200);
    server
        .post(&format!("{MAPS}?dryRun=All"), &config_map("dry"))
        .await
        .expect(201);
    server.post(MAPS, &config_map("b")).await.expect(201);
    assert_eq!(watch.brief().await, "ADDED b");
}

/// A hundred streams on each of ten connections.
const CONNECTIONS: usize = 10;
const STREAMS: usize = 100;
const EVENTS: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_watchers_see_every_event_in_order() {
    let server = TestServer::listening().await;
    let now = server.get(MAPS).await.version();
    let path = format!("{MAPS}?watch=1&resourceVersion={now}");
    let mut watchers = Vec::new();
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut connection = Connection::http2(&server, As::Admin).await;
        for _ in 0..STREAMS {
            let mut watch = connection.watch(&path).await;
            watchers.push(tokio::spawn(async move {
                let mut seen = Vec::with_capacity(EVENTS);
                while seen.len() < EVENTS {
                    let event = watch.next().await.expect("the stream continues");
                    seen.push((name(&event["object"]), version(&event["object"])));
                }
                seen
            }));
        }
        connections.push(connection);
    }
    let mut expected = Vec::new();
    for number in 0..EVENTS {
        let name = format!("m{number}");
        let made = server.post(MAPS, &config_map(&name)).await.expect(201);
        expected.push((name, made.version()));
    }
    for watcher in watchers {
        assert_eq!(soon(watcher).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn watches_over_sockets_end_when_the_server_shuts_down() {
    let server = TestServer::listening().await;
    let mut first = Connection::http1(&server, As::Admin).await;
    let mut second = Connection::http2(&server, As::Admin).await;
    let path = format!("{MAPS}?watch=1");
    let mut watches = [first.watch(&path).await, second.watch(&path).await];
    server.post(MAPS, &config_map("a")).await.expect(201);
    for watch in &mut watches {
        assert_eq!(watch.brief().await, "ADDED a");
    }
    server.stop().await;
    for watch in &mut watches {
        assert_eq!(watch.brief().await, "END");
    }
}
