//! Headers that are forwarded, and headers that are removed.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::request::ask::Came;
use crate::request::body::RequestBody;
use crate::revocation::End;
use http::Method;
use std::collections::BTreeMap;

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut out = HeaderMap::new();
    for (name, value) in pairs {
        let name = HeaderName::try_from(*name).unwrap();
        out.append(name, HeaderValue::from_str(value).unwrap());
    }
    out
}

fn sent(client: &[(&str, &str)], user: &User, upgrade: bool) -> Result<Vec<String>, Status> {
    let client = headers(client);
    let passing = Passing {
        streams: false,
        standing: None,
        method: Method::GET,
        target: "/".to_owned(),
        headers: &client,
        user,
        came: Came {
            from: Some("10.0.0.7".parse().unwrap()),
            encrypted: true,
        },
        host: Some("api.example:6443"),
        audit_id: "a-1",
        audited: None,
        remarks: &[],
        upgrade: None,
        body: RequestBody::default(),
        until: None,
        limit: 0,
        end: End::Broken,
    };
    let out = outward(&passing, upgrade, true)?;
    let mut lines: Vec<String> = out
        .iter()
        .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())))
        .collect();
    lines.sort();
    Ok(lines)
}

fn jane() -> User {
    User {
        name: "jane".into(),
        uid: "u-1".into(),
        groups: vec!["a".into(), "b c".into()],
        extra: BTreeMap::from([("Scopes/x%".to_owned(), vec!["1".to_owned(), "ü".to_owned()])]),
    }
}

const EXPECTED: [&str; 10] = [
    "audit-id: a-1",
    "x-forwarded-for: 10.0.0.7",
    "x-forwarded-host: api.example:6443",
    "x-forwarded-proto: https",
    "x-remote-extra-scopes%2fx%25: 1",
    "x-remote-extra-scopes%2fx%25: ü",
    "x-remote-group: a",
    "x-remote-group: b c",
    "x-remote-uid: u-1",
    "x-remote-user: jane",
];

#[test]
fn clients_cannot_set_identity_headers() {
    let spoofed = [
        ("X-Remote-User", "root"),
        ("x-remote-group", "system:masters"),
        ("X-Remote-Extra-Scopes", "all"),
        ("x_remote_user", "root"),
        ("X-Remote_Group", "system:masters"),
        ("Impersonate-User", "root"),
        ("Authorization", "Bearer secret"),
        ("Proxy-Authorization", "Basic secret"),
        ("Cookie", "session=secret"),
        ("Audit-ID", "forged"),
        ("Forwarded", "for=1.1.1.1"),
        ("X-Forwarded-Host", "evil.example"),
        ("X-Forwarded-Client-Cert", "forged"),
        ("X-Real-IP", "1.1.1.1"),
        ("Bareboat-Object-Uid", "forged"),
        ("X-Bareboat-Anything", "forged"),
        ("X-Clusterpedia-Proxy-Token", "secret"),
        ("X-Clusterpedia-Proxy-CA", "secret"),
        ("X-Clusterpedia-Proxy-Client-Cert", "secret"),
        ("X-Clusterpedia-Proxy-Client-Key", "secret"),
        ("x_clusterpedia_proxy_token", "secret"),
    ];
    assert_eq!(sent(&spoofed, &jane(), false).unwrap(), EXPECTED);
}

#[test]
fn hop_by_hop_headers_are_removed() {
    let client = [
        ("Connection", "close, X-Private"),
        ("X-Private", "1"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Connection", "keep-alive"),
        ("Transfer-Encoding", "chunked"),
        ("Trailer", "x"),
        ("Upgrade", "websocket"),
        ("Content-Length", "5"),
        ("Host", "api.example:6443"),
        ("Expect", "100-continue"),
    ];
    assert_eq!(sent(&client, &jane(), false).unwrap(), EXPECTED);
    let kept = sent(
        &[("TE", "gzip, trailers"), ("Accept", "a/b")],
        &jane(),
        false,
    )
    .unwrap();
    assert!(kept.contains(&"te: trailers".to_owned()));
    assert!(kept.contains(&"accept: a/b".to_owned()));
}

#[test]
fn forwarded_for_is_extended() {
    let way = [("X-Forwarded-For", "1.1.1.1, 2.2.2.2")];
    let headers = sent(&way, &jane(), false).unwrap();
    assert!(headers.contains(&"x-forwarded-for: 1.1.1.1, 2.2.2.2, 10.0.0.7".to_owned()));
}

#[test]
fn an_upgrade_is_forwarded_without_the_bearer_token_protocol() {
    let client = [
        ("Connection", "keep-alive, Upgrade"),
        ("Upgrade", "websocket"),
        (
            "Sec-WebSocket-Protocol",
            "base64url.bearer.authorization.k8s.io.c2VjcmV0, v5.channel.k8s.io",
        ),
        ("Sec-WebSocket-Key", "k"),
    ];
    assert!(asks_to_upgrade(&headers(&client)));
    let headers = sent(&client, &jane(), true).unwrap();
    for line in [
        "connection: Upgrade",
        "upgrade: websocket",
        "sec-websocket-protocol: v5.channel.k8s.io",
        "sec-websocket-key: k",
    ] {
        assert!(headers.contains(&line.to_owned()), "{line}: {headers:?}");
    }
    let only = [(
        "Sec-WebSocket-Protocol",
        "base64url.bearer.authorization.k8s.io.c2VjcmV0",
    )];
    assert_eq!(sent(&only, &jane(), true).unwrap(), EXPECTED);
}

#[test]
fn an_identity_that_headers_cannot_carry_is_not_sent_in_part() {
    for user in [
        User {
            name: "jane\r\nX-Remote-Group: system:masters".into(),
            ..User::default()
        },
        User {
            groups: vec!["a\nb".into()],
            ..jane()
        },
        User {
            name: " root".into(),
            ..jane()
        },
        User {
            uid: "u-2\t".into(),
            ..jane()
        },
        User {
            groups: vec!["a".into(), "system:masters ".into()],
            ..jane()
        },
        User {
            extra: BTreeMap::from([("scopes".to_owned(), vec!["\tall".to_owned()])]),
            ..jane()
        },
    ] {
        assert_eq!(sent(&[], &user, false).unwrap_err().code, 500);
    }
}

#[test]
fn an_answer_cannot_set_headers_of_this_origin() {
    let answer = headers(&[
        ("Set-Cookie", "a=b"),
        ("Access-Control-Allow-Origin", "*"),
        ("Alt-Svc", "h2=\"evil.example:443\""),
        ("Connection", "close, X-Hop"),
        ("X-Hop", "1"),
        ("Content-Type", "text/plain"),
        ("Content-Length", "3"),
        ("Upgrade", "websocket"),
    ]);
    let plain = homeward(answer.clone(), false);
    let names: Vec<&str> = plain.keys().map(HeaderName::as_str).collect();
    assert_eq!(names, ["content-type", "content-length"]);
    let upgraded = homeward(answer, true);
    assert_eq!(upgraded["upgrade"], "websocket");
    assert_eq!(upgraded["connection"], "Upgrade");
}

#[test]
fn an_upgrade_to_another_protocol_is_refused() {
    let asked = headers(&[("Upgrade", "SPDY/3.1, websocket")]);
    let given = |name: &str| {
        let answer = Response::builder().status(101).header("upgrade", name);
        same_upgrade(&asked, &answer.body(()).unwrap())
    };
    assert!(given("WebSocket"));
    assert!(!given("h2c"));
    assert!(!given(""));
}
