//! The priority levels and flow schemas of a fresh server.
//!
//! [`levels`] and [`schemas`] return them as values. [`repair`] decides whether a stored one must be replaced.

use crate::level::Queuing;
use bareboat_api::{Map, Str, Value, value};

const API_VERSION: &str = "flowcontrol.apiserver.k8s.io/v1";
/// The annotation that says whether the server keeps the spec of a default object up to date.
pub const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

/// Whether a level or a schema must exist with just the spec it has here.
pub fn is_mandatory(name: &str) -> bool {
    matches!(name, "exempt" | "catch-all")
}

/// Returns the default priority levels.
pub fn levels() -> Vec<Value> {
    let queues = |queues: u32, hand_size: u32| {
        Some(Queuing {
            queues,
            hand_size,
            length_limit: 50,
        })
    };
    let exempt = value!({
        "exempt": {"lendablePercent": 0, "nominalConcurrencyShares": 0},
        "type": "Exempt",
    });
    vec![
        object("PriorityLevelConfiguration", "exempt", exempt),
        limited("catch-all", 5, 0, None),
        limited("system", 30, 33, queues(64, 6)),
        limited("node-high", 40, 25, queues(64, 6)),
        limited("leader-election", 10, 0, queues(16, 4)),
        limited("workload-high", 40, 50, queues(128, 6)),
        limited("workload-low", 100, 90, queues(128, 6)),
        limited("global-default", 20, 50, queues(128, 6)),
    ]
}

/// Returns the default flow schemas.
pub fn schemas() -> Vec<Value> {
    let everybody = || {
        vec![
            group("system:unauthenticated"),
            group("system:authenticated"),
        ]
    };
    let probes = value!({
        "nonResourceURLs": ["/healthz", "/readyz", "/livez"],
        "verbs": ["get"],
    });
    let leases = |verbs: Value| {
        value!({
            "apiGroups": ["coordination.k8s.io"],
            "namespaces": ["*"],
            "resources": ["leases"],
            "verbs": (verbs),
        })
    };
    let nodes = value!({
        "apiGroups": [""],
        "clusterScope": true,
        "namespaces": ["*"],
        "resources": ["nodes", "nodes/status"],
        "verbs": ["*"],
    });
    let election = leases(value!(["get", "create", "update"]));
    let (user, namespace) = (Some("ByUser"), Some("ByNamespace"));
    let manager = "system:kube-controller-manager";
    let scheduler = "system:kube-scheduler";
    let electors = || vec![person(manager), person(scheduler), accounts("kube-system")];
    vec![
        schema(
            "exempt",
            1,
            "exempt",
            None,
            everything(vec![group("system:masters")]),
        ),
        schema(
            "probes",
            2,
            "exempt",
            None,
            rule(everybody(), vec![], vec![probes]),
        ),
        schema(
            "system-leader-election",
            100,
            "leader-election",
            user,
            rule(electors(), vec![election], vec![]),
        ),
        schema(
            "system-node-high",
            400,
            "node-high",
            user,
            rule(
                vec![group("system:nodes")],
                vec![nodes, leases(value!(["*"]))],
                vec![],
            ),
        ),
        schema(
            "system-nodes",
            500,
            "system",
            user,
            everything(vec![group("system:nodes")]),
        ),
        schema(
            "kube-controller-manager",
            800,
            "workload-high",
            namespace,
            everything(vec![person(manager)]),
        ),
        schema(
            "kube-scheduler",
            800,
            "workload-high",
            namespace,
            everything(vec![person(scheduler)]),
        ),
        schema(
            "kube-system-service-accounts",
            900,
            "workload-high",
            namespace,
            everything(vec![accounts("kube-system")]),
        ),
        schema(
            "service-accounts",
            9000,
            "workload-low",
            user,
            everything(vec![group("system:serviceaccounts")]),
        ),
        schema(
            "global-default",
            9900,
            "global-default",
            user,
            everything(everybody()),
        ),
        schema(
            "catch-all",
            10000,
            "catch-all",
            user,
            everything(everybody()),
        ),
    ]
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    let mut annotations = Map::new();
    annotations.insert(AUTO_UPDATE, Value::from("true"));
    let annotations = Value::Object(annotations);
    value!({
        "apiVersion": (API_VERSION),
        "kind": (kind),
        "metadata": {"annotations": (annotations), "name": (name)},
        "spec": (spec),
    })
}

