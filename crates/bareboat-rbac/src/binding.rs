//! A binding: which role it grants, and to whom.

use bareboat_api::kind::User;
use bareboat_api::{Str, Value};

/// How user names of service accounts begin.
const ACCOUNT: &str = "system:serviceaccount:";

/// A subject that a role is granted to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    User(Str),
    Group(Str),
    /// `namespace:name`.
    Account(Str),
}

impl Subject {
    /// Reads a subject; `namespace` is that of the binding. Nothing for subjects that cannot match.
    fn from_value(value: &Value, namespace: &str) -> Option<Subject> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or("");
        let name = text("name");
        match text("kind") {
            "User" => Some(Subject::User(Str::new(name))),
            "Group" => Some(Subject::Group(Str::new(name))),
            "ServiceAccount" => {
                let namespace = match text("namespace") {
                    "" => namespace,
                    own => own,
                };
                (!namespace.is_empty())
                    .then(|| Subject::Account(Str::new(format!("{namespace}:{name}"))))
            }
            _ => None,
        }
    }

    /// Whether a user is meant by this.
    pub(crate) fn is(&self, user: &User) -> bool {
        match self {
            Subject::User(name) => *name == user.name,
            Subject::Group(name) => user.is_in(name),
            Subject::Account(account) => user.name.strip_prefix(ACCOUNT) == Some(account.as_str()),
        }
    }

    /// The form in which reasons show a subject: `User "ann"`, `ServiceAccount "name/namespace"`.
    pub(crate) fn describe(&self) -> String {
        match self {
            Subject::User(name) => format!("User \"{name}\""),
            Subject::Group(name) => format!("Group \"{name}\""),
            Subject::Account(account) => {
                let (namespace, name) = account.split_once(':').unwrap_or(("", account));
                format!("ServiceAccount \"{name}/{namespace}\"")
            }
        }
    }

    pub(crate) fn as_key(&self) -> Key<'_> {
        match self {
            Subject::User(name) => Key::User(name),
            Subject::Group(name) => Key::Group(name),
            Subject::Account(account) => Key::Account(account),
        }
    }
}

/// What subjects are found by.
#[derive(Clone, Copy, Hash)]
pub(crate) enum Key<'a> {
    User(&'a str),
    Group(&'a str),
    Account(&'a str),
}

/// The keys of the subjects a user may be meant by.
pub(crate) fn keys(user: &User) -> impl Iterator<Item = Key<'_>> {
    let account = user.name.strip_prefix(ACCOUNT).map(Key::Account);
    std::iter::once(Key::User(user.name.as_str()))
        .chain(account)
        .chain(user.groups.iter().map(|group| Key::Group(group.as_str())))
}

/// Which role a binding grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoleRef {
    /// Whether it is a ClusterRole; otherwise a Role of the binding's namespace.
    pub(crate) cluster: bool,
    pub(crate) name: Str,
}

impl RoleRef {
    /// The text of the error when there is no such role.
    pub(crate) fn missing(&self) -> String {
        let kind = if self.cluster { "clusterrole" } else { "role" };
        format!(
            "{kind}.rbac.authorization.k8s.io {} not found",
            bareboat_api::field::go_quote(&self.name)
        )
    }

    pub(crate) fn kind(&self) -> &'static str {
        if self.cluster { "ClusterRole" } else { "Role" }
    }
}

/// A RoleBinding or ClusterRoleBinding.
#[derive(Debug)]
pub(crate) struct Binding {
    /// Bindings are asked in the order in which they came.
    pub(crate) order: u64,
    pub(crate) name: Str,
    pub(crate) role: RoleRef,
    pub(crate) subjects: Box<[Subject]>,
}

impl Binding {
    pub(crate) fn from_value(order: u64, namespace: &str, name: &str, value: &Value) -> Binding {
        let reference = |key: &str| {
            value
                .at(&["roleRef", key])
                .and_then(Value::as_str)
                .unwrap_or("")
        };
        let subjects = value.get("subjects").and_then(Value::as_array);
        Binding {
            order,
            name: Str::new(name),
            role: RoleRef {
                cluster: reference("kind") == "ClusterRole",
                name: Str::new(reference("name")),
            },
            subjects: subjects
                .unwrap_or(&[])
                .iter()
                .filter_map(|subject| Subject::from_value(subject, namespace))
                .collect(),
        }
    }
}
