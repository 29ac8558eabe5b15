//! `/metrics`: names and labels that dashboards use, and no labels from untrusted input.

use crate::socket::{As, Connection};
use crate::support::*;
use bareboat_testing::TestServer;
use std::collections::{BTreeMap, BTreeSet};

type Labels = BTreeMap<String, String>;

/// A strictly parsed scrape.
pub(crate) struct Scrape {
    pub(crate) types: BTreeMap<String, String>,
    samples: Vec<(String, Labels, f64)>,
}

impl Scrape {
    pub(crate) async fn of(server: &TestServer) -> Scrape {
        let answer = server.get("/metrics").await.expect(200);
        assert!(
            answer
                .header("content-type")
                .starts_with("text/plain; version=0.0.4")
        );
        Scrape::parse(&answer.text())
    }

    /// Parses the text format; anything else fails the test.
    fn parse(text: &str) -> Scrape {
        let mut scrape = Scrape {
            types: BTreeMap::new(),
            samples: Vec::new(),
        };
        let mut seen = BTreeSet::new();
        for line in text.lines() {
            if let Some(comment) = line.strip_prefix("# ") {
                let mut words = comment.splitn(3, ' ');
                let (what, name, rest) = (words.next(), words.next(), words.next());
                let name = name.expect("a comment names a metric").to_owned();
                match what {
                    Some("HELP") => {}
                    Some("TYPE") => {
                        let ty = rest.expect("a type").to_owned();
                        assert!(scrape.types.insert(name, ty).is_none(), "twice: {line}");
                    }
                    _ => panic!("an unknown comment: {line}"),
                }
                continue;
            }
            assert!(
                seen.insert(line.rsplit_once(' ').unwrap().0),
                "twice: {line}"
            );
            let (name, labels, value) = sample(line);
            let family = ["_bucket", "_sum", "_count"]
                .iter()
                .filter_map(|suffix| name.strip_suffix(suffix))
                .find(|family| {
                    scrape
                        .types
                        .get(*family)
                        .is_some_and(|ty| ty == "histogram")
                })
                .unwrap_or(&name);
            assert!(scrape.types.contains_key(family), "no type: {line}");
            scrape.samples.push((name, labels, value));
        }
        scrape
    }

    fn find(&self, name: &str, labels: &[(&str, &str)]) -> Vec<&(String, Labels, f64)> {
        let fits = |found: &Labels| {
            labels
                .iter()
                .all(|(key, value)| found.get(*key).is_some_and(|found| found == value))
        };
        let samples = self.samples.iter();
        samples
            .filter(|(found, labels, _)| found == name && fits(labels))
            .collect()
    }

    #[track_caller]
    fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        match self.find(name, labels).as_slice() {
            [(_, _, value)] => *value,
            found => panic!("{name} {labels:?}: {found:?}"),
        }
    }
}

fn sample(line: &str) -> (String, Labels, f64) {
    let end = line.find(['{', ' ']).expect("a name and a value");
    let name = &line[..end];
    let fine = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    assert!(!name.is_empty() && name.chars().all(fine), "{line}");
    let mut labels = Labels::new();
    let mut rest = &line[end..];
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (key, after) = rest.split_once("=\"").expect("a label");
            assert!(key.chars().all(fine), "{line}");
            let mut value = String::new();
            let mut letters = after.char_indices();
            let end = loop {
                match letters.next().expect("a closed quote") {
                    (at, '"') => break at,
                    (_, '\\') => match letters.next().expect("an escape").1 {
                        'n' => value.push('\n'),
                        other @ ('\\' | '"') => value.push(other),
                        other => panic!("an unknown escape {other}: {line}"),
                    },
                    (_, letter) => value.push(letter),
                }
            };
            assert!(labels.insert(key.to_owned(), value).is_none(), "{line}");
            rest = after[end + 1..].trim_start_matches(',');
        }
        rest = &rest[1..];
    }
    let value = rest.strip_prefix(' ').expect("a space before the value");
    (name.to_owned(), labels, value.parse().expect("a number"))
}

