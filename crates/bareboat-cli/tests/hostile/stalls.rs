//! Requests that are expensive for their size: whatever their answer, another client does not wait.

use crate::converter::SilentConverter;
use crate::victim::Victim;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// More than the cores of a small machine, so that they would occupy all workers.
const ATTACKERS: usize = 4;

/// How much memory an attack may add, in MiB.
const ALLOWED: u64 = 256;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Sends one body from every attacker and expects an answer, whatever it is.
fn everybody_posts(victim: &Victim, path: &str, body: &Value) {
    let body = serde_json::to_vec(body).unwrap();
    let attack = || {
        victim.attack(ATTACKERS, |_| {
            let answer = victim.admin.call("POST", path, "application/json", &body);
            assert!(answer.code >= 200, "{}", answer.code);
        });
    };
    victim.grows_at_most(ALLOWED, attack);
}

#[test]
fn an_object_of_many_owners() {
    let victim = Victim::start(&[]);
    let owners: Vec<_> = (0..3000)
        .map(|at| json!({"apiVersion": "v1", "kind": "Pod", "name": format!("o{at}"), "uid": format!("u{at}")}))
        .collect();
    let body = json!({"metadata": {"generateName": "owned-", "ownerReferences": owners}});
    everybody_posts(&victim, CONFIG_MAPS, &body);
}

#[test]
fn an_object_of_many_wrong_labels() {
    let victim = Victim::start(&[]);
    let labels: serde_json::Map<_, _> = (0..12_000)
        .map(|at| (format!("wrong {at}"), json!("!")))
        .collect();
    let body = json!({"metadata": {"generateName": "labelled-", "labels": labels}});
    everybody_posts(&victim, CONFIG_MAPS, &body);
}

#[test]
fn a_service_of_many_ports() {
    let victim = Victim::start(&[]);
    let ports: Vec<_> = (0..15_000)
        .map(|at| json!({"name": format!("p{at}"), "port": 1 + at}))
        .collect();
    let body = json!({"metadata": {"generateName": "ports-"}, "spec": {"ports": ports}});
    everybody_posts(&victim, "/api/v1/namespaces/default/services", &body);
}

#[test]
fn lists_of_many_objects_in_other_encodings() {
    let victim = Victim::start(&[]);
    // Many small fields cost more to encode again than few large ones.
    let data: serde_json::Map<_, _> = (0..500)
        .map(|at| (format!("key-{at}"), json!("value")))
        .collect();
    let mut connection = victim.admin.connect().unwrap();
    for _ in 0..300 {
        let object = json!({"metadata": {"generateName": "listed-"}, "data": data});
        let body = serde_json::to_vec(&object).unwrap();
        connection
            .send("POST", CONFIG_MAPS, "application/json", &body)
            .unwrap();
        connection.receive().unwrap().accepted();
    }
    for accept in [
        "application/vnd.kubernetes.protobuf",
        "application/yaml",
        "application/json",
    ] {
        let path = format!("{CONFIG_MAPS}?pretty={}", accept == "application/json");
        let list = |_| {
            let mut connection = victim.admin.connect().unwrap();
            let accept = format!("Accept: {accept}");
            connection
                .send_with("GET", &path, "", &[&accept], b"")
                .unwrap();
            let answer = connection.receive().unwrap();
            assert!(
                [200, 429].contains(&answer.code),
                "{}: {:.300}",
                answer.code,
                answer.text()
            );
        };
        victim.grows_at_most(ALLOWED, || victim.attack(2 * ATTACKERS, list));
    }
}

/// How much memory compiled patterns may add, in MiB. Those of all attackers would take more than 2 GiB.
const PATTERNS: u64 = 96;

