//! The default roles and bindings.
//!
//! [`objects`] returns them as values. [`repair`] updates an existing one without removing
//! additions.

use crate::rule::Rule;
use bareboat_api::{Map, Str, Value, value};

mod repair;

pub use repair::{Repair, repair};

const POLICY: &str = include_str!("defaults/policy.txt");
const GROUP: &str = "rbac.authorization.k8s.io";
/// The annotation that turns repair off when its value is `"false"`.
pub const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// The set of default objects that a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// All of them, as in kube-apiserver.
    Full,
    /// The ones that a control plane without nodes and workloads needs.
    Bare,
}

/// Returns the default objects: roles first, then bindings. Each is made when the iterator reaches it, so that a caller
/// need not hold all of them.
///
/// `serves` returns whether the server has a resource, given its group and name without
/// subresource. In the bare set, rules of the aggregated roles (`admin`, `edit`, `view`) name only
/// served resources.
pub fn objects<'a>(
    set: Set,
    serves: &'a (dyn Fn(&str, &str) -> bool + Sync),
) -> impl Iterator<Item = Value> + 'a {
    blocks()
        .filter(move |block| set == Set::Full || block.words.contains(&"bare"))
        .map(move |block| {
            let trim = set == Set::Bare && block.place.starts_with("system:aggregate-to-");
            block.object(&|group, resource| !trim || serves(group, resource))
        })
}

/// The namespace of the service accounts that controllers write as.
const CONTROLLERS: &str = "kube-system";

/// The default roles and bindings of some of Kubernetes' controllers, given the names of their service accounts.
pub fn of_controllers(accounts: &[&str]) -> impl Iterator<Item = Value> {
    blocks()
        .filter(|block| {
            // The place of an object in a namespace has the namespace before its name.
            let account = block.place.strip_prefix("system:controller:");
            account.is_some_and(|account| accounts.contains(&account))
        })
        .map(|block| block.object(&|_, _| true))
}

/// The lines about one object.
struct Block {
    kind: &'static str,
    place: &'static str,
    /// The other words of its first line.
    words: Vec<&'static str>,
    details: Vec<&'static str>,
}

impl Block {
    fn object(&self, serves: &dyn Fn(&str, &str) -> bool) -> Value {
        let mut value = begin(self.kind, self.place, &self.words);
        if let Value::Object(object) = &mut value {
            for detail in &self.details {
                add(object, detail, serves);
            }
        }
        value
    }
}

fn blocks() -> impl Iterator<Item = Block> {
    let mut lines = POLICY
        .lines()
        .filter(|line| !line.starts_with('#'))
        .peekable();
    std::iter::from_fn(move || {
        let mut words = lines.next()?.split(' ');
        let mut block = Block {
            kind: words.next().unwrap_or(""),
            place: words.next().unwrap_or(""),
            words: words.collect(),
            details: Vec::new(),
        };
        while let Some(detail) = lines.peek().and_then(|line| line.strip_prefix("  ")) {
            block.details.push(detail);
            lines.next();
        }
        Some(block)
    })
}

/// A role and its binding for a controller that Kubernetes does not have: in one namespace, or in all of them.
pub fn controller_role(account: &str, namespace: Option<&str>, rules: &[Rule]) -> [Value; 2] {
    let name = format!("system:controller:{account}");
    let (prefix, place) = match namespace {
        Some(namespace) => ("", format!("{namespace}/{name}")),
        None => ("Cluster", name.clone()),
    };
    let mut role = begin(&format!("{prefix}Role"), &place, &[]);
    let mut binding = begin(&format!("{prefix}RoleBinding"), &place, &[]);
    if let (Value::Object(role), Value::Object(binding)) = (&mut role, &mut binding) {
        for rule in rules {
            push(role, "rules", rule.to_value());
        }
        add(binding, &format!("grants {prefix}Role {name}"), &|_, _| {
            true
        });
        let subject = format!("to ServiceAccount {CONTROLLERS}/{account}");
        add(binding, &subject, &|_, _| true);
    }
    [role, binding]
}

