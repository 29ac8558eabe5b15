//! Informers of client-go, new and old: they sync, and report each change once and in order, across restarts of the
//! server.

use crate::process::Followed;
use crate::server::{Home, Running};
use crate::tools;
use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tokio::runtime::Runtime;

/// A report of an informer about one object.
type Line = (String, String, String);

/// Writes objects of one kind and records what informers must report.
struct User {
    runtime: Runtime,
    kind: ApiResource,
    objects: Api<DynamicObject>,
    expected: Vec<Line>,
}

impl User {
    fn new(home: &Home, kind: ApiResource) -> User {
        let runtime = Runtime::new().unwrap();
        let client = runtime.block_on(home.client());
        User {
            objects: Api::namespaced_with(client, "default", &kind),
            kind,
            runtime,
            expected: Vec::new(),
        }
    }

    fn creates(&mut self, name: &str) {
        let object = DynamicObject::new(name, &self.kind);
        let done = self.runtime.block_on(async {
            // The connection to the previous server may break first.
            match self.objects.create(&PostParams::default(), &object).await {
                Err(kube::Error::Api(status)) => panic!("{status:?}"),
                Err(_) => self.objects.create(&PostParams::default(), &object).await,
                done => done,
            }
        });
        self.expect("ADDED", done.unwrap());
    }

    fn changes(&mut self, name: &str, value: &str) {
        let patch = Patch::Merge(json!({ "metadata": { "labels": { "value": value } } }));
        let parameters = PatchParams::default();
        let done = self
            .runtime
            .block_on(self.objects.patch(name, &parameters, &patch));
        self.expect("MODIFIED", done.unwrap());
    }

    fn deletes(&mut self, name: &str) {
        let parameters = DeleteParams::default();
        self.runtime
            .block_on(self.objects.delete(name, &parameters))
            .unwrap();
        // The client that deletes does not learn the revision of the deletion.
        self.expected
            .push(("DELETED".to_owned(), name.to_owned(), String::new()));
    }

    fn expect(&mut self, kind: &str, object: DynamicObject) {
        let version = object.resource_version().unwrap();
        self.expected
            .push((kind.to_owned(), object.name_any(), version));
    }
}

/// Reads an informer until it has reported what is expected, in the expected order.
///
/// An informer that lists again sees the current state, not the changes: for each object it may report only the last
/// one, in any order. It may list again after a restart (it does if its watch broke before the first event); no change
/// may be reported twice or not at all.
fn hears(informer: &mut Followed, name: &str, expected: &[Line]) {
    // Old informers queue by name: their reports are in order for each name only.
    let by_name = name.starts_with("1.30");
    let in_short = last_words(expected);
    let mut heard = Vec::new();
    let mut listed_anew = false;
    while heard.len() < expected.len() {
        let line = informer.json();
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let kind = text("type");
        match kind.as_str() {
            "ADDED" | "MODIFIED" => heard.push((kind, text("name"), text("resourceVersion"))),
            "DELETED" => heard.push((kind, text("name"), String::new())),
            "RELISTED" => listed_anew = true,
            // The server is down for a moment; the informer recovers from the error.
            "ERROR" => {}
            _ => panic!("{name} says {line}"),
        }
        if listed_anew && sorted_by_name(&heard) == in_short {
            return;
        }
    }
    if by_name || listed_anew {
        assert_eq!(sorted_by_name(&heard), sorted_by_name(expected), "{name}");
    } else {
        assert_eq!(heard, expected, "{name}");
    }
}

/// Returns the last report about each object.
fn last_words(lines: &[Line]) -> Vec<Line> {
    let last: BTreeMap<&str, &Line> = lines.iter().map(|line| (line.1.as_str(), line)).collect();
    last.into_values().cloned().collect()
}

fn sorted_by_name(lines: &[Line]) -> Vec<Line> {
    let mut lines = lines.to_vec();
    lines.sort_by(|a, b| a.1.cmp(&b.1));
    lines
}

