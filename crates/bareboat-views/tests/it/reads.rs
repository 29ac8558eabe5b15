//! Discovery, single objects, and lists by members, namespaces, names, times, labels and fields.

use crate::rig::{P, Rig, deployment, member, pod, synced};
use bareboat::api::value;
use bareboat_views::Member;
use std::sync::Arc;

async fn filled() -> Rig {
    let rig = Rig::start().await;
    for cluster in ["c1", "c2", "c3"] {
        rig.put(cluster, deployment("a", "web", 3));
        rig.put(cluster, deployment("b", "api", 5));
    }
    rig
}

const DEPLOYMENTS: &str = "/apis/clusterpedia.io/v1beta1/resources/apis/apps/v1/deployments";

#[tokio::test]
async fn discovery_is_the_union_of_members_or_that_of_one() {
    let rig = Rig::start().await;
    let mut c1 = crate::rig::member("c1");
    c1.types
        .push(Arc::new(synced("sea.example.com", "v1", "boats", "Boat")));
    rig.join(c1);
    let groups = |body: serde_json::Value| -> Vec<String> {
        let groups = body["groups"].as_array().expect("a list of groups").clone();
        let name = |group: &serde_json::Value| group["name"].as_str().unwrap_or("").to_owned();
        groups.iter().map(name).collect()
    };
    let all = rig.get(&format!("{P}/apis")).await.expect(200);
    assert_eq!(all.json()["kind"], "APIGroupList");
    assert_eq!(
        groups(all.json()),
        ["apps", "events.k8s.io", "sea.example.com"]
    );
    let one = rig.get(&format!("{P}/clusters/c2/apis")).await.expect(200);
    assert_eq!(groups(one.json()), ["apps", "events.k8s.io"]);
    let apps = rig
        .get(&format!("{P}/apis/apps/v1"))
        .await
        .expect(200)
        .json();
    let resources = apps["resources"].as_array().expect("resources").clone();
    let found = resources.iter().find(|one| one["name"] == "deployments");
    let found = found.expect("deployments are listed");
    assert_eq!(found["shortNames"][0], "deploy");
    assert_eq!(found["kind"], "Deployment");
    assert_eq!(found["verbs"], serde_json::json!(["get", "list", "watch"]));
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let headers = [("accept", accept)];
    let aggregated = rig.send("GET", &format!("{P}/apis"), "", &headers).await;
    assert_eq!(
        aggregated.expect(200).json()["kind"],
        "APIGroupDiscoveryList"
    );
    let versions = rig.get(&format!("{P}/api")).await.expect(200).json();
    assert_eq!(versions["versions"][0], "v1");
    let version = rig
        .get(&format!("{P}/clusters/c2/version"))
        .await
        .expect(200);
    assert_eq!(version.json()["gitVersion"], "v1.36.0-c2");
    rig.get(&format!("{P}/version")).await.expect(200);
    rig.get(&format!("{P}/apis/batch/v1")).await.expect(404);
    rig.get(&format!("{P}/apis/batch/v1/jobs"))
        .await
        .expect(404);
    // The hub itself lists the group.
    let hub = rig
        .get("/apis/clusterpedia.io/v1beta1")
        .await
        .expect(200)
        .json();
    let names: Vec<&str> = hub["resources"]
        .as_array()
        .expect("resources")
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert_eq!(names, ["collectionresources", "resources"]);
}

#[tokio::test]
async fn discovery_that_did_not_change_is_not_sent_again() {
    let rig = Rig::start().await;
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let path = format!("{P}/apis");
    let ask = async |tag: &str| {
        let headers = [("accept", accept), ("if-none-match", tag)];
        rig.send("GET", &path, "", &headers).await
    };
    let first = ask("\"other\"").await.expect(200);
    let tag = first.headers["etag"].to_str().expect("a tag").to_owned();
    let again = ask(&format!("\"other\", W/{tag}")).await.expect(304);
    assert!(again.bytes.is_empty());
    assert_eq!(again.headers["etag"], tag.as_str());
    // A new type changes the document of all members.
    let mut more = member("c2");
    let jobs = synced("batch", "v1", "jobs", "Job");
    more.types.push(Arc::new(jobs));
    rig.join(more);
    let changed = ask(&tag).await.expect(200);
    assert_ne!(changed.headers["etag"], tag.as_str());
    assert!(changed.json().to_string().contains("jobs"));
}

