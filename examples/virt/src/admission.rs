//! The rules of VirtualMachines as webhooks; `policies.yaml` has the same as policies. A third webhook answers evictions.

use crate::controller::{Place, Virt};
use bareboat::prelude::*;
use std::future::ready;
use std::sync::Arc;

/// Answers the three webhooks.
pub(crate) fn webhooks(builder: ServerBuilder, virt: &Arc<Virt>) -> ServerBuilder {
    let virt = virt.clone();
    builder
        .admission_webhook("/mutate", |request| ready(Ok(defaults(&request))))
        .admission_webhook("/validate", |request| ready(validate(&request)))
        .admission_webhook("/evict", move |request| evict(virt.clone(), request))
}

/// A machine is off unless its author says otherwise.
fn defaults(request: &Value) -> Vec<Value> {
    let halted = value!({"op": "add", "path": "/spec/runStrategy", "value": "Halted"});
    let given = request.at(&["object", "spec", "runStrategy"]);
    given.map_or(vec![halted], |_| vec![])
}

fn validate(request: &Value) -> Result<Vec<Value>, Status> {
    let memory = ["spec", "template", "spec", "domain", "memory", "guest"];
    let found = request.get("object").and_then(|object| object.at(&memory));
    let text = "spec.template.spec.domain.memory.guest is required";
    found
        .map(|_| vec![])
        .ok_or_else(|| Status::new(422, "Invalid", text))
}

/// Refuses to evict the pod of a machine, and moves the machine to the other node instead.
async fn evict(virt: Arc<Virt>, request: Value) -> Result<Vec<Value>, Status> {
    let text = |name: &str| request.get(name).and_then(Value::as_str).unwrap_or("");
    let (namespace, pod) = (text("namespace"), text("name"));
    let pod = format!("{}/{pod}", Place::new(namespace, "").pods);
    let pod = virt.hub.get(&pod).await?;
    let Some(name) = pod["metadata"]["labels"]["vm.kubevirt.io/name"].as_str() else {
        return Ok(vec![]);
    };
    virt.migrate(&Place::new(namespace, name)).await?;
    let text = format!("Eviction triggered evacuation of VMI \"{namespace}/{name}\"");
    Err(Status::new(429, "TooManyRequests", text))
}
