//! `bareboat fleet join` and `unjoin`: an account in the member, its token in a Secret, and a PediaCluster.

use super::access::{CLUSTERS, HubFlags};
use super::status::Progress;
use crate::client::{Client, Kubeconfig, block_on, find_kubeconfig};
use anyhow::{Context as _, Result, bail};
use bareboat::api::{Status, Value, value};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub(super) const ABOUT: &str = "\
Let the fleet sync another API server, called a member: Bareboat or any kube-apiserver.

In the member, this makes the namespace bareboat-fleet with two service accounts: bareboat-fleet may read everything, and \
bareboat-fleet-impersonator may act as other users, so that requests to one member through the views have the rights of their \
user there. In the server with the fleet it makes a Secret with the token of each, and a PediaCluster that refers to them. Then \
it waits until the first sync is complete.

A Lease in the member names the server that syncs it. A second one is refused, unless --force takes the member over.";

pub(super) const AFTER: &str = "\
Examples:
  bareboat fleet join c1 --member-kubeconfig c1.kubeconfig
  bareboat fleet join c1 --member-kubeconfig c1.kubeconfig --resource pods --resource '*.apps'
  bareboat fleet join c1 --member-kubeconfig c1.kubeconfig --all-resources --no-wait

The types of a member are in its PediaCluster, and can be changed later: kubectl edit pediacluster c1";

/// The namespace of the accounts in members.
const NAMESPACE: &str = "bareboat-fleet";
/// The name of the account that reads, of its role and its token, and of the Lease.
const ACCOUNT: &str = "bareboat-fleet";
/// The same for the account that acts as users.
const IMPERSONATOR: &str = "bareboat-fleet-impersonator";
/// The annotation that names the Secret with the token of the latter.
const ANNOTATION: &str = "fleet.bareboat.dev/impersonator";
/// How long the token of the account may take.
const TOKEN_PATIENCE: Duration = Duration::from_secs(60);
/// What is synced if nothing is named.
const USUAL: [&str; 8] = [
    "pods",
    "services",
    "namespaces",
    "nodes",
    "configmaps",
    "*.apps",
    "*.batch",
    "ingresses.networking.k8s.io",
];

/// Flags of `bareboat fleet join`.
#[derive(clap::Args, Debug)]
pub(crate) struct JoinFlags {
    /// The name of the member in the fleet
    name: String,

    /// How to reach the member, as an administrator of it
    #[arg(long, value_name = "FILE")]
    member_kubeconfig: PathBuf,

    /// The context of that kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    member_context: Option<String>,

    /// The URL at which the fleet reaches the member [default: that of the kubeconfig]
    #[arg(long, value_name = "URL")]
    member_server: Option<String>,

    /// A type to sync, such as pods, deployments.apps or *.apps (repeatable) [default: the usual ones for workloads]
    #[arg(long = "resource", value_name = "TYPE", value_delimiter = ',')]
    resources: Vec<String>,

    /// Sync all types, except events and leases
    #[arg(long, conflicts_with = "resources")]
    all_resources: bool,

    /// Sync the objects of all custom kinds, also of those that are defined later
    #[arg(long)]
    all_custom_resources: bool,

    /// A label of the member, KEY=VALUE (repeatable)
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,

    /// The namespace for Secrets on the server with the fleet (see serve --fleet-namespace)
    #[arg(long, value_name = "NAMESPACE", default_value = "clusterpedia-system")]
    fleet_namespace: String,

    /// Take over a member that another server syncs
    #[arg(long)]
    force: bool,

    /// Do not wait for the first sync
    #[arg(long)]
    no_wait: bool,

    #[command(flatten)]
    hub: HubFlags,
}

/// Flags of `bareboat fleet unjoin`.
#[derive(clap::Args, Debug)]
pub(crate) struct UnjoinFlags {
    /// The name of the member in the fleet
    name: String,

    /// How to reach the member, to remove the account there [default: the account stays]
    #[arg(long, value_name = "FILE")]
    member_kubeconfig: Option<PathBuf>,

    /// The context of that kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    member_context: Option<String>,

    /// The namespace of Secrets on the server with the fleet
    #[arg(long, value_name = "NAMESPACE", default_value = "clusterpedia-system")]
    fleet_namespace: String,

    #[command(flatten)]
    hub: HubFlags,
}