#[tokio::test]
async fn requests_are_counted_with_upstream_labels() {
    let server = TestServer::start().await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    let dry = format!("{MAPS}?dryRun=All");
    server.post(&dry, &config_map("b")).await.expect(201);
    server.get(&format!("{MAPS}/a")).await.expect(200);
    server.get(&format!("{MAPS}/missing")).await.expect(404);
    server.get(MAPS).await.expect(200);
    server.get("/api/v1/configmaps").await.expect(200);
    let apply = format!("{MAPS}/a?fieldManager=t");
    server
        .patch(&apply, APPLY, &config_map("a"))
        .await
        .expect(200);
    server
        .patch(&format!("{MAPS}/a"), MERGE, &json!({"data": {"c": "d"}}))
        .await
        .expect(200);
    server.delete(MAPS).await.expect(200);
    let scrape = Scrape::of(&server).await;
    let of_maps = [
        ("group", ""),
        ("version", "v1"),
        ("resource", "configmaps"),
        ("subresource", ""),
        ("component", "apiserver"),
    ];
    let count = |verb: &str, scope: &str, dry_run: &str, code: &str| {
        let labels = [
            &of_maps[..],
            &[
                ("verb", verb),
                ("scope", scope),
                ("dry_run", dry_run),
                ("code", code),
            ],
        ]
        .concat();
        scrape.value("apiserver_request_total", &labels)
    };
    assert_eq!(count("POST", "resource", "", "201"), 1.0);
    assert_eq!(count("POST", "resource", "All", "201"), 1.0);
    assert_eq!(count("GET", "resource", "", "200"), 1.0);
    assert_eq!(count("GET", "resource", "", "404"), 1.0);
    assert_eq!(count("LIST", "namespace", "", "200"), 1.0);
    assert_eq!(count("LIST", "cluster", "", "200"), 1.0);
    assert_eq!(count("APPLY", "resource", "", "200"), 1.0);
    assert_eq!(count("PATCH", "resource", "", "200"), 1.0);
    assert_eq!(count("DELETE", "namespace", "", "200"), 1.0);

    let family = "apiserver_admission_step_admission_duration_seconds_count";
    for step in ["admit", "validate"] {
        let created = [
            ("type", step),
            ("operation", "CREATE"),
            ("rejected", "false"),
        ];
        assert!(scrape.value(family, &created) >= 2.0, "{step}");
    }
    let get = [&of_maps[..], &[("verb", "GET")]].concat();
    for family in [
        "apiserver_request_duration_seconds",
        "apiserver_request_sli_duration_seconds",
    ] {
        assert_eq!(scrape.value(&format!("{family}_count"), &get), 2.0);
        for le in ["0.05", "1", "5", "30", "60", "+Inf"] {
            let bucket = [&get[..], &[("le", le)]].concat();
            assert_eq!(
                scrape.find(&format!("{family}_bucket"), &bucket).len(),
                1,
                "{le}"
            );
        }
        let with_code = scrape
            .samples
            .iter()
            .any(|(name, labels, _)| name.starts_with(family) && labels.contains_key("code"));
        assert!(!with_code, "{family} has codes");
    }
    // A dry run does not count towards service levels.
    let post = [&of_maps[..], &[("verb", "POST")]].concat();
    assert_eq!(
        scrape.value("apiserver_request_sli_duration_seconds_count", &post),
        1.0
    );
    assert_eq!(scrape.value("apiserver_response_sizes_count", &get), 2.0);
}

#[tokio::test]
async fn unauthenticated_requests_add_no_labels() {
    let server = TestServer::builder()
        .token("s3cret", "ann", &["dev"])
        .listening()
        .start()
        .await;
    let mut stranger = Connection::http1(&server, As::Nobody).await;
    let before = Scrape::of(&server).await.samples.len();
    for number in 0..50 {
        for path in ["/api/v1/pods", "/api/v1/pods/x", "/version"] {
            let method = format!("INVENTED{number}");
            stranger.send(&method, path, &[], "").await;
        }
    }
    let forged = "/apis/x%22%7D%201%0Aforged_total%7Ba%3D%22/v1/things?timeout=never";
    stranger.send("GET", forged, &[], "").await;
    let ann = [("authorization", "Bearer s3cret")];
    stranger.send("GET", forged, &ann, "").await;
    server.get(forged).await;
    for number in 0..50 {
        server
            .get(&format!("/apis/g{number}.example.com/v1/things"))
            .await
            .expect(404);
        server
            .get(&format!(
                "/api/v1/namespaces/default/pods/x/invented{number}"
            ))
            .await;
    }
    let scrape = Scrape::of(&server).await;
    assert!(scrape.find("forged_total", &[]).is_empty());
    for (name, labels, _) in &scrape.samples {
        let stranger = |text: &String| {
            ["forged", "INVENTED", "invented", "example.com", "\""]
                .iter()
                .any(|word| text.contains(word))
        };
        assert!(!labels.values().any(stranger), "{name} {labels:?}");
    }
    let grown = scrape.samples.len() - before;
    assert!(grown < 400, "{grown} more samples");
    let refused = [("code", "401"), ("verb", "other"), ("resource", "")];
    assert!(scrape.value("apiserver_request_total", &refused) >= 100.0);
    let attempts = |result| scrape.value("authentication_attempts", &[("result", result)]);
    assert!(attempts("failure") >= 100.0);
}

