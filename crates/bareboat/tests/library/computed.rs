//! Computed kinds: lists in pages, changes, deletion, and watches.

use crate::calls::{POSTS, Watch, get, names, post, posts, send, write};
use bareboat::prelude::*;
use bareboat::server::kinds::computed::{ComputedEvent, Listing};
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc};

fn object(name: &str, version: &str) -> Object {
    let mut object = Object::try_from(post(name, false)).unwrap();
    object.set_meta("resourceVersion", Value::string(version));
    object
}

fn server() -> Server {
    let one = Arc::new(Mutex::new(object("a", "7")));
    let (live, changed) = (one.clone(), one);
    let computed = Computed::new(posts().build().unwrap())
        .get(move |_| {
            let live = live.clone();
            async move { Ok(live.lock().await.clone()) }
        })
        .list(|question| async move {
            question.warn("only a sample");
            let first = question.query.given("continue").is_none();
            Ok(Listing {
                items: vec![object(if first { "a" } else { "b" }, "7")],
                resource_version: "7".into(),
                continue_token: if first {
                    "more".to_owned()
                } else {
                    String::new()
                },
                remaining: first.then_some(1),
            })
        })
        .update(move |(_, change)| {
            let changed = changed.clone();
            async move {
                let mut live = changed.lock().await;
                *live = change.apply(live.clone()).await?;
                live.set_meta("resourceVersion", Value::string("8"));
                Ok(live.clone())
            }
        })
        .delete(|question| async move { Ok(object(&question.name, "9")) })
        .watch(|_| async move {
            let (send, events) = mpsc::channel(8);
            let _ = send.send(ComputedEvent::Added(object("a", "7"))).await;
            let _ = send.send(ComputedEvent::Bookmark("8".into())).await;
            let gone = Status::expired("too old");
            let _ = send.send(ComputedEvent::Error(gone)).await;
            Ok(events)
        });
    let server = Server::builder().computed(computed).authorizer(AllowAll);
    server.build().unwrap()
}

#[tokio::test]
async fn lists_have_versions_and_pages() {
    let server = server();
    let page = get(&server, "ada", POSTS).await;
    let metadata = value!({"resourceVersion": "7", "continue": "more", "remainingItemCount": 1});
    assert_eq!(page.get("metadata"), Some(&metadata));
    let next = get(&server, "ada", &format!("{POSTS}?continue=more")).await;
    assert_eq!(names(&next), ["b"]);
}

#[tokio::test]
async fn changes_are_computed_from_the_live_object_and_validated() {
    let server = server();
    let a = format!("{POSTS}/a");
    let patch = value!({"spec": {"title": "new"}});
    let changed = write(&server, "ada", "PATCH", &a, &patch).await;
    assert_eq!(changed.at(&["spec", "title"]), Some(&Value::string("new")));
    let bad = value!({"spec": {"title": 7}});
    assert_eq!(send(&server, "ada", "PATCH", &a, Some(&bad)).await.0, 422);
    let mut whole = post("a", true);
    write(&server, "ada", "PUT", &a, &whole).await;
    let stale = value!({"name": "a", "resourceVersion": "1"});
    whole.make_object().insert("metadata", stale);
    assert_eq!(send(&server, "ada", "PUT", &a, Some(&whole)).await.0, 409);
    assert_eq!(send(&server, "ada", "DELETE", &a, None).await.0, 200);
}

#[tokio::test]
async fn watches_have_bookmarks_and_errors() {
    let server = server();
    let mut watch = Watch::start(&server, "ada", &format!("{POSTS}?watch=true")).await;
    for expected in [("ADDED", "a"), ("BOOKMARK", ""), ("ERROR", "")] {
        let (event, name) = watch.next().await;
        assert_eq!((event.as_str(), name.as_str()), expected);
    }
}
