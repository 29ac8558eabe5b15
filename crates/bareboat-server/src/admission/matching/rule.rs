//! Rules: operations, groups, versions, resources, scope and names that a request must have.

use bareboat_api::admission::{Operation, Review};
use bareboat_api::{Str, Value};

/// Group, version and resource of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) resource: &'a str,
}

/// The parts of a request that rules are about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) operation: Operation,
    pub(crate) place: Place<'a>,
    pub(crate) subresource: &'a str,
    /// The namespace; for a Namespace its own name.
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

impl<'a> Target<'a> {
    /// Returns the target of a review.
    pub(crate) fn of(review: &'a Review<'_>) -> Target<'a> {
        Target {
            operation: review.operation,
            place: Place {
                group: &review.kind.group,
                version: review.version,
                resource: &review.kind.names.plural,
            },
            subresource: review.subresource,
            namespace: review.attributed_namespace(),
            name: review.name,
        }
    }
}

/// The scope of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    All,
    Cluster,
    Namespaced,
    /// A text that is none of these matches nothing.
    Unknown,
}

/// A rule of a webhook or a policy.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    operations: Operations,
    groups: Vec<Str>,
    versions: Vec<Str>,
    /// Resource and subresource; either may be `*`.
    resources: Vec<(Str, Str)>,
    scope: Scope,
    /// Names of objects; none match all.
    names: Vec<Str>,
}

/// A set of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Operations(u8);

impl Operations {
    pub(super) const ALL: Operations = Operations(0b1111);

    fn of(operation: Operation) -> Operations {
        Operations(match operation {
            Operation::Create => 1,
            Operation::Update => 2,
            Operation::Delete => 4,
            Operation::Connect => 8,
        })
    }

    fn named(name: &str) -> Operations {
        let all = [
            Operation::Create,
            Operation::Update,
            Operation::Delete,
            Operation::Connect,
        ];
        match name {
            "*" => Operations::ALL,
            _ => {
                let found = all.into_iter().find(|known| known.name() == name);
                found.map_or(Operations::default(), Operations::of)
            }
        }
    }

    /// Returns whether the operation is in the set.
    pub(crate) fn has(self, operation: Operation) -> bool {
        self.0 & Operations::of(operation).0 != 0
    }
}

impl Rule {
    /// Reads a rule of a stored, valid configuration.
    pub(crate) fn read(rule: &Value) -> Rule {
        let texts = |key: &str| {
            let items = rule.get(key).and_then(Value::as_array).unwrap_or(&[]);
            items.iter().filter_map(Value::as_str)
        };
        let strings = |key: &str| texts(key).map(Str::new).collect::<Vec<Str>>();
        let mut operations = Operations::default();
        for name in texts("operations") {
            operations.0 |= Operations::named(name).0;
        }
        let split = |text: &str| match text.split_once('/') {
            Some((resource, part)) => (Str::new(resource), Str::new(part)),
            None => (Str::new(text), Str::default()),
        };
        Rule {
            operations,
            groups: strings("apiGroups"),
            versions: strings("apiVersions"),
            resources: texts("resources").map(split).collect(),
            scope: match rule.get("scope").and_then(Value::as_str) {
                None | Some("*") => Scope::All,
                Some("Cluster") => Scope::Cluster,
                Some("Namespaced") => Scope::Namespaced,
                Some(_) => Scope::Unknown,
            },
            names: strings("resourceNames"),
        }
    }

    /// Returns whether a request matches, if its resource is at this place.
    pub(crate) fn matches(&self, target: &Target<'_>, place: Place<'_>) -> bool {
        self.may_match(target)
            && any(&self.groups, place.group)
            && any(&self.versions, place.version)
            && self.has_resource(place.resource, target.subresource)
    }

    /// Returns whether a request could match at some place.
    pub(super) fn may_match(&self, target: &Target<'_>) -> bool {
        self.operations.has(target.operation)
            && self.has_scope(target)
            && (self.names.is_empty() || self.names.iter().any(|name| name == target.name))
    }

