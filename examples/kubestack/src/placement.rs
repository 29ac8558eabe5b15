//! The placement controller: gives each machine a node and an address. Informers name the machines to look at, a queue passes them on
//! one at a time.

use crate::kinds::{NetPool, NetPoolSpec, PhysicalNode, VirtualMachine, VirtualMachineStatus};
use bareboat::prelude::{Server, User};
use bareboat::server::Stopping;
use futures_util::StreamExt as _;
use kube::api::{ListParams, Patch, PatchParams};
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// When a machine without a place is looked at again, and one after an error.
const RETRY: Duration = Duration::from_secs(1);

/// Places machines until the server stops.
pub(crate) async fn run(server: Server, stopping: Stopping) {
    let user = User {
        name: "system:placement".into(),
        groups: vec!["system:masters".into()],
        ..User::default()
    };
    let client = bareboat::client::in_process(&server, user);
    let machines = Api::<VirtualMachine>::all(client.clone());
    let nodes = Api::<PhysicalNode>::all(client.clone());
    let controller = Controller::new(machines, watcher::Config::default());
    let known = controller.store();
    let every_machine = move |_| -> Vec<ObjectRef<VirtualMachine>> {
        let known = known.state();
        known.iter().map(|vm| ObjectRef::from_obj(&**vm)).collect()
    };
    let retry = |_, _: &kube::Error, _| Action::requeue(RETRY);
    controller
        .watches(nodes, watcher::Config::default(), every_machine)
        // One at a time, so that two machines do not get the same place.
        .with_config(Config::default().concurrency(1))
        .graceful_shutdown_on(stopping.begun())
        .run(place, retry, Arc::new(client))
        .for_each(|_| std::future::ready(()))
        .await;
}

/// Gives a machine a place, unless it has one on a node that exists.
async fn place(vm: Arc<VirtualMachine>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let client = Client::clone(&client);
    let all = ListParams::default();
    let nodes = Api::<PhysicalNode>::all(client.clone()).list(&all).await?;
    let pools = Api::<NetPool>::all(client.clone()).list(&all).await?;
    let machines = Api::<VirtualMachine>::all(client.clone());
    let mut others = machines.list(&all).await?.items;
    others.retain(|other| other.uid() != vm.uid());
    let now = vm.status.clone().unwrap_or_default();
    let mut names = nodes.iter().map(|node| node.name_any());
    if names.any(|name| now.node == Some(name)) {
        return Ok(Action::await_change());
    }
    let status = match choose(&vm, &nodes.items, &pools.items, &others) {
        Ok((node, address)) => VirtualMachineStatus {
            phase: "Running".to_owned(),
            node: Some(node),
            address: Some(address),
            reason: None,
        },
        Err(reason) => VirtualMachineStatus {
            phase: "Pending".to_owned(),
            reason: Some(reason.to_owned()),
            ..VirtualMachineStatus::default()
        },
    };
    if status != now {
        let own: Api<VirtualMachine> = Api::namespaced(client, &vm.namespace().unwrap_or_default());
        let patch = Patch::Merge(json!({"status": status}));
        let quietly = PatchParams::default();
        own.patch_status(&vm.name_any(), &quietly, &patch).await?;
    }
    // A deleted machine may have left room.
    Ok(Action::requeue(RETRY))
}

/// Returns the node with the most free CPUs, and the first free address; or why there is no place.
fn choose(
    vm: &VirtualMachine,
    nodes: &[PhysicalNode],
    pools: &[NetPool],
    others: &[VirtualMachine],
) -> Result<(String, String), &'static str> {
    let free = |node: &PhysicalNode| {
        let (mut cpu, mut memory) = (node.spec.cpu, node.spec.memory);
        let name = Some(node.name_any());
        let on_it =
            |other: &&VirtualMachine| other.status.as_ref().is_some_and(|it| it.node == name);
        for taken in others.iter().filter(on_it).chain([vm]) {
            cpu = cpu.checked_sub(taken.spec.cpu)?;
            memory = memory.checked_sub(taken.spec.memory)?;
        }
        Some((cpu, node.name_any()))
    };
    let (_, node) = nodes
        .iter()
        .filter_map(free)
        .max()
        .ok_or("no node has room")?;
    let pool = pools.iter().find(|pool| pool.name_any() == vm.spec.network);
    let NetPoolSpec {
        prefix,
        first,
        last,
    } = &pool.ok_or("the network does not exist")?.spec;
    let taken = |address: &String| {
        let mut statuses = others.iter().filter_map(|other| other.status.as_ref());
        statuses.any(|status| status.address.as_ref() == Some(address))
    };
    let mut addresses = (*first..=*last).map(|last| format!("{prefix}.{last}"));
    let address = addresses.find(|address| !taken(address));
    Ok((node, address.ok_or("the network has no free address")?))
}
