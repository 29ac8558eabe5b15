//! Order, pages by token and by number, counts.

use crate::rig::{P, Rig, pod};
use std::collections::HashSet;

async fn pods(count: usize) -> Rig {
    let rig = Rig::start().await;
    for number in 0..count {
        let cluster = ["c1", "c2", "c3"][number % 3];
        let namespace = ["a", "b"][number % 2];
        rig.put(cluster, pod(namespace, &format!("p{number:02}"), "Running"));
    }
    rig
}

const PODS: &str = "/apis/clusterpedia.io/v1beta1/resources/api/v1/pods";

#[tokio::test]
async fn orders_are_kept() {
    let rig = pods(12).await;
    let label = "labelSelector=search.clusterpedia.io/orderby%20in%20(namespace,%20name_desc)";
    let mut answers = HashSet::new();
    for _ in 0..50 {
        let parameter = rig
            .get(&format!("{PODS}?orderby=namespace,name%20desc"))
            .await;
        answers.insert(parameter.names());
        answers.insert(rig.get(&format!("{PODS}?{label}")).await.names());
    }
    assert_eq!(answers.len(), 1, "the order is the same every time");
    let names = answers.into_iter().next().expect("there is an answer");
    assert_eq!(names.first().map(String::as_str), Some("c2/a/p10"));
    assert_eq!(names.last().map(String::as_str), Some("c2/b/p01"));
    let sorted = rig
        .get(&format!("{PODS}?sort=-metadata.name,cluster&limit=1"))
        .await;
    assert_eq!(sorted.names(), ["c3/b/p11"]);
    rig.get(&format!("{PODS}?orderby=name);DROP"))
        .await
        .expect(400);
}

#[tokio::test]
async fn remaining_objects_are_counted_on_request() {
    let rig = pods(24).await;
    let first = rig
        .get(&format!("{PODS}?limit=1&withRemainingCount=true"))
        .await;
    assert_eq!(first.json()["metadata"]["remainingItemCount"], 23);
    let beyond = rig
        .get(&format!(
            "{PODS}?limit=1&withRemainingCount=true&continue=30"
        ))
        .await;
    assert!(beyond.names().is_empty());
    assert_eq!(beyond.json()["metadata"]["remainingItemCount"], -6);
    let plain = rig.get(&format!("{PODS}?limit=1")).await.json();
    assert!(plain["metadata"]["remainingItemCount"].is_null());
    let page = rig.get(&format!("{PODS}?page=2&pageSize=10")).await;
    assert_eq!(page.names().len(), 10);
    assert_eq!(page.json()["metadata"]["remainingItemCount"], 4);
}

#[tokio::test]
async fn numbers_page_as_in_clusterpedia() {
    let rig = pods(24).await;
    let all = rig.get(PODS).await.names();
    let (mut seen, mut token) = (Vec::new(), "0".to_owned());
    while !token.is_empty() {
        let path = format!("{PODS}?limit=10&withContinue=true&continue={token}");
        let page = rig.get(&path).await;
        seen.extend(page.names());
        token = page.json()["metadata"]["continue"]
            .as_str()
            .unwrap_or("")
            .to_owned();
    }
    assert_eq!(seen, all);
    let label = "labelSelector=search.clusterpedia.io/size%3D5,search.clusterpedia.io/offset%3D20";
    assert_eq!(rig.get(&format!("{PODS}?{label}")).await.names(), all[20..]);
}

#[tokio::test]
async fn tokens_visit_every_object_once_while_others_come_and_go() {
    let rig = pods(40).await;
    let stable = rig.get(PODS).await.names();
    let (mut seen, mut token, mut round) = (Vec::new(), String::new(), 0);
    let mut versions = HashSet::new();
    loop {
        let page = rig
            .get(&format!(
                "{PODS}?limit=7&withContinue=true&continue={token}"
            ))
            .await;
        seen.extend(page.names());
        let metadata = page.json()["metadata"].clone();
        versions.insert(metadata["resourceVersion"].to_string());
        token = metadata["continue"].as_str().unwrap_or("").to_owned();
        if token.is_empty() {
            break;
        }
        // Objects before and after the place of the token.
        rig.put("c1", pod("a", &format!("new{round}"), "Running"));
        rig.put("c2", pod("zz", &format!("new{round}"), "Running"));
        rig.delete("c2", "Pod", "zz", &format!("new{}", round - 1));
        round += 1;
    }
    let distinct: HashSet<&String> = seen.iter().collect();
    assert_eq!(distinct.len(), seen.len(), "none comes twice");
    let missing: Vec<&String> = stable.iter().filter(|name| !seen.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(versions.len(), 1, "all pages have the version of the first");
}

#[tokio::test]
async fn long_lists_are_complete() {
    let rig = pods(0).await;
    for number in 0..1_234 {
        rig.put("c1", pod("a", &format!("p{number:04}"), "Running"));
    }
    assert_eq!(rig.get(PODS).await.names().len(), 1_234);
    let yaml = rig
        .send("GET", PODS, "", &[("accept", "application/yaml")])
        .await
        .expect(200);
    let text = String::from_utf8_lossy(&yaml.bytes).into_owned();
    assert_eq!(text.matches("phase: Running").count(), 1_234);
    let table = [("accept", crate::rig::TABLE)];
    let table = rig.send("GET", PODS, "", &table).await.expect(200).json();
    assert_eq!(table["rows"].as_array().map(Vec::len), Some(1_234));
    rig.get(&format!("{P}/api/v1/pods?continue=nonsense!"))
        .await
        .expect(400);
}
