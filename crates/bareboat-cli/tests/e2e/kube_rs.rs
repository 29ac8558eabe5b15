//! kube-rs with the administrator's kubeconfig: a reflector across restarts, and the ordinary calls of its typed
//! client.

use crate::process::PATIENCE;
use crate::server::Home;
use futures_util::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher::watcher};
use kube::{Resource as _, ResourceExt as _};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({
        "metadata": { "name": name, "labels": { "app": "reflected" } },
        "data": { "name": name },
    }))
    .unwrap()
}

async fn reflects_across_restarts(settings: watcher::Config) {
    let home = Home::new();
    let server = home.serve();
    let client = home.client().await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    maps.create(&PostParams::default(), &config_map("one"))
        .await
        .unwrap();

    let (reader, writer) = reflector::store();
    let reported = Arc::new(Mutex::new(Vec::new()));
    let reporter = reported.clone();
    let watched = Api::<ConfigMap>::namespaced(home.client().await, "default");
    let events = watcher(watched, settings.labels("app=reflected"))
        .default_backoff()
        .reflect(writer);
    let following = tokio::spawn(async move {
        let mut events = Box::pin(events);
        while let Some(event) = events.next().await {
            let word = match event {
                Ok(Event::Init) => "init".to_owned(),
                Ok(Event::InitApply(map)) => format!("is {}", map.name_any()),
                Ok(Event::InitDone) => "ready".to_owned(),
                Ok(Event::Apply(map)) => format!("applied {}", map.name_any()),
                Ok(Event::Delete(map)) => format!("deleted {}", map.name_any()),
                // The server is down for a moment.
                Err(_) => continue,
            };
            reporter.lock().unwrap().push(word);
        }
    });
    reader.wait_until_ready().await.unwrap();
    maps.create(&PostParams::default(), &config_map("two"))
        .await
        .unwrap();

    let (status, _) = tokio::task::spawn_blocking(|| server.stop()).await.unwrap();
    assert!(status.success());
    let server = home.serve();
    let maps: Api<ConfigMap> = Api::namespaced(home.client().await, "default");
    maps.delete("one", &Default::default()).await.unwrap();
    server.kill();
    let _server = home.serve();
    let maps: Api<ConfigMap> = Api::namespaced(home.client().await, "default");
    maps.create(&PostParams::default(), &config_map("three"))
        .await
        .unwrap();
    // An object that no longer matches the selector is a deletion for the watcher.
    let patch = json!({ "metadata": { "labels": { "app": null } } });
    maps.patch("two", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();

    let waiting = async {
        while reported.lock().unwrap().last().map(String::as_str) != Some("deleted two") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    following.abort();
    let reported = reported.lock().unwrap().clone();
    assert!(waited.is_ok(), "the reflector stays behind: {reported:?}");
    assert_eq!(
        reported,
        [
            "init",
            "is one",
            "ready",
            "applied two",
            "deleted one",
            "applied three",
            "deleted two"
        ],
        "it listed once and heard each change once"
    );
    let stored = reader
        .get(&ObjectRef::new("three").within("default"))
        .expect("the store holds what is left");
    let listed = maps
        .list(&ListParams::default().labels("app=reflected"))
        .await
        .unwrap();
    assert_eq!(listed.items.len(), 1);
    assert_eq!(reader.len(), 1);
    assert_eq!(listed.items[0], *stored);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reflector_that_lists_and_watches_survives_restarts() {
    reflects_across_restarts(watcher::Config::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reflector_that_streams_its_list_survives_restarts() {
    reflects_across_restarts(watcher::Config::default().streaming_lists()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_list_show_one_revision() {
    let home = Home::with(&["--in-memory"]);
    let _server = home.serve();
    let client = home.client().await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    for number in 0..25 {
        let map = config_map(&format!("page-{number:02}"));
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    let mut pages = Vec::new();
    let mut parameters = ListParams::default().labels("app=reflected").limit(10);
    loop {
        let page = maps.list(&parameters).await.unwrap();
        // Written between the pages: later than the revision they show.
        let late = config_map(&format!("page-late-{}", pages.len()));
        maps.create(&PostParams::default(), &late).await.unwrap();
        let next = page.metadata.continue_.clone();
        pages.push(page);
        match next.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => break,
        }
    }
    let names: Vec<_> = pages
        .iter()
        .flat_map(|page| page.items.iter().map(kube::ResourceExt::name_any))
        .collect();
    assert_eq!(names.len(), 25, "{names:?}");
    assert!(names.iter().all(|name| !name.contains("late")));
    let version = pages[0].metadata.resource_version.clone();
    assert!(
        pages
            .iter()
            .all(|page| page.metadata.resource_version == version)
    );

    let namespaces: Api<Namespace> = Api::all(client);
    let names: Vec<_> = namespaces
        .list(&ListParams::default())
        .await
        .unwrap()
        .into_iter()
        .map(|namespace| namespace.meta().name.clone().unwrap())
        .collect();
    assert!(names.contains(&"kube-system".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graceful_stop_ends_watches_without_an_error() {
    let home = Home::with(&["--in-memory"]);
    let server = home.serve();
    let maps: Api<ConfigMap> = Api::namespaced(home.client().await, "default");
    let version = maps.list(&ListParams::default()).await.unwrap();
    let version = version.metadata.resource_version.unwrap();
    // A controller may write another object at any time after the start.
    let seen = WatchParams::default().fields("metadata.name=seen");
    let stream = maps.watch(&seen, &version).await.unwrap();
    let watching = tokio::spawn(stream.try_collect::<Vec<_>>());
    maps.create(&PostParams::default(), &config_map("seen"))
        .await
        .unwrap();
    let (status, log) = tokio::task::spawn_blocking(|| server.stop()).await.unwrap();
    assert_eq!(status.code(), Some(0), "{log}");
    let events = tokio::time::timeout(PATIENCE, watching)
        .await
        .expect("the watch ends with the server")
        .unwrap()
        .expect("it ends as a watch ends, not as a broken connection");
    assert_eq!(events.len(), 1);
}
