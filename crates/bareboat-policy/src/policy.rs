//! Reads a policy from its object. Expressions are compiled at their first use.

use crate::code::Code;
use bareboat_api::{Object, Str, Value};
use std::sync::OnceLock;

/// The kind of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyKind {
    /// A ValidatingAdmissionPolicy.
    Validating,
    /// A MutatingAdmissionPolicy.
    Mutating,
}

/// What happens to a request when a policy cannot be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The request is refused.
    Fail,
    /// The policy is skipped.
    Ignore,
}

/// The kind of a policy's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamKind {
    /// The API group; empty for core.
    pub group: Str,
    /// The version.
    pub version: Str,
    /// The kind.
    pub kind: Str,
}

impl ParamKind {
    fn read(spec: &Value) -> Option<ParamKind> {
        let kind = spec.get("paramKind").filter(|kind| !kind.is_null())?;
        let api_version = kind.get("apiVersion").and_then(Value::as_str);
        let api_version = api_version.unwrap_or_default();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Some(ParamKind {
            group: Str::new(group),
            version: Str::new(version),
            kind: Str::new(kind.get("kind").and_then(Value::as_str).unwrap_or_default()),
        })
    }

    /// Returns the error of a policy whose parameters have an unknown kind.
    pub fn unknown(&self) -> String {
        let ParamKind {
            group,
            version,
            kind,
        } = self;
        format!("failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'")
    }
}

/// A policy. It can be shared between threads, and frees its compiled expressions when it is dropped.
pub struct Policy {
    /// Whether it validates or mutates.
    pub kind: PolicyKind,
    /// The name of the object.
    pub name: Str,
    /// What happens when it cannot be evaluated.
    pub failure_policy: FailurePolicy,
    /// The kind of its parameters, if it has any.
    pub param_kind: Option<ParamKind>,
    /// Whether a mutating policy runs again after later mutations.
    pub reinvoked: bool,
    /// The members with expressions.
    pub(crate) spec: Value,
    code: OnceLock<Code>,
}

bareboat_api::opaque_debug!(Policy);

/// The members of `spec` with expressions.
const EXPRESSIONS: [&str; 5] = [
    "auditAnnotations",
    "matchConditions",
    "mutations",
    "validations",
    "variables",
];

impl Policy {
    /// Reads a ValidatingAdmissionPolicy.
    pub fn validating(object: &Object) -> Policy {
        Policy::new(object, PolicyKind::Validating)
    }

    /// Reads a MutatingAdmissionPolicy.
    pub fn mutating(object: &Object) -> Policy {
        Policy::new(object, PolicyKind::Mutating)
    }

    /// Reads a policy of either kind.
    pub fn new(object: &Object, kind: PolicyKind) -> Policy {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let text = |member: &str| spec.get(member).and_then(Value::as_str);
        let mut expressions = Value::object();
        for member in EXPRESSIONS {
            if let Some(value) = spec.get(member) {
                expressions.make_object().insert(member, value.clone());
            }
        }
        Policy {
            kind,
            name: Str::new(object.name()),
            failure_policy: match text("failurePolicy") {
                Some("Ignore") => FailurePolicy::Ignore,
                _ => FailurePolicy::Fail,
            },
            param_kind: ParamKind::read(spec),
            reinvoked: text("reinvocationPolicy") == Some("IfNeeded"),
            spec: expressions,
            code: OnceLock::new(),
        }
    }

    /// Returns how many mutations there are.
    pub fn mutations(&self) -> usize {
        self.list("mutations").len()
    }

    /// Returns whether the expressions were compiled already; compiling may take milliseconds.
    pub fn is_compiled(&self) -> bool {
        self.code.get().is_some()
    }

    /// Returns whether an expression reads `authorizer`.
    pub fn needs_authorizer(&self) -> bool {
        self.code().needs_authorizer
    }

    /// Returns whether an expression reads `namespaceObject`.
    pub fn needs_namespace(&self) -> bool {
        self.code().needs_namespace
    }

    /// Returns the compiled expressions, and compiles them first if necessary.
    pub(crate) fn code(&self) -> &Code {
        self.code.get_or_init(|| Code::compile(self))
    }

    pub(crate) fn list(&self, member: &str) -> &[Value] {
        let list = self.spec.get(member).and_then(Value::as_array);
        list.unwrap_or_default()
    }

    /// Returns a text of an element, such as the expression of a validation.
    pub(crate) fn text(&self, list: &str, index: usize, member: &str) -> &str {
        let entry = self.list(list).get(index);
        let text = entry.and_then(|entry| entry.get(member)?.as_str());
        text.unwrap_or_default()
    }
}
