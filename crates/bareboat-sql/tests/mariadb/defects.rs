//! Defects that are planted in the tables: an examination finds each, and nothing in a healthy store.

use bareboat_sql::Mysql;
use bareboat_storage::Write;
use bareboat_storage::examine::examine;

use super::cluster::shared;
use super::open;

/// A defect, and a word of what is said about it. `{a}` is the revision of an object that was changed later, `{b}` of its
/// change, and `{c}` of another object.
const DEFECTS: [(&str, &str); 14] = [
    ("DELETE FROM log WHERE rev = {c}", "missing"),
    (
        "DELETE FROM log ORDER BY rev DESC LIMIT 1",
        "before revision",
    ),
    ("DELETE FROM batch WHERE first = {c}", ""),
    (
        "UPDATE batch SET digest = REPEAT('x', 16) WHERE first = {c}",
        "digest",
    ),
    (
        "UPDATE log SET value = REPLACE(value, 'planted', 'changed') WHERE rev = {c}",
        "digest",
    ),
    ("UPDATE log SET value = x'7b5d' WHERE rev = {c}", "JSON"),
    (
        "UPDATE log SET `key` = 'default/elsewhere' WHERE rev = {c}",
        "name",
    ),
    (
        "UPDATE log SET resource = 'core/secrets' WHERE rev = {c}",
        "digest",
    ),
    ("UPDATE log SET cluster = 'x' WHERE rev = {c}", "digest"),
    ("UPDATE log SET prev = prev - 1 WHERE rev = {b}", "replaces"),
    ("UPDATE log SET prev = {a} WHERE rev = {c}", "replaces"),
    ("UPDATE log SET value = '{}' WHERE value IS NULL", ""),
    ("UPDATE batch SET last = last + 1 WHERE first = {c}", ""),
    (
        "UPDATE meta SET format = 2147483647, min_writer = 2147483647",
        "interrupted",
    ),
];

fn object(name: &str) -> bytes::Bytes {
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","namespace":"default"}},"data":{{"p":"planted"}}}}"#
    )
    .into()
}

/// Examines the store. Returns what was found; an error is found as well.
fn found(url: &str) -> String {
    let Ok(log) = Mysql::open_existing(url) else {
        return "it cannot be opened: a restore was interrupted".to_owned();
    };
    match examine(&log) {
        Ok(found) => found
            .findings
            .iter()
            .map(|finding| format!("{}; ", finding.problem))
            .collect(),
        Err(error) => format!("{error:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn planted_defects_are_found() {
    let cluster = shared();
    let url = cluster.url(cluster.port, "planted");
    let store = open(&url);
    let maps = store.resource("core/configmaps");
    let mut made = Vec::new();
    for name in ["a", "b", "c", "d"] {
        let write = Write::create(&maps, format!("default/{name}"), object(name));
        made.push(store.commit(write).await.unwrap().revision);
    }
    let a = maps.get("default/a").unwrap();
    let changed = store.commit(Write::replace(&maps, &a, object("a"))).await;
    let changed = changed.unwrap().revision;
    let d = maps.get("default/d").unwrap();
    store.commit(Write::delete(&maps, &d)).await.unwrap();
    store.close().await;
    assert_eq!(found(&url), "");
    let ask = |statement: &str| {
        let done = cluster.ask(&format!("USE planted; {statement}"));
        done.unwrap_or_else(|| panic!("{statement}"));
    };
    for table in ["log", "batch", "meta"] {
        ask(&format!(
            "CREATE TABLE {table}_copy AS SELECT * FROM {table}"
        ));
    }
    let mut missed = Vec::new();
    for (statement, words) in DEFECTS {
        let statement = statement
            .replace("{a}", &made[0].to_string())
            .replace("{b}", &changed.to_string())
            .replace("{c}", &made[2].to_string());
        ask(&statement);
        let said = found(&url);
        println!("{statement}: {said}");
        if said.is_empty() || !said.contains(words) {
            missed.push(format!("{statement}: {said}"));
        }
        for table in ["log", "batch", "meta"] {
            ask(&format!(
                "DELETE FROM {table}; INSERT INTO {table} SELECT * FROM {table}_copy"
            ));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    assert_eq!(found(&url), "");
}
