//! `bareboat who-can`: which users, groups and service accounts may do something, read from the roles and bindings of a
//! running server.

use crate::client::{Client, block_on, find_kubeconfig};
use crate::discovery::{self, items};
use crate::output::{Format, Table, json, shown};
use anyhow::{Context as _, Result};
use bareboat::api::{Value, value};
use bareboat_rbac::{Request, Rule};
use std::collections::HashMap;
use std::path::PathBuf;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Flags of `bareboat who-can`.
#[derive(clap::Args, Debug)]
pub(crate) struct WhoCanFlags {
    /// The verb, such as get, list, create or impersonate
    verb: String,

    /// The resource, such as pods, deployments.apps, pods/log, or a path such as /metrics
    resource: String,

    /// The name of one object
    name: Option<String>,

    /// The namespace; without one, only rights in the whole cluster count
    #[arg(long, short, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// A subresource, such as log or status
    #[arg(long, value_name = "NAME")]
    subresource: Option<String>,

    /// How to reach the server [default: ./bareboat-data/admin.kubeconfig, else ~/.kube/config]
    #[arg(long, value_name = "FILE", env = "KUBECONFIG")]
    kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig to use [default: its current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// How to print the answer
    #[arg(long, short, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,
}

/// The request to look for, in the terms of roles.
struct Question {
    group: String,
    resource: String,
    subresource: String,
}

/// A subject with the permission, and its binding.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Grant {
    kind: String,
    name: String,
    namespace: String,
    binding: String,
    role: String,
}

/// Prints which users, groups and service accounts may perform the action.
pub(crate) fn run(flags: &WhoCanFlags) -> Result<()> {
    let path = find_kubeconfig(flags.kubeconfig.as_deref())?;
    let client = Client::new(&path, flags.context.as_deref(), None)?;
    let grants = block_on(ask(&client, flags))??;
    print(&grants, flags.output)
}

async fn ask(client: &Client, flags: &WhoCanFlags) -> Result<Vec<Grant>> {
    let namespace = flags.namespace.as_deref().unwrap_or("");
    let mut lists = HashMap::new();
    let mut wanted = vec![
        ("clusterroles", format!("{RBAC}/clusterroles")),
        ("clusterrolebindings", format!("{RBAC}/clusterrolebindings")),
    ];
    if !namespace.is_empty() {
        wanted.push(("roles", format!("{RBAC}/namespaces/{namespace}/roles")));
        wanted.push((
            "rolebindings",
            format!("{RBAC}/namespaces/{namespace}/rolebindings"),
        ));
    }
    for (what, path) in wanted {
        let list = client.get(&path, "application/json").await;
        lists.insert(
            what,
            list.with_context(|| format!("{what} cannot be read"))?,
        );
    }
    let question = match flags.resource.starts_with('/') {
        true => None,
        false => Some(question(client, flags).await),
    };
    let request = match &question {
        Some(question) => Request::Resource {
            verb: &flags.verb,
            group: &question.group,
            resource: &question.resource,
            subresource: &question.subresource,
            namespace,
            name: flags.name.as_deref().unwrap_or(""),
        },
        None => Request::Url {
            verb: &flags.verb,
            path: &flags.resource,
        },
    };
    Ok(grants(&lists, &request))
}

/// Finds the group of a resource in the server's discovery documents; a resource that is not served is used as written.
async fn question(client: &Client, flags: &WhoCanFlags) -> Question {
    let (resource, part) = match flags.resource.split_once('/') {
        Some((resource, part)) => (resource, part),
        None => (flags.resource.as_str(), ""),
    };
    let subresource = flags.subresource.as_deref().unwrap_or(part).to_owned();
    let (plural, group) = match resource.split_once('.') {
        Some((plural, group)) => (plural, Some(group)),
        None => (resource, None),
    };
    if let Ok(Some(served)) = discovery::find(client, resource).await {
        return Question {
            group: served.group,
            resource: served.plural,
            subresource,
        };
    }
    if plural != "*" {
        eprintln!(
            "warning: the server does not serve {}",
            shown(&flags.resource)
        );
    }
    Question {
        group: group.unwrap_or("").to_owned(),
        resource: plural.to_owned(),
        subresource,
    }
}

