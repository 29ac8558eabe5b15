//! Kinds with a store of their own, and writes that a function answers.

use crate::calls::{POSTS, get, names, post, posts, send, user, write};
use bareboat::client::of_store;
use bareboat::prelude::*;
use bareboat::server::reply;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use std::sync::Arc;

fn memory() -> Store {
    Store::open(Arc::new(MemoryBackend::new()), StoreOptions::default()).unwrap()
}

#[tokio::test]
async fn a_kind_can_have_a_store_of_its_own() {
    let own = memory();
    let others = TypedKind::new("blog.example.com", "notes", "Note").untyped_version("v1");
    let server = Server::builder()
        .kind(others.build().unwrap())
        .kind_in(posts().build().unwrap(), own.clone())
        .authorizer(AllowAll)
        .build()
        .unwrap();
    let (main, before) = (server.store().visible(), own.visible());
    write(&server, "ada", "POST", POSTS, &post("a", false)).await;
    assert_eq!(server.store().visible(), main);
    assert_eq!(own.visible(), before + 1);
    let list = get(&server, "ada", POSTS).await;
    let version = list
        .at(&["metadata", "resourceVersion"])
        .and_then(Value::as_str);
    assert_eq!(version, Some(own.visible().to_string().as_str()));
    let patch = value!({"spec": {"title": "b"}});
    write(&server, "ada", "PATCH", &format!("{POSTS}/a"), &patch).await;
    write(&server, "ada", "DELETE", &format!("{POSTS}/a"), &value!({})).await;
    server.shut_down().await;
    assert!(own.poison().is_some() || own.stats().queued == 0);
}

#[tokio::test]
async fn a_function_can_answer_the_writes_of_a_stored_kind() {
    let pass = Connector::program(|visit| async move {
        let (question, object) = (&visit.question, &visit.object);
        let seen = value!({
            "method": (visit.request.method().as_str()), "name": (question.name.clone()),
            "title": (object.as_ref().and_then(|post| post.at(&["spec", "title"])).cloned().unwrap_or_default()),
        });
        Ok(reply::json(http::StatusCode::ACCEPTED, &seen))
    });
    let server = Server::builder()
        .kind(posts().build().unwrap())
        .writes("blog.example.com", "posts", pass)
        .authorizer(AllowAll)
        .build()
        .unwrap();
    let (code, _) = send(&server, "ada", "POST", POSTS, Some(&post("a", false))).await;
    assert_eq!(code, 202);
    assert!(names(&get(&server, "ada", POSTS).await).is_empty());

    // The program itself stores objects, which clients then see.
    let kind = GroupVersionKind::gvk("blog.example.com", "v1", "Post");
    let kind = ApiResource::from_gvk_with_plural(&kind, "posts");
    let api: Api<DynamicObject> =
        Api::namespaced_with(of_store(&server, user("program")), "default", &kind);
    let object = serde_json::from_slice(&post("a", false).to_json()).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
    assert_eq!(names(&get(&server, "ada", POSTS).await), ["a"]);
    let (code, seen) = send(&server, "ada", "DELETE", &format!("{POSTS}/a"), None).await;
    assert_eq!(code, 202);
    assert_eq!(
        seen,
        value!({"method": "DELETE", "name": "a", "title": "a"})
    );
    assert_eq!(names(&get(&server, "ada", POSTS).await), ["a"]);
}

#[tokio::test]
async fn fields_can_be_computed_when_an_object_is_read() {
    let kind = posts().on_get(|mut post| async move {
        let length = post
            .at(&["spec", "title"])
            .and_then(Value::as_str)
            .map_or(0, str::len);
        post.map_mut().insert("length", Value::Int(length as i64));
        Ok(post)
    });
    let server = Server::builder()
        .kind(kind.build().unwrap())
        .authorizer(AllowAll);
    let server = server.build().unwrap();
    write(&server, "ada", "POST", POSTS, &post("abc", false)).await;
    let one = get(&server, "ada", &format!("{POSTS}/abc")).await;
    assert_eq!(one.get("length"), Some(&Value::Int(3)));
    let list = get(&server, "ada", POSTS).await;
    let items = list.get("items").and_then(Value::as_array).unwrap();
    assert_eq!(items[0].get("length"), None);
}
