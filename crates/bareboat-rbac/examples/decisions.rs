//! Measures decisions, memory and changes with many roles and bindings.
//!
//!     cargo run --release --package bareboat-rbac --example decisions

use bareboat_api::kind::User;
use bareboat_api::{Str, Value, value};
use bareboat_rbac::{Policy, Request, Scope};
use std::hint::black_box;
use std::time::Instant;

const ROLES: usize = 1_000;
const BINDINGS: usize = 10_000;
const USERS: usize = 2_000;
const ROUNDS: usize = 200_000;

fn role(index: usize) -> Value {
    let rules: Vec<Value> = (0..8)
        .map(|rule| {
            let resource = format!("things{}", (index * 7 + rule) % 400);
            value!({
                "apiGroups": ["", "example.com"],
                "resources": [(resource.as_str()), (format!("{resource}/status"))],
                "verbs": ["get", "list", "watch", "update"],
            })
        })
        .collect();
    value!({"rules": (Value::Array(rules))})
}

fn binding(index: usize, user: usize, role: usize) -> Value {
    value!({
        "metadata": {"name": (format!("binding-{index}"))},
        "roleRef": {"kind": "ClusterRole", "name": (format!("role-{role}"))},
        "subjects": [{"kind": "User", "name": (format!("user-{user}"))}],
    })
}

fn user(index: usize) -> User {
    User {
        name: Str::new(format!("user-{index}")),
        groups: vec!["dev".into(), "system:authenticated".into()],
        ..User::default()
    }
}

/// Returns the resident memory in bytes.
fn memory() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or(0) * 4096
}

fn time(what: &str, policy: &Policy, verb: &str, expected: bool) {
    let users: Vec<User> = (0..USERS).map(user).collect();
    let namespaces: Vec<String> = (0..100).map(|index| format!("ns-{index}")).collect();
    let resources: Vec<String> = (0..ROLES)
        .map(|index| format!("things{}", index * 7 % 400))
        .collect();
    let mut samples = Vec::with_capacity(ROUNDS / 100);
    let mut allowed = 0;
    for batch in 0..ROUNDS / 100 {
        let begun = Instant::now();
        for step in 0..100 {
            let index = (batch * 100 + step) % BINDINGS;
            let request = Request::Resource {
                verb,
                group: "example.com",
                resource: &resources[index % ROLES],
                subresource: "",
                namespace: &namespaces[index % 100],
                name: "x",
            };
            allowed += usize::from(policy.allows(black_box(&users[index % USERS]), &request));
        }
        samples.push(begun.elapsed().as_nanos() / 100);
    }
    samples.sort_unstable();
    let share = allowed * 100 / ROUNDS;
    assert_eq!(share > 90, expected, "{share} % were allowed");
    println!(
        "{what}: median {} ns, 99th percentile {} ns",
        samples[samples.len() / 2],
        samples[samples.len() * 99 / 100]
    );
}

fn main() {
    let policy = Policy::new();
    for index in 0..ROLES {
        policy.set_role(Scope::Cluster, &format!("role-{index}"), Some(&role(index)));
    }
    let before = memory();
    for index in 0..BINDINGS {
        let namespace = format!("ns-{}", index % 100);
        let value = binding(index, index % USERS, index % ROLES);
        policy.set_binding(
            Scope::Namespace(&namespace),
            &format!("binding-{index}"),
            Some(&value),
        );
    }
    println!("{} bytes a binding", (memory() - before) / BINDINGS);
    time("allowed", &policy, "get", true);
    time("refused", &policy, "delete", false);
    let begun = Instant::now();
    for index in 0..1_000 {
        let namespace = format!("ns-{}", index % 100);
        let value = binding(index, (index + 1) % USERS, index % ROLES);
        policy.set_binding(
            Scope::Namespace(&namespace),
            &format!("binding-{index}"),
            Some(&value),
        );
    }
    println!(
        "a changed binding: {} ns",
        begun.elapsed().as_nanos() / 1_000
    );
}