/// Reads a rule in the notation of the default roles: `VERBS | GROUPS | RESOURCES [| NAMES]`, with `core` for the group
/// without a name.
pub fn rule(line: &str) -> Rule {
    rule_of(line, &|_, _| true).unwrap_or_default()
}

/// Returns an object without rules, roleRef and subjects.
fn begin(kind: &str, place: &str, words: &[&str]) -> Value {
    let (namespace, name) = match place.split_once('/') {
        Some((namespace, name)) => (namespace, name),
        None => ("", place),
    };
    let mut labels = Map::new();
    labels.insert("kubernetes.io/bootstrapping", Value::from("rbac-defaults"));
    for label in words.iter().filter_map(|word| word.strip_prefix("label=")) {
        labels.insert(Str::new(format!("{GROUP}/{label}")), Value::from("true"));
    }
    let mut annotations = Map::new();
    annotations.insert(AUTO_UPDATE, Value::from("true"));
    let mut metadata = Map::new();
    metadata.insert("annotations", Value::Object(annotations));
    metadata.insert("labels", Value::Object(labels));
    metadata.insert("name", Value::from(name));
    if !namespace.is_empty() {
        metadata.insert("namespace", Value::from(namespace));
    }
    let mut object = Map::new();
    object.insert("apiVersion", Value::from("rbac.authorization.k8s.io/v1"));
    object.insert("kind", Value::from(kind));
    object.insert("metadata", Value::Object(metadata));
    Value::Object(object)
}

/// Adds the content of one line to its object.
fn add(object: &mut Map, detail: &str, serves: &dyn Fn(&str, &str) -> bool) {
    if let Some(label) = detail.strip_prefix("aggregate ") {
        let mut labels = Map::new();
        labels.insert(Str::new(format!("{GROUP}/{label}")), Value::from("true"));
        let labels = Value::Object(labels);
        object.insert(
            "aggregationRule",
            value!({"clusterRoleSelectors": [{"matchLabels": (labels)}]}),
        );
    } else if let Some(role) = detail.strip_prefix("grants ") {
        let (kind, name) = role.split_once(' ').unwrap_or((role, ""));
        object.insert(
            "roleRef",
            value!({"apiGroup": (GROUP), "kind": (kind), "name": (name)}),
        );
    } else if let Some(subject) = detail.strip_prefix("to ") {
        push(object, "subjects", subject_of(subject));
    } else if let Some(rule) = rule_of(detail, serves) {
        push(object, "rules", rule.to_value());
    }
}

fn subject_of(text: &str) -> Value {
    let (kind, name) = text.split_once(' ').unwrap_or((text, ""));
    match kind {
        "ServiceAccount" => {
            let (namespace, name) = name.split_once('/').unwrap_or(("", name));
            value!({"kind": (kind), "name": (name), "namespace": (namespace)})
        }
        _ => value!({"apiGroup": (GROUP), "kind": (kind), "name": (name)}),
    }
}

/// Parses the rule of a line; `None` if none of its resources is served.
fn rule_of(line: &str, serves: &dyn Fn(&str, &str) -> bool) -> Option<Rule> {
    let words = |part: Option<&str>| -> Vec<Str> {
        part.unwrap_or("")
            .split_whitespace()
            .map(|word| Str::new(if word == "core" { "" } else { word }))
            .collect()
    };
    let mut parts = line.split('|').map(str::trim);
    let verbs = words(parts.next());
    let groups = parts.next();
    if groups == Some("urls") {
        return Some(Rule {
            verbs,
            non_resource_urls: words(parts.next()),
            ..Rule::default()
        });
    }
    let api_groups = words(groups);
    let mut resources = words(parts.next());
    resources.retain(|resource| {
        let parent = resource.split('/').next().unwrap_or("");
        api_groups.iter().any(|group| serves(group, parent))
    });
    (!resources.is_empty()).then(|| Rule {
        verbs,
        api_groups,
        resources,
        resource_names: words(parts.next()),
        non_resource_urls: Vec::new(),
    })
}

fn push(object: &mut Map, key: &'static str, item: Value) {
    match object.get_mut(key) {
        Some(Value::Array(list)) => list.push(item),
        _ => {
            object.insert(key, Value::Array(vec![item]));
        }
    }
}
