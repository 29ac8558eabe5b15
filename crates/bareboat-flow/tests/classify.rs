//! Which schema a request belongs to.

use bareboat_api::kind::User;
use bareboat_api::{Str, Value, value};
use bareboat_flow::{Classifier, Distinguisher, Request, Schema, defaults};
use std::sync::Arc;

fn user(name: &str, groups: &[&str]) -> User {
    User {
        name: Str::new(name),
        groups: groups.iter().map(|group| Str::new(group)).collect(),
        ..User::default()
    }
}

fn classifier(objects: &[Value]) -> Classifier {
    Classifier::new(
        objects
            .iter()
            .map(|object| Arc::new(Schema::from_value(object))),
    )
}

fn resource<'a>(
    verb: &'a str,
    group: &'a str,
    resource: &'a str,
    namespace: &'a str,
) -> Request<'a> {
    Request::Resource {
        verb,
        group,
        resource,
        subresource: "",
        namespace,
    }
}

fn found<'a>(table: &'a Classifier, user: &User, request: &Request<'_>) -> &'a str {
    let place = table.classify(user, request);
    place.map_or("", |place| table.schemas()[place].name.as_str())
}

#[test]
fn requests_find_the_default_schemas() {
    let table = classifier(&defaults::schemas());
    let known = "system:authenticated";
    let node = user("system:node:a", &["system:nodes", known]);
    let account = |namespace: &str| {
        let group = format!("system:serviceaccounts:{namespace}");
        user(
            &format!("system:serviceaccount:{namespace}:x"),
            &["system:serviceaccounts", &group, known],
        )
    };
    let manager = user("system:kube-controller-manager", &[known]);
    let lease = |verb| resource(verb, "coordination.k8s.io", "leases", "kube-system");
    let pods = resource("list", "", "pods", "");
    let status = Request::Resource {
        verb: "patch",
        group: "",
        resource: "nodes",
        subresource: "status",
        namespace: "",
    };
    let url = |path| Request::Url { verb: "get", path };
    for (who, request, expected) in [
        (&user("admin", &["system:masters", known]), &pods, "exempt"),
        (&user("a", &[known]), &url("/livez"), "probes"),
        (&user("a", &[known]), &url("/livez/ping"), "probes"),
        (&user("a", &[known]), &url("/livezz"), "global-default"),
        (&manager, &lease("update"), "system-leader-election"),
        (&manager, &lease("watch"), "kube-controller-manager"),
        (
            &user("system:kube-scheduler", &[known]),
            &pods,
            "kube-scheduler",
        ),
        (
            &account("kube-system"),
            &lease("get"),
            "system-leader-election",
        ),
        (
            &account("kube-system"),
            &pods,
            "kube-system-service-accounts",
        ),
        (&account("kube-system2"), &pods, "service-accounts"),
        (&account("default"), &lease("get"), "service-accounts"),
        (&node, &status, "system-node-high"),
        (&node, &lease("update"), "system-node-high"),
        (&node, &pods, "system-nodes"),
        (&user("a", &[known]), &pods, "global-default"),
        (
            &user("system:anonymous", &["system:unauthenticated"]),
            &pods,
            "global-default",
        ),
        (&user("nobody", &[]), &pods, ""),
    ] {
        assert_eq!(found(&table, who, request), expected, "{who:?} {request:?}");
    }
}

fn schema(name: &str, precedence: i64, subject: Value, rule: Value) -> Value {
    value!({
        "metadata": {"name": (name), "uid": "u"},
        "spec": {
            "matchingPrecedence": (precedence),
            "priorityLevelConfiguration": {"name": "l"},
            "distinguisherMethod": {"type": "ByNamespace"},
            "rules": [{"subjects": [(subject)], "resourceRules": [(rule)]}],
        },
    })
}

#[test]
fn lower_precedence_comes_first_and_then_the_name() {
    let everybody = value!({"kind": "Group", "group": {"name": "*"}});
    let rule =
        value!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]});
    let make = |name, precedence| schema(name, precedence, everybody.clone(), rule.clone());
    let table = classifier(&[make("c", 5), make("b", 7), make("a", 7)]);
    let order: Vec<&str> = table
        .schemas()
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(order, ["c", "a", "b"]);
    let request = resource("get", "", "pods", "x");
    assert_eq!(found(&table, &user("z", &[]), &request), "c");
    let cluster = resource("get", "", "nodes", "");
    assert_eq!(
        found(&table, &user("z", &[]), &cluster),
        "",
        "no rule has clusterScope"
    );
}

#[test]
fn rules_are_matched_word_by_word() {
    let subject =
        value!({"kind": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": "x"}});
    let rule = value!({
        "verbs": ["get", "list"], "apiGroups": ["", "apps"], "resources": ["pods", "pods/log"], "namespaces": ["n"],
    });
    let table = classifier(&[schema("s", 5, subject, rule)]);
    let me = user("system:serviceaccount:n:x", &[]);
    for (verb, group, plural, namespace, expected) in [
        ("get", "", "pods", "n", "s"),
        ("list", "apps", "pods", "n", "s"),
        ("watch", "", "pods", "n", ""),
        ("get", "batch", "pods", "n", ""),
        ("get", "", "pod", "n", ""),
        ("get", "", "pods", "m", ""),
        ("get", "", "pods", "", ""),
    ] {
        let request = resource(verb, group, plural, namespace);
        assert_eq!(found(&table, &me, &request), expected, "{request:?}");
    }
    let part = |subresource| Request::Resource {
        verb: "get",
        group: "",
        resource: "pods",
        subresource,
        namespace: "n",
    };
    assert_eq!(found(&table, &me, &part("log")), "s");
    assert_eq!(found(&table, &me, &part("status")), "");
    let other = user("system:serviceaccount:n:xy", &[]);
    assert_eq!(found(&table, &other, &part("log")), "");
    let flow = Distinguisher::ByNamespace;
    assert_eq!(flow.of(&me, &part("log")), "n");
    assert_eq!(Distinguisher::ByUser.of(&me, &part("log")), &*me.name);
}
