//! The views with a stock kubectl: all members, one member, search parameters, rights.

use super::{Fleet, VIEWS, deployment, places};
use serde_json::{Value, json};

/// Three members with a Deployment, its ReplicaSet and pods.
fn filled() -> Option<Fleet> {
    let fleet = Fleet::joined(3)?;
    for (index, member) in fleet.members.iter().enumerate() {
        member.gives_for("apply -f -", &deployment("web", 3));
        member.gives_for(
            "apply -f -",
            &deployment(&format!("only-c{}", index + 1), 1),
        );
        let uid = member.gives("get deployment web -o jsonpath={.metadata.uid}");
        let set = owned("apps/v1", "ReplicaSet", "web-1", "Deployment", "web", &uid);
        member.gives_for("apply -f -", &set.to_string());
        let uid = member.gives("get replicaset web-1 -o jsonpath={.metadata.uid}");
        let pod = owned("v1", "Pod", "web-1-x", "ReplicaSet", "web-1", &uid);
        member.gives_for("apply -f -", &pod.to_string());
    }
    for name in ["c1", "c2", "c3"] {
        fleet.shows_until(&format!("--context {name} get pods -n default"), |output| {
            output.stdout.contains("web-1-x")
        });
        fleet.shows_until(
            &format!("--context {name} get deployments -n default"),
            |output| {
                output.stdout.contains(&format!("only-{name}")) && output.stdout.contains("web")
            },
        );
    }
    Some(fleet)
}

fn owned(version: &str, kind: &str, name: &str, owner: &str, of: &str, uid: &str) -> Value {
    let containers = json!([{"name": "main", "image": "nginx:1"}]);
    let spec = match kind {
        "Pod" => json!({"containers": containers}),
        _ => json!({
            "replicas": 1, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}},
        }),
    };
    json!({
        "apiVersion": version, "kind": kind,
        "metadata": {
            "name": name, "labels": {"app": "web"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": owner, "name": of, "uid": uid, "controller": true}],
        },
        "spec": spec,
    })
}

fn words(text: &str) -> Vec<Vec<&str>> {
    text.lines()
        .map(|line| line.split_whitespace().collect())
        .collect()
}

