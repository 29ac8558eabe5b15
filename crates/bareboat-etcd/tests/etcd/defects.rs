//! Defects that are planted in the keys of a store: an examination finds each, and nothing in a healthy store.

use bareboat_etcd::Etcd;
use bareboat_storage::Write;
use bareboat_storage::examine::examine;

use super::member::{Member, base64, lease};
use super::open;

fn object(name: &str) -> bytes::Bytes {
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","namespace":"default"}},"data":{{"p":"planted"}}}}"#
    )
    .into()
}

/// A store with a defect to come.
struct Planted<'a> {
    member: &'a Member,
    prefix: String,
    /// The revisions of three objects, and of the change of the first.
    made: Vec<u64>,
}

impl Planted<'_> {
    fn url(&self) -> String {
        self.member.url(self.member.port, &self.prefix)
    }

    fn key(&self, path: &str) -> String {
        format!("/{}/{path}", self.prefix)
    }

    fn row(&self, at: usize) -> String {
        self.key(&format!("b/{:016x}", self.made[at]))
    }

    fn delete(&self, key: &str) {
        let request = format!(r#"{{"key":"{}"}}"#, base64(key.as_bytes()));
        self.member.ask("kv/deleterange", &request);
    }

    /// Replaces a part of a value.
    fn edit(&self, key: &str, from: &str, to: &str) {
        let value = self.member.get(key);
        assert!(value.contains(from), "{key}: {value}");
        self.member.put(key, &value.replacen(from, to, 1));
    }

    /// Examines the store. Returns what was found; an error is found as well.
    fn found(&self) -> String {
        let log = match Etcd::open_existing(&self.url()) {
            Ok(log) => log,
            Err(error) => return format!("{error:?}"),
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
}

/// Changes the keys of a store.
type Plant = fn(&Planted<'_>);

const DEFECTS: [(&str, Plant); 7] = [
    ("an object that is gone", |store| {
        store.delete(&store.key("o/core/configmaps/default/b"));
    }),
    ("an object that was changed", |store| {
        let key = store.key("o/core/configmaps/default/b");
        store.edit(&key, "planted", "changed");
    }),
    ("a batch that is gone", |store| store.delete(&store.row(1))),
    ("a batch with another digest", |store| {
        let row = store.member.get(&store.row(1));
        let (head, rest) = row.split_once(r#""digest":""#).unwrap();
        let rest = &rest[4..];
        let edited = format!(r#"{head}"digest":"0000{rest}"#);
        store.member.put(&store.row(1), &edited);
    }),
    ("a batch with another path", |store| {
        store.edit(&store.row(1), "default/b", "default/c");
    }),
    ("an end that is too early", |store| {
        let last = format!(r#""last":{}"#, store.made[3]);
        let early = format!(r#""last":{}"#, store.made[3] - 1);
        store.edit(&store.key("t"), &last, &early);
    }),
    ("a value that is no object", |store| {
        let key = store.key("o/core/configmaps/default/c");
        store.edit(&key, r#"{"apiVersion":"v1""#, r#"{"apiVersion":"v1"]"#);
    }),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn planted_defects_are_found() {
    let member = lease();
    let mut missed = Vec::new();
    for (number, (name, plant)) in DEFECTS.into_iter().enumerate() {
        let mut planted = Planted {
            member: &member,
            prefix: format!("planted{number}"),
            made: Vec::new(),
        };
        let store = open(&planted.url());
        let maps = store.resource("core/configmaps");
        for name in ["a", "b", "c"] {
            let write = Write::create(&maps, format!("default/{name}"), object(name));
            planted
                .made
                .push(store.commit(write).await.unwrap().revision);
        }
        let a = maps.get("default/a").unwrap();
        let change = Write::replace(&maps, &a, object("a"));
        planted
            .made
            .push(store.commit(change).await.unwrap().revision);
        store.close().await;
        assert_eq!(planted.found(), "");
        plant(&planted);
        let said = planted.found();
        println!("{name}: {said}");
        if said.is_empty() {
            missed.push(name);
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
