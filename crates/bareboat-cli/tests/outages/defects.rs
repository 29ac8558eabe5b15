//! Defects that are planted in the tables of a store: `bareboat doctor` finds each, and nothing in a healthy store.

use crate::postgres::Cluster;
use crate::process::run;
use crate::run::healthy;
use crate::server::{Home, bareboat};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

/// A defect, and a word of what doctor says about it. `{a}` is the revision of an object that was changed later, `{b}` of
/// its change, and `{c}` of another object.
const DEFECTS: [(&str, &str, &str); 14] = [
    (
        "a missing record",
        "DELETE FROM log WHERE rev = {c}",
        "missing",
    ),
    (
        "a missing end",
        "DELETE FROM log WHERE rev = (SELECT max(rev) FROM log)",
        "before revision",
    ),
    ("a missing batch", "DELETE FROM batch WHERE first = {c}", ""),
    (
        "a wrong digest",
        "UPDATE batch SET digest = decode(repeat('ab', 16), 'hex') WHERE first = {c}",
        "digest",
    ),
    (
        "another value",
        "UPDATE log SET value = convert_to(replace(convert_from(value, 'UTF8'), 'planted', 'changed'), 'UTF8') WHERE rev = {c}",
        "digest",
    ),
    (
        "a value that is not JSON",
        "UPDATE log SET value = '\\x7b5d' WHERE rev = {c}",
        "JSON",
    ),
    (
        "another key",
        "UPDATE log SET key = 'default/elsewhere' WHERE rev = {c}",
        "name",
    ),
    (
        "another resource",
        "UPDATE log SET resource = 'core/secrets' WHERE rev = {c}",
        "digest",
    ),
    (
        "another cluster",
        "UPDATE log SET cluster = 'x' WHERE rev = {c}",
        "digest",
    ),
    (
        "a wrong predecessor",
        "UPDATE log SET prev = prev - 1 WHERE rev = {b}",
        "replaces",
    ),
    (
        "two successors",
        "UPDATE log SET prev = {a} WHERE rev = {c}",
        "replaces",
    ),
    (
        "a forgotten deletion",
        "UPDATE log SET value = '{}'::text::bytea WHERE value IS NULL",
        "",
    ),
    (
        "batches that overlap",
        "UPDATE batch SET last = last + 1 WHERE first = {c}",
        "",
    ),
    (
        "an interrupted restore",
        "UPDATE meta SET format = 2147483647, min_writer = 2147483647",
        "interrupted",
    ),
];

fn revision(map: &ConfigMap) -> String {
    map.metadata.resource_version.clone().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_finds_planted_defects() {
    let Some(cluster) = Cluster::start(&[]) else {
        assert_ne!(
            std::env::var("CI").as_deref(),
            Ok("true"),
            "PostgreSQL is missing"
        );
        return eprintln!("skipped: PostgreSQL is missing");
    };
    let url = cluster.url(cluster.port, "planted");
    let home = Home::with(&["--storage", &url]);
    let server = home.serve();
    let maps: Api<ConfigMap> = Api::namespaced(home.client().await, "default");
    let mut made = Vec::new();
    for name in ["a", "b", "c", "d"] {
        let map = json!({"metadata": {"name": name}, "data": {"p": "planted"}});
        let map: ConfigMap = serde_json::from_value(map).unwrap();
        made.push(maps.create(&PostParams::default(), &map).await.unwrap());
    }
    let patch = Patch::Merge(json!({"data": {"p": "again"}}));
    let changed = maps
        .patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    maps.delete("d", &DeleteParams::default()).await.unwrap();
    assert!(tokio::task::block_in_place(|| server.stop()).0.success());
    healthy(&url);
    let ask = |statement: &str| {
        let all = format!("SET search_path TO planted; {statement}");
        cluster.ask(&all).unwrap_or_else(|| panic!("{statement}"))
    };
    for table in ["log", "batch", "meta"] {
        ask(&format!(
            "CREATE TABLE {table}_copy AS SELECT * FROM {table}"
        ));
    }
    let mut missed = Vec::new();
    for (name, statement, words) in DEFECTS {
        let statement = statement
            .replace("{a}", &revision(&made[0]))
            .replace("{b}", &revision(&changed))
            .replace("{c}", &revision(&made[2]));
        ask(&statement);
        let doctor = ["doctor", "--storage", &url, "-o", "json"];
        let output = tokio::task::block_in_place(|| run(&mut bareboat(doctor), ""));
        let report: serde_json::Value = serde_json::from_str(&output.stdout).unwrap_or_default();
        let findings = report["findings"].as_array().cloned().unwrap_or_default();
        let text = format!("{findings:?} {}", output.stderr);
        println!("{name}: {text}");
        if output.status.code() != Some(1) || !text.contains(words) {
            missed.push(format!("{name}: {}", output.all()));
        }
        for table in ["log", "batch", "meta"] {
            ask(&format!(
                "DELETE FROM {table}; INSERT INTO {table} SELECT * FROM {table}_copy"
            ));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    healthy(&url);
}