fn limited(name: &str, shares: i64, lendable: i64, queuing: Option<Queuing>) -> Value {
    let response = match queuing {
        None => value!({"type": "Reject"}),
        Some(queuing) => value!({
            "queuing": {
                "handSize": (i64::from(queuing.hand_size)),
                "queueLengthLimit": (i64::from(queuing.length_limit)),
                "queues": (i64::from(queuing.queues)),
            },
            "type": "Queue",
        }),
    };
    let spec = value!({
        "limited": {
            "lendablePercent": (lendable),
            "limitResponse": (response),
            "nominalConcurrencyShares": (shares),
        },
        "type": "Limited",
    });
    object("PriorityLevelConfiguration", name, spec)
}

fn schema(name: &str, precedence: i64, level: &str, by: Option<&str>, rule: Value) -> Value {
    let mut spec = value!({
        "matchingPrecedence": (precedence),
        "priorityLevelConfiguration": {"name": (level)},
        "rules": [(rule)],
    });
    if let Some(by) = by {
        let spec = spec.make_object();
        spec.insert("distinguisherMethod", value!({"type": (by)}));
    }
    object("FlowSchema", name, spec)
}

fn rule(subjects: Vec<Value>, resources: Vec<Value>, urls: Vec<Value>) -> Value {
    let mut rule = Map::new();
    let lists = [
        ("subjects", subjects),
        ("resourceRules", resources),
        ("nonResourceRules", urls),
    ];
    for (key, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        rule.insert(key, Value::Array(list));
    }
    Value::Object(rule)
}

/// A rule about all requests of some subjects.
fn everything(subjects: Vec<Value>) -> Value {
    let resources = value!({
        "apiGroups": ["*"],
        "clusterScope": true,
        "namespaces": ["*"],
        "resources": ["*"],
        "verbs": ["*"],
    });
    let urls = value!({"nonResourceURLs": ["*"], "verbs": ["*"]});
    rule(subjects, vec![resources], vec![urls])
}

fn group(name: &str) -> Value {
    value!({"group": {"name": (name)}, "kind": "Group"})
}

fn person(name: &str) -> Value {
    value!({"kind": "User", "user": {"name": (name)}})
}

/// All service accounts of a namespace.
fn accounts(namespace: &str) -> Value {
    value!({"kind": "ServiceAccount", "serviceAccount": {"name": "*", "namespace": (namespace)}})
}

/// What to do about a default object that exists.
#[derive(Clone, Debug, PartialEq)]
pub enum Repair {
    /// The stored object is up to date, or its owner changed it.
    Nothing,
    /// The stored object must be replaced with this one.
    Update(Value),
}

/// Compares a stored object with its default.
///
/// The spec of a mandatory object is always restored, except for the seats of the level `exempt`. Other objects are
/// kept up to date if their annotation says so. An object without the annotation gets it: `"true"` if its spec was never
/// changed, `"false"` if it was.
pub fn repair(stored: &Value, default: &Value) -> Repair {
    let text = |object: &Value, path: &[&str]| {
        let found = object.at(path).and_then(Value::as_str);
        found.map(Str::new)
    };
    let name = text(default, &["metadata", "name"]).unwrap_or_default();
    let kept = text(stored, &["metadata", "annotations", AUTO_UPDATE]);
    let untouched = stored
        .at(&["metadata", "generation"])
        .and_then(Value::as_i64)
        == Some(1);
    let mandatory = is_mandatory(&name);
    let update = match kept.as_deref() {
        _ if mandatory => true,
        Some("true") => true,
        Some("false") => return Repair::Nothing,
        _ => untouched,
    };
    let mut wanted = stored.clone();
    if update {
        let mut spec = default.get("spec").cloned().unwrap_or_default();
        if mandatory && let Some(own) = stored.at(&["spec", "exempt"]).filter(|own| !own.is_null())
        {
            let same_kind = spec.get("exempt").is_some();
            if same_kind {
                spec.make_object().insert("exempt", own.clone());
            }
        }
        wanted.make_object().insert("spec", spec);
    }
    let metadata = wanted.make_object().object_mut("metadata");
    let says = Value::from(if update { "true" } else { "false" });
    metadata.object_mut("annotations").insert(AUTO_UPDATE, says);
    match wanted == *stored {
        true => Repair::Nothing,
        false => Repair::Update(wanted),
    }
}