/// Joins a member.
pub(super) fn join(flags: &JoinFlags) -> Result<()> {
    let path = find_kubeconfig(Some(&flags.member_kubeconfig))?;
    let member = Client::new(&path, flags.member_context.as_deref(), None)?;
    let kubeconfig = Kubeconfig::read(&path)?;
    let context = kubeconfig.context(flags.member_context.as_deref())?;
    let cluster = context.get("cluster").and_then(Value::as_str).unwrap_or("");
    let cluster = kubeconfig.entry("clusters", "cluster", cluster)?;
    let authorities = kubeconfig.data(
        &cluster,
        "certificate-authority-data",
        "certificate-authority",
    )?;
    let hub = flags.hub.client()?;
    let url = flags
        .member_server
        .clone()
        .unwrap_or_else(|| member.server().to_owned());
    block_on(async {
        prepare(&member, &hub, flags).await?;
        let tokens = [
            token(&member, ACCOUNT).await?,
            token(&member, IMPERSONATOR).await?,
        ];
        register(&hub, flags, &url, authorities.as_deref(), &tokens).await?;
        println!("{} joined the fleet", flags.name);
        match flags.no_wait {
            true => Ok(()),
            false => Progress::of(&flags.name).wait(&hub).await,
        }
    })?
}

fn failed(what: &str) -> impl FnOnce() -> String {
    let what = what.to_owned();
    move || format!("{what} cannot be made")
}

/// Makes the accounts in the member.
async fn prepare(member: &Client, hub: &Client, flags: &JoinFlags) -> Result<()> {
    let namespace =
        value!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let path = format!("/api/v1/namespaces/{NAMESPACE}");
    member
        .apply(&path, &namespace)
        .await
        .with_context(failed("the namespace in the member"))?;
    claim(member, hub, flags).await?;
    let reads = value!([
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
        {"nonResourceURLs": ["*"], "verbs": ["get"]},
    ]);
    let acts = value!([
        {"apiGroups": [""], "resources": ["users", "groups", "serviceaccounts"], "verbs": ["impersonate"]},
        // Rules cannot say "userextras/" and any key; all resources of this group that can be impersonated are facts about users.
        {"apiGroups": ["authentication.k8s.io"], "resources": ["*"], "verbs": ["impersonate"]},
    ]);
    make_account(member, ACCOUNT, reads).await?;
    make_account(member, IMPERSONATOR, acts).await
}

/// Makes an account with its role and its token.
async fn make_account(member: &Client, name: &str, rules: Value) -> Result<()> {
    let metadata = value!({"name": name, "namespace": NAMESPACE});
    let account = value!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
    let path = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{name}");
    member
        .apply(&path, &account)
        .await
        .with_context(failed("the service account in the member"))?;
    let role = value!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules,
    });
    let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}");
    member
        .apply(&path, &role)
        .await
        .with_context(failed("the role in the member"))?;
    let binding = value!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
    });
    let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{name}");
    member
        .apply(&path, &binding)
        .await
        .with_context(failed("the role binding in the member"))?;
    let secret = value!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": {"kubernetes.io/service-account.name": name}},
    });
    let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets/{name}");
    member
        .apply(&path, &secret)
        .await
        .with_context(failed("the token in the member"))?;
    Ok(())
}

/// Notes in the member which server syncs it.
async fn claim(member: &Client, hub: &Client, flags: &JoinFlags) -> Result<()> {
    let own = hub
        .get("/api/v1/namespaces/kube-system", "application/json")
        .await;
    let own = own.context("the server with the fleet cannot be asked")?;
    let own = own
        .at(&["metadata", "uid"])
        .and_then(Value::as_str)
        .unwrap_or("");
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{ACCOUNT}");
    match member.get(&path, "application/json").await {
        Ok(lease) => {
            if is_of_another(&lease, own) && !flags.force {
                bail!("another server syncs this member already; --force takes it over");
            }
        }
        Err(status) if status.code == 404 => {}
        Err(status) => return Err(status).context("the member cannot be asked"),
    }
    let lease = value!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": ACCOUNT, "namespace": NAMESPACE},
        "spec": {"holderIdentity": own},
    });
    member
        .apply(&path, &lease)
        .await
        .with_context(failed("the Lease in the member"))?;
    Ok(())
}

/// Returns whether a Lease names another server.
fn is_of_another(lease: &Value, own: &str) -> bool {
    let holder = lease
        .at(&["spec", "holderIdentity"])
        .and_then(Value::as_str);
    holder.is_some_and(|holder| !holder.is_empty() && holder != own)
}

