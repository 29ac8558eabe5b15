//! Requests that the member answers itself.

use crate::rig::{P, Rig, pod, synced};
use bareboat::api::value;
use bareboat_server::{Places, Upstream, UpstreamTrust};
use bareboat_views::{OtherVersion, VersionSource};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

#[tokio::test]
async fn writes_and_subresources_of_one_member_are_forwarded() {
    let rig = Rig::start().await;
    let pods = format!("{P}/clusters/c1/api/v1/namespaces/a/pods");
    let body = r#"{"metadata": {"name": "x"}}"#;
    let answer = rig
        .send("PUT", &format!("{pods}/x?dryRun=All"), body, &[])
        .await
        .expect(200);
    assert_eq!(answer.json()["from"], "member");
    rig.get(&format!("{pods}/x/log?follow=true&container=a%2Fb"))
        .await
        .expect(200);
    let header = [("x-clusterpedia-forward", "true")];
    rig.send("GET", &format!("{pods}?limit=5"), "", &header)
        .await
        .expect(200);
    let label = "labelSelector=app%3Dx,search.clusterpedia.io/forward";
    rig.get(&format!("{pods}?{label}")).await.expect(200);
    rig.get(&format!("{P}/clusters/c1/openapi/v3"))
        .await
        .expect(200);
    let forwarded = rig.data.forwarded.lock().clone();
    let seen: Vec<(&str, &str)> = forwarded
        .iter()
        .map(|one| (one.2.as_str(), one.3.as_str()))
        .collect();
    assert_eq!(
        seen,
        [
            ("PUT", "/api/v1/namespaces/a/pods/x?dryRun=All"),
            (
                "GET",
                "/api/v1/namespaces/a/pods/x/log?follow=true&container=a%2Fb"
            ),
            ("GET", "/api/v1/namespaces/a/pods?limit=5"),
            ("GET", "/api/v1/namespaces/a/pods?labelSelector=app%3Dx"),
            ("GET", "/openapi/v3"),
        ]
    );
    assert!(
        forwarded
            .iter()
            .all(|one| one.0 == "c1" && one.1 == "admin")
    );
}

#[tokio::test]
async fn only_users_of_the_proxy_may_forward() {
    let rig = Rig::start().await;
    let pods = format!("{P}/clusters/c1/api/v1/namespaces/a/pods");
    let user = crate::rig::user("ann");
    let refused = rig
        .send_as(user.clone(), "DELETE", &format!("{pods}/x"), "", &[])
        .await
        .expect(403);
    assert!(
        refused.message().contains("clusters/proxy"),
        "{}",
        refused.message()
    );
    let header = [("x-clusterpedia-forward", "true")];
    rig.send_as(user, "GET", &pods, "", &header)
        .await
        .expect(403);
    assert!(rig.data.forwarded.lock().is_empty());
    let merged = format!("{P}/api/v1/namespaces/a/pods");
    rig.send("POST", &merged, "{}", &[]).await.expect(405);
    rig.send("DELETE", &format!("{merged}/x"), "", &[])
        .await
        .expect(405);
}

#[tokio::test]
async fn versions_that_the_member_must_convert_come_from_it() {
    let rig = Rig::start().await;
    let mut c4 = crate::rig::member("c4");
    let mut boats = synced("sea.example.com", "v1", "boats", "Boat");
    boats.others = vec![OtherVersion {
        name: "v2".to_owned(),
        source: VersionSource::Member,
    }];
    c4.types.push(Arc::new(boats));
    rig.join(c4);
    rig.put("c4", pod("a", "x", "Running"));
    let one = rig
        .get(&format!("{P}/clusters/c4/apis/sea.example.com/v2/boats"))
        .await
        .expect(200);
    assert_eq!(one.json()["from"], "member");
    let merged = rig.get(&format!("{P}/apis/sea.example.com/v2/boats")).await;
    assert!(merged.names().is_empty());
    assert!(
        merged.warnings()[0].contains("c4"),
        "{:?}",
        merged.warnings()
    );
}

#[tokio::test]
async fn credentials_of_clients_do_not_reach_members() {
    let rig = Rig::listening().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let member = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut head = Vec::new();
        while !head.windows(4).any(|part| part == b"\r\n\r\n") {
            let mut part = [0; 4096];
            let read = stream.read(&mut part).await.expect("a request");
            assert!(read > 0, "the request breaks off");
            head.extend_from_slice(&part[..read]);
        }
        let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
        stream
            .write_all(answer.as_bytes())
            .await
            .expect("an answer");
        String::from_utf8(head)
            .expect("a head is text")
            .to_lowercase()
    });
    let patience = Duration::from_secs(30);
    let places = Arc::<Places>::default();
    let upstream = Upstream::new(&url, &UpstreamTrust::System, None, patience, &places);
    *rig.data.upstream.lock() = Some(upstream);
    let headers = [
        ("x-clusterpedia-forward", "true"),
        ("X-Clusterpedia-Proxy-Token", "secret"),
        ("X-Clusterpedia-Proxy-CA", "secret"),
        ("X-Clusterpedia-Proxy-Client-Cert", "secret"),
        ("X-Clusterpedia-Proxy-Client-Key", "secret"),
        ("Cookie", "secret"),
        ("X-Remote-User", "secret"),
        ("X-Kept", "kept"),
    ];
    let path = format!("{P}/clusters/c1/api/v1/pods?limit=1");
    rig.send("GET", &path, "", &headers).await.expect(200);
    let head = member.await.expect("the member got a request");
    assert!(head.starts_with("get /api/v1/pods?limit=1 "), "{head}");
    assert!(head.contains("x-kept: kept"), "{head}");
    assert!(!head.contains("secret"), "{head}");
    assert!(!head.contains("x-clusterpedia-proxy"), "{head}");
}