    fn has_scope(&self, target: &Target<'_>) -> bool {
        // A Namespace has a namespace here, but is cluster-scoped.
        let is_namespace = target.place.group.is_empty() && target.place.resource == "namespaces";
        let cluster = is_namespace || target.namespace.is_empty();
        match self.scope {
            Scope::All => true,
            Scope::Cluster => cluster,
            Scope::Namespaced => !cluster,
            Scope::Unknown => false,
        }
    }

    fn has_resource(&self, resource: &str, subresource: &str) -> bool {
        self.resources.iter().any(|(wanted, part)| {
            (wanted == "*" || wanted == resource) && (part == "*" || part == subresource)
        })
    }

    pub(super) fn operations(&self) -> Operations {
        self.operations
    }

    pub(super) fn groups(&self) -> &[Str] {
        &self.groups
    }

    pub(super) fn resources(&self) -> impl Iterator<Item = &Str> {
        self.resources.iter().map(|(resource, _)| resource)
    }
}

fn any(wanted: &[Str], given: &str) -> bool {
    wanted.iter().any(|item| item == "*" || item == given)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::value;

    fn target<'a>(
        operation: Operation,
        resource: &'a str,
        subresource: &'a str,
        namespace: &'a str,
    ) -> Target<'a> {
        Target {
            operation,
            place: Place {
                group: "",
                version: "v1",
                resource,
            },
            subresource,
            namespace,
            name: "a",
        }
    }

    fn matches(rule: &Value, target: &Target<'_>) -> bool {
        Rule::read(rule).matches(target, target.place)
    }

    fn resources(resources: Value) -> Value {
        value!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": (resources)})
    }

    #[test]
    fn a_star_is_every_resource_but_no_subresource() {
        let pods = target(Operation::Create, "pods", "", "ns");
        let scale = target(Operation::Update, "deployments", "scale", "ns");
        let all = resources(value!(["*"]));
        assert!(matches(&all, &pods));
        assert!(!matches(&all, &scale));
        assert!(matches(&resources(value!(["*/*"])), &pods));
        assert!(matches(&resources(value!(["*/*"])), &scale));
        assert!(matches(&resources(value!(["*/scale"])), &scale));
        assert!(!matches(&resources(value!(["*/scale"])), &pods));
        let log = target(Operation::Connect, "pods", "exec", "ns");
        assert!(matches(&resources(value!(["pods/*"])), &log));
        assert!(matches(&resources(value!(["pods/*"])), &pods));
        assert!(!matches(&resources(value!(["pods"])), &log));
    }

    #[test]
    fn a_namespace_is_cluster_scoped() {
        let scoped = |scope: &str| {
            value!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                    "resources": ["*"], "scope": (scope)})
        };
        let namespace = target(Operation::Create, "namespaces", "", "a");
        let pod = target(Operation::Create, "pods", "", "ns");
        let node = target(Operation::Create, "nodes", "", "");
        let seen =
            |scope: &str| [&namespace, &pod, &node].map(|target| matches(&scoped(scope), target));
        assert_eq!(seen("*"), [true, true, true]);
        assert_eq!(seen("Cluster"), [true, false, true]);
        assert_eq!(seen("Namespaced"), [false, true, false]);
    }

    #[test]
    fn operations_groups_versions_and_names_must_match() {
        let pod = target(Operation::Create, "pods", "", "ns");
        let mut rule = resources(value!(["pods"]));
        assert!(matches(&rule, &pod));
        for (key, wrong) in [
            ("operations", "UPDATE"),
            ("apiGroups", "apps"),
            ("apiVersions", "v2"),
            ("resourceNames", "b"),
        ] {
            let map = rule.make_object();
            let before = map.insert(key, value!([(wrong)]));
            assert!(!matches(&rule, &pod), "{key}");
            let map = rule.make_object();
            match before {
                Some(before) => map.insert(key, before),
                None => map.remove(key),
            };
        }
    }
}