fn grants(lists: &HashMap<&str, Value>, request: &Request<'_>) -> Vec<Grant> {
    let text = |value: &Value, path: &[&str]| {
        value
            .at(path)
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned()
    };
    let list = |what: &str| lists.get(what).map_or(&[][..], |list| items(list, "items"));
    // The roles that allow it.
    let allowing = |what: &str| -> HashMap<String, bool> {
        let roles = list(what).iter().map(|role| {
            let allows = Rule::list(role).iter().any(|rule| request.matches(rule));
            (text(role, &["metadata", "name"]), allows)
        });
        roles.collect()
    };
    let (cluster, local) = (allowing("clusterroles"), allowing("roles"));
    // Members of this group may do everything, regardless of roles.
    let mut grants = vec![Grant {
        kind: "Group".to_owned(),
        name: "system:masters".to_owned(),
        namespace: String::new(),
        binding: String::new(),
        role: "(built in)".to_owned(),
    }];
    for what in ["clusterrolebindings", "rolebindings"] {
        for binding in list(what) {
            let role = text(binding, &["roleRef", "name"]);
            let kind = text(binding, &["roleRef", "kind"]);
            let roles = match kind.as_str() {
                "Role" if what == "rolebindings" => &local,
                "ClusterRole" => &cluster,
                _ => continue,
            };
            if roles.get(&role) != Some(&true) {
                continue;
            }
            let short = match what {
                "rolebindings" => "RoleBinding",
                _ => "ClusterRoleBinding",
            };
            for subject in items(binding, "subjects") {
                let own = text(subject, &["namespace"]);
                let namespace = match own.is_empty() && text(subject, &["kind"]) == "ServiceAccount"
                {
                    true => text(binding, &["metadata", "namespace"]),
                    false => own,
                };
                grants.push(Grant {
                    kind: text(subject, &["kind"]),
                    name: text(subject, &["name"]),
                    namespace,
                    binding: format!("{short}/{}", text(binding, &["metadata", "name"])),
                    role: format!("{kind}/{role}"),
                });
            }
        }
    }
    grants.sort();
    grants.dedup();
    grants
}

fn print(grants: &[Grant], format: Format) -> Result<()> {
    if format == Format::Json {
        let grants = grants.iter().map(|grant| {
            let mut line = value!({
                "kind": (grant.kind.as_str()),
                "name": (grant.name.as_str()),
                "role": (grant.role.as_str()),
            });
            for (key, text) in [("namespace", &grant.namespace), ("binding", &grant.binding)] {
                if !text.is_empty() {
                    line.make_object().insert(key, Value::from(text.as_str()));
                }
            }
            line
        });
        return json(&value!({"subjects": (grants.collect::<Value>())}));
    }
    let mut table = Table::new(["KIND", "NAMESPACE", "NAME", "ROLE", "BINDING"]);
    for grant in grants {
        table.row([
            shown(&grant.kind),
            shown(&grant.namespace),
            shown(&grant.name),
            shown(&grant.role),
            shown(&grant.binding),
        ]);
    }
    crate::print(table.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_of_matching_roles_are_listed() {
        let role = |name: &str, verb: &str| value!({"metadata": {"name": (name)}, "rules": [{"verbs": [(verb)], "apiGroups": [""], "resources": ["pods"]}]});
        let lists = HashMap::from([
            (
                "clusterroles",
                value!({"items": [(role("view", "get")), (role("edit", "update"))]}),
            ),
            ("roles", value!({"items": [(role("view", "delete"))]})),
            (
                "clusterrolebindings",
                value!({"items": [
                    {"metadata": {"name": "a"}, "roleRef": {"kind": "ClusterRole", "name": "view"}, "subjects": [{"kind": "Group", "name": "all"}]},
                    {"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "edit"}, "subjects": [{"kind": "User", "name": "eve"}]},
                ]}),
            ),
            (
                "rolebindings",
                value!({"items": [
                    {"metadata": {"name": "c", "namespace": "n"}, "roleRef": {"kind": "ClusterRole", "name": "view"}, "subjects": [{"kind": "ServiceAccount", "name": "bot"}]},
                    {"metadata": {"name": "d", "namespace": "n"}, "roleRef": {"kind": "Role", "name": "view"}, "subjects": [{"kind": "User", "name": "dan"}]},
                ]}),
            ),
        ]);
        let request = Request::Resource {
            verb: "get",
            group: "",
            resource: "pods",
            subresource: "",
            namespace: "n",
            name: "",
        };
        let found: Vec<String> = grants(&lists, &request)
            .iter()
            .map(|grant| format!("{} {} {}", grant.kind, grant.namespace, grant.name))
            .collect();
        assert_eq!(
            found,
            [
                "Group  all",
                "Group  system:masters",
                "ServiceAccount n bot"
            ]
        );
    }
}
