//! Members join and leave: credentials of all forms, conditions, columns, refusals.

use super::{Fleet, TYPES, condition, pedia_cluster, sync_conditions};
use crate::kubectl::Kubectl;
use crate::process::run;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

fn types() -> Value {
    serde_json::from_str(TYPES).unwrap()
}

/// The data of a field of a member's kubeconfig, decoded.
fn data(member: &Kubectl, field: &str) -> String {
    let text = std::fs::read_to_string(member.home.kubeconfig()).unwrap();
    let line = text
        .lines()
        .find(|line| line.trim().starts_with(field))
        .unwrap();
    line.split(": ").nth(1).unwrap().trim().to_owned()
}

#[test]
fn a_member_joins_with_a_kubeconfig() {
    let Some(fleet) = Fleet::joined(1) else {
        return;
    };
    let cluster = fleet.synced("c1");
    for (kind, reason) in [
        ("Validated", "Validated"),
        ("SynchroRunning", "Running"),
        ("ClusterHealthy", "Healthy"),
        ("Ready", "Ready"),
    ] {
        assert_eq!(
            condition(&cluster, kind),
            ("True".to_owned(), reason.to_owned())
        );
    }
    let version = cluster["status"]["version"].as_str().unwrap();
    assert!(version.starts_with("v1."), "{version}");
    let types: Vec<String> = sync_conditions(&cluster)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    for name in [
        "pods",
        "deployments",
        "statefulsets",
        "daemonsets",
        "replicasets",
    ] {
        assert!(types.contains(&name.to_owned()), "{types:?}");
    }
    fleet.hub.says(
        "get pediacluster",
        &[
            "NAME READY VERSION APISERVER",
            &format!(
                "c1 True {version} https://{}",
                fleet.members[0].home.address()
            ),
        ],
    );
    fleet.hub.says(
        "get pediacluster -o wide",
        &[
            "NAME READY VERSION APISERVER VALIDATED SYNCHRORUNNING CLUSTERHEALTHY SHARDINGNAME",
            "Validated Running Healthy",
        ],
    );
    let profile = fleet
        .hub
        .gives("get clusterprofile c1 -n clusterpedia-system -o json");
    let profile: Value = serde_json::from_str(&profile).unwrap();
    assert_eq!(profile["spec"]["clusterManager"]["name"], "bareboat");
    assert_eq!(
        profile["metadata"]["labels"]["x-k8s.io/cluster-manager"],
        "bareboat"
    );
    let server = profile["status"]["accessProviders"][0]["cluster"]["server"]
        .as_str()
        .unwrap();
    assert!(
        server.ends_with("/apis/clusterpedia.io/v1beta1/resources/clusters/c1"),
        "{server}"
    );
}

#[test]
fn a_member_joins_with_a_token_or_a_certificate() {
    let Some(fleet) = Fleet::new(1) else {
        return;
    };
    let member = &fleet.members[0];
    let url = format!("https://{}", member.home.address());
    let ca = data(member, "certificate-authority-data");
    member.gives("create serviceaccount hub");
    member.gives(
        "create clusterrolebinding hub --clusterrole cluster-admin --serviceaccount default:hub",
    );
    let token = member.gives("create token hub --duration 2h");
    let token = STANDARD.encode(token.trim());
    fleet.apply(
        "token",
        json!({"apiserver": url, "caData": ca, "tokenData": token, "syncResources": types()}),
        json!({}),
    );
    fleet.synced("token");
    fleet.apply(
        "certificate",
        json!({
            "apiserver": url, "caData": ca, "certData": data(member, "client-certificate-data"),
            "keyData": data(member, "client-key-data"), "syncResources": types(),
        }),
        json!({}),
    );
    fleet.synced("certificate");
    fleet.apply(
        "none",
        json!({"apiserver": url, "caData": ca, "syncResources": types()}),
        json!({}),
    );
    let none = fleet.until("none", |cluster| {
        condition(cluster, "Validated").0 == "False"
    });
    assert_eq!(condition(&none, "Validated").1, "InvalidConfig");
    assert_eq!(
        condition(&none, "Ready"),
        ("False".to_owned(), "NotReady".to_owned())
    );
}

