//! Invalid queries, paths and headers.

use super::unharmed;
use crate::support::*;
use bareboat_testing::TestServer;

#[tokio::test]
async fn invalid_queries_get_a_status_or_are_ignored() {
    let server = TestServer::start().await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    let huge = "9".repeat(400);
    let long = "x".repeat(20_000);
    let values = [
        "",
        "-1",
        "0",
        "1.5",
        "1e9",
        &huge,
        "18446744073709551616",
        "-9223372036854775809",
        "true",
        "null",
        "%00",
        "%ff%fe",
        "..",
        "a,b",
        "%27%22",
        "[]",
        &long,
    ];
    let keys = [
        "limit",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "timeoutSeconds",
        "timeout",
        "labelSelector",
        "fieldSelector",
        "allowWatchBookmarks",
        "pretty",
        "includeObject",
        "dryRun",
        "fieldManager",
        "fieldValidation",
        "force",
        "gracePeriodSeconds",
        "propagationPolicy",
        "orphanDependents",
        "unknown",
    ];
    for key in keys {
        for value in values {
            let query = format!("{key}={value}");
            let shown: String = query.chars().take(60).collect();
            // A future version is waited for; the timeout is short here.
            let patience = if key == "timeout" { "" } else { "&timeout=1ms" };
            let answers = [
                server.get(&format!("{MAPS}?{query}{patience}")).await,
                server.get(&format!("{MAPS}/a?{query}{patience}")).await,
                server
                    .post(&format!("{MAPS}?{query}"), &config_map("a"))
                    .await,
                server.delete(&format!("{MAPS}/none?{query}")).await,
            ];
            for answer in answers {
                assert!(
                    matches!(answer.code, 200 | 400 | 404 | 406 | 409 | 410 | 422 | 504),
                    "{shown}: {} {}",
                    answer.code,
                    answer.text()
                );
                if answer.code >= 400 {
                    answer.status();
                }
            }
        }
    }
    for query in [
        "%",
        "%zz",
        "a=%",
        "&&&&",
        "=",
        "====",
        "a&b&c",
        "limit=1&limit=x",
        "watch=perhaps&timeoutSeconds=1",
        ";",
    ] {
        let code = server.get(&format!("{MAPS}?{query}")).await.code;
        assert!(matches!(code, 200 | 400), "{query}: {code}");
    }
    unharmed(&server, "absurd queries").await;
}

#[tokio::test]
async fn hostile_selectors_are_rejected_quickly() {
    let server = TestServer::start().await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    let many = (0..3_000)
        .map(|n| format!("k{n}=v"))
        .collect::<Vec<_>>()
        .join(",");
    let set = format!(
        "k in ({})",
        (0..3_000)
            .map(|n| format!("v{n}"))
            .collect::<Vec<_>>()
            .join(",")
    );
    let parens = "(".repeat(15_000);
    let bangs = "!".repeat(15_000);
    let begun = std::time::Instant::now();
    for selector in [
        many.as_str(),
        &set,
        &parens,
        &bangs,
        "=",
        "==",
        "!=",
        "!",
        ",",
        ",,",
        "a=b,",
        "(a)",
        "a in",
        "a in (",
        "a in ()",
        "a in (,)",
        "a notin b",
        "a>b",
        "a<",
        "a>1>2",
        "a=b=c",
        "a==b==c",
        "\0",
        "a\n=b",
        "ä=ö",
        "a/b/c=d",
        "a=-",
        "\\",
        "a=\\",
        "a in (b)(c)",
        "in in (in)",
        "notin",
        "exists",
    ] {
        for key in ["labelSelector", "fieldSelector"] {
            for watch in ["", "&watch=1&timeoutSeconds=1&sendInitialEvents=maybe"] {
                let path = format!("{MAPS}?{key}={}{watch}", escape(selector));
                let answer = server.call(request("GET", &path, &[], "")).await;
                let code = answer.status().as_u16();
                let shown: String = selector.chars().take(60).collect();
                assert!(matches!(code, 200 | 400 | 422), "{key} {shown}: {code}");
            }
        }
    }
    assert!(begun.elapsed().as_secs() < 120, "{:?}", begun.elapsed());
    unharmed(&server, "hostile selectors").await;
}