#[tokio::test]
async fn certificates_are_measured_by_their_remaining_time() {
    let server = TestServer::builder().listening().start().await;
    let mut admin = Connection::http1(&server, As::Admin).await;
    for _ in 0..3 {
        admin.send("GET", MAPS, &[], "").await.expect(200);
    }
    let scrape = Scrape::of(&server).await;
    let family = "apiserver_client_certificate_expiration_seconds";
    assert_eq!(scrape.value(&format!("{family}_count"), &[]), 3.0);
    let soon = scrape.value(&format!("{family}_bucket"), &[("le", "1800")]);
    assert_eq!(soon, 0.0, "the certificate has more than half an hour left");
    assert!(scrape.value("authentication_attempts", &[("result", "success")]) >= 3.0);
    let expires = "bareboat_serving_certificate_expiration_timestamp_seconds";
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    assert!(scrape.value(expires, &[]) > now);
}

#[tokio::test]
async fn space_on_disk_is_measured() {
    let server = TestServer::builder().sqlite().start().await;
    let scrape = Scrape::of(&server).await;
    let engine = [("engine", "sqlite")];
    assert_eq!(scrape.value("bareboat_storage_info", &engine), 1.0);
    assert!(scrape.value("bareboat_storage_available_bytes", &[]) > 0.0);
}

#[tokio::test]
async fn open_watches_are_counted() {
    let server = TestServer::start().await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    let initial =
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = server.watch(&format!("{MAPS}?{initial}")).await;
    while watch.next().await.unwrap()["type"] != "BOOKMARK" {}
    server.post(MAPS, &config_map("b")).await.expect(201);
    assert_eq!(watch.brief().await, "ADDED b");
    let labels = [
        ("resource", "configmaps"),
        ("verb", "WATCH"),
        ("scope", "namespace"),
    ];
    let open = "apiserver_longrunning_requests";
    let took = "apiserver_request_duration_seconds_count";
    let scrape = Scrape::of(&server).await;
    assert_eq!(scrape.value(open, &labels), 1.0);
    assert_eq!(scrape.value(took, &labels), 0.0, "the watch continues");
    let of_maps = [("group", ""), ("version", "v1"), ("resource", "configmaps")];
    assert!(scrape.value("apiserver_watch_events_total", &of_maps) >= 2.0);
    let initial = "apiserver_watch_list_duration_seconds_count";
    assert_eq!(scrape.value(initial, &of_maps), 1.0);
    drop(watch);
    let scrape = Scrape::of(&server).await;
    assert_eq!(scrape.value(open, &labels), 0.0);
    assert_eq!(scrape.value(took, &labels), 1.0);
}

#[tokio::test]
async fn the_process_and_the_store_are_measured() {
    let server = TestServer::start().await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    let scrape = Scrape::of(&server).await;
    for name in [
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "process_virtual_memory_bytes",
        "process_open_fds",
        "process_max_fds",
        "process_start_time_seconds",
        "bareboat_store_revision",
    ] {
        assert!(scrape.value(name, &[]) > 0.0, "{name}");
    }
    assert_eq!(scrape.types["process_cpu_seconds_total"], "counter");
    assert_eq!(scrape.find("apiserver_storage_size_bytes", &[]).len(), 1);
    let maps = [("group", ""), ("resource", "configmaps")];
    assert!(scrape.value("apiserver_resource_objects", &maps) >= 1.0);
    let full = [("resource", "deployments.apps")];
    assert!(scrape.find("apiserver_storage_objects", &full).len() <= 1);
    for kind in ["readOnly", "mutating"] {
        let kind = [("request_kind", kind)];
        scrape.value("apiserver_current_inflight_requests", &kind);
    }
}