#[test]
fn all_members_are_searched_with_kubectl() {
    let Some(fleet) = filled() else {
        return;
    };
    // Discovery: the union of what is synced.
    let groups = fleet.raw("/apis");
    assert_eq!(groups["kind"], "APIGroupList");
    let resources = fleet.shows("--context clusterpedia api-resources");
    let deployments = words(&resources)
        .into_iter()
        .find(|line| line.first() == Some(&"deployments"));
    assert_eq!(
        deployments.unwrap()[..3],
        ["deployments", "deploy", "apps/v1"],
        "{resources}"
    );
    assert!(!resources.contains("nodes"), "{resources}");
    // Tables.
    let table = fleet.shows("--context clusterpedia get deploy -A");
    let rows = words(&table);
    assert_eq!(
        rows[0],
        [
            "NAMESPACE",
            "CLUSTER",
            "NAME",
            "READY",
            "UP-TO-DATE",
            "AVAILABLE",
            "AGE"
        ]
    );
    assert_eq!(rows.len(), 7, "{table}");
    // One member: the same as the member's own output, apart from the column of the cluster.
    let own = fleet.members[0].gives("get pod -o wide");
    let view = fleet.shows("--context c1 get pod -n default -o wide");
    let without: Vec<Vec<&str>> = words(&view)
        .into_iter()
        .map(|line| line[1..].to_vec())
        .collect();
    assert_eq!(without.len(), words(&own).len(), "{view}\n{own}");
    assert_eq!(without[0], words(&own)[0], "{view}\n{own}");
    assert_eq!(without[1][..2], words(&own)[1][..2], "{view}\n{own}");
    // Clusters, namespaces, names.
    let two = places(&fleet.raw("/apis/apps/v1/deployments?clusters=c1,c2"));
    assert_eq!(two.len(), 4, "{two:?}");
    let by_label = fleet.shows("--context clusterpedia get deploy -A --no-headers -l 'search.clusterpedia.io/clusters in (c1,c2)'");
    assert_eq!(by_label.lines().count(), 4, "{by_label}");
    let named = places(&fleet.raw("/apis/apps/v1/deployments?names=web"));
    assert_eq!(
        named,
        ["c1/default/web", "c2/default/web", "c3/default/web"]
    );
    let fuzzy = fleet.shows("--context clusterpedia get deploy -A --no-headers -l internalstorage.clusterpedia.io/fuzzy-name=only");
    assert_eq!(fuzzy.lines().count(), 3, "{fuzzy}");
    let none = places(&fleet.raw("/apis/apps/v1/namespaces/other/deployments?namespaces=default"));
    assert_eq!(none, Vec::<String>::new());
    // Fields and labels.
    let three = places(&fleet.raw("/apis/apps/v1/deployments?fieldSelector=spec.replicas%3D3"));
    assert_eq!(
        three,
        ["c1/default/web", "c2/default/web", "c3/default/web"]
    );
    let pods = fleet.shows("--context clusterpedia get pods -A --no-headers -l app=web");
    assert_eq!(pods.lines().count(), 3, "{pods}");
    // Owners.
    let of_web = places(&fleet.raw("/clusters/c1/api/v1/namespaces/default/pods?ownerName=web&ownerGR=deployments.apps&ownerSeniority=1"));
    assert_eq!(of_web, ["c1/default/web-1-x"]);
    let everywhere = places(&fleet.raw("/api/v1/pods?ownerName=web&ownerSeniority=1"));
    assert_eq!(everywhere.len(), 3, "{everywhere:?}");
    // Pages and counts.
    let page = fleet.raw("/apis/apps/v1/deployments?limit=1&withRemainingCount=true");
    assert_eq!(page["metadata"]["remainingItemCount"], 5, "{page:#}");
    // Order, every time the same.
    let order = places(&fleet.raw("/apis/apps/v1/deployments?orderby=cluster%20desc,name"));
    assert_eq!(order[0], "c3/default/only-c3", "{order:?}");
    assert!(
        fleet
            .refuses("/apis/apps/v1/deployments?orderby=name)%3BDROP")
            .contains("BadRequest")
    );
    // Names need a cluster.
    let nameless = fleet.refuses("/apis/apps/v1/namespaces/default/deployments/web");
    assert!(
        nameless.contains("please specify the cluster name"),
        "{nameless}"
    );
    let unknown =
        fleet.refuses("/clusters/nowhere/apis/apps/v1/namespaces/default/deployments/web");
    assert!(
        unknown.contains("could not find the requested cluster"),
        "{unknown}"
    );
    let one = fleet.raw("/clusters/c2/apis/apps/v1/namespaces/default/deployments/web");
    assert_eq!(
        one["metadata"]["annotations"]["shadow.clusterpedia.io/cluster-name"],
        "c2"
    );
    // Summaries and filters.
    let summary = fleet.raw("/api/v1/pods?summary=cluster,status.phase");
    assert!(summary.to_string().contains("c3"), "{summary:#}");
    let filtered = places(&fleet.raw("/apis/apps/v1/deployments?filter=object.spec.replicas%20%3E%202%20%26%26%20cluster.name%20!%3D%20%22c2%22"));
    assert_eq!(filtered, ["c1/default/web", "c3/default/web"]);
    // SQL is parsed.
    let sql = places(&fleet.raw("/apis/apps/v1/deployments?whereSQL=cluster%20%3D%20%27c1%27"));
    assert_eq!(sql.len(), 2, "{sql:?}");
    assert!(
        fleet
            .refuses("/apis/apps/v1/deployments?whereSQL=1%3D1%3B%20DELETE%20FROM%20resources")
            .contains("BadRequest")
    );
    // Collections.
    let collections = fleet.hub.gives("get collectionresources -o name");
    for name in ["any", "workloads", "kuberesources"] {
        assert!(collections.contains(name), "{collections}");
    }
    let workloads = fleet
        .hub
        .gives("get --raw /apis/clusterpedia.io/v1beta1/collectionresources/workloads?limit=2");
    let workloads: Value = serde_json::from_str(&workloads).unwrap();
    assert_eq!(
        workloads["items"].as_array().unwrap().len(),
        2,
        "{workloads:#}"
    );
}

#[test]
fn rights_are_checked_on_what_is_read() {
    let Some(fleet) = filled() else {
        return;
    };
    fleet.members[0].gives("create secret generic hidden --from-literal password=hunter2");
    fleet.shows_until("--context c1 get secrets -n default", |output| {
        output.stdout.contains("hidden")
    });
    let secret = fleet
        .raw("/clusters/c1/api/v1/namespaces/default/secrets/hidden")
        .to_string();
    assert!(
        secret.contains("password") && !secret.contains("aHVudGVyMg"),
        "{secret}"
    );
    fleet.hub.gives("create clusterrole members --verb get --resource resources.clusterpedia.io --resource-name c1 --resource-name c2");
    fleet
        .hub
        .gives("create clusterrolebinding members --clusterrole members --user ann");
    fleet
        .hub
        .gives("create role pods --verb list,get --resource pods");
    fleet
        .hub
        .gives("create rolebinding pods --role pods --user ann");
    let ann = |path: &str| {
        let mut command = fleet.hub.command("--as ann get --raw");
        command.arg(format!("{VIEWS}{path}"));
        crate::process::run(&mut command, "")
    };
    let everywhere = ann("/api/v1/pods");
    assert!(
        !everywhere.status.success() && everywhere.stderr.contains("Forbidden"),
        "{}",
        everywhere.all()
    );
    let own = ann("/api/v1/namespaces/default/pods?clusters=c1,c2");
    assert!(own.status.success(), "{}", own.all());
    let own: Value = serde_json::from_str(&own.stdout).unwrap();
    assert_eq!(places(&own), ["c1/default/web-1-x", "c2/default/web-1-x"]);
    let visible = ann("/api/v1/pods?visible=true");
    let visible: Value = serde_json::from_str(&visible.stdout).unwrap();
    assert_eq!(
        places(&visible),
        ["c1/default/web-1-x", "c2/default/web-1-x"]
    );
    let other = ann("/clusters/c3/api/v1/namespaces/default/pods");
    assert!(
        !other.status.success() && other.stderr.contains("Forbidden"),
        "{}",
        other.all()
    );
}

