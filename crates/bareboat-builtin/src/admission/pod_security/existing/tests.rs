//! Warnings about pods that exist when a namespace gets another level.

#![allow(clippy::unwrap_used)]
use super::*;
use bareboat_api::value;

fn pod(name: &str, uid: &str, network: bool) -> Object {
    let owners = match uid {
        "" => value!([]),
        uid => value!([{"uid": (uid), "controller": true}]),
    };
    let pod = value!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": (name), "ownerReferences": (owners)},
        "spec": {"hostNetwork": (network), "hostPID": (name == "d"), "containers": [{"name": "c"}]},
    });
    Object::try_from(pod).unwrap()
}

#[test]
fn pods_with_the_same_problems_share_a_warning() {
    let pods = vec![
        pod("z", "1", true),
        pod("y", "1", true),
        pod("a", "2", true),
        pod("fine", "", false),
        pod("d", "", false),
    ];
    let enforce = LevelVersion::parse("baseline", "latest").unwrap();
    let said = warnings("team", enforce, pods, 5, |_| false);
    assert_eq!(
        said,
        [
            "existing pods in namespace \"team\" violate the new PodSecurity enforce level \"baseline:latest\"",
            "a (and 3 other pods): host namespaces",
        ]
    );
    let pods = vec![pod("z", "1", true), pod("fine", "", false)];
    let said = warnings("team", enforce, pods, 9, |pod| {
        !pod.flag(&["spec", "hostNetwork"])
    });
    assert_eq!(
        said,
        [
            "new PodSecurity enforce level only checked against the first 1 of 8 existing pods",
            "existing pods in namespace \"team\" violate the new PodSecurity enforce level \"baseline:latest\"",
            "z: host namespaces",
        ]
    );
}

#[test]
fn one_pod_of_each_controller_comes_first() {
    let pods = vec![
        pod("a", "1", true),
        pod("b", "1", true),
        pod("c", "", true),
        pod("d", "2", true),
    ];
    let order = first_of_each(pods, |_| false);
    let names: Vec<&str> = order.iter().map(Object::name).collect();
    assert_eq!(names, ["a", "c", "d", "b"]);
}
