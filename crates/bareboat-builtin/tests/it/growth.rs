//! Checks that the cost of a write grows linearly with its size: every list and map of every kind alone, and pairs of
//! lists that are checked against each other.

use bareboat_api::facts::{Cardinality, Field, Message, MessageRef, Type};
use bareboat_api::kind::{Kind, Now, User, WriteContext};
use bareboat_api::{Map, Object, Value, value};
use bareboat_builtin::quota::Meter;
use bareboat_builtin::{kinds, services};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// The small size; the large one is eight times as large.
const FEW: usize = 250;
const MANY: usize = 8 * FEW;
/// Linear work takes eight times as long for the larger size, quadratic work 64 times.
const LIMIT: u32 = 20;
/// Quadratic work on the larger size takes longer than this.
const AT_ONCE: Duration = Duration::from_millis(12);
/// Shorter times are too close to the resolution of the clock.
const LEAST: Duration = Duration::from_micros(500);

/// Returns the CPU time of this thread, if known.
fn busy() -> Duration {
    // The kernel updates the counter when a thread yields.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    match text
        .split_whitespace()
        .next()
        .and_then(|time| time.parse().ok())
    {
        Some(nanoseconds) => Duration::from_nanos(nanoseconds),
        None => {
            static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
            START.elapsed()
        }
    }
}

/// Returns the CPU time of one write.
fn cost(kind: &Kind, body: &Value) -> Duration {
    let body = body.clone();
    let begun = busy();
    write(kind, body);
    busy() - begun
}

/// Runs create, update and subresource writes of a kind on a body.
fn write(kind: &Kind, mut body: Value) {
    let version = &kind.versions[0];
    if version.shape.conform(&mut body, &mut Vec::new()).is_err() {
        return;
    }
    let filled = version.shape.default(&mut body);
    filled.expect("defaults of built-in kinds are few");
    if let Some(meter) = Meter::of(&kind.group, &kind.names.plural) {
        let _ = meter.usage(&body);
    }
    let mut object = Object::try_from(body).expect("an object");
    let (user, name) = (User::default(), version.name.as_str());
    let context = |part| WriteContext {
        subresource: part,
        user: &user,
        now: "2026-01-01T00:00:00Z",
        version: name,
        dry_run: true,
    };
    let strategy = &kind.strategy;
    strategy.prepare_create(&mut object, &context(None));
    let _ = strategy.reserve(&mut object, None, &context(None));
    let _ = version.shape.validate(object.value(), None);
    let wrong = strategy.validate_create(&object, &context(None));
    let _ = bareboat_api::Status::invalid(kind.group_resource(), "x", &wrong);
    let _ = strategy.warnings(&object, None, &context(None));
    for column in version.columns.iter() {
        let _ = (column.cell)(object.value(), Now(1_800_000_000));
    }
    let written = [
        "status",
        "resize",
        "ephemeralcontainers",
        "approval",
        "finalize",
    ];
    let parts = version.subresources.iter().map(|part| part.name.as_str());
    let parts = parts.filter(|part| written.contains(part)).map(Some);
    for part in std::iter::once(None).chain(parts) {
        let mut new = object.clone();
        strategy.prepare_update(&mut new, &object, &context(part));
        let _ = strategy.validate_update(&new, &object, &context(part));
        let _ = strategy.warnings(&new, Some(&object), &context(part));
    }
}

/// Fails if the cost grows faster than the size.
fn check(kind: &Kind, what: &str, body: impl Fn(usize) -> Value) {
    let (few, many) = (body(FEW), body(MANY));
    let mut best = (Duration::MAX, Duration::MAX);
    // A busy machine may be slow once, but not every time.
    for _ in 0..5 {
        best.1 = best.1.min(cost(kind, &many));
        if best.1 < AT_ONCE {
            return;
        }
        best.0 = best.0.min(cost(kind, &few));
        if best.1 < best.0.max(LEAST) * LIMIT {
            return;
        }
    }
    let plural = &kind.names.plural;
    panic!(
        "{plural} {what}: {FEW} take {:?}, {MANY} take {:?}",
        best.0, best.1
    );
}

fn all_kinds() -> impl Iterator<Item = Kind> {
    let claims = services::Claims::new(services::ServiceRanges::default());
    // Definitions have their own tests, beside their checks: crates/bareboat-schema/tests/growth.
    let all = kinds::all().into_iter();
    let all = all.filter(|kind| kind.names.plural != "customresourcedefinitions");
    all.map(move |kind| match kind.names.plural.as_str() {
        "services" => services::allocating(kind, &claims),
        _ => kind,
    })
}

/// Collects the paths of all lists and maps in a message and its nested messages, each message once.
fn growing(
    message: &MessageRef,
    path: &mut Vec<String>,
    seen: &mut HashSet<String>,
    found: &mut Vec<Vec<String>>,
) {
    if !seen.insert(message.name.to_string()) {
        return;
    }
    for field in message.fields.iter().filter(|field| !field.json.is_empty()) {
        path.push(field.json.to_string());
        if field.cardinality != Cardinality::One {
            found.push(path.clone());
        }
        if let Type::Message(inner) = field.ty {
            growing(&inner, path, seen, found);
        }
        path.pop();
    }
}