#[tokio::test]
async fn strange_paths_are_not_found() {
    let server = TestServer::start().await;
    let long = format!(
        "/api/v1/namespaces/default/configmaps/{}",
        "x".repeat(30_000)
    );
    let many = "/a".repeat(10_000);
    for path in [
        "//",
        "///api//v1",
        "/api/",
        "/api/v1/",
        "/api//v1",
        "/apis//",
        "/apis///",
        "/api/v1//configmaps",
        "/api/v1/namespaces//configmaps",
        "/api/v1/namespaces/default//",
        "/api/v1/namespaces/default/configmaps/a/b/c/d/e/f",
        "/api/v1/../v1/namespaces",
        "/api/v1/%2e%2e/namespaces",
        "/api/v1/namespaces/%2F",
        "/api/v1/namespaces/%00",
        "/api/v1/namespaces/%ff",
        "/api/v1/watch",
        "/api/v1/watch/watch/watch",
        "/api/v1/proxy/x",
        "/apis/apps",
        "/apis/apps/v1/namespaces",
        "/apis/apps/v1/namespaces/x",
        "/apis/../../etc/passwd",
        "/openapi/v3/../v2",
        "/openapi/v9",
        "/healthz/none",
        "/metrics/x",
        "/version/x",
        "/api/v1/namespaces/default/status/x",
        "/api/v1/namespaces/default/finalize",
        "/API/V1/namespaces",
        "/api/v1/Namespaces",
        &long,
        &many,
    ] {
        for method in [
            "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW",
        ] {
            let answer = server.send(method, path, &[], "").await;
            let shown: String = path.chars().take(60).collect();
            assert!(
                answer.code < 500,
                "{method} {shown}: {} {}",
                answer.code,
                answer.text()
            );
        }
    }
    unharmed(&server, "strange paths").await;
}

