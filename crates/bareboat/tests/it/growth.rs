//! The cost of whole requests grows linearly with their size: metadata, patches and server-side apply.

use crate::memory::alone;
use crate::support::*;
use bareboat_testing::TestServer;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The small size; the large one is eight times as large.
const FEW: usize = 800;
const MANY: usize = 8 * FEW;
/// Linear work takes eight times as long for the larger size, quadratic work 64 times.
const LIMIT: u32 = 20;
/// Shorter times are too close to the resolution of the clock.
const LEAST: Duration = Duration::from_millis(3);

const PODS: &str = "/api/v1/namespaces/default/pods";

/// Returns the CPU time of this process, also of threads that have ended.
fn busy() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap()
}

/// One request: method, path, media type, body, and expected code.
type Request = (&'static str, String, &'static str, Value, u16);

/// Returns the CPU time of the last request; the others prepare for it.
async fn cost(requests: &[Request]) -> Duration {
    let server = TestServer::builder().without_controllers().start().await;
    let mut last = Duration::ZERO;
    for (method, path, media, body, code) in requests {
        let headers = [("content-type", *media)];
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let begun = busy();
        let answer = server.send(method, path, &headers, body).await;
        last = busy() - begun;
        assert_eq!(
            answer.code,
            *code,
            "{method} {path}: {}",
            &answer.text()[..answer.text().len().min(300)]
        );
    }
    server.stop().await;
    last
}

async fn check(what: &str, requests: impl Fn(usize) -> Vec<Request>) {
    let mut best = (Duration::MAX, Duration::MAX);
    // A busy machine may be slow once, but not every time.
    for _ in 0..5 {
        let (few, many) = (cost(&requests(FEW)).await, cost(&requests(MANY)).await);
        best = (best.0.min(few), best.1.min(many));
        if best.1 < best.0.max(LEAST) * LIMIT {
            return;
        }
    }
    panic!("{what}: {FEW} take {:?}, {MANY} take {:?}", best.0, best.1);
}

fn list(count: usize, element: impl Fn(usize) -> Value) -> Value {
    (0..count).map(element).collect()
}

fn map(count: usize, key: impl Fn(usize) -> String) -> Value {
    let members = (0..count).map(|number| (key(number), json!("v")));
    Value::Object(members.collect())
}

fn with(name: &str, member: &str, value: Value) -> Value {
    let mut object = config_map(name);
    object["metadata"][member] = value;
    object
}

fn owner(number: usize, controller: bool) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": format!("o{number}"), "uid": format!("u{number}"),
        "controller": controller})
}

fn post(body: Value, code: u16) -> Request {
    ("POST", MAPS.to_owned(), "application/json", body, code)
}

fn pod(ports: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i", "ports": ports}]}})
}

fn port(number: usize) -> Value {
    json!({"containerPort": 1 + number, "name": format!("p{number}"), "protocol": "TCP"})
}

/// Returns a strategic patch of the ports of a pod.
fn ports(ports: Value, order: Option<Value>) -> Value {
    let mut container = json!({"name": "c", "ports": ports});
    if let Some(order) = order {
        container["$setElementOrder/ports"] = order;
    }
    json!({"spec": {"containers": [container]}})
}

/// Returns an entry of `managedFields` for fields that no object has.
fn manager(number: usize, version: &str, operation: &str, fields: usize) -> Value {
    let fields = (0..fields).map(|field| (format!("f:{number}-{field}"), json!({})));
    let fields: serde_json::Map<String, Value> = fields.collect();
    json!({"manager": format!("m{number}"), "operation": operation, "apiVersion": version,
        "fieldsType": "FieldsV1", "fieldsV1": {"f:data": fields}})
}

/// Returns a ConfigMap with entries of managers.
fn managed(count: usize, entry: impl Fn(usize) -> Value) -> Value {
    let mut object = with("a", "managedFields", list(count, entry));
    object["data"] = map(count, |n| format!("a{n}"));
    object
}

/// Clients may send any list of managers.
async fn measure_managers() {
    let path = || format!("{MAPS}/a");
    let put = |body: Value| ("PUT", path(), "application/json", body, 200);
    let apply = |keys: usize| {
        let mut object = config_map("a");
        object["data"] = map(keys, |n| format!("b{n}"));
        let path = format!("{MAPS}/a?fieldManager=one&force=true");
        ("PATCH", path, APPLY, object, 200)
    };
    check("managers", |count| {
        vec![post(managed(count, |n| manager(n, "v1", "Apply", 1)), 201)]
    })
    .await;
    check("managers that update", |count| {
        vec![post(managed(count, |n| manager(n, "v1", "Update", 5)), 201)]
    })
    .await;
    check("managers with unknown versions", |count| {
        let entry = |n: usize| manager(n, &format!("v{n}"), "Update", 1);
        vec![post(managed(count, entry), 201)]
    })
    .await;
    check(
        "managers of which every second one keeps a field",
        |count| {
            let entry = |n: usize| manager(n, "v1", "Apply", n % 2);
            vec![post(managed(count, entry), 201)]
        },
    )
    .await;
    check("fields of one manager", |count| {
        vec![post(managed(1, |n| manager(n, "v1", "Apply", count)), 201)]
    })
    .await;
    check("managers in an update", |count| {
        let all = || managed(count, |n| manager(n, "v1", "Apply", 1));
        let mut new = all();
        new["data"] = map(count, |n| format!("b{n}"));
        vec![post(all(), 201), put(new)]
    })
    .await;
    check("managers with unknown versions in an update", |count| {
        let entry = |n: usize| manager(n, &format!("v{n}"), "Apply", 1);
        vec![post(config_map("a"), 201), put(managed(count, entry))]
    })
    .await;
    check("managers at the first apply", |count| {
        let all = managed(count, |n| manager(n, "v1", "Apply", 5));
        vec![post(all, 201), apply(count)]
    })
    .await;
    check(
        "managers at an apply without fields of the one before",
        |count| {
            let all = managed(count, |n| manager(n, "v1", "Apply", 5));
            vec![post(all, 201), apply(count), apply(1)]
        },
    )
    .await;
}

