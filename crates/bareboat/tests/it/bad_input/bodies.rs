//! Invalid bodies.

use super::unharmed;
use crate::support::*;
use bareboat_testing::TestServer;
use bytes::Bytes;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";

fn nested(open: &str, close: &str, depth: usize, inner: &str) -> String {
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

/// Returns media type, body and description of each case.
fn malformed() -> Vec<(&'static str, Bytes, String)> {
    let mut all: Vec<(&'static str, Bytes, String)> = Vec::new();
    let mut add = |media, body: Bytes, what: &str| all.push((media, body, what.to_owned()));
    let texts = [
        "",
        " ",
        "{",
        "}",
        "[",
        "]",
        "{]",
        "[}",
        "nul",
        "tru",
        "falsee",
        "'a'",
        "\"",
        "\"\\",
        "\"\\u12\"",
        "\"\\x\"",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{\"a\" 1}",
        "{a:1}",
        "{1:2}",
        "[1,]",
        "01",
        "1e",
        "-",
        "+1",
        ".5",
        "0x10",
        "NaN",
        "Infinity",
        "1.2.3",
        "{\"kind\":\"ConfigMap\"}}",
        "{} {}",
        "{}x",
        "// {}",
        "/* */{}",
        "\u{feff}",
        "{\"a\":\"\n\"}",
        "{\"a\":\"\t\"}",
        "[]",
        "[{}]",
        "true",
        "7",
        "-0.0",
        "\"text\"",
        "1e999",
        "{\"\\ud800\":1",
    ];
    for text in texts {
        add(JSON, Bytes::copy_from_slice(text.as_bytes()), text);
    }
    for bytes in [
        &b"{\"metadata\":{\"name\":\"\xff\"}}"[..],
        b"\xff\xfe{\0}\0",
        b"{\"a\":\"\xc3\"}",
        b"{\"\xed\xa0\x80\":1}",
        b"\0",
        b"{\"a\":\"\0\"}",
        b"{\"metadata\":{\"name\":\"a\0b\"}}",
    ] {
        add(JSON, Bytes::from_static(bytes), "invalid bytes");
        add(YAML, Bytes::from_static(bytes), "invalid bytes");
    }
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"a\":", "}]")] {
        for inner in ["1", ""] {
            add(
                JSON,
                nested(open, close, 100_000, inner).into(),
                "100,000 deep",
            );
        }
        add(JSON, open.repeat(100_000).into(), "100,000 deep and open");
    }
    let deep = nested("{\"a\":", "}", 100_000, "1");
    add(
        JSON,
        format!("{{\"metadata\":{{\"name\":\"a\"}},\"data\":{deep}}}").into(),
        "deep below data",
    );
    for text in [
        "a: b: c",
        "\t- a",
        "a:\n\t b",
        "[1, 2",
        "{a: b",
        "- a\nb: c",
        "&a *a",
        "*nobody",
        "a: *nobody",
        "a: &x [*x]",
        "? ?",
        "%YAML 9.9\n---\n{}",
        "!!binary x",
        "---\na: 1\n---\nb: 2",
        "\"",
        "'",
        "|",
        ">",
        "a: |\n b\n c: d\n- e",
        "@",
        "`",
        "a: !!python/object:x {}",
        "<<: 1",
        "1: 2",
        "~: x",
        "[a]: b",
        "just text",
        "- list",
        "42",
        ": :",
    ] {
        add(YAML, Bytes::copy_from_slice(text.as_bytes()), text);
    }
    add(
        YAML,
        nested("[", "]", 100_000, "1").into(),
        "100,000 deep YAML",
    );
    add(
        YAML,
        nested("{a: ", "}", 100_000, "1").into(),
        "100,000 deep YAML",
    );
    add(
        YAML,
        "- ".repeat(100_000).into(),
        "100,000 deep YAML sequence",
    );
    let mut indented = String::new();
    for depth in 0..1_500 {
        indented.push_str(&" ".repeat(depth));
        indented.push_str("a:\n");
    }
    add(YAML, indented.into(), "1,500 deep by indentation");
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..40 {
        let before = format!("*a{}", level - 1);
        let nine = vec![before; 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{nine}]\n"));
    }
    add(YAML, bomb.clone().into(), "a YAML bomb");
    add(
        YAML,
        format!("metadata: {{name: a}}\ndata: {{}}\n{bomb}").into(),
        "a YAML bomb beside an object",
    );
    add(YAML, "a: &a\n  b: *a\n".into(), "a YAML loop");
    for bytes in [
        &b""[..],
        b"k8s",
        b"k8s\0",
        b"k8s\0\xff",
        b"k8s\0\x0a\xff\xff\xff\xff\x0f",
        b"k8s\x01",
        b"\0\0\0\0",
        b"k8s\0\x0a\x02\x0a\x00\x12\xff\xff\xff\x7f",
        b"k8s\0\x0b\x0b\x0b\x0b",
        b"{\"metadata\":{\"name\":\"a\"}}",
    ] {
        add(PROTOBUF, Bytes::from_static(bytes), "broken protobuf");
    }
    for raw in [
        vec![0xff; 20],
        proto::field(1, &[0xff; 8]),
        proto::field(1, &proto::field(1, &[0xff, 0xfe])),
        vec![
            0x0a, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01,
        ],
        vec![0x0b; 100_000],
        vec![0x08, 0x01],
    ] {
        add(
            PROTOBUF,
            proto::envelope("v1", "ConfigMap", &raw).into(),
            "broken protobuf inside",
        );
    }
    let good = proto::config_map("p");
    for cut in 1..good.len() {
        add(PROTOBUF, good[..cut].to_vec().into(), "protobuf cut short");
    }
    all
}

#[tokio::test]
async fn malformed_bodies_are_rejected() {
    let server = TestServer::start().await;
    let cases = malformed();
    assert!(cases.len() > 150);
    for (media, body, what) in cases {
        let shown: String = what.chars().take(60).collect();
        let headers = [("content-type", media)];
        let answer = server.send("POST", MAPS, &headers, body.clone()).await;
        let (code, reason, _) = answer.status();
        assert!(
            matches!(
                (code, reason.as_str()),
                (400, "BadRequest") | (422, "Invalid") | (415, "UnsupportedMediaType")
            ),
            "{media} {shown}: {}",
            answer.text()
        );
        server
            .send("PUT", &format!("{MAPS}/x"), &headers, body)
            .await;
    }
    assert!(server.get(MAPS).await.names().is_empty());
    unharmed(&server, "malformed bodies").await;
}

#[tokio::test]
async fn bodies_of_ten_megabytes_are_rejected_unread() {
    let server = TestServer::start().await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    let huge = Bytes::from(vec![b'['; 10 * 1024 * 1024]);
    for media in [JSON, YAML, PROTOBUF] {
        let headers = [("content-type", media)];
        for (method, path) in [
            ("POST", MAPS.to_owned()),
            ("PUT", format!("{MAPS}/a")),
            ("DELETE", format!("{MAPS}/a")),
        ] {
            let answer = server.send(method, &path, &headers, huge.clone()).await;
            assert_eq!(answer.status().0, 413, "{method} {media}");
        }
    }
    for media in [MERGE, STRATEGIC, JSON_PATCH, APPLY] {
        let path = format!("{MAPS}/a?fieldManager=m");
        let answer = server
            .send("PATCH", &path, &[("content-type", media)], huge.clone())
            .await;
        assert_eq!(answer.status().0, 413, "{media}");
    }
    server.get(&format!("{MAPS}/a")).await.expect(200);
    unharmed(&server, "huge bodies").await;
}

#[tokio::test]
async fn values_of_the_wrong_type_are_rejected() {
    let server = TestServer::start().await;
    let wrong = [
        json!(null),
        json!(true),
        json!(7),
        json!(-1.5),
        json!("text"),
        json!([]),
        json!([[]]),
        json!({}),
        json!({"a": {}}),
    ];
    let places = [
        "/metadata",
        "/metadata/name",
        "/metadata/labels",
        "/metadata/annotations",
        "/metadata/finalizers",
        "/metadata/ownerReferences",
        "/metadata/managedFields",
        "/metadata/generation",
        "/metadata/creationTimestamp",
        "/metadata/uid",
        "/metadata/namespace",
        "/data",
        "/data/a",
        "/binaryData",
        "/immutable",
        "/kind",
        "/apiVersion",
    ];
    let mut refused = 0;
    for place in places {
        for value in &wrong {
            let mut object = config_map("a");
            let (parent, key) = place.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap()[key] = value.clone();
            let path = format!("{MAPS}?dryRun=All&fieldValidation=Strict");
            let answer = server.post(&path, &object).await;
            match answer.code {
                201 => {}
                400 | 422 => refused += 1,
                other => panic!("{other} for {place}: {value}: {}", answer.text()),
            }
        }
    }
    assert!(refused > 90, "only {refused} were refused");
    unharmed(&server, "wrong types").await;
}

#[tokio::test]
async fn invalid_names_are_rejected() {
    let server = TestServer::start().await;
    let long = "a".repeat(254);
    let names = [
        "A",
        "a_b",
        "-a",
        "a-",
        ".a",
        "a.",
        "a..b",
        "a b",
        "a/b",
        "a%b",
        ".",
        "..",
        "ä",
        "a\n",
        "a\0",
        " ",
        "a:b",
        "a@b",
        "\u{202e}a",
        "👻",
        &long,
    ];
    for bad in names {
        let answer = server.post(MAPS, &config_map(bad)).await;
        assert_eq!(answer.status().1, "Invalid", "{bad:?}");
        let path = format!("{MAPS}/{}", escape(bad));
        let code = server.get(&path).await.code;
        assert!(matches!(code, 400 | 404 | 200), "{bad:?}: {code}");
        let namespace = json!({"metadata": {"name": bad}});
        let answer = server.post("/api/v1/namespaces", &namespace).await;
        assert_eq!(answer.status().1, "Invalid", "{bad:?}");
    }
    for key in [
        "",
        "-",
        "a b",
        "/x",
        "x/",
        "a/b/c",
        "ä",
        &"k".repeat(64),
        "A_/x",
    ] {
        for place in ["labels", "annotations"] {
            let mut object = config_map("a");
            object["metadata"][place] = json!({key: "v"});
            assert_eq!(
                server.post(MAPS, &object).await.status().0,
                422,
                "{place}: {key:?}"
            );
        }
    }
    for value in ["-", "a b", "ä", &"v".repeat(64)] {
        let mut object = config_map("a");
        object["metadata"]["labels"] = json!({"k": value});
        assert_eq!(
            server.post(MAPS, &object).await.status().0,
            422,
            "{value:?}"
        );
    }
    let mut object = config_map("a");
    object["metadata"]["annotations"] = json!({"big": "x".repeat(256 * 1024 + 1)});
    assert_eq!(server.post(MAPS, &object).await.status().0, 422);
    unharmed(&server, "illegal names").await;
}

#[tokio::test]
async fn broken_patches_change_nothing() {
    let server = TestServer::start().await;
    let before = server.post(MAPS, &config_map("a")).await.expect(201).json();
    let path = format!("{MAPS}/a?fieldManager=m");
    let deep = nested("{\"a\":", "}", 100_000, "1");
    let everywhere = ["", "{", "null", "7", "\"x\"", "[", "\u{0}", deep.as_str()];
    let mut cases: Vec<(&str, String)> = Vec::new();
    for media in [MERGE, STRATEGIC, JSON_PATCH, APPLY] {
        // For these two types, `null` is an empty patch.
        let nothing = |text: &str| text == "null" && [STRATEGIC, JSON_PATCH].contains(&media);
        let bad = everywhere.iter().filter(|text| !nothing(text));
        cases.extend(bad.map(|text| (media, (*text).to_owned())));
    }
    for text in [
        "{}",
        "[7]",
        "[{}]",
        r#"[{"op":"fly","path":"/a"}]"#,
        r#"[{"op":"add","path":"a","value":1}]"#,
        r#"[{"op":"remove","path":"/data/none"}]"#,
        r#"[{"op":"add","path":"/data/x/y/z","value":1}]"#,
        r#"[{"op":"copy","from":"/none/deep","path":"/data/x"}]"#,
        r#"[{"op":"move","from":"/data","path":"/data/x"}]"#,
        r#"[{"op":"replace","path":"/metadata/name","value":"b"}]"#,
        r#"[{"op":"remove","path":""}]"#,
        r#"[{"op":"add","path":"/metadata/finalizers/99","value":"x"}]"#,
        r#"[{"op":"add","path":"/data","value":[]}]"#,
    ] {
        cases.push((JSON_PATCH, text.to_owned()));
    }
    // Each operation doubles the object.
    let mut doubling = vec![json!({"op": "add", "path": "/data/x", "value": "x".repeat(1000)})];
    for number in 0..64 {
        doubling.push(json!({"op": "copy", "from": "/data", "path": format!("/data/d{number}")}));
    }
    cases.push((JSON_PATCH, Value::from(doubling).to_string()));
    for text in [
        "[]",
        r#"{"data":[]}"#,
        r#"{"data":{"a":7}}"#,
        r#"{"metadata":7}"#,
        r#"{"metadata":{"name":"b"}}"#,
        r#"{"metadata":{"namespace":"other"}}"#,
        r#"{"metadata":{"uid":"0c3f4ab0-57fa-4a02-9b6a-000000000000"}}"#,
        r#"{"metadata":{"labels":{"-":"-"}}}"#,
    ] {
        cases.push((MERGE, text.to_owned()));
        cases.push((STRATEGIC, text.to_owned()));
    }
    cases.push((MERGE, r#"{"kind":"Secret"}"#.to_owned()));
    for text in [
        r#"{"$patch":"explode"}"#,
        r#"{"kind":7}"#,
        r#"{"metadata":{"$setElementOrder/ownerReferences":{}}}"#,
    ] {
        cases.push((STRATEGIC, text.to_owned()));
    }
    for text in [
        "{}",
        "a: [",
        "apiVersion: v1\nkind: Secret\n",
        "apiVersion: v2\nkind: ConfigMap\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  managedFields:\n  - manager: x\n",
    ] {
        cases.push((APPLY, text.to_owned()));
    }
    for (media, body) in cases {
        let shown: String = body.chars().take(100).collect();
        let answer = server
            .send("PATCH", &path, &[("content-type", media)], body)
            .await;
        let (code, reason, _) = answer.status();
        // kube-apiserver answers invalid directives with a 500 without a reason.
        let directive = media == STRATEGIC && code == 500 && reason.is_empty();
        assert!(
            matches!(code, 400 | 409 | 413 | 422) || directive,
            "{media} {shown}: {code} {}",
            answer.text()
        );
    }
    let after = server.get(&format!("{MAPS}/a")).await.json();
    assert_eq!(after, before);
    unharmed(&server, "broken patches").await;
}
