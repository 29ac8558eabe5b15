//! Which types and versions rules choose.

use super::*;
use bareboat_api::value;
use std::collections::BTreeSet;

fn resource(group: &str, version: &str, plural: &str, kind: &str) -> ApiResource {
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        resource: plural.to_owned(),
        kind: kind.to_owned(),
        singular: kind.to_lowercase(),
        namespaced: true,
        verbs: ["get", "list", "watch"].map(str::to_owned).to_vec(),
        ..ApiResource::default()
    }
}

fn discovered() -> Discovered {
    Discovered {
        resources: vec![
            resource("", "v1", "pods", "Pod"),
            resource("", "v1", "events", "Event"),
            resource("", "v1", "secrets", "Secret"),
            resource("events.k8s.io", "v1", "events", "Event"),
            resource("apps", "v1", "deployments", "Deployment"),
            resource("coordination.k8s.io", "v1", "leases", "Lease"),
            resource(
                "apiextensions.k8s.io",
                "v1",
                "customresourcedefinitions",
                "CustomResourceDefinition",
            ),
            resource("example.com", "v1", "boats", "Boat"),
            resource("example.com", "v1beta1", "boats", "Boat"),
        ],
        incomplete: BTreeSet::new(),
    }
}

fn wanted(rules: Value) -> Wanted {
    Wanted {
        rules: Rule::read_all(Some(&rules)),
        ..Wanted::default()
    }
}

fn shown(wanted: &Wanted, definitions: Option<&Definitions>) -> Vec<String> {
    let chosen = wanted.choose(&discovered(), definitions);
    let shown = chosen.iter().filter(|one| one.shown);
    shown
        .map(|one| {
            format!(
                "{}.{}/{}",
                one.resource.resource, one.resource.group, one.resource.version
            )
        })
        .collect()
}

fn definitions() -> Definitions {
    let definition = value!({"spec": {"group": "example.com", "names": {"plural": "boats"},
        "versions": [{"name": "v1"}, {"name": "v1beta1", "storage": true}]}});
    let key = defined_type(&definition).expect("it has a type");
    BTreeMap::from([(key, Arc::new(definition))])
}

#[test]
fn names_match_in_any_form_and_case() {
    for name in ["pods", "pod", "Pod", "PODS"] {
        let wanted = wanted(value!([{"group": "", "resources": [name]}]));
        assert_eq!(shown(&wanted, None), ["pods./v1"], "{name}");
    }
    let none = wanted(value!([{"group": "apps", "resources": ["pods"]}]));
    assert_eq!(shown(&none, None), Vec::<String>::new());
}

#[test]
fn wildcards_leave_noise_out() {
    let all = wanted(value!([{"group": "*", "resources": ["*"]}]));
    assert_eq!(
        shown(&all, Some(&definitions())),
        [
            "pods./v1",
            "secrets./v1",
            "customresourcedefinitions.apiextensions.k8s.io/v1",
            "deployments.apps/v1",
            "boats.example.com/v1beta1"
        ]
    );
    let events = wanted(
        value!([{"group": "", "resources": ["events"]}, {"group": "events.k8s.io", "resources": ["events"]}]),
    );
    assert_eq!(shown(&events, None), ["events./v1"]);
    let other = wanted(value!([{"group": "events.k8s.io", "resources": ["events"]}]));
    assert_eq!(shown(&other, None), ["events./v1"]);
    let alias = |wanted: &Wanted| {
        let chosen = wanted.choose(&discovered(), None);
        let found = chosen
            .into_iter()
            .find(|one| one.resource.resource == "events");
        found.and_then(|one| one.alias).map(|alias| alias.group)
    };
    assert_eq!(alias(&other).as_deref(), Some("events.k8s.io"));
    let plain = wanted(value!([{"group": "", "resources": ["events"]}]));
    assert_eq!(alias(&plain), None);
    let core = wanted(value!([{"group": "", "resources": ["*"]}]));
    assert_eq!(shown(&core, None), ["pods./v1", "secrets./v1"]);
}

#[test]
fn events_of_objects_are_synced_with_them() {
    let rules = value!([{"group": "apps", "resources": ["deployments"], "eventsInvolvedResources": ["deployments"]}]);
    assert_eq!(
        shown(&wanted(rules), None),
        ["events./v1", "deployments.apps/v1"]
    );
    let none =
        value!([{"group": "apps", "resources": ["deployments"], "eventsInvolvedResources": []}]);
    assert_eq!(shown(&wanted(none), None), ["deployments.apps/v1"]);
}

#[test]
fn all_versions_are_one_version_that_is_shown_in_all() {
    let rules = value!([{"group": "example.com", "versions": ["*"], "resources": ["boats"]}]);
    let chosen = wanted(rules).choose(&discovered(), Some(&definitions()));
    let boats = chosen.iter().find(|one| one.shown).expect("it is chosen");
    assert_eq!(boats.resource.version, "v1beta1");
    assert_eq!(boats.others, ["v1"]);
}

#[test]
fn custom_kinds_wait_for_their_definitions() {
    let boats = wanted(value!([{"group": "example.com", "resources": ["boats"]}]));
    assert_eq!(shown(&boats, None), Vec::<String>::new());
    assert_eq!(
        shown(&boats, Some(&definitions())),
        ["boats.example.com/v1beta1"]
    );
    let first =
        wanted(value!([{"group": "example.com", "versions": ["v1"], "resources": ["boats"]}]));
    assert_eq!(
        shown(&first, Some(&definitions())),
        ["boats.example.com/v1"]
    );
    let custom = Wanted {
        all_custom: true,
        ..Wanted::default()
    };
    assert_eq!(
        shown(&custom, Some(&definitions())),
        ["boats.example.com/v1beta1"]
    );
    assert_eq!(
        shown(&custom, Some(&Definitions::new())),
        Vec::<String>::new()
    );
}

#[test]
fn definitions_are_always_synced() {
    let nothing = Wanted::default();
    let chosen = nothing.choose(&discovered(), None);
    assert_eq!(chosen.len(), 1);
    assert!(!chosen[0].shown);
}

#[test]
fn namespaces_are_synced_if_some_of_them_are_selected() {
    let mut pods = wanted(value!([{"group": "", "resources": ["pods"]}]));
    let mut discovered = discovered();
    let mut namespaces = resource("", "v1", "namespaces", "Namespace");
    namespaces.namespaced = false;
    discovered.resources.push(namespaces);
    let names = |wanted: &Wanted| -> Vec<(String, bool)> {
        let chosen = wanted.choose(&discovered, Some(&Definitions::new()));
        let core = chosen.iter().filter(|one| one.resource.group.is_empty());
        core.map(|one| (one.resource.resource.clone(), one.shown))
            .collect()
    };
    assert_eq!(names(&pods), [("pods".to_owned(), true)]);
    let options = SyncOptions::parse("{namespaceSelector: a=b}").expect("well formed");
    pods.options = Arc::new(options);
    assert_eq!(
        names(&pods),
        [("namespaces".to_owned(), false), ("pods".to_owned(), true)]
    );
}

#[test]
fn excluded_types_are_left_out() {
    let mut all = wanted(value!([{"group": "*", "resources": ["*"]}]));
    let options =
        SyncOptions::parse("{exclude: [secrets, deployments.apps]}").expect("well formed");
    all.options = Arc::new(options);
    assert_eq!(
        shown(&all, None),
        [
            "pods./v1",
            "customresourcedefinitions.apiextensions.k8s.io/v1"
        ]
    );
}
