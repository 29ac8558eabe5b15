//! A binding: the role it grants, and its subjects.

use crate::policy::Scope;
use crate::slots::RoleId;
use ahash::AHashSet;
use bareboat_api::kind::User;
use bareboat_api::{Str, Value};
use smallvec::SmallVec;
use std::borrow::Borrow;
use std::cell::OnceCell;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The prefix of service account user names.
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
    /// Parses a subject; `namespace` is that of the binding. Returns `None` for subjects that
    /// cannot match.
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

    /// Returns whether the subject matches a user.
    fn is(&self, user: &User) -> bool {
        match self {
            Subject::User(name) => *name == user.name,
            Subject::Group(name) => user.is_in(name),
            Subject::Account(account) => user.name.strip_prefix(ACCOUNT) == Some(account.as_str()),
        }
    }

    /// Prints a subject as in reasons: `User "ann"`, `ServiceAccount "name/namespace"`.
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

/// Groups up to this number are searched one by one.
const FEW_GROUPS: usize = 16;

/// A user that is compared with many subjects. A review may ask about a user in very many groups.
pub(crate) struct Person<'u> {
    user: &'u User,
    groups: OnceCell<AHashSet<&'u str>>,
}

impl<'u> Person<'u> {
    pub(crate) fn new(user: &'u User) -> Person<'u> {
        Person {
            user,
            groups: OnceCell::new(),
        }
    }

    /// Returns whether the user has so many groups that one binding may be found many times.
    pub(crate) fn has_many_groups(&self) -> bool {
        self.user.groups.len() > FEW_GROUPS
    }

    /// Returns whether the user is this subject.
    pub(crate) fn is(&self, subject: &Subject) -> bool {
        match subject {
            Subject::Group(name) if self.has_many_groups() => {
                let all = || self.user.groups.iter().map(Str::as_str).collect();
                self.groups.get_or_init(all).contains(name.as_str())
            }
            subject => subject.is(self.user),
        }
    }
}

/// The lookup key of subjects.
#[derive(Clone, Copy, Hash)]
pub(crate) enum Key<'a> {
    User(&'a str),
    Group(&'a str),
    Account(&'a str),
}

/// Returns the keys of all subjects that may match a user.
pub(crate) fn keys(user: &User) -> impl Iterator<Item = Key<'_>> {
    let account = user.name.strip_prefix(ACCOUNT).map(Key::Account);
    std::iter::once(Key::User(user.name.as_str()))
        .chain(account)
        .chain(user.groups.iter().map(|group| Key::Group(group.as_str())))
}

/// The reference of a binding to its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoleRef<'a> {
    /// Whether it is a ClusterRole; otherwise a Role of the binding's namespace.
    pub(crate) cluster: bool,
    pub(crate) name: &'a str,
}

impl<'a> RoleRef<'a> {
    /// Reads the `roleRef` of a binding.
    pub(crate) fn from_value(binding: &'a Value) -> RoleRef<'a> {
        let member = |key: &str| {
            binding
                .at(&["roleRef", key])
                .and_then(Value::as_str)
                .unwrap_or("")
        };
        RoleRef {
            cluster: member("kind") == "ClusterRole",
            name: member("name"),
        }
    }
}

/// A RoleBinding or ClusterRoleBinding.
#[derive(Debug)]
pub(crate) struct Binding {
    /// The creation order, in which bindings are evaluated.
    pub(crate) order: u64,
    pub(crate) name: Str,
    pub(crate) role: RoleId,
    /// Mostly one, which is then in the binding itself.
    pub(crate) subjects: SmallVec<[Subject; 1]>,
}

impl Binding {
    pub(crate) fn from_value(
        order: u64,
        scope: Scope<'_>,
        name: &str,
        role: RoleId,
        value: &Value,
    ) -> Binding {
        let subjects = value.get("subjects").and_then(Value::as_array);
        Binding {
            order,
            name: Str::new(name),
            role,
            subjects: subjects
                .unwrap_or(&[])
                .iter()
                .filter_map(|subject| Subject::from_value(subject, scope.namespace()))
                .collect(),
        }
    }

    /// Returns whether a subject of the binding matches a user.
    pub(crate) fn is_for(&self, person: &Person<'_>) -> bool {
        self.subjects.iter().any(|subject| person.is(subject))
    }
}

/// A binding in a set that is searched by name.
#[derive(Clone, Debug)]
pub(crate) struct ByName(pub(crate) Arc<Binding>);

impl Borrow<str> for ByName {
    fn borrow(&self) -> &str {
        &self.0.name
    }
}

impl Hash for ByName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.as_str().hash(state);
    }
}

impl PartialEq for ByName {
    fn eq(&self, other: &ByName) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for ByName {}
