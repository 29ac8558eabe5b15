//! Informers of client-go, new and old: synced, and told each change once and in order, across
//! restarts of the server.

use crate::process::Followed;
use crate::server::Home;
use crate::tools;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use std::process::Command;
use std::time::Duration;
use tokio::runtime::Runtime;

/// After a restart informers wait for some seconds before they come back.
const PATIENCE: Duration = Duration::from_secs(45);

/// What an informer says about one object.
type Line = (String, String, String);

/// A user who writes config maps and remembers what informers must say about it.
struct User {
    runtime: Runtime,
    maps: Api<ConfigMap>,
    expected: Vec<Line>,
}

impl User {
    fn new(home: &Home) -> User {
        let runtime = Runtime::new().unwrap();
        let client = runtime.block_on(home.client());
        User {
            maps: Api::namespaced(client, "default"),
            runtime,
            expected: Vec::new(),
        }
    }

    fn creates(&mut self, name: &str) {
        let map: ConfigMap =
            serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
        let done = self.runtime.block_on(async {
            // The connection of the last server may be found broken first.
            match self.maps.create(&PostParams::default(), &map).await {
                Err(kube::Error::Api(status)) => panic!("{status:?}"),
                Err(_) => self.maps.create(&PostParams::default(), &map).await,
                done => done,
            }
        });
        self.expect("ADDED", done.unwrap());
    }

    fn changes(&mut self, name: &str, value: &str) {
        let patch = Patch::Merge(json!({ "data": { "value": value } }));
        let parameters = PatchParams::default();
        let done = self
            .runtime
            .block_on(self.maps.patch(name, &parameters, &patch));
        self.expect("MODIFIED", done.unwrap());
    }

    fn deletes(&mut self, name: &str) {
        let parameters = DeleteParams::default();
        self.runtime
            .block_on(self.maps.delete(name, &parameters))
            .unwrap();
        // The version of a deletion is not told to the one who deletes.
        self.expected
            .push(("DELETED".to_owned(), name.to_owned(), String::new()));
    }

    fn expect(&mut self, kind: &str, map: ConfigMap) {
        let version = map.resource_version().unwrap();
        self.expected
            .push((kind.to_owned(), map.name_any(), version));
    }
}

/// Reads an informer until it has said as many things as expected, in the order expected.
fn hears(informer: &mut Followed, name: &str, expected: &[Line]) {
    let mut heard = Vec::new();
    while heard.len() < expected.len() {
        let line = informer.json(PATIENCE);
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let kind = text("type");
        match kind.as_str() {
            "ADDED" | "MODIFIED" => heard.push((kind, text("name"), text("resourceVersion"))),
            "DELETED" => heard.push((kind, text("name"), String::new())),
            // A server that is down for a moment is an error the informer gets over; that it lists
            // anew afterwards is its own business as long as nothing is told twice.
            "ERROR" | "RELISTED" => {}
            _ => panic!("{name} says {line}"),
        }
        assert_eq!(heard, expected[..heard.len()], "{name}");
    }
}

fn synced(informer: &mut Followed, name: &str, expected: &[Line]) {
    let mut held: Vec<Line> = Vec::new();
    loop {
        let line = informer.json(PATIENCE);
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        match text("type").as_str() {
            "ADDED" => held.push((text("type"), text("name"), text("resourceVersion"))),
            "SYNCED" => {
                assert_eq!(line["count"], expected.len(), "{name}: {line}");
                break;
            }
            _ => panic!("{name} says {line}"),
        }
    }
    held.sort();
    assert_eq!(held, expected, "{name}");
}

#[test]
fn informers_hear_each_change_once_and_in_order_across_restarts() {
    let (Some(new), Some(old)) = (tools::peer("peers"), tools::peer("informer130")) else {
        return;
    };
    let home = Home::new();
    let server = home.serve();
    let mut user = User::new(&home);
    for name in ["a", "b"] {
        user.creates(name);
    }
    let informer = |name: &'static str, program, arguments: &[&str], stream: bool| {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .args(["--resource", "v1/configmaps", "--namespace", "default"])
            .args(["--for", "0", "--kubeconfig"])
            .arg(home.kubeconfig())
            .env("KUBE_FEATURE_WatchListClient", stream.to_string());
        (name, Followed::start(name, &mut command))
    };
    let mut informers = [
        informer("typed, streamed list", &new, &["informer"], true),
        informer("typed, list and watch", &new, &["informer"], false),
        informer(
            "dynamic",
            &new,
            &["informer", "--mode", "dynamic"],
            true,
        ),
        informer(
            "metadata",
            &new,
            &["informer", "--mode", "metadata"],
            true,
        ),
        informer("1.30, typed", &old, &[], false),
        informer("1.30, dynamic", &old, &["--mode", "dynamic"], false),
    ];
    for (name, informer) in &mut informers {
        synced(informer, name, &user.expected);
    }

    user.expected.clear();
    user.creates("c");
    user.changes("c", "1");
    user.deletes("a");
    for (name, informer) in &mut informers {
        hears(informer, name, &user.expected);
    }
    let (status, _) = server.stop();
    assert!(status.success());
    let server = home.serve();
    user.expected.clear();
    user.creates("d");
    user.changes("b", "1");
    for (name, informer) in &mut informers {
        hears(informer, name, &user.expected);
    }
    server.kill();
    let server = home.serve();
    user.expected.clear();
    user.creates("e");
    user.deletes("c");
    // A name that comes back is another object.
    user.deletes("e");
    user.creates("e");
    for (name, informer) in &mut informers {
        hears(informer, name, &user.expected);
    }
    for (name, informer) in informers {
        let rest = informer.stop();
        let done = rest.last().expect("an informer says what it held");
        assert!(
            done.contains(r#""type":"DONE""#) && done.contains(r#""count":3"#),
            "{name} held b, d and e: {done}"
        );
        let told = rest.iter().filter(|line| line.contains("ED\",\"namespace"));
        let told: Vec<_> = told.filter(|line| !line.contains("RELISTED")).collect();
        assert!(told.is_empty(), "{name} heard more: {told:?}");
    }
    let (status, _) = server.stop();
    assert!(status.success());
}
