//! The authorizer: authorization checks inside an expression.
//!
//! The host implements [`Authorizer`] and binds one with [`Val::authorizer`].

use std::sync::Arc;

use super::{Decl, format, no_such_overload};
use crate::budget::Budget;
use crate::error::EvalError;
use crate::value::{Special, Val};

pub(crate) const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
pub(crate) const PATH_CHECK: &str = "kubernetes.authorization.PathCheck";
pub(crate) const GROUP_CHECK: &str = "kubernetes.authorization.GroupCheck";
pub(crate) const RESOURCE_CHECK: &str = "kubernetes.authorization.ResourceCheck";
pub(crate) const DECISION: &str = "kubernetes.authorization.Decision";

/// Decides what the user of a request, or a service account, may do.
///
/// ```
/// use bareboat_cel::{AccessCheck, AccessDecision, Authorizer, Budget, Env, Type, Val, Variables};
/// use std::sync::Arc;
///
/// struct Readers;
/// impl Authorizer for Readers {
///     fn authorize(&self, check: &AccessCheck) -> AccessDecision {
///         AccessDecision { allowed: &*check.verb == "get", ..AccessDecision::default() }
///     }
/// }
///
/// let env = Env::kubernetes().variable("authorizer", Type::message("kubernetes.authorization.Authorizer"));
/// let may = |verb: &str| {
///     let text = format!("authorizer.group('').resource('pods').check('{verb}').allowed()");
///     let checked = env.compile(&text).expect("it is an expression");
///     let program = env.program(&checked).expect("nothing in it fails early");
///     let variables = Variables::new().bind("authorizer", Val::authorizer(Arc::new(Readers)));
///     let mut budget = Budget::new(10_000_000);
///     program.eval(&variables, &mut budget).expect("it has a value").as_bool()
/// };
/// assert_eq!((may("get"), may("delete")), (Some(true), Some(false)));
/// ```
pub trait Authorizer: Send + Sync {
    /// Answers a check.
    fn authorize(&self, check: &AccessCheck) -> AccessDecision;
}

/// An authorization check of an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessCheck {
    /// Namespace and name of the service account to check, instead of the request's user.
    pub service_account: Option<(Box<str>, Box<str>)>,
    /// The path, for checks that are not about resources.
    pub path: Option<Box<str>>,
    /// The verb.
    pub verb: Box<str>,
    /// The API group.
    pub group: Box<str>,
    /// The resource, such as `pods`.
    pub resource: Box<str>,
    /// The subresource, if any.
    pub subresource: Box<str>,
    /// The namespace, if any.
    pub namespace: Box<str>,
    /// The name, if any.
    pub name: Box<str>,
    /// The field selector as written, if any.
    pub field_selector: Box<str>,
    /// The label selector as written, if any.
    pub label_selector: Box<str>,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessDecision {
    /// Whether the action is allowed.
    pub allowed: bool,
    /// The authorizer's reason; may be empty.
    pub reason: Box<str>,
    /// The error of the check, if any.
    pub error: Option<Box<str>>,
}

/// A value of an unfinished authorization check.
pub(crate) enum Authz {
    Check {
        authorizer: Arc<dyn Authorizer>,
        stage: Stage,
        check: AccessCheck,
    },
    Decision(AccessDecision),
}

/// The kind of an unfinished check.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stage {
    Authorizer,
    Path,
    Group,
    Resource,
}

impl Authz {
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Authz::Check { stage, .. } => match stage {
                Stage::Authorizer => AUTHORIZER,
                Stage::Path => PATH_CHECK,
                Stage::Group => GROUP_CHECK,
                Stage::Resource => RESOURCE_CHECK,
            },
            Authz::Decision(_) => DECISION,
        }
    }

    pub(crate) fn equals(&self, other: &Authz) -> Result<bool, EvalError> {
        Ok(match (self, other) {
            (
                Authz::Check { stage, check, .. },
                Authz::Check {
                    stage: other_stage,
                    check: other_check,
                    ..
                },
            ) => stage == other_stage && check == other_check,
            (Authz::Decision(a), Authz::Decision(b)) => a == b,
            _ => false,
        })
    }
}

impl<'a> Val<'a> {
    /// Returns the value of the variable `authorizer`.
    pub fn authorizer(authorizer: Arc<dyn Authorizer>) -> Val<'a> {
        Val::special(Special::Authz(Authz::Check {
            authorizer,
            stage: Stage::Authorizer,
            check: AccessCheck::default(),
        }))
    }

    /// Returns the value of the variable `authorizer.requestResource`.
    pub fn resource_check(authorizer: Arc<dyn Authorizer>, check: AccessCheck) -> Val<'a> {
        Val::special(Special::Authz(Authz::Check {
            authorizer,
            stage: Stage::Resource,
            check,
        }))
    }
}

macro_rules! build {
    ($name:literal, $id:literal, $signature:literal, $from:expr, $to:expr, $set:expr) => {
        Decl {
            name: $name,
            call: |_, args| build(args, $from, $to, $set),
            overloads: &[($id, $signature)],
        }
    };
}

