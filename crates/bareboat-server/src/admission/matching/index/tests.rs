//! The index returns exactly the items that may match.

use super::super::rule::Place;
use super::*;
use bareboat_api::admission::Operation;
use bareboat_api::value;

fn rule(group: &str, resource: &str, operation: &str) -> Vec<Rule> {
    vec![Rule::read(&value!({
        "operations": [(operation)], "apiGroups": [(group)], "apiVersions": ["*"], "resources": [(resource)],
    }))]
}

#[test]
fn candidates_come_in_order_and_once() {
    let items = [
        rule("apps", "deployments", "CREATE"),
        rule("*", "*", "*"),
        rule("apps", "*", "UPDATE"),
        rule("", "deployments", "CREATE"),
        rule("apps", "deployments/scale", "*"),
    ];
    let index = Index::new(
        items
            .iter()
            .map(|rules| Some(rules.as_slice()))
            .chain([None]),
    );
    let target = |group, resource, operation| Target {
        operation,
        place: Place {
            group,
            version: "v1",
            resource,
        },
        subresource: "",
        namespace: "",
        name: "",
    };
    let found = |group, resource, operation| {
        let target = target(group, resource, operation);
        let found = index.candidates(&target, &[]);
        assert_eq!(index.concerns(&target, &[]), !found.is_empty());
        found
    };
    assert_eq!(
        found("apps", "deployments", Operation::Create),
        [0, 1, 4, 5]
    );
    assert_eq!(
        found("apps", "deployments", Operation::Update),
        [1, 2, 4, 5]
    );
    assert_eq!(found("other", "things", Operation::Delete), [1, 5]);
    let alias = [Str::const_new("")];
    let events = target("apps", "deployments", Operation::Create);
    assert_eq!(index.candidates(&events, &alias), [0, 1, 3, 4, 5]);
}

#[test]
fn what_nothing_matches_concerns_nobody() {
    let items = [rule("example.com", "*", "*"), rule("", "pods", "*")];
    let index = Index::new(items.iter().map(|rules| Some(rules.as_slice())));
    let target = Target {
        operation: Operation::Create,
        place: Place {
            group: "",
            version: "v1",
            resource: "configmaps",
        },
        subresource: "",
        namespace: "default",
        name: "a",
    };
    assert!(!index.concerns(&target, &[]));
    assert!(index.candidates(&target, &[]).is_empty());
}