fn synced(informer: &mut Followed, name: &str, expected: &[Line]) {
    let mut held: Vec<Line> = Vec::new();
    loop {
        let line = informer.json();
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

/// Starts an informer that runs until it is stopped.
fn informer(home: &Home, name: &str, program: &Path, arguments: &str, stream: bool) -> Followed {
    let mut command = Command::new(program);
    command
        .args(arguments.split_whitespace())
        .args(["--namespace", "default", "--for", "0"])
        .args(["--sync-within", "5m", "--kubeconfig"])
        .arg(home.kubeconfig())
        .env("KUBE_FEATURE_WatchListClient", stream.to_string());
    Followed::start(name, &mut command)
}

/// Changes some objects across a graceful stop and a kill of the server.
fn lives_through_restarts(
    home: &Home,
    mut server: Running,
    mut user: User,
    start: impl FnOnce() -> Vec<(&'static str, Followed)>,
) {
    for name in ["a", "b"] {
        user.creates(name);
    }
    let mut informers = start();
    for (name, informer) in &mut informers {
        synced(informer, name, &user.expected);
    }
    for round in 0..3 {
        user.expected.clear();
        match round {
            0 => {
                user.creates("c");
                user.changes("c", "1");
                user.deletes("a");
            }
            1 => {
                assert!(server.stop().0.success());
                server = home.serve();
                user.creates("d");
                user.changes("b", "1");
            }
            _ => {
                server.kill();
                server = home.serve();
                user.creates("e");
                user.deletes("c");
                // A new object with the same name is another object.
                user.deletes("e");
                user.creates("e");
            }
        }
        for (name, informer) in &mut informers {
            hears(informer, name, &user.expected);
        }
    }
    for (name, informer) in informers {
        let rest = informer.stop();
        let rest: Vec<Value> = rest
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        // A watch that was about to start may still report an error after it.
        let done = rest.iter().find(|line| line["type"] == "DONE");
        let done = done.expect("an informer says what it held");
        assert_eq!(done["count"], 3, "{name} holds b, d and e");
        let more = rest.iter().find(|line| {
            ["ADDED", "MODIFIED", "DELETED"]
                .iter()
                .any(|kind| line["type"] == *kind)
        });
        assert!(more.is_none(), "{name} heard more: {more:?}");
    }
    assert!(server.stop().0.success());
}

#[test]
fn informers_of_a_built_in_kind_report_each_change_once_and_in_order_across_restarts() {
    let (Some(new), Some(old)) = (tools::peer("peers"), tools::peer("informer130")) else {
        return;
    };
    let home = Home::new();
    let server = home.serve();
    let kind = ApiResource::erase::<k8s_openapi::api::core::v1::Endpoints>(&());
    let user = User::new(&home, kind);
    lives_through_restarts(&home, server, user, || {
        let flags = "--resource v1/endpoints --mode";
        let newest = |name, mode: &str, stream| {
            let arguments = format!("informer {flags} {mode}");
            (name, informer(&home, name, &new, &arguments, stream))
        };
        let oldest = |name, mode: &str| {
            let arguments = format!("{flags} {mode}");
            (name, informer(&home, name, &old, &arguments, false))
        };
        vec![
            newest("typed, streamed list", "typed", true),
            newest("typed, list and watch", "typed", false),
            newest("dynamic", "dynamic", true),
            newest("metadata", "metadata", true),
            oldest("1.30, typed", "typed"),
            oldest("1.30, dynamic", "dynamic"),
        ]
    });
}

#[test]
fn informers_of_a_custom_kind_report_each_change_once_and_in_order_across_restarts() {
    let (Some(new), Some(old)) = (tools::peer("peers"), tools::peer("informer130")) else {
        return;
    };
    let home = Home::new();
    let server = home.serve();
    let gvk = GroupVersionKind::gvk("example.com", "v1", "Buoy");
    let user = User::new(&home, ApiResource::from_gvk_with_plural(&gvk, "buoys"));
    user.runtime.block_on(define_buoys(&home));
    lives_through_restarts(&home, server, user, || {
        let flags = "--resource example.com/v1/buoys --mode";
        let newest = |name, mode: &str, stream| {
            let arguments = format!("informer {flags} {mode}");
            (name, informer(&home, name, &new, &arguments, stream))
        };
        let arguments = format!("{flags} dynamic");
        let name = "1.30, dynamic";
        vec![
            newest("dynamic, streamed list", "dynamic", true),
            newest("dynamic, list and watch", "dynamic", false),
            newest("metadata", "metadata", true),
            (name, informer(&home, name, &old, &arguments, false)),
        ]
    });
}

/// Defines a kind, and waits until it is served.
async fn define_buoys(home: &Home) {
    let client = home.client().await;
    let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let kind = ApiResource::from_gvk(&gvk);
    let definitions: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let definition = DynamicObject::new("buoys.example.com", &kind).data(json!({ "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": { "plural": "buoys", "kind": "Buoy" },
        "versions": [{ "name": "v1", "served": true, "storage": true,
            "schema": { "openAPIV3Schema": { "type": "object" } } }],
    }}));
    definitions
        .create(&PostParams::default(), &definition)
        .await
        .unwrap();
    let gvk = GroupVersionKind::gvk("example.com", "v1", "Buoy");
    let buoys = ApiResource::from_gvk_with_plural(&gvk, "buoys");
    let buoys: Api<DynamicObject> = Api::all_with(client, &buoys);
    while buoys.list(&Default::default()).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
