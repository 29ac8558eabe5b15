//! What the checks read of a pod or of a template of pods, and the words they share.

use crate::reach::Reach as _;
use bareboat_api::{Map, Value};
use std::collections::BTreeSet;

/// A pod, or a template of pods.
#[derive(Clone, Copy)]
pub(super) struct Pod<'a> {
    /// An object with `metadata` and `spec`.
    whole: &'a Value,
}

impl<'a> Pod<'a> {
    pub(super) fn new(whole: &'a Value) -> Pod<'a> {
        Pod { whole }
    }

    /// Returns a member of the spec, unless it is missing or null.
    pub(super) fn spec(&self, path: &[&str]) -> Option<&'a Value> {
        present(self.whole.get("spec")?, path)
    }

    /// Returns whether a member of the spec is `true`.
    pub(super) fn flag(&self, member: &str) -> bool {
        self.spec(&[member]).and_then(Value::as_bool) == Some(true)
    }

    pub(super) fn annotations(&self) -> Option<&'a Map> {
        self.whole.members(&["metadata", "annotations"])
    }

    /// Returns a member of the pod's security context.
    pub(super) fn security(&self, path: &[&str]) -> Option<&'a Value> {
        present(self.spec(&["securityContext"])?, path)
    }

    /// Returns all containers: init, ordinary, ephemeral.
    pub(super) fn containers(&self) -> impl Iterator<Item = Container<'a>> {
        let spec = self.whole.get("spec");
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        let list = move |list| spec.map_or(&[][..], |spec: &Value| spec.list(&[list]));
        lists.into_iter().flat_map(list).map(Container)
    }

    pub(super) fn volumes(&self) -> &'a [Value] {
        self.whole.list(&["spec", "volumes"])
    }

    /// Returns whether the pod says that it runs on Windows.
    pub(super) fn is_windows(&self) -> bool {
        self.spec(&["os", "name"]).and_then(Value::as_str) == Some("windows")
    }

    /// Returns whether the pod has a user namespace of its own.
    pub(super) fn has_user_namespace(&self) -> bool {
        self.spec(&["hostUsers"]).and_then(Value::as_bool) == Some(false)
    }
}

/// A container.
#[derive(Clone, Copy)]
pub(super) struct Container<'a>(pub(super) &'a Value);

impl<'a> Container<'a> {
    pub(super) fn name(&self) -> &'a str {
        self.0.text(&["name"])
    }

    /// Returns a member of the container's security context.
    pub(super) fn security(&self, path: &[&str]) -> Option<&'a Value> {
        present(self.0.get("securityContext")?, path)
    }
}

/// Returns the value at a path, unless it is missing or null.
fn present<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    value.at(path).filter(|found| !found.is_null())
}

/// A failed check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// What is forbidden.
    pub(super) reason: &'static str,
    /// Who sets it, and to what.
    pub(super) detail: String,
}

/// Returns a failure, unless there is no culprit.
pub(super) fn unless_empty(
    culprits: &[&str],
    reason: &'static str,
    detail: impl FnOnce() -> String,
) -> Option<Failure> {
    (!culprits.is_empty()).then(|| Failure {
        reason,
        detail: detail(),
    })
}

/// `"a", "b"`.
pub(super) fn quoted<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let all: Vec<String> = items
        .into_iter()
        .map(|item| format!("\"{}\"", item.as_ref()))
        .collect();
    all.join(", ")
}

/// `container "a"` or `containers "a", "b"`.
pub(super) fn containers(names: &[&str]) -> String {
    let noun = plural("container", "containers", names.len());
    format!("{noun} {}", quoted(names))
}

pub(super) fn plural(one: &'static str, many: &'static str, count: usize) -> &'static str {
    match count {
        1 => one,
        _ => many,
    }
}

/// Collects who sets something forbidden: the pod, or containers of it.
#[derive(Default)]
pub(super) struct Setters<'a> {
    pub(super) pod: bool,
    pub(super) containers: Vec<&'a str>,
    /// The forbidden values.
    pub(super) values: BTreeSet<&'a str>,
}

impl Setters<'_> {
    /// Returns text such as `pod and container "a"`; none if neither the pod nor a container is named.
    pub(super) fn words(&self) -> Option<String> {
        let of_containers = || containers(&self.containers);
        match (self.pod, self.containers.is_empty()) {
            (true, true) => Some("pod".to_owned()),
            (true, false) => Some(format!("pod and {}", of_containers())),
            (false, false) => Some(of_containers()),
            (false, true) => None,
        }
    }
}
