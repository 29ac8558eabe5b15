//! `whereSQL`, `filter`, `summary` and other conditions of ours.

use crate::rig::{P, Rig, deployment, pod};
use bareboat::api::value;
use bareboat_shelf::{Bounds, Settings as ShelfSettings};
use bareboat_views::Settings;
use std::collections::BTreeMap;

async fn filled() -> Rig {
    let rig = Rig::start().await;
    for (cluster, namespace, name, phase) in [
        ("c1", "a", "x", "Running"),
        ("c1", "kube-system", "y", "Pending"),
        ("c2", "default", "z", "Running"),
        ("c2", "a", "x", "Failed"),
        ("c3", "a", "w", "Running"),
    ] {
        rig.put(cluster, pod(namespace, name, phase));
    }
    rig
}

const PODS: &str = "/apis/clusterpedia.io/v1beta1/resources/api/v1/pods";

fn encoded(text: &str) -> String {
    let bytes = text.bytes();
    bytes.map(|byte| format!("%{byte:02X}")).collect()
}

#[tokio::test]
async fn conditions_in_sql_are_parsed_and_bound() {
    let rig = filled().await;
    let find = async |text: &str| rig.get(&format!("{PODS}?whereSQL={}", encoded(text))).await;
    let found = find("(cluster='c1') OR (namespace IN ('kube-system','default'))").await;
    assert_eq!(
        found.names(),
        ["c1/a/x", "c2/default/z", "c1/kube-system/y"]
    );
    let found = find("object->>'$.status.phase' = 'Failed' AND NOT name LIKE 'y%'").await;
    assert_eq!(found.names(), ["c2/a/x"]);
    let before = rig.get(PODS).await.names();
    for text in [
        "1=1; DELETE FROM resources",
        "name = (SELECT 1)",
        "nothing = 1",
        "name =",
    ] {
        find(text).await.expect(400);
    }
    assert_eq!(rig.get(PODS).await.names(), before);
    let statement = encoded("namespace = ? AND cluster = ?");
    let bound = rig
        .get(&format!(
            "{PODS}?whereSQLStatement={statement}&whereSQLParam=a&whereSQLParam=c1"
        ))
        .await;
    assert_eq!(bound.names(), ["c1/a/x"]);
    let parameter = encoded("x' OR '1'='1");
    let bound = rig
        .get(&format!(
            "{PODS}?whereSQLStatement=name%3D%3F&whereSQLParam={parameter}"
        ))
        .await;
    assert!(bound.names().is_empty());
    rig.get(&format!("{PODS}?whereSQLParam=a"))
        .await
        .expect(422);
}

#[tokio::test]
async fn expressions_see_objects_and_clusters() {
    let rig = Rig::start().await;
    for cluster in ["c1", "c2", "c3"] {
        rig.put(cluster, deployment("a", "small", 2));
        rig.put(cluster, deployment("a", "large", 7));
    }
    rig.put("c1", value!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "a", "name": "none"}}));
    let path = format!("{P}/apis/apps/v1/deployments?filter=");
    let find = async |text: &str| rig.get(&format!("{path}{}", encoded(text))).await;
    let found = find("object.spec.replicas > 3 && cluster.name != \"c2\"").await;
    assert_eq!(found.names(), ["c1/a/large", "c3/a/large"]);
    let found = find("cluster.region == \"region-c2\" && object.metadata.name == \"small\"").await;
    assert_eq!(found.names(), ["c2/a/small"]);
    let found = find("cluster.labels[\"env\"] == \"env-c3\"").await;
    assert_eq!(found.names(), ["c3/a/large", "c3/a/small"]);
    for wrong in [
        "object.spec.replicas > \"x\"",
        "cluster.name > 3",
        "1 + 1",
        "object.spec.replicas +",
        "object.spec.replicas",
    ] {
        find(wrong).await.expect(400);
    }
}