#[tokio::test]
async fn lists_are_of_all_members_in_order_of_their_keys() {
    let rig = filled().await;
    let list = rig.get(DEPLOYMENTS).await;
    assert_eq!(
        list.names(),
        [
            "c1/a/web", "c2/a/web", "c3/a/web", "c1/b/api", "c2/b/api", "c3/b/api"
        ]
    );
    let body = list.json();
    assert_eq!(body["kind"], "DeploymentList");
    assert_eq!(body["apiVersion"], "apps/v1");
    let rev = rig.shelf.visible().to_string();
    assert_eq!(body["metadata"]["resourceVersion"], rev);
    let first = &body["items"][0]["metadata"];
    assert_eq!(
        first["annotations"]["shadow.bareboat.dev/resource-version"],
        "100"
    );
    assert_ne!(first["resourceVersion"], "100");
    assert_eq!(list.headers["fleet-clusters"], "total=3 fresh=3");
    assert_eq!(list.warnings(), Vec::<String>::new());
}

#[tokio::test]
async fn clusters_are_chosen_by_parameter_label_and_selector() {
    let rig = filled().await;
    let expected = ["c1/a/web", "c2/a/web", "c1/b/api", "c2/b/api"];
    let parameter = rig.get(&format!("{DEPLOYMENTS}?clusters=c1,c2")).await;
    assert_eq!(parameter.names(), expected);
    let label = "labelSelector=search.clusterpedia.io/clusters%20in%20(c1,c2)";
    let label = rig.get(&format!("{DEPLOYMENTS}?{label}")).await;
    assert_eq!(label.names(), expected);
    let selector = rig
        .get(&format!(
            "{DEPLOYMENTS}?clusterSelector=env%20in%20(env-c1,env-c2)"
        ))
        .await;
    assert_eq!(selector.names(), expected);
    let unknown = rig.get(&format!("{DEPLOYMENTS}?clusters=c1,nowhere")).await;
    assert_eq!(unknown.names(), ["c1/a/web", "c1/b/api"]);
    assert!(unknown.warnings()[0].contains("nowhere"));
}

#[tokio::test]
async fn a_namespace_in_the_path_wins() {
    let rig = filled().await;
    let both = rig.get(&format!("{DEPLOYMENTS}?namespaces=a,b")).await;
    assert_eq!(both.names().len(), 6);
    let path = format!("{P}/apis/apps/v1/namespaces/a/deployments?namespaces=b");
    assert_eq!(
        rig.get(&path).await.names(),
        ["c1/a/web", "c2/a/web", "c3/a/web"]
    );
}

#[tokio::test]
async fn names_match_exactly_or_in_part() {
    let rig = Rig::start().await;
    for name in ["x", "y", "mytest-1", "te_st", "texst"] {
        rig.put("c1", pod("a", name, "Running"));
    }
    let pods = format!("{P}/api/v1/pods");
    assert_eq!(
        rig.get(&format!("{pods}?names=x,y")).await.names(),
        ["c1/a/x", "c1/a/y"]
    );
    let fuzzy = |text: &str| {
        format!("{pods}?labelSelector=internalstorage.clusterpedia.io/fuzzy-name%3D{text}")
    };
    assert_eq!(rig.get(&fuzzy("test")).await.names(), ["c1/a/mytest-1"]);
    assert_eq!(rig.get(&fuzzy("te_st")).await.names(), ["c1/a/te_st"]);
}

#[tokio::test]
async fn creation_is_searched_in_a_half_open_range() {
    let rig = Rig::start().await;
    for (name, time) in [
        ("before", "2022-03-23T23:59:59Z"),
        ("first", "2022-03-24T00:00:00Z"),
        ("last", "2022-04-09T23:59:59Z"),
        ("end", "2022-04-10T00:00:00Z"),
    ] {
        let mut pod = pod("a", name, "Running");
        pod.make_object()
            .object_mut("metadata")
            .insert("creationTimestamp", value!(time));
        rig.put("c1", pod);
    }
    let pods = format!("{P}/api/v1/pods");
    for range in [
        "since=2022-03-24&before=2022-04-10",
        "since=1648080000&before=1649548800",
        "since=1648080000000&before=1649548800000",
        "since=2022-03-24%2000:00:00&before=2022-04-10T00:00:00Z",
        "labelSelector=search.clusterpedia.io/since%3D2022-03-24,search.clusterpedia.io/before%3D2022-04-10",
    ] {
        let found = rig.get(&format!("{pods}?{range}")).await.names();
        assert_eq!(found, ["c1/a/first", "c1/a/last"], "{range}");
    }
    rig.get(&format!("{pods}?since=2022-04-10&before=2022-03-24"))
        .await
        .expect(400);
}

