//! Read filters and searches.

use crate::calls::{POSTS, Watch, get, names, post, posts, send, write};
use bareboat::api::kind::{BoxFuture, ReadFilter, Reader, Search, Visibility};
use bareboat::prelude::*;
use bareboat::server::authz::{Attributes, Authorizer, Decision};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// `ada` may do everything. All others may do everything but get drafts, unless the flag is set.
#[derive(Clone, Default)]
struct Rights(Arc<AtomicBool>);

impl Authorizer for Rights {
    fn authorize<'a>(&'a self, attributes: Attributes<'a>) -> BoxFuture<'a, Decision> {
        let drafts = attributes.info.subresource == "drafts";
        let all = attributes.user.name == "ada" || self.0.load(Ordering::Relaxed);
        Box::pin(std::future::ready(Decision::from_bool(!drafts || all)))
    }
}

struct Published;

impl ReadFilter for Published {
    fn visibility<'a>(&'a self, reader: &'a Reader<'a>) -> BoxFuture<'a, Visibility> {
        Box::pin(async move {
            if reader.may("get", "drafts").await {
                return Visibility::All;
            }
            Visibility::only(|post: &Object| {
                post.at(&["spec", "draft"]) != Some(&Value::Bool(true))
            })
        })
    }
}

fn server(rights: Rights) -> Server {
    let search = Search::new("text", |sought| async move {
        Ok(match sought.text.as_str() {
            "both" => vec!["default/a".to_owned(), "default/b".to_owned()],
            _ => Vec::new(),
        })
    });
    let kind = posts().reader(Published).search(search).build().unwrap();
    let tokens = "t,bob,1\n";
    Server::builder()
        .kind(kind)
        .authenticator(StaticTokens::parse(tokens).unwrap())
        .authorizer(rights)
        .build()
        .unwrap()
}

/// A server with `a` and `c` to `f`, of which `a` and `d` are drafts.
async fn filled() -> Server {
    let server = server(Rights::default());
    for (name, draft) in [
        ("a", true),
        ("b", false),
        ("c", false),
        ("d", true),
        ("e", false),
    ] {
        write(&server, "ada", "POST", POSTS, &post(name, draft)).await;
    }
    server
}

#[tokio::test]
async fn hidden_objects_are_missing_in_get_lists_and_pages() {
    let server = filled().await;
    assert_eq!(names(&get(&server, "ada", POSTS).await).len(), 5);
    assert_eq!(names(&get(&server, "bob", POSTS).await), ["b", "c", "e"]);
    let (code, _) = send(&server, "bob", "GET", &format!("{POSTS}/a"), None).await;
    assert_eq!(code, 404);
    get(&server, "ada", &format!("{POSTS}/a")).await;

    let (mut path, mut pages) = (format!("{POSTS}?limit=2"), Vec::new());
    loop {
        let page = get(&server, "bob", &path).await;
        assert_eq!(page.at(&["metadata", "remainingItemCount"]), None);
        pages.push(names(&page));
        let token = page.at(&["metadata", "continue"]).and_then(Value::as_str);
        match token {
            Some(token) => path = format!("{POSTS}?limit=2&continue={token}"),
            None => break,
        }
    }
    assert_eq!(pages, [vec!["b", "c"], vec!["e"]]);
    let one = format!("{POSTS}?fieldSelector=metadata.name%3Da");
    assert!(names(&get(&server, "bob", &one).await).is_empty());
}

#[tokio::test]
async fn a_watch_adds_what_becomes_visible_and_deletes_what_becomes_hidden() {
    let server = filled().await;
    let mut watch = Watch::start(&server, "bob", &format!("{POSTS}?watch=true")).await;
    for name in ["b", "c", "e"] {
        assert_eq!(watch.next().await, ("ADDED".to_owned(), name.to_owned()));
    }
    let draft = |draft: bool| value!({"spec": {"draft": draft}});
    let a = format!("{POSTS}/a");
    write(
        &server,
        "ada",
        "PATCH",
        &a,
        &value!({"spec": {"title": "hidden"}}),
    )
    .await;
    write(&server, "ada", "PATCH", &a, &draft(false)).await;
    write(
        &server,
        "ada",
        "PATCH",
        &a,
        &value!({"spec": {"title": "seen"}}),
    )
    .await;
    write(&server, "ada", "PATCH", &a, &draft(true)).await;
    for event in ["ADDED", "MODIFIED", "DELETED"] {
        assert_eq!(watch.next().await, (event.to_owned(), "a".to_owned()));
    }
}

#[tokio::test]
async fn hidden_objects_cannot_be_written() {
    let server = filled().await;
    let a = format!("{POSTS}/a");
    let title = value!({"spec": {"title": "mine"}});
    assert_eq!(send(&server, "bob", "PATCH", &a, Some(&title)).await.0, 404);
    let body = post("a", false);
    assert_eq!(send(&server, "bob", "PUT", &a, Some(&body)).await.0, 404);
    assert_eq!(send(&server, "bob", "DELETE", &a, None).await.0, 404);
    let deleted = send(&server, "bob", "DELETE", POSTS, None).await;
    assert_eq!(deleted.0, 200, "{}", deleted.1);
    assert_eq!(names(&get(&server, "ada", POSTS).await), ["a", "d"]);
}

#[tokio::test]
async fn a_watch_ends_with_410_when_its_user_gets_other_rights() {
    let rights = Rights::default();
    let server = server(rights.clone());
    write(&server, "ada", "POST", POSTS, &post("a", true)).await;
    let address = server
        .listen("127.0.0.1:0".parse().unwrap(), None)
        .await
        .unwrap();
    let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let request =
        format!("GET {POSTS}?watch=true HTTP/1.1\r\nhost: x\r\nauthorization: Bearer t\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![0; 64];
    socket.read_exact(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");
    rights.0.store(true, Ordering::Relaxed);
    server.revocations().everything_changed();
    let mut seen = String::new();
    while !seen.contains("\"ERROR\"") {
        let mut more = [0; 1024];
        let count = socket.read(&mut more).await.unwrap();
        assert_ne!(count, 0, "it ends with an event: {seen}");
        seen.push_str(&String::from_utf8_lossy(&more[..count]));
    }
    assert!(
        seen.contains("410") && seen.contains("list again"),
        "{seen}"
    );
    server.shut_down().await;
}

#[tokio::test]
async fn a_search_is_answered_by_its_function() {
    let server = filled().await;
    let search = |text: &str| format!("{POSTS}?fieldSelector={text}");
    let both = search("text%3Dboth");
    assert_eq!(names(&get(&server, "ada", &both).await), ["a", "b"]);
    assert_eq!(names(&get(&server, "bob", &both).await), ["b"]);
    let page = get(&server, "ada", &format!("{both}&limit=1")).await;
    assert_eq!(names(&page), ["a"]);
    let one = search("text%3Dboth,metadata.name%3Db");
    assert_eq!(names(&get(&server, "ada", &one).await), ["b"]);
    assert!(names(&get(&server, "ada", &search("text%3Dnone")).await).is_empty());
    for bad in [search("text!%3Dboth"), format!("{both}&watch=true")] {
        let (code, body) = send(&server, "ada", "GET", &bad, None).await;
        assert_eq!(code, 400, "{body}");
    }
}
