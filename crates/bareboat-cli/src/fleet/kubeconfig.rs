//! `bareboat fleet kubeconfig`: contexts for all members together and for each of them.

use super::access::{CLUSTERS, HubFlags, VIEWS};
use super::join::no_fleet;
use crate::certificates::write_private;
use crate::client::{Kubeconfig, block_on};
use crate::discovery::items;
use anyhow::{Context as _, Result};
use bareboat::api::{Value, value};
use std::path::PathBuf;

pub(super) const AFTER: &str = "\
Examples:
  bareboat fleet kubeconfig --save fleet.kubeconfig
  kubectl --kubeconfig fleet.kubeconfig --context clusterpedia get pods -A
  kubectl --kubeconfig fleet.kubeconfig --context c1 get pods -A

Clusters of the same names are in it as well, for kubectl --cluster clusterpedia.";

/// Flags of `bareboat fleet kubeconfig`.
#[derive(clap::Args, Debug)]
pub(crate) struct KubeconfigFlags {
    /// Write the kubeconfig to this file, for its owner alone [default: standard output]
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,

    #[command(flatten)]
    hub: HubFlags,
}

/// Makes the kubeconfig: the present one, with a cluster and a context more for all members and for each.
pub(super) fn run(flags: &KubeconfigFlags) -> Result<()> {
    let hub = flags.hub.client()?;
    let list = block_on(hub.get(CLUSTERS, "application/json"))?.map_err(no_fleet)?;
    let names = items(&list, "items").iter();
    let names = names.filter_map(|item| item.at(&["metadata", "name"])?.as_str());
    let present = Kubeconfig::read(&flags.hub.path()?)?;
    let context = present.context(flags.hub.context.as_deref())?;
    let cluster = context.get("cluster").and_then(Value::as_str).unwrap_or("");
    let cluster = present.entry("clusters", "cluster", cluster)?;
    let user = context.get("user").cloned().unwrap_or_default();
    let mut config = present.value().clone();
    let mut add = |name: &str, path: &str| {
        let mut own = cluster.clone();
        let url = format!("{}{path}", hub.server());
        own.make_object()
            .insert("server", Value::from(url.as_str()));
        let own_context = value!({"cluster": name, "user": (user.clone())});
        put(&mut config, "clusters", name, "cluster", own);
        put(&mut config, "contexts", name, "context", own_context);
    };
    add("clusterpedia", VIEWS);
    for name in names {
        add(name, &format!("{VIEWS}/clusters/{name}"));
    }
    let text = bareboat_wire::yaml::print(&config);
    match &flags.save {
        None => crate::print(&text),
        Some(path) => {
            let text = String::from_utf8(text).context("the kubeconfig is not UTF-8")?;
            write_private(path, &text)?;
            crate::print(format!("{}\n", path.display()).as_bytes())
        }
    }
}

/// Adds an entry to one of the lists, or replaces it.
fn put(config: &mut Value, list: &str, name: &str, key: &str, content: Value) {
    let map = config.make_object();
    let mut entries = match map.get(list) {
        Some(Value::Array(entries)) => entries.clone(),
        _ => Vec::new(),
    };
    entries.retain(|entry| entry.get("name").and_then(Value::as_str) != Some(name));
    let mut entry = value!({"name": name});
    entry.make_object().insert(key, content);
    entries.push(entry);
    map.insert(list, Value::Array(entries));
}
