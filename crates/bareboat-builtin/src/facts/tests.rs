//! Tests that every line of the table is parsed and found.

use super::*;
use bareboat_api::facts::Type;
use bareboat_api::typing::ListType;

#[test]
fn every_line_is_parsed_and_found_by_its_name() {
    let mut messages = 0;
    let mut previous = "";
    for line in TABLE.lines().filter(|line| !line.starts_with(['#', '@'])) {
        let name = name_of(line);
        assert!(previous < name, "{previous} is sorted before {name}");
        previous = name;
        let found = message(name).unwrap_or_else(|| panic!("{name} is not found"));
        assert_eq!(found.name, name);
        assert!(
            found
                .fields
                .iter()
                .filter(|field| !field.json.is_empty())
                .is_sorted_by(|a, b| a.json < b.json),
            "{name} has a field twice"
        );
        messages += 1;
    }
    assert!(messages > 1000);
    assert!(message("k8s.io.api.core.v1.Nothing").is_none());
    assert!(message("").is_none());
}

#[test]
fn kinds_are_found_by_group_version_and_kind() {
    let name =
        |group, version, wanted| kind(group, version, wanted).map(|found| found.name.clone());
    assert_eq!(
        name("", "v1", "ConfigMap").as_deref(),
        Some("k8s.io.api.core.v1.ConfigMap")
    );
    assert_eq!(
        name("apps", "v1", "DeploymentList").as_deref(),
        Some("k8s.io.api.apps.v1.DeploymentList")
    );
    assert_eq!(
        name("", "v1", "Status").as_deref(),
        Some("k8s.io.apimachinery.pkg.apis.meta.v1.Status")
    );
    assert_eq!(
        name("apps", "v1", "DeleteOptions").as_deref(),
        Some("k8s.io.apimachinery.pkg.apis.meta.v1.DeleteOptions")
    );
    assert_eq!(name("", "v1", "Container"), None);
    assert_eq!(name("nobody.example", "v1", "ConfigMap"), None);
    assert!(kinds("", "v1").any(|kind| kind == "Pod"));
    assert!(group_versions().any(|found| found == ("apps", "v1")));
}

#[test]
fn merge_facts_and_inline_members_are_present() {
    let container = message("k8s.io.api.core.v1.Container").expect("a known message");
    let ports = container.field("ports").expect("a known field");
    assert_eq!(ports.list, ListType::Map);
    assert_eq!(ports.keys.len(), 2);
    assert_eq!(ports.keys[1].default, Some("TCP".into()));
    assert_eq!(ports.merge_key.as_deref(), Some("containerPort"));
    let volume = message("k8s.io.api.core.v1.Volume").expect("a known message");
    assert_eq!(volume.field("hostPath").map(|field| field.number), Some(0));
    let inline = volume.numbered(2).expect("a known number");
    assert!(inline.json.is_empty() && matches!(inline.ty, Type::Message(_)));
}
