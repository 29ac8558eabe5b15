//! Follows the sources: an informer for an API server, a poll for an HTTP service. Both keep the merged pods equal to those of the source.

use crate::merged::{GROUP, SOURCE, VERSION};
use anyhow::Result;
use bareboat::prelude::{Server, User};
use bareboat::server::Stopping;
use futures_util::StreamExt as _;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::rt::TokioExecutor;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::{WatchStreamExt as _, watcher, watcher::Event};
use kube::{Api, Client, Config, ResourceExt as _};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The sources that do not answer, and why.
pub(crate) type Health = Arc<Mutex<BTreeMap<Arc<str>, String>>>;

/// A server with pods.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) name: Arc<str>,
    pub(crate) origin: Origin,
    pub(crate) health: Health,
}

#[derive(Clone)]
pub(crate) enum Origin {
    ApiServer(Client),
    Http(http::Uri),
}

/// Returns a client for a kubeconfig.
pub(crate) async fn client(path: &str) -> Result<Client> {
    let file = Kubeconfig::read_from(path)?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    config.connect_timeout = Some(Duration::from_secs(2));
    Ok(Client::try_from(config)?)
}

/// Returns the kind Pod of a group.
fn pod(group: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", "Pod"), "pods")
}

impl Source {
    /// Follows the source until the server stops.
    pub(crate) async fn follow(self, server: Server, stopping: Stopping) {
        let user = User {
            name: "system:follower".into(),
            groups: vec!["system:masters".into()],
            ..User::default()
        };
        let merged = Merged(bareboat::client::of_store(&server, user), self.name.clone());
        tokio::select! {
            () = self.inform(&merged) => {}
            () = stopping.begun() => {}
        }
    }

    fn note(&self, done: Result<()>) {
        let mut health = self.health.lock().expect("no panic while this is locked");
        match done {
            Ok(()) => health.remove(&self.name),
            Err(error) => health.insert(self.name.clone(), error.to_string()),
        };
    }

    async fn inform(&self, merged: &Merged) {
        let client = match &self.origin {
            Origin::ApiServer(client) => client.clone(),
            Origin::Http(url) => loop {
                self.note(fetch(url, merged).await);
                tokio::time::sleep(Duration::from_secs(1)).await;
            },
        };
        // Short watches, so that a dead server is noticed.
        let settings = watcher::Config::default().timeout(20);
        let pods: Api<DynamicObject> = Api::all_with(client, &pod(""));
        let events = watcher(pods, settings).default_backoff();
        let (mut events, mut listed) = (events.boxed(), HashSet::new());
        while let Some(event) = events.next().await {
            self.note(match event {
                Ok(Event::Init) => Ok(()).inspect(|()| listed.clear()),
                Ok(Event::InitApply(pod)) => {
                    listed.insert((pod.namespace(), pod.name_any()));
                    merged.put(pod).await
                }
                Ok(Event::InitDone) => merged.keep_only(&listed).await,
                Ok(Event::Apply(pod)) => merged.put(pod).await,
                Ok(Event::Delete(pod)) => merged.delete(pod.namespace(), &pod.name_any()).await,
                Err(error) => Err(error.into()),
            });
        }
    }
}

async fn fetch(url: &http::Uri, merged: &Merged) -> Result<()> {
    let client = HttpClient::builder(TokioExecutor::new()).build_http::<Empty<&[u8]>>();
    let answer = client.get(url.clone()).await?.into_body();
    let items: Vec<Value> = serde_json::from_slice(&answer.collect().await?.to_bytes())?;
    let mut listed = HashSet::new();
    for item in items {
        let name = item["name"].as_str().unwrap_or_default().to_owned();
        let pod = json!({
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"containers": [{"name": "main", "image": item["image"]}]},
        });
        merged.put(serde_json::from_value(pod)?).await?;
        listed.insert((Some("default".to_owned()), name));
    }
    merged.keep_only(&listed).await
}

/// The merged pods of one source: a client of this server, and the name of the source.
struct Merged(Client, Arc<str>);

impl Merged {
    fn api(&self, namespace: Option<String>) -> Api<DynamicObject> {
        Api::namespaced_with(self.0.clone(), &namespace.unwrap_or_default(), &pod(GROUP))
    }

    async fn put(&self, mut pod: DynamicObject) -> Result<()> {
        let (namespace, name) = (pod.namespace(), format!("{}.{}", pod.name_any(), self.1));
        let version = pod.resource_version().unwrap_or_default();
        pod.labels_mut().insert(SOURCE.into(), self.1.to_string());
        pod.annotations_mut().insert(VERSION.into(), version);
        let mut object = pod.data.clone();
        object["apiVersion"] = json!(format!("{GROUP}/v1"));
        object["kind"] = json!("Pod");
        let (labels, annotations) = (pod.labels(), pod.annotations());
        object["metadata"] = json!({"name": name, "labels": labels, "annotations": annotations});
        let apply = PatchParams::apply("proxy-kind").force();
        let (pods, patch) = (self.api(namespace), Patch::Apply(object));
        Ok(pods.patch(&name, &apply, &patch).await.map(drop)?)
    }

    async fn delete(&self, namespace: Option<String>, name: &str) -> Result<()> {
        let (pods, name) = (self.api(namespace), format!("{name}.{}", self.1));
        match pods.delete(&name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            done => Ok(done.map(drop)?),
        }
    }

    /// Deletes merged pods that the source no longer has.
    async fn keep_only(&self, listed: &HashSet<(Option<String>, String)>) -> Result<()> {
        let own = ListParams::default().labels(&format!("{SOURCE}={}", self.1));
        let all: Api<DynamicObject> = Api::all_with(self.0.clone(), &pod(GROUP));
        for pod in all.list(&own).await? {
            let name = pod.name_any();
            let (name, _) = name.rsplit_once('.').unwrap_or_default();
            if !listed.contains(&(pod.namespace(), name.to_owned())) {
                self.delete(pod.namespace(), name).await?;
            }
        }
        Ok(())
    }
}