#[test]
fn a_secret_with_credentials_is_followed() {
    let Some(fleet) = Fleet::new(1) else {
        return;
    };
    let member = &fleet.members[0];
    let url = format!("https://{}", member.home.address());
    let hub = &fleet.hub;
    hub.until("get namespaces", "clusterpedia-system");
    let ca = data(member, "certificate-authority-data");
    let secret = |token: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c1", "namespace": "clusterpedia-system"},
            "data": {"ca": ca, "token": STANDARD.encode(token)},
        })
        .to_string()
    };
    hub.gives_for("apply -f -", &secret("wrong"));
    let from = json!({"ca": {"name": "c1", "key": "ca"}, "token": {"name": "c1", "key": "token"}});
    fleet.apply(
        "c1",
        json!({"apiserver": url, "authenticationFrom": from, "syncResources": types()}),
        json!({}),
    );
    let refused = fleet.until("c1", |cluster| {
        condition(cluster, "ClusterHealthy").0 == "False"
    });
    assert_eq!(condition(&refused, "ClusterHealthy").1, "Unhealthy");
    member.gives("create serviceaccount hub");
    member.gives(
        "create clusterrolebinding hub --clusterrole cluster-admin --serviceaccount default:hub",
    );
    let token = member.gives("create token hub --duration 2h");
    hub.gives_for("apply -f -", &secret(token.trim()));
    fleet.synced("c1");
}

#[test]
fn a_kubeconfig_that_runs_a_program_is_refused() {
    let Some(fleet) = Fleet::new(0) else {
        return;
    };
    let mark = fleet.hub.home.path().join("it-ran");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{{name: a, cluster: {{server: 'https://127.0.0.1:1'}}}}]\n\
         contexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
         users: [{{name: a, user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, command: touch, args: ['{}']}}}}}}]\n",
        mark.display()
    );
    let cluster = pedia_cluster(
        "bad",
        json!({"kubeconfig": STANDARD.encode(text), "syncResources": []}),
        json!({}),
    );
    fleet.hub.refuses_for(
        "create -f -",
        &cluster.to_string(),
        &["is invalid", "spec.kubeconfig", "it runs a program"],
    );
    let path = "/apis/cluster.clusterpedia.io/v1alpha2/pediaclusters";
    let mut raw = fleet.hub.command(&format!("create --raw {path} -f -"));
    let answer = run(&mut raw, &cluster.to_string());
    assert!(answer.all().contains("is invalid"), "{}", answer.all());
    assert!(!mark.exists());
}

#[test]
fn without_the_flag_there_is_no_fleet() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.refuses(
        "get pediaclusters",
        &["the server doesn't have a resource type"],
    );
    let groups = kubectl.gives("api-versions");
    assert!(!groups.contains("clusterpedia"), "{groups}");
    assert!(!kubectl.home.data().join("fleet.db").exists());
}

