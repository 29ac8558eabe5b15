//! What a kubelet does: starts a process for each new pod, reports its phase, and ends it when the pod is deleted.

use anyhow::Context as _;
use bareboat::prelude::Status;
use bareboat::streams::Process;
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::watcher::{self, Event};
use kube::{Client, ResourceExt as _};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// The processes of pods by uid, each in a folder of its own.
#[derive(Clone)]
pub(crate) struct Processes {
    all: Arc<Mutex<HashMap<String, Arc<Process>>>>,
    folder: PathBuf,
}

impl Processes {
    pub(crate) fn within(folder: &Path) -> anyhow::Result<Processes> {
        fs::create_dir_all(folder)?;
        Ok(Processes {
            all: Arc::default(),
            folder: folder.canonicalize()?,
        })
    }

    pub(crate) fn folder(&self, uid: &str) -> PathBuf {
        self.folder.join(uid)
    }

    /// Returns the process of a pod; the error is for clients.
    pub(crate) fn find(&self, uid: &str) -> Result<Arc<Process>, Status> {
        let found = self.all.lock().get(uid).cloned();
        found.ok_or_else(|| Status::bad_request("the process of this pod does not run"))
    }

    /// Starts the first container of a pod.
    async fn start(&self, uid: &str, pod: &Pod) -> anyhow::Result<Arc<Process>> {
        let container = container(pod).context("a pod has a container")?;
        let words = container.command.iter().chain(&container.args).flatten();
        let words: Vec<&String> = words.collect();
        let program = words
            .first()
            .context("a command is needed: images are not run")?;
        fs::create_dir_all(self.folder(uid))?;
        let mut command = Command::new(program);
        command.args(&words[1..]).current_dir(self.folder(uid));
        for variable in container.env.iter().flatten() {
            command.env(&variable.name, variable.value.as_deref().unwrap_or(""));
        }
        let process =
            Process::start(command).with_context(|| format!("{program} cannot be run"))?;
        if container.stdin != Some(true) {
            process.close_input().await;
        }
        self.all.lock().insert(uid.to_owned(), process.clone());
        Ok(process)
    }

    fn remove(&self, uid: &str) {
        if let Some(process) = self.all.lock().remove(uid) {
            process.kill();
            let _ = fs::remove_dir_all(self.folder(uid));
        }
    }

    pub(crate) fn stop_all(&self) {
        let all: Vec<String> = self.all.lock().keys().cloned().collect();
        all.iter().for_each(|uid| self.remove(uid));
    }

    /// Follows all pods until the watch ends.
    pub(crate) async fn run(&self, client: Client) {
        let pods = watcher::watcher(Api::<Pod>::all(client.clone()), Default::default());
        let mut pods = std::pin::pin!(pods);
        while let Some(event) = pods.next().await {
            match event {
                Ok(Event::Apply(pod) | Event::InitApply(pod)) => self.begin(&client, &pod).await,
                Ok(Event::Delete(pod)) => self.remove(&pod.uid().unwrap_or_default()),
                Ok(_) => {}
                Err(error) => eprintln!("the watch of pods is interrupted: {error}"),
            }
        }
    }

    /// Starts the process of a pod, unless it runs, and reports its start and its end.
    async fn begin(&self, client: &Client, pod: &Pod) {
        let uid = pod.uid().unwrap_or_default();
        let phase = pod
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        if self.all.lock().contains_key(&uid) || matches!(phase, Some("Succeeded" | "Failed")) {
            return;
        }
        let (client, pod) = (client.clone(), pod.clone());
        let process = match self.start(&uid, &pod).await {
            Ok(process) => process,
            Err(error) => {
                let error = json!({"reason": "RunContainerError", "message": format!("{error:#}")});
                return report(&client, &pod, "Pending", json!({"waiting": error})).await;
            }
        };
        let started = json!({"startedAt": now()});
        report(&client, &pod, "Running", json!({"running": started})).await;
        tokio::spawn(async move {
            let code = process.ended().await;
            let (phase, reason) = match code {
                0 => ("Succeeded", "Completed"),
                _ => ("Failed", "Error"),
            };
            let ended = json!({"exitCode": code, "reason": reason, "finishedAt": now()});
            report(&client, &pod, phase, json!({"terminated": ended})).await;
        });
    }
}

fn container(pod: &Pod) -> Option<&Container> {
    pod.spec.as_ref()?.containers.first()
}

fn now() -> String {
    format!("{:.0}", jiff::Timestamp::now())
}

/// Writes the status of a pod.
async fn report(client: &Client, pod: &Pod, phase: &str, state: Value) {
    let ready = phase == "Running";
    let condition = json!({"type": "Ready", "status": if ready { "True" } else { "False" }});
    let container = json!({
        "name": container(pod).map(|container| &container.name), "image": "", "imageID": "",
        "ready": ready, "started": ready, "state": state, "restartCount": 0,
    });
    let status = json!({
        "phase": phase, "conditions": [condition], "containerStatuses": [container],
    });
    let status = Patch::Merge(json!({"metadata": {"uid": pod.uid()}, "status": status}));
    let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let (name, options) = (pod.name_any(), PatchParams::default());
    let written = pods.patch_status(&name, &options, &status).await;
    // The pod may have been deleted in the meantime.
    if let Err(error) = written
        && !matches!(&error, kube::Error::Api(_))
    {
        eprintln!(
            "the status of {} cannot be written: {error}",
            pod.name_any()
        );
    }
}