#[test]
fn a_watch_over_all_members_is_exact() {
    let Some(fleet) = Fleet::joined(2) else {
        return;
    };
    fleet.members[0].gives("create configmap before --from-literal a=1");
    // What controllers of the members write must not be among the events.
    let line = "--context clusterpedia get configmaps -n default";
    fleet.shows_until(line, |output| {
        let written = output.stdout.matches("kube-root-ca.crt").count();
        output.stdout.contains("before") && written == 2
    });
    let list = fleet.raw("/api/v1/namespaces/default/configmaps");
    let version = list["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!(
        "{VIEWS}/api/v1/namespaces/default/configmaps?watch=true&resourceVersion={version}"
    );
    let mut command = fleet.hub.command("get --raw");
    let mut watch = crate::process::Followed::start("watch", command.arg(path));
    let mut next = || -> (String, String) {
        let event: Value = serde_json::from_str(&watch.line()).unwrap();
        let place = places(&json!({"items": [event["object"]]})).remove(0);
        (event["type"].as_str().unwrap().to_owned(), place)
    };
    fleet.members[1].gives("create configmap after --from-literal a=1");
    assert_eq!(next(), ("ADDED".to_owned(), "c2/default/after".to_owned()));
    fleet.members[0].gives("delete configmap before");
    assert_eq!(
        next(),
        ("DELETED".to_owned(), "c1/default/before".to_owned())
    );
}

#[test]
fn an_informer_of_one_member_has_versions_that_can_be_written() {
    inform("false");
}

#[test]
fn an_informer_of_one_member_may_get_the_state_in_its_watch() {
    inform("true");
}

/// Follows the configmaps of one member with an informer, with client-go's WatchList or without it.
fn inform(watch_list: &str) {
    let Some(informers) = crate::tools::peer("peers") else {
        return;
    };
    let Some(fleet) = Fleet::new(1) else {
        return;
    };
    let member = &fleet.members[0];
    member.gives("create configmap first --from-literal a=1");
    let spec = json!({
        "kubeconfig": super::kubeconfig(member, None),
        "syncResources": [{"group": "", "resources": ["configmaps"]}],
    });
    fleet.apply("c1", spec, json!({"fleet.bareboat.dev/masters": "true"}));
    fleet.synced("c1");
    fleet.contexts();
    let own = fleet.hub.home.path().join("c1.kubeconfig");
    let text = fleet.shows("config view --flatten --minify --context c1");
    std::fs::write(&own, text).unwrap();
    let mut command = std::process::Command::new(informers);
    command
        .args(
            "informer --resource v1/configmaps --mode dynamic --namespace default --for 0"
                .split(' '),
        )
        .args(["--sync-within", "5m", "--kubeconfig"])
        .arg(&own)
        .env("KUBE_FEATURE_WatchListClient", watch_list);
    let mut informer = crate::process::Followed::start("informer", &mut command);
    let mut version_of = |kind: &str, name: &str| -> String {
        loop {
            let line = informer.json();
            if line["type"] == kind && line["name"] == name {
                return line["resourceVersion"].as_str().unwrap_or("").to_owned();
            }
        }
    };
    let version = |name: &str| {
        member.gives(&format!(
            "get configmap {name} -o jsonpath={{.metadata.resourceVersion}}"
        ))
    };
    assert_eq!(version_of("ADDED", "first"), version("first"));
    member.gives("label configmap first changed=yes");
    assert_eq!(version_of("MODIFIED", "first"), version("first"));
    // What was read through the view can be written through it; the member decides about conflicts.
    let read = fleet.shows("--context c1 get configmap first -n default -o json");
    let mut object: Value = serde_json::from_str(&read).unwrap();
    object["data"]["a"] = json!("2");
    let write = |object: &Value| {
        let mut command = fleet.hub.command("replace -f -");
        crate::process::run(command.env("KUBECONFIG", &own), &object.to_string())
    };
    let written = write(&object);
    assert!(written.status.success(), "{}", written.all());
    assert_eq!(
        member.gives("get configmap first -o jsonpath={.data.a}"),
        "2"
    );
    let conflict = write(&object);
    assert!(
        !conflict.status.success() && conflict.stderr.contains("Conflict"),
        "{}",
        conflict.all()
    );
    assert_eq!(version_of("MODIFIED", "first"), version("first"));
}