#[test]
fn a_definition_of_large_patterns() {
    let victim = Victim::start(&[]);
    let properties: serde_json::Map<_, _> = (0..60)
        .map(|at| {
            (
                format!("p{at}"),
                json!({"type": "string", "pattern": format!(r"^\pL{{{}}}$", 140 + at)}),
            )
        })
        .collect();
    let spec = json!({"type": "object", "properties": properties});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let attack = |number| {
        // Served or refused: only memory and the wait of the other client matter.
        let plural = format!("pattern{number}s");
        if victim.define(&plural, schema.clone()).is_ok() {
            let spec: serde_json::Map<_, _> = (0..60)
                .map(|at| (format!("p{at}"), json!("long")))
                .collect();
            let object = json!({
                "apiVersion": "hostile.example/v1",
                "kind": plural.trim_end_matches('s').to_uppercase(),
                "metadata": {"name": "one"},
                "spec": spec,
            });
            let answer = victim
                .admin
                .post(&format!("/apis/hostile.example/v1/{plural}"), &object);
            assert!(answer.code >= 400, "{}", answer.text());
        }
    };
    victim.grows_at_most(PATTERNS, || victim.attack(ATTACKERS, attack));
}

/// A custom kind with one rule over its field `items`, a list of strings.
fn with_rule(victim: &Victim, rule: &str) -> Result<(), Value> {
    let items = json!({
        "type": "array", "maxItems": 400,
        "items": {"type": "string", "maxLength": 1100},
        "x-kubernetes-validations": [{"rule": rule}],
    });
    victim.define(
        "rules",
        json!({"type": "object", "properties": {"items": items}}),
    )
}

fn ruled(items: &[String]) -> Value {
    json!({
        "apiVersion": "hostile.example/v1", "kind": "RULE",
        "metadata": {"generateName": "one-"}, "items": items,
    })
}

#[test]
fn expressions_over_patterns_from_data() {
    let victim = Victim::start(&[]);
    with_rule(&victim, "self.all(p, 'a'.matches(p) || true)").unwrap();
    let patterns: Vec<_> = (0..100).map(|at| format!(r"\pL{{{}}}", 100 + at)).collect();
    everybody_posts(&victim, "/apis/hostile.example/v1/rules", &ruled(&patterns));
}

#[test]
fn exact_lists_far_back_do_not_stop_writes() {
    let victim = Victim::start(&[]);
    victim.fill("history", 200, 100);
    let version = victim.version();
    let mut connection = victim.admin.connect().unwrap();
    let path = "/api/v1/namespaces/history/configmaps/filled-00000";
    for round in 0..4000 {
        let patch = format!(r#"{{"data":{{"value":"{round}"}}}}"#);
        connection
            .send(
                "PATCH",
                path,
                "application/merge-patch+json",
                patch.as_bytes(),
            )
            .unwrap();
        connection.receive().unwrap().accepted();
    }
    let mut list = String::new();
    write!(
        list,
        "/api/v1/configmaps?resourceVersionMatch=Exact&resourceVersion={version}&limit=1"
    )
    .unwrap();
    let lists = |_| {
        let mut connection = victim.admin.connect().unwrap();
        let until = Instant::now() + Duration::from_secs(2);
        while Instant::now() < until {
            connection.send("GET", &list, "", b"").unwrap();
            let answer = connection.receive().unwrap();
            assert!([200, 410, 429].contains(&answer.code), "{}", answer.text());
        }
    };
    victim.grows_at_most(ALLOWED, || victim.attack(ATTACKERS, lists));
}

#[test]
fn a_conversion_webhook_that_never_answers_keeps_no_seat() {
    let victim = Victim::start(&["--max-reads-in-flight", "4"]);
    let converter = SilentConverter::define(&victim);
    let object =
        json!({"apiVersion": "hostile.example/v1", "kind": "Slow", "metadata": {"name": "one"}});
    victim
        .admin
        .post("/apis/hostile.example/v1/slows", &object)
        .accepted();

    let attack = || {
        // More reads wait for the converter than there are seats; their answers are never read.
        let waiting: Vec<_> = (0..12)
            .map(|_| {
                let mut connection = victim.admin.connect().unwrap();
                connection
                    .send("GET", "/apis/hostile.example/v2/slows/one", "", b"")
                    .unwrap();
                connection
            })
            .collect();
        let _call = converter.is_called();
        std::thread::sleep(Duration::from_secs(2));
        drop(waiting);
    };
    victim.grows_at_most(ALLOWED, || victim.attack(1, |_| attack()));
}
