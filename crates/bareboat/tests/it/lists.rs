//! LIST: pages, versions, selectors, formats.

use crate::support::*;
use bareboat::storage::StoreOptions;
use bareboat_testing::TestServer;
use std::collections::BTreeMap;
use std::time::Duration;

async fn fill(server: &TestServer, count: usize) {
    for number in 0..count {
        let mut object = config_map(&format!("m{number:03}"));
        object["metadata"]["labels"] =
            json!({"parity": if number % 2 == 0 { "even" } else { "odd" }});
        server.post(MAPS, &object).await.expect(201);
    }
}

/// Returns pseudo-random numbers, the same every time.
fn shuffle(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

#[tokio::test]
async fn pages_show_one_state_despite_concurrent_writes() {
    for seed in 1..=6u64 {
        let mut seed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        // Controllers would write between the whole list and its first page.
        let server = TestServer::builder().without_controllers().start().await;
        fill(&server, 40).await;
        let whole = server.get(MAPS).await.expect(200);
        let expected: BTreeMap<String, Value> = whole.json()["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| (name(item), item.clone()))
            .collect();
        let mut seen = BTreeMap::new();
        let mut token = String::new();
        let mut left = expected.len();
        loop {
            let limit = 1 + shuffle(&mut seed) % 7;
            let path = format!("{MAPS}?limit={limit}&continue={token}");
            let page = server.get(&path).await.expect(200).json();
            assert_eq!(
                version(&page),
                whole.version(),
                "every page is of the first version"
            );
            let items = page["items"].as_array().unwrap();
            left -= items.len();
            for item in items {
                assert!(
                    seen.insert(name(item), item.clone()).is_none(),
                    "no item twice"
                );
            }
            let Some(next) = page["metadata"]["continue"].as_str() else {
                assert_eq!(page["metadata"].get("remainingItemCount"), None);
                break;
            };
            assert_eq!(page["metadata"]["remainingItemCount"], left);
            token = next.to_owned();
            for _ in 0..3 {
                let name = format!("m{:03}", shuffle(&mut seed) % 60);
                let path = format!("{MAPS}/{name}");
                match shuffle(&mut seed) % 3 {
                    0 => drop(server.post(MAPS, &config_map(&name)).await),
                    1 => drop(server.delete(&path).await),
                    _ => {
                        let patch = json!({"data": {"n": seed.to_string()}});
                        drop(server.patch(&path, MERGE, &patch).await);
                    }
                }
            }
        }
        assert_eq!(seen, expected);
    }
}

#[tokio::test]
async fn resource_versions_follow_the_table() {
    let server = TestServer::builder().without_controllers().start().await;
    let before = server.get(MAPS).await.version();
    fill(&server, 3).await;
    let middle = server.get(MAPS).await.version();
    let last = server
        .post(MAPS, &config_map("z"))
        .await
        .expect(201)
        .version();
    let table: Vec<(String, u16, Option<usize>)> = vec![
        (String::new(), 200, Some(4)),
        ("?limit=2".into(), 200, Some(2)),
        ("?resourceVersion=0".into(), 200, Some(4)),
        ("?resourceVersion=0&limit=2".into(), 200, Some(4)),
        (
            "?resourceVersion=0&resourceVersionMatch=NotOlderThan".into(),
            200,
            Some(4),
        ),
        (format!("?resourceVersion={middle}"), 200, Some(4)),
        (format!("?resourceVersion={middle}&limit=10"), 200, Some(3)),
        (format!("?resourceVersion={before}&limit=10"), 200, Some(0)),
        (
            format!("?resourceVersion={middle}&resourceVersionMatch=NotOlderThan"),
            200,
            Some(4),
        ),
        (
            format!("?resourceVersion={middle}&resourceVersionMatch=NotOlderThan&limit=2"),
            200,
            Some(2),
        ),
        (
            format!("?resourceVersion={middle}&resourceVersionMatch=Exact"),
            200,
            Some(3),
        ),
        (
            format!("?resourceVersion={middle}&resourceVersionMatch=Exact&limit=2"),
            200,
            Some(2),
        ),
        (
            format!("?resourceVersion={last}&resourceVersionMatch=Exact"),
            200,
            Some(4),
        ),
        (
            "?resourceVersion=0&resourceVersionMatch=Exact".into(),
            422,
            None,
        ),
        ("?resourceVersionMatch=Exact".into(), 422, None),
        ("?resourceVersionMatch=NotOlderThan".into(), 422, None),
        (
            "?resourceVersion=1&resourceVersionMatch=Nearly".into(),
            422,
            None,
        ),
        ("?sendInitialEvents=true".into(), 422, None),
        ("?resourceVersion=one".into(), 400, None),
        ("?resourceVersion=-1".into(), 400, None),
        ("?limit=many".into(), 400, None),
        ("?continue=rubbish".into(), 400, None),
    ];
    for (query, code, count) in table {
        let answer = server.get(&format!("{MAPS}{query}")).await;
        assert_eq!(answer.code, code, "{query}: {}", answer.text());
        if let Some(count) = count {
            assert_eq!(answer.names().len(), count, "{query}");
        }
        if query.contains("Exact") && code == 200 {
            let asked = query.split(['=', '&']).nth(1).unwrap();
            assert_eq!(answer.version().to_string(), asked, "{query}");
        }
    }
    let token = server.get(&format!("{MAPS}?limit=1")).await.json();
    let token = text(&token["metadata"]["continue"]).to_owned();
    for query in [
        format!("?continue={token}&resourceVersion={middle}"),
        format!("?continue={token}&resourceVersion={middle}&resourceVersionMatch=Exact"),
    ] {
        let code = server.get(&format!("{MAPS}{query}")).await.code;
        assert!(matches!(code, 400 | 422), "{query}: {code}");
    }
    // With resourceVersion 0 and no match rule, a token continues as usual.
    let next = format!("{MAPS}?continue={token}&resourceVersion=0&limit=1");
    assert_eq!(server.get(&next).await.expect(200).names(), ["m001"]);
}

#[tokio::test]
async fn a_future_version_is_waited_for_and_then_rejected() {
    let server = TestServer::builder().without_controllers().start().await;
    let now = server.get(MAPS).await.version();
    let path = format!("{MAPS}?resourceVersion={}", now + 1);
    let (found, _) = tokio::join!(server.get(&path), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        server.post(MAPS, &config_map("a")).await.expect(201)
    });
    assert_eq!(found.expect(200).names(), ["a"]);
    let path = format!("{MAPS}?resourceVersion={}&timeout=2s", now + 1000);
    let refused = server.get(&path).await.expect(504);
    let (_, reason, message) = refused.status();
    assert_eq!(reason, "Timeout");
    assert!(
        message.starts_with("Timeout: Too large resource version: "),
        "{message}"
    );
    assert_eq!(
        refused.json()["details"]["causes"][0]["reason"],
        "ResourceVersionTooLarge"
    );
    assert_eq!(refused.header("retry-after"), "1");
}

#[tokio::test]
async fn lists_are_filtered_by_label_and_field_selectors() {
    let server = TestServer::start().await;
    fill(&server, 6).await;
    server.post(MAPS, &config_map("plain")).await.expect(201);
    let cases = [
        ("labelSelector", "parity=even", "m000 m002 m004"),
        ("labelSelector", "parity==odd", "m001 m003 m005"),
        ("labelSelector", "parity!=odd", "m000 m002 m004 plain"),
        ("labelSelector", "parity", "m000 m001 m002 m003 m004 m005"),
        ("labelSelector", "!parity", "plain"),
        (
            "labelSelector",
            "parity in (even, odd)",
            "m000 m001 m002 m003 m004 m005",
        ),
        (
            "labelSelector",
            "parity notin (even)",
            "m001 m003 m005 plain",
        ),
        ("labelSelector", "parity,parity!=even", "m001 m003 m005"),
        ("labelSelector", "other=x", ""),
        ("fieldSelector", "metadata.name=m003", "m003"),
        ("fieldSelector", "metadata.name==nobody", ""),
        (
            "fieldSelector",
            "metadata.name!=plain,metadata.namespace=default",
            "m000 m001 m002 m003 m004 m005",
        ),
        ("fieldSelector", "metadata.namespace=other", ""),
    ];
    for (kind, selector, expected) in cases {
        for place in [MAPS, "/api/v1/configmaps"] {
            let path = format!("{place}?{kind}={}", escape(selector));
            let answer = server.get(&path).await.expect(200);
            assert_eq!(answer.names().join(" "), expected, "{selector} in {place}");
            assert_eq!(answer.json()["metadata"].get("remainingItemCount"), None);
        }
    }
    // Pages count only matching objects, and omit the remaining count.
    let path = format!("{MAPS}?labelSelector=parity%3Deven&limit=2");
    let page = server.get(&path).await.expect(200);
    assert_eq!(page.names(), ["m000", "m002"]);
    let page = page.json();
    assert_eq!(page["metadata"].get("remainingItemCount"), None);
    let token = text(&page["metadata"]["continue"]).to_owned();
    let rest = server
        .get(&format!("{path}&continue={token}"))
        .await
        .expect(200);
    assert_eq!(rest.names(), ["m004"]);
    assert_eq!(rest.json()["metadata"].get("continue"), None);
    for (kind, selector) in [
        ("labelSelector", "a==="),
        ("labelSelector", "a in (b"),
        ("labelSelector", "-x=y"),
        ("fieldSelector", "spec.x=1"),
        ("fieldSelector", "nonsense"),
    ] {
        let answer = server
            .get(&format!("{MAPS}?{kind}={}", escape(selector)))
            .await;
        assert_eq!(answer.status().1, "BadRequest", "{selector}");
    }
}

#[tokio::test]
async fn an_expired_token_offers_to_continue_at_the_newest_version() {
    let options = StoreOptions {
        retain_revisions: 1,
        retain_for: Duration::from_millis(1),
        compact_every: Duration::from_millis(5),
        pin_for: Duration::from_millis(1),
        ..StoreOptions::default()
    };
    // Controllers' writes would make the next token as old as this one.
    let server = TestServer::builder()
        .store_options(options)
        .without_controllers()
        .start()
        .await;
    fill(&server, 6).await;
    let page = server
        .get(&format!("{MAPS}?limit=2"))
        .await
        .expect(200)
        .json();
    let old = version(&page);
    let token = text(&page["metadata"]["continue"]).to_owned();
    let path = format!("{MAPS}?limit=2&continue={token}");
    let refused = soon(async {
        let mut round = 0;
        loop {
            let patch = json!({"data": {"round": round.to_string()}});
            server
                .patch(&format!("{MAPS}/m005"), MERGE, &patch)
                .await
                .expect(200);
            let answer = server.get(&path).await;
            if answer.code == 410 {
                break answer;
            }
            round += 1;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let (_, reason, message) = refused.status();
    assert_eq!(reason, "Expired");
    assert!(
        message.starts_with("The provided continue parameter is too old"),
        "{message}"
    );
    let onward = text(&refused.json()["metadata"]["continue"]).to_owned();
    server.post(MAPS, &config_map("m0025")).await.expect(201);
    let mut names = Vec::new();
    let mut next = Some(onward);
    while let Some(token) = next {
        let page = server
            .get(&format!("{MAPS}?limit=2&continue={token}"))
            .await
            .expect(200);
        names.extend(page.names());
        next = page.json()["metadata"]["continue"]
            .as_str()
            .map(str::to_owned);
    }
    assert_eq!(names, ["m002", "m0025", "m003", "m004", "m005"]);
    let exact = format!("{MAPS}?resourceVersion={old}&resourceVersionMatch=Exact");
    let refused = server.get(&exact).await.expect(410);
    assert_eq!(
        refused.status().2,
        "The resourceVersion for the provided list is too old."
    );
    let exact = format!("{MAPS}/m000?resourceVersion={old}&resourceVersionMatch=Exact");
    let refused = server.get(&exact).await.expect(410);
    assert_eq!(
        refused.status().2,
        "The resourceVersion for the provided get is too old."
    );
}

#[tokio::test]
async fn lists_have_every_format() {
    // Lists of two requests are compared with their versions, so no controller may write.
    let server = TestServer::builder().without_controllers().start().await;
    fill(&server, 3).await;
    let table = server.get_as(MAPS, TABLE).await.expect(200);
    assert_eq!(table.header("content-type"), "application/json");
    let table = table.json();
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["columnDefinitions"][0]["name"], "Name");
    assert_eq!(table["rows"][0]["cells"][0], "m000");
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    for (include, kind) in [
        ("None", None),
        ("Metadata", Some("PartialObjectMetadata")),
        ("Object", Some("ConfigMap")),
    ] {
        let table = server
            .get_as(&format!("{MAPS}?includeObject={include}"), TABLE)
            .await
            .json();
        let object = &table["rows"][0]["object"];
        assert_eq!(object["kind"].as_str(), kind, "{include}");
    }
    server
        .get_as(&format!("{MAPS}?includeObject=Some"), TABLE)
        .await
        .expect(400);

    let partial = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let list = server.get_as(MAPS, partial).await.expect(200).json();
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"][2]["metadata"]["name"], "m002");
    assert_eq!(list["items"][2].get("data"), None);
    let single = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    server.get_as(MAPS, single).await.expect(406);
    server
        .get_as(&format!("{MAPS}/m000"), partial)
        .await
        .expect(406);

    // A review, which is only posted, has no rows.
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let review = r#"{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}"#;
    let alone = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let ask = async |accept| {
        server
            .send("POST", reviews, &[("accept", accept)], review)
            .await
    };
    ask(alone).await.expect(406);
    let answer = ask(&format!("{alone},application/json")).await.expect(201);
    assert_eq!(answer.json()["kind"], "SelfSubjectAccessReview");

    let yaml = server.get_as(MAPS, "application/yaml").await.expect(200);
    assert_eq!(yaml.header("content-type"), "application/yaml");
    assert!(
        yaml.text().contains("kind: ConfigMapList"),
        "{}",
        yaml.text()
    );
    let parsed = bareboat_wire::yaml::parse(&yaml.bytes).unwrap();
    let parsed: Value = serde_json::from_slice(&parsed.value.to_json()).unwrap();
    assert_eq!(parsed, server.get(MAPS).await.json());

    let plain = server.get(MAPS).await;
    assert!(!plain.text().trim_end().contains('\n'));
    let pretty = server.get(&format!("{MAPS}?pretty=true")).await.expect(200);
    assert!(
        pretty.text().contains("\n  \"items\": ["),
        "{}",
        pretty.text()
    );
    assert_eq!(pretty.json(), plain.json());
    let curl = server
        .send("GET", MAPS, &[("user-agent", "curl/8")], "")
        .await;
    assert!(curl.text().contains("\n  \"items\": ["));

    let empty = server
        .get("/api/v1/namespaces/default/secrets")
        .await
        .expect(200);
    assert!(empty.text().contains("\"items\":[]"));
    let items = plain.json();
    assert_eq!(
        items["items"][0].get("kind"),
        None,
        "items of built-in lists carry no type"
    );

    let binary = server.get_as(MAPS, PROTOBUF).await.expect(200);
    assert_eq!(binary.header("content-type"), PROTOBUF);
    let (kind, list) = proto::open(&binary.bytes);
    assert_eq!(kind, "ConfigMapList");
    let first = proto::get(list, 2).expect("items");
    let metadata = proto::get(first, 1).expect("metadata");
    assert_eq!(proto::get(metadata, 1), Some(b"m000".as_slice()));
    server.get_as(MAPS, "text/html").await.expect(406);
    let fallback = server
        .get_as(MAPS, "text/html, application/json;q=0.5")
        .await
        .expect(200);
    assert_eq!(fallback.header("content-type"), "application/json");
}

#[tokio::test]
async fn large_lists_are_compressed_on_request() {
    use std::io::Read as _;
    // No controller writes, so the lists are identical.
    let server = TestServer::builder().without_controllers().start().await;
    let mut object = config_map("big");
    object["data"]["filler"] = json!("bareboat ".repeat(30_000));
    server.post(MAPS, &object).await.expect(201);
    let plain = server.get(MAPS).await.expect(200);
    assert_eq!(plain.header("content-encoding"), "");
    let headers = [("accept-encoding", "deflate, gzip")];
    let packed = server.send("GET", MAPS, &headers, "").await.expect(200);
    assert_eq!(packed.header("content-encoding"), "gzip");
    assert_eq!(packed.header("vary"), "Accept-Encoding");
    assert!(packed.bytes.len() < plain.bytes.len() / 10);
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed.bytes[..])
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(text, plain.text());
    let small = server
        .send("GET", "/api/v1/namespaces", &headers, "")
        .await
        .expect(200);
    assert_eq!(small.header("content-encoding"), "");
    let never = [("accept-encoding", "gzip;q=0")];
    let unpacked = server.send("GET", MAPS, &never, "").await.expect(200);
    assert_eq!(unpacked.header("content-encoding"), "");
}

/// The token of a list that expired after `m001`: it continues at the newest version.
const ONWARD: &str = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoibTAwMVx1MDAwMCJ9";

#[tokio::test]
async fn the_pages_after_an_expired_token_show_one_state() {
    let server = TestServer::builder().without_controllers().start().await;
    fill(&server, 6).await;
    let path = format!("{MAPS}?limit=2&continue={ONWARD}");
    let first = server.get(&path).await.expect(200);
    assert_eq!(first.names(), ["m002", "m003"]);
    server.post(MAPS, &config_map("m0045")).await.expect(201);
    let token = text(&first.json()["metadata"]["continue"]).to_owned();
    let path = format!("{MAPS}?limit=2&continue={token}");
    let second = server.get(&path).await.expect(200);
    assert_eq!(second.names(), ["m004", "m005"]);
    assert_eq!(version(&second.json()), version(&first.json()));
}