#[tokio::test]
async fn hostile_headers_do_no_harm() {
    let server = TestServer::start().await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    let path = format!("{MAPS}/a");
    let clauses = "application/json;q=0.1,".repeat(5_000);
    let parameters = format!("application/json{}", ";a=b".repeat(10_000));
    for accept in [
        "",
        "*",
        "*/*",
        "/",
        "application",
        "application/",
        "/json",
        ";;;;",
        ",,,,",
        "application/json;",
        "application/json;q",
        "application/json;q=",
        "application/json;q=x",
        "application/json;q=-1",
        "application/json;q=1e99",
        "application/json;as=",
        "application/json;as=Table",
        "application/json;as=Table;v=v9;g=meta.k8s.io",
        "application/json;as=Nonsense;v=v1;g=meta.k8s.io",
        "application/json;stream=watch",
        "\"application/json\"",
        &clauses,
        &parameters,
    ] {
        let code = server.get_as(&path, accept).await.code;
        let shown: String = accept.chars().take(60).collect();
        assert!(matches!(code, 200 | 406), "Accept {shown}: {code}");
    }
    for media in [
        "",
        "/",
        "application",
        "application/json;charset=",
        "application/json; charset=utf-16",
        ";",
        "multipart/form-data",
        "APPLICATION/JSON",
        "application/json, application/yaml",
    ] {
        let answer = server
            .send(
                "POST",
                MAPS,
                &[("content-type", media)],
                config_map("a").to_string(),
            )
            .await;
        assert!(
            matches!(answer.code, 409 | 415),
            "Content-Type {media}: {}",
            answer.text()
        );
    }
    let id = "x".repeat(10_000);
    for (name, value) in [
        ("audit-id", id.as_str()),
        ("accept-encoding", "gzip, gzip, gzip;q=9, \u{b}"),
        ("if-none-match", "\"\"\"\"\"\""),
        ("content-length", "99"),
        ("expect", "100-continue"),
        ("impersonate-uid", "x"),
        ("impersonate-extra-", "x"),
        ("upgrade", "websocket"),
        ("connection", "upgrade"),
        ("transfer-encoding", "chunked"),
        ("range", "bytes=0-1"),
        ("host", ""),
        ("user-agent", &id),
        ("x-forwarded-for", "::::"),
        ("origin", "null"),
        ("cookie", &id),
    ] {
        let Ok(checked) = http::HeaderValue::from_str(value) else {
            continue;
        };
        let answer = server
            .send("GET", &path, &[(name, checked.to_str().unwrap_or("x"))], "")
            .await;
        assert!(
            matches!(answer.code, 200 | 400),
            "{name}: {} {}",
            answer.code,
            answer.text()
        );
    }
    let manager = "m".repeat(129);
    server
        .post(&format!("{MAPS}?fieldManager={manager}"), &config_map("b"))
        .await
        .expect(422);
    server
        .post(&format!("{MAPS}?fieldManager=a%0Ab"), &config_map("b"))
        .await
        .expect(422);
    let agents = ["", "/", "///", "\u{e4}", &id];
    for agent in agents {
        let mut request = request(
            "POST",
            &format!("{MAPS}?dryRun=All"),
            &[],
            config_map("c").to_string(),
        );
        request.headers_mut().insert(
            "user-agent",
            http::HeaderValue::from_bytes(agent.as_bytes()).unwrap(),
        );
        assert_eq!(read(server.call(request).await).await.code, 201);
    }
    unharmed(&server, "hostile headers").await;
}

#[tokio::test]
async fn forged_continue_tokens_are_rejected() {
    use base64::Engine as _;
    let server = TestServer::start().await;
    for name in ["a", "b", "c"] {
        server.post(MAPS, &config_map(name)).await.expect(201);
    }
    let tokens = [
        r#"{}"#,
        r#"[]"#,
        r#"7"#,
        r#"{"v":"meta.k8s.io/v1"}"#,
        r#"{"v":"meta.k8s.io/v1","rv":1}"#,
        r#"{"v":"meta.k8s.io/v9","rv":1,"start":"a\u0000"}"#,
        r#"{"v":"meta.k8s.io/v1","rv":-2,"start":"a\u0000"}"#,
        r#"{"v":"meta.k8s.io/v1","rv":"x","start":"a\u0000"}"#,
        r#"{"v":"meta.k8s.io/v1","rv":18446744073709551615,"start":"a\u0000"}"#,
        r#"{"v":"meta.k8s.io/v1","rv":9223372036854775807,"start":"a\u0000"}"#,
        r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../../kube-system/a\u0000"}"#,
        r#"{"v":"meta.k8s.io/v1","rv":0,"start":""}"#,
        r#"{"v":"meta.k8s.io/v1","rv":-1,"start":"a\u0000","left":-5}"#,
        r#"{"v":"meta.k8s.io/v1","rv":-1,"start":"a\u0000","left":9223372036854775807}"#,
    ];
    for token in tokens {
        let encoded = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(token);
        let answer = server
            .get(&format!("{MAPS}?limit=1&continue={encoded}"))
            .await;
        assert!(
            matches!(answer.code, 200 | 400 | 410),
            "{token}: {} {}",
            answer.code,
            answer.text()
        );
        if answer.code == 200 {
            let list = answer.json();
            let left = list["metadata"]["remainingItemCount"].as_i64().unwrap_or(0);
            assert!(
                (0..=3).contains(&left) || token.contains("left"),
                "{token}: {left}"
            );
        }
    }
    unharmed(&server, "forged tokens").await;
}