#[tokio::test]
async fn summaries_count_what_lists_have() {
    let rig = filled().await;
    let mut counted: BTreeMap<(String, String), i64> = BTreeMap::new();
    let list = rig.get(PODS).await.json();
    for item in list["items"].as_array().expect("items") {
        let cluster =
            item["metadata"]["annotations"]["shadow.clusterpedia.io/cluster-name"].as_str();
        let phase = item["status"]["phase"].as_str();
        let key = (
            cluster.unwrap_or("").to_owned(),
            phase.unwrap_or("").to_owned(),
        );
        *counted.entry(key).or_default() += 1;
    }
    let summary = rig
        .get(&format!("{PODS}?summary=cluster,status.phase"))
        .await
        .expect(200)
        .json();
    let groups = summary["groups"]
        .as_array()
        .expect("groups")
        .iter()
        .map(|group| {
            let text = |key: &str| group["values"][key].as_str().unwrap_or("").to_owned();
            (
                (text("cluster"), text("status.phase")),
                group["count"].as_i64().unwrap_or(0),
            )
        });
    assert_eq!(groups.collect::<BTreeMap<_, _>>(), counted);
    assert_eq!(
        summary["fields"],
        serde_json::json!(["cluster", "status.phase"])
    );
}

#[tokio::test]
async fn only_metadata_leaves_specs_out() {
    let rig = filled().await;
    let list = rig
        .get(&format!("{PODS}?onlyMetadata=true&limit=1"))
        .await
        .json();
    assert!(list["items"][0]["spec"].is_null());
    assert_eq!(list["items"][0]["kind"], "Pod");
    let accept = [(
        "accept",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    )];
    let list = rig.send("GET", PODS, "", &accept).await.expect(200).json();
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"][0]["kind"], "PartialObjectMetadata");
}

#[tokio::test]
async fn events_of_objects_are_added_on_request() {
    let rig = filled().await;
    rig.put(
        "c1",
        value!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"namespace": "a", "name": "e1"},
            "involvedObject": {"uid": "c1-Pod-a-x"}, "reason": "Started",
        }),
    );
    let list = rig
        .get(&format!("{PODS}?injectEvents=true&names=x&clusters=c1"))
        .await
        .json();
    let text =
        list["items"][0]["metadata"]["annotations"]["shadow.clusterpedia.io/events"].as_str();
    let events: serde_json::Value = serde_json::from_str(text.expect("events")).expect("JSON");
    assert_eq!(events[0]["reason"], "Started");
}

#[tokio::test]
async fn a_search_that_reads_too_much_names_the_field_to_index() {
    let settings = Settings {
        bounds: Bounds {
            bytes: 2_000,
            ..Bounds::default()
        },
        ..Settings::default()
    };
    let rig = Rig::with(false, settings, ShelfSettings::default()).await;
    for number in 0..50 {
        rig.put("c1", pod("a", &format!("p{number}"), "Running"));
    }
    let refused = rig
        .get(&format!("{PODS}?fieldSelector=spec.nodeName%3Dx"))
        .await
        .expect(504);
    assert!(
        refused.message().contains("spec.nodeName"),
        "{}",
        refused.message()
    );
    assert!(refused.message().contains("index"), "{}", refused.message());
}

#[tokio::test]
async fn a_list_that_becomes_too_long_after_its_first_page_is_an_error() {
    let settings = Settings {
        bounds: Bounds {
            bytes: 20_000,
            ..Bounds::default()
        },
        ..Settings::default()
    };
    let rig = Rig::with(false, settings, ShelfSettings::default()).await;
    for number in 0..501 {
        rig.put("c1", pod("a", &format!("a{number:03}"), "Running"));
    }
    for number in 0..200 {
        rig.put("c1", pod("a", &format!("z{number:03}"), "Pending"));
    }
    // What is returned does not count, so a page is found; the rest of the list reads too much.
    let running = format!("{PODS}?fieldSelector=status.phase!%3DPending");
    let page = rig.get(&format!("{running}&limit=500")).await.expect(200);
    assert_eq!(page.names().len(), 500);
    rig.get(&running).await.expect(504);
}

