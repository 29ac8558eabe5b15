//! The controller: a machine that should run has an instance; an instance has a process and a launcher pod.

use bareboat::client::{PathClient, owned_by};
use bareboat::prelude::Status;
use bareboat::streams::Process;
use futures_util::{StreamExt as _, stream};
use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::{WatchStreamExt as _, watcher};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// The nodes that machines move between.
const NODES: [&str; 2] = ["host-a", "host-b"];
/// What a machine runs: it repeats what is typed at its console.
const GUEST: &str = r#"while read -r line; do echo "$MACHINE: $line"; done"#;

/// What the other server answers. Its errors are passed on as they are.
pub(crate) type Answer = Result<Value, Status>;

/// The paths of a machine, its instance and its pods.
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) machine: String,
    pub(crate) instance: String,
    pub(crate) pods: String,
}

impl Place {
    pub(crate) fn new(namespace: &str, name: &str) -> Place {
        let root = format!("/apis/kubevirt.io/v1/namespaces/{namespace}");
        Place {
            name: name.to_owned(),
            machine: format!("{root}/virtualmachines/{name}"),
            instance: format!("{root}/virtualmachineinstances/{name}"),
            pods: format!("/api/v1/namespaces/{namespace}/pods"),
        }
    }
}

/// Runs machines for a server.
pub(crate) struct Virt {
    pub(crate) hub: PathClient,
    /// By the path of their instance. Dropping one ends it.
    pub(crate) processes: Mutex<HashMap<String, Arc<Process>>>,
    /// Held while a machine is looked at. What is written then follows from what was read last.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

/// Keeps all machines as they should be.
pub(crate) async fn run(virt: &Arc<Virt>) {
    let changed = |kind| {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("kubevirt.io", "v1", kind));
        let all = Api::<DynamicObject>::all_with(virt.hub.client(), &kind);
        let events = watcher(all, Default::default()).default_backoff();
        events.touched_objects().boxed()
    };
    let changed = [changed("VirtualMachine"), changed("VirtualMachineInstance")];
    let kept = stream::select_all(changed).for_each_concurrent(None, |object| async move {
        let Ok(object) = object else { return };
        let at = Place::new(&object.namespace().unwrap_or_default(), &object.name_any());
        while let Err(status) = virt.keep(&at).await {
            eprintln!("{}: {}", at.machine, status.message);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    kept.await;
}

impl Virt {
    /// virtctl opens a console again after this error, and after no other.
    pub(crate) fn process(&self, at: &Place) -> Result<Arc<Process>, Status> {
        let found = self.processes.lock().get(&at.instance).cloned();
        found.ok_or_else(|| Status::bad_request("the machine has not started yet"))
    }

    async fn keep(self: &Arc<Virt>, at: &Place) -> Result<(), Status> {
        let _turn = self.turn.lock().await;
        let machine = self.hub.find(&at.machine).await?.unwrap_or_default();
        let instance = self.hub.find(&at.instance).await?.unwrap_or_default();
        if instance.is_null() {
            self.processes.lock().remove(&at.instance);
        }
        let wanted = machine["spec"]["runStrategy"] == "Always";
        let phase = match instance["status"]["phase"].as_str() {
            _ if machine.is_null() => return Ok(()),
            _ if instance.is_null() && wanted => {
                let spec = &machine["spec"]["template"]["spec"];
                let metadata = json!({"name": at.name, "ownerReferences": owned_by(&machine)});
                let (all, _) = at.instance.rsplit_once('/').unwrap_or_default();
                let mut new = json!({"metadata": metadata, "spec": spec});
                new["apiVersion"] = "kubevirt.io/v1".into();
                new["kind"] = "VirtualMachineInstance".into();
                self.hub.create(all, &new).await?;
                "Starting"
            }
            _ if instance.is_null() => "Stopped",
            _ if instance["metadata"]["deletionTimestamp"].is_string() => "Stopping",
            // A machine that ended is started again.
            phase if phase == Some("Failed") || !wanted => {
                self.hub.delete(&at.instance).await?;
                "Stopping"
            }
            _ => {
                self.boot(at, &instance).await?;
                let paused = instance["status"]["conditions"][0]["type"] == "Paused";
                if paused { "Paused" } else { "Running" }
            }
        };
        let status = json!({"printableStatus": phase, "ready": phase == "Running"});
        if machine["status"] != status {
            self.hub.merge_status(&at.machine, &status).await?;
        }
        Ok(())
    }

    /// Starts the process and the launcher of an instance, unless it runs.
    async fn boot(self: &Arc<Virt>, at: &Place, instance: &Value) -> Result<(), Status> {
        if self.process(at).is_ok() {
            return Ok(());
        }
        let mut command = Command::new("sh");
        command.args(["-c", GUEST]).env("MACHINE", &at.name);
        let process = Process::start(command);
        let process = process.map_err(|error| Status::internal(error.to_string()))?;
        let ended = process.ended();
        self.processes.lock().insert(at.instance.clone(), process);
        let launched = self.launch(at, instance, NODES[0]).await;
        launched.inspect_err(|_| drop(self.processes.lock().remove(&at.instance)))?;
        let (virt, path) = (self.clone(), format!("{}/status", at.instance));
        let metadata = json!({"uid": instance["metadata"]["uid"]});
        tokio::spawn(async move {
            ended.await;
            // The uid: another instance may have the name by now.
            let failed = json!({"metadata": metadata, "status": {"phase": "Failed"}});
            let _ = virt.hub.merge(&path, &failed).await;
        });
        Ok(())
    }

    /// Creates the pod that stands for an instance on a node.
    async fn launch(&self, at: &Place, instance: &Value, node: &str) -> Answer {
        let labels = json!({"vm.kubevirt.io/name": at.name, "kubevirt.io/nodeName": node});
        let prefix = format!("virt-launcher-{}-", at.name);
        let owner = owned_by(instance);
        let metadata = json!({"generateName": prefix, "labels": labels, "ownerReferences": owner});
        let spec = json!({"containers": [{"name": "compute", "image": "none"}]});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
        self.hub.create(&at.pods, &pod).await?;
        let running = json!({"phase": "Running", "nodeName": node});
        self.hub.merge_status(&at.instance, &running).await
    }

    /// Moves a machine to the other node while it runs: another launcher, the same process.
    pub(crate) async fn migrate(&self, at: &Place) -> Answer {
        let instance = self.hub.get(&at.instance).await?;
        let source = instance["status"]["nodeName"].as_str().unwrap_or("");
        let target = NODES[usize::from(source == NODES[0])];
        self.launch(at, &instance, target).await?;
        let old = format!(
            "vm.kubevirt.io/name%3D{},kubevirt.io/nodeName%3D{source}",
            at.name
        );
        let old = format!("{}?labelSelector={old}", at.pods);
        self.hub.delete(&old).await
    }
}