#[tokio::test]
async fn lists_of_all_members_ask_those_that_convert_themselves() {
    let rig = Rig::start().await;
    let boats = |version: &str, others: &[&str]| {
        let mut boats = synced("sea.example.com", version, "boats", "Boat");
        let source = VersionSource::Member;
        let others = others.iter().map(|name| OtherVersion {
            name: (*name).to_owned(),
            source,
        });
        boats.others = others.collect();
        Arc::new(boats)
    };
    for (name, types) in [
        ("c1", boats("v2", &[])),
        ("c4", boats("v1", &["v2"])),
        ("c5", boats("v1", &["v2"])),
    ] {
        let mut member = crate::rig::member(name);
        member.types.push(types);
        rig.join(member);
    }
    let boat = |namespace: &str, name: &str| {
        value!({
            "apiVersion": "sea.example.com/v2", "kind": "Boat",
            "metadata": {"namespace": namespace, "name": name, "uid": name, "resourceVersion": "77"},
            "spec": {"sails": 2},
        })
    };
    rig.put("c1", boat("a", "own"));
    let items = value!([(boat("a", "live")), (boat("b", "other"))]);
    let list = value!({"kind": "BoatList", "metadata": {"resourceVersion": "80"}, "items": items});
    rig.data.answers.lock().insert("c4".to_owned(), list);
    let path = format!("{P}/apis/sea.example.com/v2/boats");
    let answer = rig.get(&path).await;
    assert_eq!(answer.names(), ["c1/a/own", "c4/a/live", "c4/b/other"]);
    assert_eq!(answer.warnings().len(), 1, "{:?}", answer.warnings());
    assert!(
        answer.warnings()[0].contains("c5 (the answer is no list)"),
        "{:?}",
        answer.warnings()
    );
    let item = &answer.json()["items"][1];
    assert_eq!(item["spec"]["sails"], 2);
    assert!(item["metadata"].get("resourceVersion").is_none(), "{item}");
    let version = &item["metadata"]["annotations"]["shadow.bareboat.dev/resource-version"];
    assert_eq!(*version, "77");
    // Namespaces and labels go with the question.
    let some =
        format!("{P}/apis/sea.example.com/v2/namespaces/a/boats?labelSelector=x%3Dy&clusters=c4");
    rig.get(&some).await.expect(200);
    let asked = rig
        .data
        .forwarded
        .lock()
        .last()
        .cloned()
        .expect("it was asked");
    assert_eq!(
        asked.3,
        "/apis/sea.example.com/v2/namespaces/a/boats?labelSelector=x%3Dy"
    );
    // They are on the last page.
    let page = rig.get(&format!("{path}?clusters=c1,c4&limit=1")).await;
    assert_eq!(page.names(), ["c1/a/own", "c4/a/live", "c4/b/other"]);
    rig.put("c1", boat("a", "second"));
    let page = rig.get(&format!("{path}?clusters=c1,c4&limit=1")).await;
    assert_eq!(page.names(), ["c1/a/own"]);
    let body = page.json();
    let token = body["metadata"]["continue"].as_str().expect("a token");
    let page = rig
        .get(&format!("{path}?clusters=c1,c4&limit=1&continue={token}"))
        .await;
    assert_eq!(page.names(), ["c1/a/second", "c4/a/live", "c4/b/other"]);
    // What members cannot judge is not asked of them.
    let asked = rig.data.forwarded.lock().len();
    let found = rig
        .get(&format!("{path}?filter=object.spec.sails%3D%3D2"))
        .await;
    assert_eq!(found.names(), ["c1/a/own", "c1/a/second"]);
    assert!(
        found.warnings()[0].contains("c4, c5 must convert"),
        "{:?}",
        found.warnings()
    );
    assert_eq!(rig.data.forwarded.lock().len(), asked);
    // A watch cannot be exact, so there is none.
    let refused = rig.get(&format!("{path}?watch=true")).await.expect(400);
    assert!(
        refused.message().contains("c4, c5 must convert boats"),
        "{}",
        refused.message()
    );
    let mut events = rig.watch(&format!("{path}?watch=true&clusters=c1")).await;
    assert_eq!(events.take(1).await, ["ADDED c1/a/own"]);
}

#[tokio::test]
async fn a_member_that_does_not_answer_holds_no_seat() {
    let rig = Rig::listening().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let patience = Duration::from_secs(60);
    let places = Arc::<Places>::default();
    let upstream = Upstream::new(&url, &UpstreamTrust::System, None, patience, &places);
    *rig.data.upstream.lock() = Some(upstream);
    let client = rig.server.client();
    let request = http::Request::delete(format!("{P}/clusters/c1/api/v1/namespaces/a/pods/x"));
    let request = request.body(kube::client::Body::empty());
    let request = request.expect("it is well formed");
    let asking = tokio::spawn(async move { client.send(request).await });
    let (mut member, _) = listener.accept().await.expect("a connection");
    let mut head = [0; 16];
    member.read_exact(&mut head).await.expect("a request");
    // The request is with the member now.
    let metrics = rig.get("/metrics").await.expect(200);
    let metrics = String::from_utf8_lossy(&metrics.bytes).into_owned();
    let gauge = "apiserver_current_inflight_requests{request_kind=\"mutating\"} ";
    let seats = metrics.lines().find_map(|line| line.strip_prefix(gauge));
    assert_eq!(seats, Some("0"));
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    let answered = member.write_all(answer.as_bytes()).await;
    answered.expect("an answer");
    let answer = asking.await.expect("it ends").expect("it is answered");
    assert_eq!(answer.status(), 200);
}
