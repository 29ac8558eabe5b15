//! Columns of nodes.

use super::{NONE, UNKNOWN, condition, text, text_or};
use crate::reach::Reach;
use bareboat_api::Value;
use bareboat_api::kind::Column;

/// Returns the table columns of Node.
pub(crate) fn nodes() -> Vec<Column> {
    vec![
        Column::string("Status", |node, _| status(node)),
        Column::string("Roles", |node, _| roles(node)),
        Column::age(),
        text("Version", &["status", "nodeInfo", "kubeletVersion"]),
        address("Internal-IP", "InternalIP"),
        address("External-IP", "ExternalIP"),
        text_or("OS-Image", &["status", "nodeInfo", "osImage"], UNKNOWN).wide(),
        Column::string("Kernel-Version", |node, _| {
            let info = |member| node.text(&["status", "nodeInfo", member]);
            match (info("kernelVersion"), info("architecture")) {
                ("", _) => UNKNOWN.into(),
                (kernel, "") => kernel.into(),
                (kernel, machine) => format!("{kernel} ({machine})").into(),
            }
        })
        .wide(),
        text_or(
            "Container-Runtime",
            &["status", "nodeInfo", "containerRuntimeVersion"],
            UNKNOWN,
        )
        .wide(),
    ]
}

fn status(node: &Value) -> Value {
    let mut words = vec![
        match condition(node, "Ready").map(|found| found.text(&["status"])) {
            Some("True") => "Ready",
            Some(_) => "NotReady",
            None => "Unknown",
        },
    ];
    if node.flag(&["spec", "unschedulable"]) {
        words.push("SchedulingDisabled");
    }
    words.join(",").into()
}

fn roles(node: &Value) -> Value {
    let mut roles: Vec<&str> = Vec::new();
    for (key, value) in node
        .members(&["metadata", "labels"])
        .into_iter()
        .flat_map(|labels| labels.iter())
    {
        if let Some(role) = key.strip_prefix("node-role.kubernetes.io/") {
            roles.push(role);
        } else if key == "kubernetes.io/role" {
            roles.push(value.as_str().unwrap_or(""));
        }
    }
    roles.retain(|role| !role.is_empty());
    roles.sort_unstable();
    roles.dedup();
    super::or(&roles.join(","), NONE)
}

fn address(name: &str, ty: &'static str) -> Column {
    Column::string(name, move |node, _| {
        let found = node
            .list(&["status", "addresses"])
            .iter()
            .find(|address| address.text(&["type"]) == ty);
        super::or(found.map_or("", |address| address.text(&["address"])), NONE)
    })
    .wide()
}