#[test]
fn cost_grows_linearly_with_the_length_of_a_request() {
    alone(
        "growth::cost_grows_linearly_with_the_length_of_a_request",
        measure(),
    );
}

async fn measure() {
    check("owners", |count| {
        vec![post(
            with("a", "ownerReferences", list(count, |n| owner(n, false))),
            201,
        )]
    })
    .await;
    check("duplicate owners", |count| {
        vec![post(
            with("a", "ownerReferences", list(count, |n| owner(n / 2, false))),
            201,
        )]
    })
    .await;
    check("several controllers", |count| {
        vec![post(
            with("a", "ownerReferences", list(count, |n| owner(n, true))),
            422,
        )]
    })
    .await;
    check("invalid labels", |count| {
        vec![post(
            with("a", "labels", map(count, |n| format!("-{n}"))),
            422,
        )]
    })
    .await;
    check("annotations", |count| {
        vec![post(
            with("a", "annotations", map(count, |n| format!("a{n}"))),
            201,
        )]
    })
    .await;
    check("finalizers", |count| {
        vec![post(
            with(
                "a",
                "finalizers",
                list(count, |n| json!(format!("example.com/f{n}"))),
            ),
            201,
        )]
    })
    .await;
    check("finalizers added during deletion", |count| {
        let names = |letter: &str| list(count, |n| json!(format!("example.com/{letter}{n}")));
        let patch = json!({"metadata": {"finalizers": names("g")}});
        let path = format!("{MAPS}/a");
        vec![
            post(with("a", "finalizers", names("f")), 201),
            ("DELETE", path.clone(), "application/json", Value::Null, 200),
            ("PATCH", path, MERGE, patch, 422),
        ]
    })
    .await;
    check("unknown fields", |count| {
        let mut object = config_map("a");
        for number in 0..count {
            object[format!("unknown{number}")] = json!(1);
        }
        vec![post(object, 201)]
    })
    .await;
    check("data applied by two managers", |count| {
        let object = |letter: &str| {
            let mut object = config_map("a");
            object["data"] = map(count, |n| format!("{letter}{n}"));
            object
        };
        let path = |manager: &str| format!("{MAPS}/a?fieldManager={manager}&force=true");
        vec![
            ("PATCH", path("one"), APPLY, object("a"), 201),
            ("PATCH", path("two"), APPLY, object("b"), 200),
            ("PATCH", path("one"), APPLY, object("c"), 200),
        ]
    })
    .await;
    measure_managers().await;
    check("ports by server-side apply", |count| {
        let path = format!("{PODS}/p?fieldManager=one&force=true");
        let first = pod(list(count, port));
        vec![
            ("PATCH", path.clone(), APPLY, first.clone(), 201),
            ("PATCH", path, APPLY, first, 200),
        ]
    })
    .await;
    check("ports by strategic merge", |count| {
        let order = list(count, |n| json!({"containerPort": 1 + n}));
        let patch = ports(list(count, port), Some(order));
        vec![
            (
                "POST",
                PODS.to_owned(),
                "application/json",
                pod(list(count, port)),
                201,
            ),
            ("PATCH", format!("{PODS}/p"), STRATEGIC, patch, 200),
        ]
    })
    .await;
    check("ports deleted by strategic merge", |count| {
        let gone = |n: usize| json!({"containerPort": 1 + n, "$patch": "delete"});
        let patch = ports(list(count, gone), None);
        vec![
            (
                "POST",
                PODS.to_owned(),
                "application/json",
                pod(list(count, port)),
                201,
            ),
            // Ports of a pod are immutable. The patch is merged before that is checked.
            ("PATCH", format!("{PODS}/p"), STRATEGIC, patch, 422),
        ]
    })
    .await;
    check("members set and removed by merge patch", |count| {
        let mut object = config_map("a");
        object["data"] = map(count, |n| format!("a{n}"));
        let mut patch = serde_json::Map::new();
        for number in 0..count {
            patch.insert(format!("a{number}"), Value::Null);
            patch.insert(format!("b{number}"), json!("v"));
        }
        vec![
            post(object, 201),
            (
                "PATCH",
                format!("{MAPS}/a"),
                MERGE,
                json!({"data": patch}),
                200,
            ),
        ]
    })
    .await;
    check("operations of a JSON patch", |count| {
        let operation =
            |n: usize| json!({"op": "add", "path": format!("/data/k{n}"), "value": "v"});
        vec![
            post(config_map("a"), 201),
            (
                "PATCH",
                format!("{MAPS}/a"),
                JSON_PATCH,
                list(count, operation),
                200,
            ),
        ]
    })
    .await;
}