#[tokio::test]
async fn requests_of_clusterpedias_client_are_understood() {
    let rig = Rig::start().await;
    for cluster in ["c1", "c2", "c3"] {
        for name in ["web", "api", "job"] {
            rig.put(cluster, deployment("a", name, 3));
            rig.put(cluster, deployment("b", name, 3));
        }
    }
    // What a typed client sends: it prefers protobuf, and takes JSON.
    let headers = [
        (
            "user-agent",
            "searcher/v0.0.0 (linux/amd64) kubernetes/$Format",
        ),
        (
            "accept",
            "application/vnd.kubernetes.protobuf,application/json",
        ),
    ];
    let root = format!("{P}/apis/apps/v1/deployments");
    let own = format!("{P}/clusters/c2/apis/apps/v1/deployments");
    let label = |text: &str| format!("{root}?labelSelector={}", text.replace(' ', "%20"));
    let cases = [
        (
            format!(
                "{root}?clusters=c1,c2&namespaces=a&names=web,job&orderby=cluster,name%20desc&limit=3&withContinue=true&withRemainingCount=true"
            ),
            label(
                "search.clusterpedia.io/clusters in (c1,c2),search.clusterpedia.io/namespaces=a,search.clusterpedia.io/names in (web,job),\
                 search.clusterpedia.io/orderby in (cluster,name_desc),search.clusterpedia.io/limit=3,search.clusterpedia.io/with-continue=true,\
                 search.clusterpedia.io/with-remaining-count=true",
            ),
            vec!["c1/a/web", "c1/a/job", "c2/a/web"],
        ),
        (
            format!(
                "{root}?clusters=c3&since=2022-03-24&before=2022-03-26&namespaces=b&orderby=name"
            ),
            label(
                "search.clusterpedia.io/clusters=c3,search.clusterpedia.io/since=2022-03-24,search.clusterpedia.io/before=2022-03-26,\
                 search.clusterpedia.io/namespaces=b,search.clusterpedia.io/orderby=name",
            ),
            vec!["c3/b/api", "c3/b/job", "c3/b/web"],
        ),
        (
            format!("{own}?namespaces=a&orderby=name&limit=1&continue=1"),
            format!(
                "{own}?labelSelector=search.clusterpedia.io/namespaces=a,search.clusterpedia.io/orderby=name,\
                 search.clusterpedia.io/limit=1,search.clusterpedia.io/offset=1"
            ),
            vec!["c2/a/job"],
        ),
    ];
    for (parameters, labels, wanted) in cases {
        let mut answers = Vec::new();
        for path in [parameters, labels] {
            let answer = rig.send("GET", &path, "", &headers).await.expect(200);
            assert_eq!(answer.headers["content-type"], "application/json", "{path}");
            assert_eq!(answer.names(), wanted, "{path}");
            assert_eq!(answer.warnings(), Vec::<String>::new(), "{path}");
            let body = answer.json();
            assert_eq!(body["kind"], "DeploymentList");
            answers.push(body["metadata"].clone());
        }
        assert_eq!(answers[0], answers[1]);
    }
    let remaining = &rig
        .get(&format!("{root}?limit=3&withRemainingCount=true"))
        .await
        .json()["metadata"]["remainingItemCount"];
    assert_eq!(*remaining, 15);
    // Its watches, and single objects.
    let one = format!("{P}/clusters/c1/apis/apps/v1/namespaces/a/deployments/web");
    let answer = rig.send("GET", &one, "", &headers).await.expect(200);
    assert_eq!(answer.headers["content-type"], "application/json");
    let watch = format!("{root}?watch=true&allowWatchBookmarks=true&clusters=c1&namespaces=a");
    let mut events = rig.watch_as(crate::rig::admin(), &watch, &headers).await;
    let mut seen = events.take(3).await;
    seen.sort();
    assert_eq!(seen, ["ADDED c1/a/api", "ADDED c1/a/job", "ADDED c1/a/web"]);
}