/// Returns a value of a field's type, different for each number.
fn sample(field: &Field, number: usize, deep: usize) -> Value {
    match field.ty {
        Type::Bool => Value::Bool(false),
        Type::Int32 | Type::Int64 => Value::Int(1 + number as i64),
        Type::Double => Value::Float(0.5),
        Type::String => match field.values.first() {
            Some(value) => Value::string(value),
            None => Value::string(format!("e{number}")),
        },
        Type::Bytes => Value::string("YQ=="),
        Type::Quantity => Value::string((1 + number).to_string()),
        Type::IntOrString => Value::Int(1 + number as i64),
        Type::Time => Value::string("2026-01-01T00:00:00Z"),
        Type::MicroTime => Value::string("2026-01-01T00:00:00.000000Z"),
        Type::Message(message) => element(&message, number, deep),
        _ => Value::Null,
    }
}

/// Returns an element with some of its members filled in.
fn element(message: &Message, number: usize, deep: usize) -> Value {
    let mut members = Map::new();
    for field in message.fields.iter().filter(|field| !field.json.is_empty()) {
        let below = matches!(field.ty, Type::Message(_));
        if field.cardinality != Cardinality::One || below && deep == 0 {
            continue;
        }
        members.insert(&*field.json, sample(field, number, deep.saturating_sub(1)));
    }
    Value::Object(members)
}