pub(super) const FUNCTIONS: &[Decl] = &[
    build!(
        "path",
        "authorizer_path",
        ".authorizer, string -> pathcheck",
        Stage::Authorizer,
        Stage::Path,
        |check, path| {
            if path.trim().is_empty() {
                return Err("path must not be empty");
            }
            check.path = Some(path.into());
            Ok(())
        }
    ),
    build!(
        "group",
        "authorizer_group",
        ".authorizer, string -> groupcheck",
        Stage::Authorizer,
        Stage::Group,
        |check, group| {
            check.group = group.into();
            Ok(())
        }
    ),
    Decl {
        name: "serviceAccount",
        call: service_account,
        overloads: &[(
            "authorizer_serviceaccount",
            ".authorizer, string, string -> authorizer",
        )],
    },
    build!(
        "resource",
        "groupcheck_resource",
        ".groupcheck, string -> resourcecheck",
        Stage::Group,
        Stage::Resource,
        |check, resource| {
            if resource.trim().is_empty() {
                return Err("resource must not be empty");
            }
            check.resource = resource.into();
            Ok(())
        }
    ),
    build!(
        "subresource",
        "resourcecheck_subresource",
        ".resourcecheck, string -> resourcecheck",
        Stage::Resource,
        Stage::Resource,
        |check, subresource| {
            check.subresource = subresource.into();
            Ok(())
        }
    ),
    build!(
        "namespace",
        "resourcecheck_namespace",
        ".resourcecheck, string -> resourcecheck",
        Stage::Resource,
        Stage::Resource,
        |check, namespace| {
            check.namespace = namespace.into();
            Ok(())
        }
    ),
    build!(
        "name",
        "resourcecheck_name",
        ".resourcecheck, string -> resourcecheck",
        Stage::Resource,
        Stage::Resource,
        |check, name| {
            check.name = name.into();
            Ok(())
        }
    ),
    build!(
        "fieldSelector",
        "authorizer_fieldselector",
        ".resourcecheck, string -> resourcecheck",
        Stage::Resource,
        Stage::Resource,
        |check, selector| {
            check.field_selector = selector.into();
            Ok(())
        }
    ),
    build!(
        "labelSelector",
        "authorizer_labelselector",
        ".resourcecheck, string -> resourcecheck",
        Stage::Resource,
        Stage::Resource,
        |check, selector| {
            check.label_selector = selector.into();
            Ok(())
        }
    ),
    Decl {
        name: "check",
        call: decide,
        overloads: &[
            ("pathcheck_check", ".pathcheck, string -> decision"),
            ("resourcecheck_check", ".resourcecheck, string -> decision"),
        ],
    },
    Decl {
        name: "allowed",
        call: |_, args| Ok(Val::Bool(decision(args)?.allowed)),
        overloads: &[("decision_allowed", ".decision -> bool")],
    },
    Decl {
        name: "reason",
        call: |_, args| Ok(Val::text(&*decision(args)?.reason)),
        overloads: &[("decision_reason", ".decision -> string")],
    },
    Decl {
        name: "errored",
        call: |_, args| Ok(Val::Bool(decision(args)?.error.is_some())),
        overloads: &[("decision_errored", ".decision -> bool")],
    },
    Decl {
        name: "error",
        call: |_, args| Ok(Val::text(decision(args)?.error.as_deref().unwrap_or(""))),
        overloads: &[("decision_error", ".decision -> string")],
    },
];

fn build<'a>(
    args: &[Val<'a>],
    from: Stage,
    to: Stage,
    set: fn(&mut AccessCheck, &str) -> Result<(), &'static str>,
) -> Result<Val<'a>, EvalError> {
    let [receiver, Val::String(text)] = args else {
        return no_such_overload();
    };
    match receiver.as_special() {
        Some(Special::Authz(Authz::Check {
            authorizer,
            stage,
            check,
        })) if *stage == from => {
            let mut check = check.clone();
            set(&mut check, text.as_str()).map_err(EvalError::new)?;
            Ok(Val::special(Special::Authz(Authz::Check {
                authorizer: authorizer.clone(),
                stage: to,
                check,
            })))
        }
        _ => no_such_overload(),
    }
}

fn service_account<'a>(_: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    let [receiver, Val::String(namespace), Val::String(name)] = args else {
        return no_such_overload();
    };
    let Some(Special::Authz(Authz::Check {
        authorizer,
        stage: Stage::Authorizer,
        ..
    })) = receiver.as_special()
    else {
        return no_such_overload();
    };
    if !format::is_dns_subdomain(name.as_str()) {
        return Err(EvalError::new("Invalid service account name"));
    }
    if !format::is_label(namespace.as_str()) {
        return Err(EvalError::new("Invalid service account namespace"));
    }
    Ok(Val::special(Special::Authz(Authz::Check {
        authorizer: authorizer.clone(),
        stage: Stage::Authorizer,
        check: AccessCheck {
            service_account: Some((namespace.as_str().into(), name.as_str().into())),
            ..AccessCheck::default()
        },
    })))
}

fn decide<'a>(_: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    let [receiver, Val::String(verb)] = args else {
        return no_such_overload();
    };
    match receiver.as_special() {
        Some(Special::Authz(Authz::Check {
            authorizer,
            stage: Stage::Path | Stage::Resource,
            check,
        })) => {
            let check = AccessCheck {
                verb: verb.as_str().into(),
                ..check.clone()
            };
            let decision = authorizer.authorize(&check);
            Ok(Val::special(Special::Authz(Authz::Decision(decision))))
        }
        _ => no_such_overload(),
    }
}

fn decision<'v>(args: &'v [Val<'_>]) -> Result<&'v AccessDecision, EvalError> {
    match args.first().and_then(Val::as_special) {
        Some(Special::Authz(Authz::Decision(decision))) => Ok(decision),
        _ => Err(EvalError::no_such_overload()),
    }
}
