//! Objects with a great number of errors: the lists of errors and the answers stay small.

use crate::victim::Victim;
use serde_json::{Map, Value, json};

/// How much memory an attack may add, in MiB.
const ALLOWED: u64 = 256;
const ATTACKERS: usize = 4;

/// Posts one body from several clients at once, and expects a refusal with fewer bytes than that.
fn refused(victim: &Victim, path: &str, body: &[u8]) {
    victim.attack(1, |_| {
        victim.grows_at_most(ALLOWED, || {
            std::thread::scope(|scope| {
                for _ in 0..ATTACKERS {
                    scope.spawn(|| {
                        let answer = victim.admin.call("POST", path, "application/json", body);
                        assert!(
                            [413, 422, 429].contains(&answer.code),
                            "{}: {:.300}",
                            answer.code,
                            answer.text()
                        );
                        assert!(answer.text().len() < 16 << 20, "{}", answer.text().len());
                    });
                }
            });
        });
    });
}

#[test]
fn labels_that_are_all_wrong() {
    let victim = Victim::start(&[]);
    let labels: Map<_, _> = (0..40_000)
        .map(|at| (format!("wrong {at}"), json!("!")))
        .collect();
    let body = json!({"metadata": {"generateName": "labels-", "labels": labels}});
    let path = "/api/v1/namespaces/default/configmaps";
    refused(&victim, path, &serde_json::to_vec(&body).unwrap());
}

#[test]
fn custom_objects_that_lack_everything() {
    let victim = Victim::start(&[]);
    let names: Vec<_> = (0..20).map(|at| format!("required{at}")).collect();
    let properties: Map<_, _> = names
        .iter()
        .map(|name| (name.clone(), json!({"type": "string"})))
        .collect();
    let item = json!({"type": "object", "required": names, "properties": properties});
    let list = json!({"type": "array", "items": item});
    let schema = json!({"type": "object", "properties": {"list": list}});
    victim.define("lacks", schema).unwrap();
    let empty = "{},".repeat(150_000);
    let body = format!(
        r#"{{"apiVersion":"hostile.example/v1","kind":"LACK","metadata":{{"generateName":"x-"}},"list":[{empty}{{}}]}}"#
    );
    refused(&victim, "/apis/hostile.example/v1/lacks", body.as_bytes());
}

#[test]
fn a_definition_without_types() {
    let victim = Victim::start(&[]);
    let untyped: Map<_, _> = (0..10_000)
        .map(|at| (format!("p{at}"), json!({})))
        .collect();
    let body: Value = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "untypeds.hostile.example"},
        "spec": {
            "group": "hostile.example", "scope": "Cluster",
            "names": {"plural": "untypeds", "singular": "untyped", "kind": "Untyped"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": untyped}},
            }],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    refused(&victim, path, &serde_json::to_vec(&body).unwrap());
}