/// Returns an object with `count` elements in the list or map at a path.
fn with(message: &Message, path: &[String], count: usize) -> Value {
    let (name, rest) = path.split_first().expect("a path has an end");
    let field = message.field(name).expect("a path leads along fields");
    let inner = |number: usize| match field.ty {
        Type::Message(message) if !rest.is_empty() => with(&message, rest, count),
        _ => sample(field, number, 1),
    };
    let count = if rest.is_empty() { count } else { 1 };
    let value = match field.cardinality {
        Cardinality::One => inner(0),
        Cardinality::List => (0..count).map(inner).collect(),
        Cardinality::Map => {
            let members = (0..count).map(|number| (format!("k{number}"), inner(number)));
            Value::Object(members.collect())
        }
    };
    let mut object = match element(message, 0, 0) {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    object.insert(&**name, value);
    Value::Object(object)
}

#[test]
fn cost_grows_linearly_with_each_list_of_each_kind() {
    let (mut seen, mut count, begun) = (HashSet::new(), 0, busy());
    for kind in all_kinds() {
        let Some(message) = kind.versions[0].shape.message() else {
            continue;
        };
        // The server checks metadata, for all kinds.
        seen.insert("k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta".to_owned());
        let mut found = Vec::new();
        growing(&message, &mut Vec::new(), &mut seen, &mut found);
        for path in found {
            count += 1;
            check(&kind, &path.join("."), |count| {
                let mut body = with(&message, &path, count);
                let meta = value!({"name": "a", "namespace": "n"});
                body.make_object().insert("metadata", meta);
                body
            });
        }
    }
    println!("{count} lists took {:?}", busy() - begun);
    assert!(count > 300, "only {count} lists were found");
}

/// Returns a list of `count` elements.
fn list(count: usize, element: impl Fn(usize) -> Value) -> Value {
    (0..count).map(element).collect()
}

fn keyed(count: usize, key: impl Fn(usize) -> String, value: &str) -> Value {
    let members = (0..count).map(|number| (key(number), Value::string(value)));
    Value::Object(members.collect())
}

/// The resource, the name of the case, and a body with lists of a given length.
type PairCase<'a> = (&'a str, &'a str, Box<dyn Fn(usize) -> Value>);

#[test]
fn cost_grows_linearly_with_lists_that_are_checked_against_each_other() {
    let pod = |container: Value, spec: Value| {
        let mut container = container;
        let members = container.make_object();
        members.insert("name", value!("c"));
        members.insert("image", value!("i"));
        let mut spec = spec;
        spec.make_object().insert("containers", value!([container]));
        value!({"metadata": {"name": "a", "namespace": "n"}, "spec": spec})
    };
    let named = |count: usize| list(count, |n| value!({"name": (format!("e{n}"))}));
    let cases: Vec<PairCase> = vec![
        (
            "pods",
            "mounts and devices",
            Box::new(move |count| {
                let mounts = list(
                    count,
                    |n| value!({"name": "v", "mountPath": (format!("/m{n}"))}),
                );
                let devices = list(
                    count,
                    |n| value!({"name": (format!("d{n}")), "devicePath": (format!("/d{n}"))}),
                );
                pod(
                    value!({"volumeMounts": mounts, "volumeDevices": devices}),
                    value!({}),
                )
            }),
        ),
        (
            "pods",
            "claims and their names",
            Box::new(move |count| {
                let claims = list(count, |n| value!({"name": (format!("x{n}"))}));
                pod(
                    value!({"resources": {"claims": claims}}),
                    value!({"resourceClaims": (named(count))}),
                )
            }),
        ),
        (
            "pods",
            "claims in parts",
            Box::new(move |count| {
                let claims = list(
                    count,
                    |n| value!({"name": (format!("e{}", n / 2)), "request": (format!("r{n}"))}),
                );
                pod(
                    value!({"resources": {"claims": claims}}),
                    value!({"resourceClaims": (named(count))}),
                )
            }),
        ),
        (
            "pods",
            "duplicate ports",
            Box::new(move |count| {
                let ports = list(
                    count,
                    |n| value!({"containerPort": (1 + (n / 2) as i64), "protocol": "TCP"}),
                );
                pod(value!({"ports": ports}), value!({}))
            }),
        ),
        (
            "pods",
            "ephemeral containers and their targets",
            Box::new(move |count| {
                let looking = list(
                    count,
                    |n| value!({"name": (format!("l{n}")), "image": "i", "targetContainerName": (format!("e{n}"))}),
                );
                let others = list(count, |n| value!({"name": (format!("e{n}")), "image": "i"}));
                pod(
                    value!({}),
                    value!({"ephemeralContainers": looking, "initContainers": others}),
                )
            }),
        ),
        (
            "pods",
            "AppArmor annotations and containers",
            Box::new(move |count| {
                let others = list(count, |n| value!({"name": (format!("e{n}")), "image": "i"}));
                let mut pod = pod(value!({}), value!({"initContainers": others}));
                let prefix = "container.apparmor.security.beta.kubernetes.io";
                let notes = keyed(count, |n| format!("{prefix}/e{n}"), "unconfined");
                pod.make_object()
                    .object_mut("metadata")
                    .insert("annotations", notes);
                pod
            }),
        ),
        (
            "pods",
            "matchLabelKeys and mismatchLabelKeys",
            Box::new(move |count| {
                let keys = |letter: &str| list(count, |n| value!(format!("{letter}{n}")));
                let term = value!({"topologyKey": "t", "labelSelector": {}, "matchLabelKeys": (keys("a")), "mismatchLabelKeys": (keys("b"))});
                let rules = value!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
                pod(value!({}), value!({"affinity": rules}))
            }),
        ),
        (
            "pods",
            "sidecars with resources of their own",
            Box::new(move |count| {
                let others = list(count, |n| {
                    value!({"name": (format!("e{n}")), "image": "i", "restartPolicy": "Always",
                "resources": {"limits": {(format!("example.com/r{n}")): "1"}}})
                });
                pod(value!({}), value!({"initContainers": others}))
            }),
        ),
        (
            "pods",
            "containers and their statuses",
            Box::new(move |count| {
                let others = list(
                    count,
                    |n| value!({"name": (format!("e{n}")), "image": "i", "restartPolicy": "Always"}),
                );
                let mut pod = pod(value!({}), value!({"initContainers": others}));
                pod.make_object()
                    .insert("status", value!({"initContainerStatuses": (named(count))}));
                pod
            }),
        ),
        (
            "resourcequotas",
            "scopes and limits",
            Box::new(|count| {
                let scopes = list(count, |_| value!("BestEffort"));
                let hard = keyed(count, |n| format!("count/e{n}"), "1");
                value!({"metadata": {"name": "a", "namespace": "n"}, "spec": {"scopes": scopes, "hard": hard}})
            }),
        ),
        (
            "resourcequotas",
            "scopes that fit",
            Box::new(|count| {
                let scopes = list(count, |_| value!("BestEffort"));
                value!({"metadata": {"name": "a", "namespace": "n"}, "spec": {"scopes": scopes, "hard": {"pods": "1"}}})
            }),
        ),
        (
            "jobs.batch",
            "rules and containers",
            Box::new(move |count| {
                let rules = list(
                    count,
                    |n| value!({"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1], "containerName": (format!("e{n}"))}}),
                );
                let others = list(count, |n| value!({"name": (format!("e{n}")), "image": "i"}));
                value!({"metadata": {"name": "a", "namespace": "n"}, "spec": {
                    "podFailurePolicy": {"rules": rules},
                    "template": {"spec": {"restartPolicy": "Never", "containers": others}},
                }})
            }),
        ),
        (
            "services",
            "ports on nodes",
            Box::new(|count| {
                let ports = list(
                    count,
                    |n| value!({"name": (format!("e{n}")), "port": (1 + n as i64)}),
                );
                value!({"metadata": {"name": "a", "namespace": "n"}, "spec": {"type": "NodePort", "ports": ports}})
            }),
        ),
    ];
    for (resource, what, body) in cases {
        let (plural, _) = resource.split_once('.').unwrap_or((resource, ""));
        let kind = all_kinds().find(|kind| kind.names.plural == plural);
        check(&kind.expect("a known kind"), what, body);
    }
}