#[tokio::test]
async fn fields_are_searched_through_lists_too() {
    let rig = Rig::start().await;
    let mut annotated = deployment("a", "annotated", 3);
    let annotations = value!({"test.io": "v1"});
    annotated
        .make_object()
        .object_mut("metadata")
        .insert("annotations", annotations);
    rig.put("c1", annotated);
    rig.put("c1", deployment("a", "plain", 5));
    rig.put("c1", pod("a", "pod", "Running"));
    let find = async |fields: &str| {
        let encoded = fields
            .replace(' ', "%20")
            .replace('=', "%3D")
            .replace('>', "%3E");
        rig.get(&format!("{DEPLOYMENTS}?fieldSelector={encoded}"))
            .await
    };
    let found = find("metadata.annotations['test.io'] in (v1,v2),.spec.replicas=3").await;
    assert_eq!(found.names(), ["c1/a/annotated"]);
    assert_eq!(
        find("!metadata.annotations['test.io']").await.names(),
        ["c1/a/plain"]
    );
    assert_eq!(find("spec.replicas>3").await.names(), ["c1/a/plain"]);
    assert_eq!(find("metadata.name=plain").await.names(), ["c1/a/plain"]);
    find("[0]=x").await.expect(400);
    let pods = format!("{P}/api/v1/pods?fieldSelector=spec.containers[].image%3D");
    assert_eq!(
        rig.get(&format!("{pods}nginx:1")).await.names(),
        ["c1/a/pod"]
    );
    assert_eq!(
        rig.get(&format!("{pods}redis:2")).await.names(),
        ["c1/a/pod"]
    );
    assert!(rig.get(&format!("{pods}mysql")).await.names().is_empty());
}

#[tokio::test]
async fn labels_match_as_in_kubernetes() {
    let rig = Rig::start().await;
    let mut bare = pod("a", "bare", "Running");
    bare.make_object().object_mut("metadata").remove("labels");
    rig.put("c1", bare);
    rig.put("c1", pod("a", "x", "Running"));
    rig.put("c1", pod("a", "7", "Running"));
    let find = async |labels: &str| {
        rig.get(&format!("{P}/api/v1/pods?labelSelector={labels}"))
            .await
            .names()
    };
    assert_eq!(find("app!%3Dx").await, ["c1/a/7", "c1/a/bare"]);
    assert_eq!(find("app%3E3").await, ["c1/a/7"]);
    assert_eq!(
        find("app%3Dx,search.clusterpedia.io/clusters%3Dc1").await,
        ["c1/a/x"]
    );
}

#[tokio::test]
async fn one_object_needs_a_cluster() {
    let rig = filled().await;
    let path = "apis/apps/v1/namespaces/a/deployments/web";
    let merged = rig.get(&format!("{P}/{path}")).await.expect(400);
    assert_eq!(
        merged.message(),
        "please specify the cluster name when using the resource name to get a specific resource."
    );
    let unknown = rig
        .get(&format!("{P}/clusters/nowhere/{path}"))
        .await
        .expect(400);
    assert_eq!(
        unknown.message(),
        "the server could not find the requested cluster"
    );
    let found = rig
        .get(&format!("{P}/clusters/c1/{path}"))
        .await
        .expect(200)
        .json();
    let metadata = &found["metadata"];
    assert_eq!(
        metadata["annotations"]["shadow.clusterpedia.io/cluster-name"],
        "c1"
    );
    assert_eq!(
        metadata["resourceVersion"], "100",
        "the member's own version"
    );
    rig.get(&format!(
        "{P}/clusters/c1/apis/apps/v1/namespaces/a/deployments/none"
    ))
    .await
    .expect(404);
    let list = rig
        .get(&format!("{P}/clusters/c1/apis/apps/v1/deployments"))
        .await;
    assert_eq!(list.names(), ["c1/a/web", "c1/b/api"]);
    assert_eq!(
        list.json()["items"][0]["metadata"]["resourceVersion"],
        "100"
    );
}