#[test]
fn the_program_joins_searches_and_unjoins() {
    let Some(fleet) = Fleet::new(1) else {
        return;
    };
    let member = &fleet.members[0];
    member.gives("create configmap found-me --from-literal a=b");
    let path = member.home.kubeconfig();
    let path = path.display();
    let joined = fleet.program(&format!(
        "fleet join c1 --member-kubeconfig {path} --resource configmaps,*.apps --label region=eu"
    ));
    assert!(joined.status.success(), "{}", joined.all());
    assert!(
        joined.stdout.contains("c1 joined the fleet"),
        "{}",
        joined.all()
    );
    assert!(
        joined.stderr.contains("types are synced"),
        "{}",
        joined.all()
    );
    let status = fleet.program("fleet status");
    assert!(
        status.stdout.contains("NAME") && status.stdout.contains("c1"),
        "{}",
        status.all()
    );
    let types = fleet.program("fleet status c1");
    assert!(
        types.stdout.contains("configmaps") && types.stdout.contains("Syncing"),
        "{}",
        types.all()
    );
    let found = fleet.program("fleet search configmaps --name found");
    assert!(found.status.success(), "{}", found.all());
    let words: Vec<&str> = found.stdout.split_whitespace().take(4).collect();
    assert_eq!(
        words,
        ["NAMESPACE", "CLUSTER", "NAME", "DATA"],
        "{}",
        found.all()
    );
    assert!(found.stdout.contains("found-me"), "{}", found.all());
    // One account reads, another acts as users.
    let may = |account: &str, verb: &str| {
        let who = format!("system:serviceaccount:bareboat-fleet:{account}");
        let asked = run(
            &mut member.command(&format!("auth can-i {verb} --as {who}")),
            "",
        );
        asked.stdout.trim() == "yes"
    };
    assert!(may("bareboat-fleet", "list pods") && !may("bareboat-fleet", "impersonate users"));
    assert!(may("bareboat-fleet-impersonator", "impersonate users"));
    assert!(!may("bareboat-fleet-impersonator", "list pods"));
    // A user of the hub writes to the member with the rights that the member gives, and only if the hub allows it.
    fleet.contexts();
    member.gives("create clusterrolebinding ann --clusterrole edit --user ann");
    let write = || {
        let line = "--context c1 --as ann create configmap by-ann -n default --from-literal a=b";
        fleet.view(line)
    };
    let refused = write();
    assert!(refused.stderr.contains("is forbidden"), "{}", refused.all());
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "members"},
        "rules": [
            {"apiGroups": ["cluster.karmada.io"], "resources": ["clusters/proxy"], "verbs": ["create"]},
            {"apiGroups": ["clusterpedia.io"], "resources": ["resources"], "verbs": ["get"]},
        ],
    });
    fleet.hub.gives_for("create -f -", &role.to_string());
    fleet
        .hub
        .gives("create clusterrolebinding members --clusterrole members --user ann");
    let written = write();
    assert!(written.status.success(), "{}", written.all());
    member.gives("get configmap by-ann");
    // Another hub may not sync the same member.
    let Some(other) = Fleet::new(0) else {
        return;
    };
    let second = other.program(&format!(
        "fleet join c1 --member-kubeconfig {path} --no-wait"
    ));
    assert!(
        !second.status.success() && second.stderr.contains("--force"),
        "{}",
        second.all()
    );
    // With --force it may, and then the first one needs it, too.
    let holder = || {
        member
            .gives("get lease bareboat-fleet -n bareboat-fleet -o jsonpath={.spec.holderIdentity}")
    };
    let own = |hub: &Kubectl| hub.gives("get namespace kube-system -o jsonpath={.metadata.uid}");
    assert_eq!(holder(), own(&fleet.hub));
    let join = format!("fleet join c1 --member-kubeconfig {path} --resource configmaps");
    let taken = other.program(&format!("{join} --force"));
    assert!(taken.status.success(), "{}", taken.all());
    assert_eq!(holder(), own(&other.hub));
    let found = other.program("fleet search configmaps --name found");
    assert!(found.stdout.contains("found-me"), "{}", found.all());
    let again = fleet.program(&join);
    assert!(
        !again.status.success() && again.stderr.contains("--force"),
        "{}",
        again.all()
    );
    assert_eq!(holder(), own(&other.hub));
    let left = fleet.program(&format!("fleet unjoin c1 --member-kubeconfig {path}"));
    assert!(left.status.success(), "{}", left.all());
    fleet.hub.until_no_more("get pediaclusters -o name", "c1");
    for name in ["bareboat-fleet", "bareboat-fleet-impersonator"] {
        member.refuses(&format!("get clusterrole {name}"), &["not found"]);
    }
    let secrets = fleet
        .hub
        .gives("get secrets -n clusterpedia-system -o name");
    assert!(!secrets.contains("c1"), "{secrets}");
}

#[test]
fn a_member_with_wrong_addresses_is_not_called() {
    let Some(fleet) = Fleet::new(1) else {
        return;
    };
    let member = &fleet.members[0];
    // The hub itself.
    let text = std::fs::read_to_string(fleet.hub.home.kubeconfig()).unwrap();
    fleet.apply(
        "own",
        json!({"kubeconfig": STANDARD.encode(text), "syncResources": types()}),
        json!({}),
    );
    let own = fleet.until("own", |cluster| {
        condition(cluster, "ClusterHealthy").0 == "False"
    });
    assert_eq!(condition(&own, "ClusterHealthy").1, "NotReachable");
    let plain = pedia_cluster(
        "plain",
        json!({"apiserver": "http://127.0.0.1:1", "syncResources": []}),
        json!({}),
    );
    fleet
        .hub
        .refuses_for("create -f -", &plain.to_string(), &["https only"]);
    // Another CA than the member's.
    let other = data(&fleet.hub, "certificate-authority-data");
    let url = format!("https://{}", member.home.address());
    let token = STANDARD.encode("x");
    fleet.apply(
        "ca",
        json!({"apiserver": url, "caData": other, "tokenData": token, "syncResources": types()}),
        json!({}),
    );
    let ca = fleet.until("ca", |cluster| {
        condition(cluster, "ClusterHealthy").0 == "False"
    });
    assert_eq!(condition(&ca, "ClusterHealthy").1, "NotReachable");
}