#[tokio::test]
async fn the_store_is_measured() {
    let server = TestServer::start().await;
    let before = Scrape::of(&server).await;
    for name in ["a", "b", "c"] {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let path = "/api/v1/namespaces/default/configmaps";
        server.post(path, &map).await.expect(201);
    }
    let after = Scrape::of(&server).await;
    let grown = |name: &str, labels: &[(&str, &str)]| {
        after.value(name, labels) - before.value(name, labels)
    };
    // Controllers write, too.
    let durations = "bareboat_storage_append_duration_seconds";
    let stored = [("result", "stored")];
    assert!(grown("bareboat_storage_appends_total", &stored) >= 3.0);
    assert!(grown("bareboat_storage_appended_records_total", &[]) >= 3.0);
    let count = after.value(&format!("{durations}_count"), &[]);
    let all = after.value(&format!("{durations}_bucket"), &[("le", "+Inf")]);
    assert!(count >= 3.0 && count == all, "{count} {all}");
    assert!(grown(&format!("{durations}_sum"), &[]) > 0.0);
    assert_eq!(after.types[durations], "histogram");
    assert_eq!(
        after.value("bareboat_storage_info", &[("engine", "memory")]),
        1.0
    );
    // No other server writes to this store.
    for name in [
        "bareboat_storage_catch_ups_total",
        "bareboat_storage_held_appends_total",
        "bareboat_storage_barrier_reads_total",
        "bareboat_storage_freshness_age_seconds",
        "bareboat_storage_unresolved_appends",
        "bareboat_storage_behind_revisions",
        "bareboat_storage_reloads_total",
        "bareboat_storage_connections_opened_total",
    ] {
        assert_eq!(after.value(name, &[]), 0.0, "{name}");
    }
    // Not known of a store in memory.
    for name in [
        "bareboat_storage_available_bytes",
        "bareboat_storage_clock_difference_seconds",
    ] {
        assert!(after.find(name, &[]).is_empty(), "{name}");
    }
}

#[tokio::test]
async fn controller_queues_are_measured() {
    let server = TestServer::start().await;
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "measured"}});
    server.post("/api/v1/namespaces", &space).await.expect(201);
    // A controller creates the default objects of a new namespace, so its queue was used.
    let account = "/api/v1/namespaces/measured/serviceaccounts/default";
    soon(async {
        while server.get(account).await.code != 200 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    let scrape = Scrape::of(&server).await;
    let accounts = [("name", "service-accounts")];
    assert!(scrape.value("workqueue_adds_total", &accounts) >= 1.0);
    let waited = scrape.value("workqueue_queue_duration_seconds_count", &accounts);
    assert!(waited >= 1.0);
    // The object was there before the work on the key ended.
    scrape.value("workqueue_work_duration_seconds_count", &accounts);
    for gauge in [
        "workqueue_unfinished_work_seconds",
        "workqueue_longest_running_processor_seconds",
    ] {
        assert!(scrape.value(gauge, &accounts) >= 0.0);
    }
    let lease = [("name", "bareboat-controllers")];
    assert_eq!(scrape.value("leader_election_master_status", &lease), 1.0);
    for name in ["garbage", "namespaces", "definitions", "quotas"] {
        let found = scrape.find("workqueue_depth", &[("name", name)]).len();
        assert_eq!(found, 1, "{name}");
    }
}

#[tokio::test]
async fn issued_certificates_are_counted_by_duration() {
    use base64::Engine as _;
    use rcgen::{CertificateParams, DnType, KeyPair};
    let encode = |pem: String| base64::engine::general_purpose::STANDARD.encode(pem);
    let server = TestServer::start().await;
    let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    for (name, asked, got) in [("kept", 3600, 3600), ("longer", 3600, 86400)] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "ann");
        let request = params.serialize_request(&key).unwrap().pem().unwrap();
        let body = json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {"name": name},
            "spec": {"signerName": "kubernetes.io/kube-apiserver-client", "expirationSeconds": asked,
                "request": encode(request), "usages": ["client auth"]},
        });
        let mut request = server.post(path, &body).await.expect(201).json();
        request["status"] = json!({"conditions": [{"type": "Approved", "status": "True", "reason": "t", "message": "t"}]});
        let approval = format!("{path}/{name}/approval");
        let mut request = server.put(&approval, &request).await.expect(200).json();
        // An expired certificate would be cleaned up with its request.
        params.not_before = std::time::SystemTime::now().into();
        params.not_after = params.not_before + std::time::Duration::from_secs(got);
        let certificate = params.self_signed(&key).unwrap().pem();
        request["status"]["certificate"] = json!(encode(certificate));
        let status = format!("{path}/{name}/status");
        let issued = server.put(&status, &request).await.expect(200).json();
        // Another write does not count again.
        server.put(&status, &issued).await.expect(200);
    }
    let scrape = Scrape::of(&server).await;
    let signer = [("signerName", "kubernetes.io/kube-apiserver-client")];
    let family = "apiserver_certificates_registry_csr";
    let count = |what: &str| scrape.value(&format!("{family}_{what}_duration_total"), &signer);
    assert_eq!(count("requested"), 2.0);
    assert_eq!(count("honored"), 1.0);
}