#[tokio::test]
async fn unknown_parameters_are_mentioned() {
    let rig = filled().await;
    let path = format!("{DEPLOYMENTS}?cluster=c1&labelSelector=search.clusterpedia.io/nmaes%3Dx");
    let warnings = rig.get(&path).await.expect(200).warnings();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings
            .iter()
            .any(|text| text.contains("search.clusterpedia.io/nmaes"))
    );
    assert!(warnings.iter().any(|text| text.contains("cluster")));
}

#[tokio::test]
async fn other_versions_of_a_kind_without_conversion_are_rewritten() {
    let rig = Rig::start().await;
    let mut boats = synced("sea.example.com", "v1", "boats", "Boat");
    boats.others = vec![bareboat_views::OtherVersion {
        name: "v1beta1".to_owned(),
        source: bareboat_views::VersionSource::Shelf,
    }];
    rig.join(Member {
        types: vec![Arc::new(boats)],
        ..crate::rig::member("c4")
    });
    rig.put("c4", value!({"apiVersion": "sea.example.com/v1", "kind": "Boat", "metadata": {"name": "x", "namespace": "a"}}));
    for version in ["v1", "v1beta1"] {
        let list = rig
            .get(&format!("{P}/apis/sea.example.com/{version}/boats"))
            .await;
        assert_eq!(list.names(), ["c4/a/x"]);
        assert_eq!(
            list.json()["items"][0]["apiVersion"],
            format!("sea.example.com/{version}")
        );
    }
    rig.get(&format!("{P}/apis/sea.example.com/v2/boats"))
        .await
        .expect(404);
}

#[tokio::test]
async fn autoscalers_are_shown_in_both_versions() {
    let rig = Rig::start().await;
    let other = |name: &str| bareboat_views::OtherVersion {
        name: name.to_owned(),
        source: bareboat_views::VersionSource::Member,
    };
    // One member has the newer version on the shelf, an old one the older.
    for (name, stored, others) in [("c1", "v2", "v1"), ("c2", "v1", "v2")] {
        let mut member = member(name);
        let plural = "horizontalpodautoscalers";
        let mut types = synced("autoscaling", stored, plural, "HorizontalPodAutoscaler");
        types.others = vec![other(others)];
        member.types.push(Arc::new(types));
        rig.join(member);
    }
    let target = value!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    rig.put("c1", value!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"namespace": "a", "name": "x"},
        "spec": {"scaleTargetRef": (target.clone()), "minReplicas": 1, "maxReplicas": 5, "metrics": [
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}},
        ]},
    }));
    rig.put("c2", value!({
        "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"namespace": "a", "name": "x"},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 5, "targetCPUUtilizationPercentage": 60},
    }));
    let path = |version: &str| format!("{P}/apis/autoscaling/{version}/horizontalpodautoscalers");
    let newer = rig.get(&path("v2")).await;
    assert_eq!(newer.names(), ["c1/a/x", "c2/a/x"]);
    assert_eq!(newer.warnings(), Vec::<String>::new());
    let newer = newer.json();
    for (number, percent) in [(0, 70), (1, 60)] {
        let item = &newer["items"][number];
        assert_eq!(item["apiVersion"], "autoscaling/v2");
        let metric = &item["spec"]["metrics"][0]["resource"]["target"];
        assert_eq!(metric["averageUtilization"], percent, "{item}");
    }
    let older = rig.get(&path("v1")).await.json();
    for (number, percent) in [(0, 70), (1, 60)] {
        let item = &older["items"][number];
        assert_eq!(item["apiVersion"], "autoscaling/v1");
        assert_eq!(
            item["spec"]["targetCPUUtilizationPercentage"], percent,
            "{item}"
        );
        assert!(item["spec"].get("metrics").is_none(), "{item}");
    }
    // The view of one member needs no right to ask it, and a watch shows the same.
    let one =
        format!("{P}/clusters/c1/apis/autoscaling/v1/namespaces/a/horizontalpodautoscalers/x");
    let one = rig.get(&one).await.expect(200).json();
    assert_eq!(one["spec"]["targetCPUUtilizationPercentage"], 70);
    assert!(rig.data.forwarded.lock().is_empty());
    let mut events = rig.watch(&format!("{}?watch=true", path("v1"))).await;
    let event = events.next().await.expect("an event");
    assert_eq!(
        event["object"]["spec"]["targetCPUUtilizationPercentage"],
        70
    );
}
