//! `bareboat fleet search`: objects of all members, as a table.

use super::access::{HubFlags, VIEWS};
use super::join::no_fleet;
use crate::client::{Client, block_on};
use crate::discovery::items;
use crate::output::{Format, json, shown};
use anyhow::{Result, bail};
use bareboat::api::Value;

pub(super) const AFTER: &str = "\
Examples:
  bareboat fleet search pods
  bareboat fleet search deployments -n shop -l app=web
  bareboat fleet search pods --cluster c1,c2 --field-selector status.phase=Failed
  bareboat fleet search pods --name nginx --filter 'object.spec.containers.size() > 1'
  bareboat fleet search pods --summary cluster,status.phase -o json

kubectl does the same with the kubeconfig of bareboat fleet kubeconfig.";

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// Flags of `bareboat fleet search`.
#[derive(clap::Args, Debug)]
pub(crate) struct SearchFlags {
    /// The type, such as pods, deploy or boats.example.com
    resource: String,

    /// Only objects in this namespace
    #[arg(long, short, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// Only objects of these members
    #[arg(long = "cluster", value_name = "NAME", value_delimiter = ',')]
    clusters: Vec<String>,

    /// Only objects with these labels
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    selector: Option<String>,

    /// Only objects with these fields, of any kind: spec.containers[].image=nginx
    #[arg(long, value_name = "SELECTOR")]
    field_selector: Option<String>,

    /// Only objects whose name contains this text
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,

    /// Only objects for which this CEL expression over object and cluster is true
    #[arg(long, value_name = "EXPRESSION")]
    filter: Option<String>,

    /// The order, such as cluster,name or -metadata.creationTimestamp
    #[arg(long, value_name = "FIELDS")]
    sort: Option<String>,

    /// Count objects by these fields instead of listing them
    #[arg(long, value_name = "FIELDS")]
    summary: Option<String>,

    /// At most this many objects
    #[arg(long, value_name = "N", default_value = "500")]
    limit: u32,

    /// How to print the answer
    #[arg(long, short, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,

    #[command(flatten)]
    hub: HubFlags,
}

/// Searches.
pub(super) fn run(flags: &SearchFlags) -> Result<()> {
    let hub = flags.hub.client()?;
    block_on(async {
        let path = collection(&hub, flags).await?;
        let target = format!("{VIEWS}{path}?{}", query(flags));
        let accept = match flags.output {
            Format::Json => "application/json",
            Format::Text if flags.summary.is_some() => "application/json",
            Format::Text => TABLE,
        };
        let answer = hub.get(&target, accept).await?;
        match flags.output {
            Format::Json => json(&answer),
            Format::Text if answer.get("rows").is_some() => {
                print(&answer, flags.namespace.is_none())
            }
            Format::Text => json(&answer),
        }
    })?
}

/// Finds the path of a type among those that are synced.
async fn collection(hub: &Client, flags: &SearchFlags) -> Result<String> {
    let name = flags.resource.to_lowercase();
    let (short, group) = match name.split_once('.') {
        Some((short, group)) => (short, Some(group)),
        None => (name.as_str(), None),
    };
    let groups = hub
        .get(&format!("{VIEWS}/apis"), "application/json")
        .await
        .map_err(no_fleet)?;
    let mut versions = vec![(String::new(), "/api/v1".to_owned())];
    for one in items(&groups, "groups") {
        let own = one.get("name").and_then(Value::as_str).unwrap_or("");
        for version in items(one, "versions") {
            let version = version
                .get("groupVersion")
                .and_then(Value::as_str)
                .unwrap_or("");
            versions.push((own.to_owned(), format!("/apis/{version}")));
        }
    }
    for (own, path) in versions {
        if group.is_some_and(|group| group != own) {
            continue;
        }
        let Ok(list) = hub.get(&format!("{VIEWS}{path}"), "application/json").await else {
            continue;
        };
        for resource in items(&list, "resources") {
            let text = |key: &str| {
                resource
                    .get(key)
                    .and_then(Value::as_str)
                    .unwrap_or("")
                    .to_lowercase()
            };
            let by_short = items(resource, "shortNames")
                .iter()
                .any(|one| one.as_str() == Some(short));
            if !by_short
                && ![text("name"), text("singularName"), text("kind")].contains(&short.to_owned())
            {
                continue;
            }
            let plural = text("name");
            let namespaced = resource.get("namespaced") == Some(&Value::Bool(true));
            return Ok(match flags.namespace.as_deref().filter(|_| namespaced) {
                Some(namespace) => format!("{path}/namespaces/{namespace}/{plural}"),
                None => format!("{path}/{plural}"),
            });
        }
    }
    bail!(
        "no member syncs {}; bareboat fleet status NAME lists what one syncs",
        flags.resource
    )
}

fn query(flags: &SearchFlags) -> String {
    let mut pairs: Vec<(&str, String)> = vec![("limit", flags.limit.to_string())];
    let mut labels: Vec<String> = flags.selector.iter().cloned().collect();
    if let Some(name) = &flags.name {
        labels.push(format!("internalstorage.clusterpedia.io/fuzzy-name={name}"));
    }
    if !labels.is_empty() {
        pairs.push(("labelSelector", labels.join(",")));
    }
    if !flags.clusters.is_empty() {
        pairs.push(("clusters", flags.clusters.join(",")));
    }
    let others = [
        ("fieldSelector", &flags.field_selector),
        ("filter", &flags.filter),
        ("sort", &flags.sort),
        ("summary", &flags.summary),
    ];
    pairs.extend(
        others
            .into_iter()
            .filter_map(|(key, text)| Some((key, text.clone()?))),
    );
    let pairs = pairs
        .iter()
        .map(|(key, text)| format!("{key}={}", escaped(text)));
    pairs.collect::<Vec<_>>().join("&")
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~,".contains(&byte) {
            true => out.push(byte as char),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Prints a table of the server, with the namespaces of objects in front.
fn print(answer: &Value, with_namespace: bool) -> Result<()> {
    let columns: Vec<(usize, String)> = items(answer, "columnDefinitions")
        .iter()
        .enumerate()
        .filter(|(_, column)| column.get("priority").and_then(Value::as_i64).unwrap_or(0) == 0)
        .map(|(index, column)| {
            let name = column.get("name").and_then(Value::as_str).unwrap_or("");
            (index, shown(name).to_uppercase())
        })
        .collect();
    let namespace_of = |row: &Value| {
        let namespace = row.at(&["object", "metadata", "namespace"]);
        namespace.and_then(Value::as_str).unwrap_or("").to_owned()
    };
    let rows = items(answer, "rows");
    let with_namespace = with_namespace && rows.iter().any(|row| !namespace_of(row).is_empty());
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut heading: Vec<String> = columns.iter().map(|(_, name)| name.clone()).collect();
    if with_namespace {
        heading.insert(0, "NAMESPACE".to_owned());
    }
    lines.push(heading);
    for row in rows {
        let cells = items(row, "cells");
        let cell = |index: usize| match cells.get(index) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => shown(text),
            Some(other) => other.to_string(),
        };
        let mut line: Vec<String> = columns.iter().map(|(index, _)| cell(*index)).collect();
        if with_namespace {
            line.insert(0, shown(&namespace_of(row)));
        }
        lines.push(line);
    }
    let width = |column: usize| {
        lines
            .iter()
            .map(|line| line[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let padded = line
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(padded.collect::<Vec<_>>().join("   ").trim_end());
        text.push('\n');
    }
    crate::print(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn queries_are_escaped() {
        assert_eq!(escaped("a in (b, c)&d"), "a%20in%20%28b,%20c%29%26d");
    }
}