/// Waits for the token of an account.
async fn token(member: &Client, account: &str) -> Result<String> {
    let until = Instant::now() + TOKEN_PATIENCE;
    let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets/{account}");
    loop {
        let secret = member.get(&path, "application/json").await;
        let secret = secret.context("the token in the member cannot be read")?;
        let token = secret.at(&["data", "token"]).and_then(Value::as_str);
        if let Some(token) = token.and_then(|text| STANDARD.decode(text).ok()) {
            return String::from_utf8(token).context("the token is not a text");
        }
        if Instant::now() > until {
            bail!("the member did not issue a token for the service account {NAMESPACE}/{account}");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Makes the Secrets and the PediaCluster.
async fn register(
    hub: &Client,
    flags: &JoinFlags,
    url: &str,
    authorities: Option<&[u8]>,
    [token, impersonator]: &[String; 2],
) -> Result<()> {
    let name = flags.name.as_str();
    let namespace = flags.fleet_namespace.as_str();
    let object = value!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    let path = format!("/api/v1/namespaces/{namespace}");
    hub.apply(&path, &object)
        .await
        .with_context(failed("the namespace of the fleet"))?;
    let mut data = value!({"token": (STANDARD.encode(token))});
    let mut from = value!({"token": {"name": name, "key": "token"}});
    if let Some(pem) = authorities {
        data.make_object()
            .insert("ca", Value::from(STANDARD.encode(pem).as_str()));
        from.make_object()
            .insert("ca", value!({"name": name, "key": "ca"}));
    }
    let acts = acting(name);
    let other = value!({"token": (STANDARD.encode(impersonator))});
    for (name, data) in [(name, data), (acts.as_str(), other)] {
        let secret = value!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": name, "namespace": namespace}, "data": data,
        });
        let path = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
        hub.apply(&path, &secret)
            .await
            .with_context(failed("the Secret"))?;
    }
    let mut annotations = Value::object();
    annotations
        .make_object()
        .insert(ANNOTATION, Value::from(acts.as_str()));
    let mut labels = Value::object();
    for label in &flags.labels {
        let Some((key, value)) = label.split_once('=') else {
            bail!("--label {label} is not KEY=VALUE");
        };
        labels.make_object().insert(key, Value::from(value));
    }
    let cluster = value!({
        "apiVersion": "cluster.clusterpedia.io/v1alpha2", "kind": "PediaCluster",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {
            "apiserver": url, "authenticationFrom": from,
            "syncResources": (types(flags)), "syncAllCustomResources": (flags.all_custom_resources),
        },
    });
    let applied = hub.apply(&format!("{CLUSTERS}/{name}"), &cluster).await;
    applied
        .map_err(no_fleet)
        .with_context(failed("the PediaCluster"))?;
    Ok(())
}

/// Returns the name of the Secret with the token that acts as users.
fn acting(member: &str) -> String {
    format!("{member}-impersonator")
}

/// Says what is missing, if the server has no fleet.
pub(super) fn no_fleet(status: Status) -> anyhow::Error {
    match status.code {
        404 => anyhow::anyhow!("the server has no fleet; start it with --fleet"),
        _ => status.into(),
    }
}

/// The types as a PediaCluster has them.
fn types(flags: &JoinFlags) -> Value {
    if flags.all_resources {
        return value!([{"group": "*", "resources": ["*"]}]);
    }
    let usual = || USUAL.iter().map(|name| (*name).to_owned()).collect();
    let named: Vec<String> = match flags.resources.is_empty() {
        true => usual(),
        false => flags.resources.clone(),
    };
    let mut groups: std::collections::BTreeMap<String, Vec<Value>> = Default::default();
    for name in named {
        let (resource, group) = name.split_once('.').unwrap_or((&name, ""));
        let resources = groups.entry(group.to_owned()).or_default();
        resources.push(Value::from(resource));
    }
    let groups = groups.into_iter().map(|(group, resources)| {
        value!({"group": (group.as_str()), "resources": (Value::Array(resources))})
    });
    Value::Array(groups.collect())
}

/// Removes a member.
pub(super) fn unjoin(flags: &UnjoinFlags) -> Result<()> {
    let hub = flags.hub.client()?;
    let member = match &flags.member_kubeconfig {
        Some(path) => Some(Client::new(path, flags.member_context.as_deref(), None)?),
        None => None,
    };
    block_on(async {
        let (name, namespace) = (&flags.name, &flags.fleet_namespace);
        hub.remove(&format!("{CLUSTERS}/{name}"))
            .await
            .map_err(no_fleet)?;
        for secret in [name, &acting(name)] {
            hub.remove(&format!("/api/v1/namespaces/{namespace}/secrets/{secret}"))
                .await?;
        }
        if let Some(member) = member {
            for path in [
                format!("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{ACCOUNT}"),
                format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{ACCOUNT}"),
                format!("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{IMPERSONATOR}"),
                format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{IMPERSONATOR}"),
                format!("/api/v1/namespaces/{NAMESPACE}"),
            ] {
                member
                    .remove(&path)
                    .await
                    .context("the account in the member cannot be removed")?;
            }
        }
        println!("{name} left the fleet");
        Ok(())
    })?
}

#[cfg(test)]
mod tests {
    use super::is_of_another;
    use bareboat::api::{Value, value};

    #[test]
    fn a_lease_of_another_server_is_recognised() {
        let lease = |spec: Value| value!({"metadata": {"name": "bareboat-fleet"}, "spec": spec});
        assert!(is_of_another(&lease(value!({"holderIdentity": "b"})), "a"));
        assert!(!is_of_another(&lease(value!({"holderIdentity": "a"})), "a"));
        assert!(!is_of_another(&lease(value!({"holderIdentity": ""})), "a"));
        assert!(!is_of_another(&lease(value!({})), "a"));
    }
}
