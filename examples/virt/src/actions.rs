//! What virtctl asks for: actions on machines, the serial console, the version.

use crate::controller::{Answer, Place, Virt};
use bareboat::prelude::*;
use bareboat::server::{Response, reply};
use bareboat::streams::{self, Input, Output, Process};
use http::{Method, StatusCode};
use serde_json::json;
use std::sync::Arc;
use tokio::io::AsyncReadExt as _;

pub(crate) const GROUP: &str = "subresources.kubevirt.io";

/// Serves the subresources twice: under the group of KubeVirt's own API server, and as the definitions declare them.
pub(crate) fn serve(virt: &Arc<Virt>) -> ServerBuilder {
    let group = |name| {
        let virt = virt.clone();
        Computed::group(name, &["v1"], move |visit| act(virt.clone(), visit))
    };
    let builder = Server::builder().computed(group(GROUP));
    builder.computed(group("kubevirt.io"))
}

async fn act(virt: Arc<Virt>, visit: Visit) -> Result<Response, Status> {
    let (ask, reads) = (&visit.question, visit.request.method() == Method::GET);
    let at = Place::new(&ask.namespace, &ask.name);
    match ask.subresource.as_str() {
        "" if ask.resource == "version" => {
            return Ok(reply::json(
                StatusCode::OK,
                &value!({"gitVersion": "v1.7.0"}),
            ));
        }
        "console" if reads => {
            virt.hub.get(&at.instance).await?;
            let process = virt.process(&at)?;
            return streams::websocket(&visit, "plain.kubevirt.io", |input, output| async move {
                console(&process, input, output).await;
            });
        }
        _ if visit.request.method() != Method::PUT => return Err(Status::method_not_allowed()),
        "start" => switch(&virt, &at, "Always").await?,
        "stop" => switch(&virt, &at, "Halted").await?,
        "restart" => virt.hub.delete(&at.instance).await?,
        "migrate" => virt.migrate(&at).await?,
        "pause" => pause(&virt, &at, true).await?,
        "unpause" => pause(&virt, &at, false).await?,
        "freeze" => freeze(&virt, &at, "frozen").await?,
        "unfreeze" => freeze(&virt, &at, "").await?,
        _ => return Err(Status::no_such_route()),
    };
    Ok(reply::json(StatusCode::ACCEPTED, &value!({})))
}

/// The controller does what the spec says.
async fn switch(virt: &Virt, at: &Place, wanted: &str) -> Answer {
    let machine = virt.hub.get(&at.machine).await?;
    if machine["spec"]["runStrategy"] == wanted {
        let text = format!("runStrategy is {wanted} already");
        return Err(Status::new(409, "Conflict", text));
    }
    let spec = json!({"spec": {"runStrategy": wanted}});
    virt.hub.merge(&at.machine, &spec).await
}

async fn pause(virt: &Virt, at: &Place, pause: bool) -> Answer {
    virt.hub.get(&at.instance).await?;
    virt.process(at)?.pause(pause);
    let paused = json!([{"type": "Paused", "status": "True", "reason": "PausedByUser"}]);
    let status = json!({"conditions": if pause { paused } else { json!([]) }});
    virt.hub.merge_status(&at.instance, &status).await
}

async fn freeze(virt: &Virt, at: &Place, state: &str) -> Answer {
    let status = json!({"fsFreezeStatus": state});
    virt.hub.merge_status(&at.instance, &status).await
}

/// Connects a console until the machine or the client ends it.
async fn console(process: &Process, mut input: Input, output: Output) {
    let typed = async {
        let mut piece = [0; 1024];
        while let Ok(length @ 1..) = input.read(&mut piece).await {
            // A terminal sends carriage returns.
            let text = String::from_utf8_lossy(&piece[..length]).replace('\r', "\n");
            let _ = process.write(text.as_bytes()).await;
        }
    };
    tokio::select! { () = process.log().follow(output) => {}, () = typed => {} }
}
