//! CEL environments of admission: the variables that expressions of policies and webhooks may use,
//! and the result type of each expression.
//!
//! The same expressions are compiled twice: when a policy is written, to reject invalid ones, and
//! when it is used. The caller binds the values.
//!
//! Upstream: apiserver pkg/admission/plugin/cel/compile.go and composition.go.

use std::sync::{Arc, LazyLock};

use crate::decl::{DeclType, Field, ObjectType};
use crate::env::{Composed, Env};
use crate::issue::Issues;
use crate::library::authorizer::{AUTHORIZER, RESOURCE_CHECK};
use crate::program::Program;
use crate::types::Type;

/// The purpose of an admission expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Decides whether a policy or a webhook applies to a request.
    MatchCondition,
    /// Decides whether a request passes.
    Validation,
    /// The message of a failed validation; it may not use the authorizer.
    Message,
    /// The value of an audit annotation.
    AuditAnnotation,
    /// A value that other expressions use as `variables.name`.
    Variable,
    /// The configuration that is applied to an object.
    ApplyConfiguration,
    /// A JSON patch of an object.
    JsonPatch,
}

impl Purpose {
    fn sees_authorizer(self) -> bool {
        self != Purpose::Message
    }

    fn builds_objects(self) -> bool {
        matches!(self, Purpose::ApplyConfiguration | Purpose::JsonPatch)
    }

    /// Returns whether expressions may use `variables`. Match conditions run before the variables
    /// of a policy.
    fn sees_variables(self) -> bool {
        self != Purpose::MatchCondition
    }

    /// Returns the allowed types of the result; an empty list allows any type.
    fn results(self) -> Vec<Type> {
        match self {
            Purpose::MatchCondition | Purpose::Validation => vec![Type::Bool],
            Purpose::Message => vec![Type::String],
            Purpose::AuditAnnotation => vec![Type::String, Type::Null],
            Purpose::Variable => Vec::new(),
            Purpose::ApplyConfiguration => vec![Type::Object(OBJECT.clone())],
            Purpose::JsonPatch => vec![Type::list(Type::Object(JSON_PATCH.clone()))],
        }
    }
}

/// The reason why an expression is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The expression does not compile, or has the wrong result type.
    #[error("{0}")]
    Invalid(String),
    /// The expression compiles but always fails.
    #[error("{0}")]
    Hopeless(String),
}

/// The environment of the expressions of one policy or webhook.
#[derive(Clone)]
pub struct AdmissionEnv {
    params: bool,
    /// The types of objects and params, where they are known.
    types: Types,
    /// The variables defined so far with their types, if the policy has variables.
    variables: Option<Arc<Composed>>,
}

bareboat_api::opaque_debug!(AdmissionEnv);

/// Known types of variables; variables of unknown types are `dyn`.
#[derive(Clone, Debug, Default)]
struct Types {
    object: Option<Arc<DeclType>>,
    params: Option<Arc<DeclType>>,
}

impl AdmissionEnv {
    /// Returns an environment; `params` adds the variable `params`.
    pub fn new(params: bool) -> AdmissionEnv {
        AdmissionEnv {
            params,
            types: Types::default(),
            variables: None,
        }
    }

    /// Sets the types of `object` and `oldObject`, and of `params`, for [`AdmissionEnv::check`].
    #[must_use]
    pub fn with_types(
        mut self,
        object: Option<Arc<DeclType>>,
        params: Option<Arc<DeclType>>,
    ) -> AdmissionEnv {
        self.types = Types { object, params };
        self
    }

    /// Checks the types of a variable; expressions checked afterwards may use it. A variable with
    /// errors is `dyn`.
    pub fn define_checked(&mut self, name: &str, expression: &str) {
        let checked = self.env(Purpose::Variable).compile(expression);
        let ty = checked.map_or(Type::Dyn, |checked| plain(checked.result_type()));
        let known = self.variables.get_or_insert_default();
        Arc::make_mut(known).insert(name.into(), ty);
    }

    /// Checks the types of an expression, whatever its result.
    pub fn check(&self, expression: &str) -> Result<(), Issues> {
        self.env(Purpose::Validation).compile(expression).map(drop)
    }

    /// Adds `variables`, empty at first.
    pub fn composed(mut self) -> AdmissionEnv {
        self.variables = Some(Arc::default());
        self
    }

    /// Compiles a variable; expressions compiled afterwards may use it.
    ///
    /// A variable that does not compile is defined too, so that its error is reported once.
    pub fn define(&mut self, name: &str, expression: &str) -> Result<Program, Refused> {
        let compiled = self.checked(expression, Purpose::Variable);
        let ty = compiled.as_ref().map_or(Type::Dyn, |(_, ty)| plain(ty));
        let known = self.variables.get_or_insert_default();
        Arc::make_mut(known).insert(name.into(), ty);
        compiled.map(|(program, _)| program)
    }

    /// Compiles an expression.
    pub fn compile(&self, expression: &str, purpose: Purpose) -> Result<Program, Refused> {
        self.checked(expression, purpose)
            .map(|(program, _)| program)
    }

    fn checked(&self, expression: &str, purpose: Purpose) -> Result<(Program, Type), Refused> {
        let env = self.env(purpose);
        let checked = env
            .compile(expression)
            .map_err(|issues| Refused::Invalid(format!("compilation failed: {issues}")))?;
        let given = checked.result_type().clone();
        let wanted = purpose.results();
        if !wanted.is_empty() && !wanted.iter().any(|ty| ty.is_exactly(&given)) {
            let names: Vec<String> = wanted.iter().map(Type::full_name).collect();
            let names = match names.as_slice() {
                [one] => one.clone(),
                several => format!("one of [{}]", several.join(" ")),
            };
            let given = given.full_name();
            return Err(Refused::Invalid(format!(
                "must evaluate to {names} but got {given}"
            )));
        }
        let program = env
            .program(&checked)
            .map_err(|error| Refused::Hopeless(format!("program instantiation failed: {error}")))?;
        Ok((program, given))
    }

    /// Returns the environment of an expression.
    ///
    /// `variables` is an object with one field per variable. Each field is also a variable by its
    /// dotted name, which programs resolve when they read it; they resolve `variables` itself only
    /// for `has(variables.x)`.
    fn env(&self, purpose: Purpose) -> Env {
        let mut env = if purpose.builds_objects() {
            MUTATING.clone()
        } else {
            PLAIN.clone()
        };
        if let Some(object) = &self.types.object {
            env = env.declare("object", object).declare("oldObject", object);
        }
        if self.params {
            let params = self.types.params.as_ref();
            env = env.variable("params", params.map_or(Type::Dyn, |decl| decl.ty().clone()));
        }
        if purpose.sees_authorizer() {
            env = env
                .variable("authorizer", Type::message(AUTHORIZER))
                .variable("authorizer.requestResource", Type::message(RESOURCE_CHECK));
        }
        match &self.variables {
            Some(variables) if purpose.sees_variables() => env.compose(variables.clone()),
            _ => env,
        }
    }
}

/// The maximum depth of a variable's type for other expressions.
const MAX_TYPE_DEPTH: usize = 16;

/// Returns the type of a variable for other expressions: objects built inside an expression are
/// `dyn` outside of it. So are types that nest deeply: variables may refer to each other in a long
/// chain, and code that walks types recurses.
fn plain(ty: &Type) -> Type {
    plain_within(ty, MAX_TYPE_DEPTH)
}

fn plain_within(ty: &Type, depth: usize) -> Type {
    match ty {
        _ if depth == 0 => Type::Dyn,
        Type::List(items) => Type::list(plain_within(items, depth - 1)),
        Type::Map(entry) => Type::map(
            plain_within(&entry.0, depth - 1),
            plain_within(&entry.1, depth - 1),
        ),
        Type::Null
        | Type::Bool
        | Type::Int
        | Type::Uint
        | Type::Double
        | Type::String
        | Type::Bytes
        | Type::Duration
        | Type::Timestamp => ty.clone(),
        _ => Type::Dyn,
    }
}

static PLAIN: LazyLock<Env> = LazyLock::new(|| with_request(Env::kubernetes()));
static MUTATING: LazyLock<Env> = LazyLock::new(|| with_request(Env::mutating().open_objects()));

fn with_request(env: Env) -> Env {
    let (request, namespace) = (request(), namespace());
    env.variable("object", Type::Dyn)
        .variable("oldObject", Type::Dyn)
        .declare("namespaceObject", &namespace)
        .declare("request", &request)
}

/// The type of `Object{}` in expressions that build objects.
pub(crate) static OBJECT: LazyLock<Arc<ObjectType>> =
    LazyLock::new(|| Arc::new(ObjectType::open("Object", Vec::new())));

/// The type of `JSONPatch{}`.
pub(crate) static JSON_PATCH: LazyLock<Arc<ObjectType>> = LazyLock::new(|| {
    let mut fields: Vec<Field> = ["op", "from", "path"]
        .map(|name| Field::exact(name, DeclType::string()))
        .into();
    fields.push(Field::exact("value", DeclType::dynamic()));
    Arc::new(ObjectType::new("JSONPatch", fields))
});

fn object(name: &str, fields: &[(&str, &Arc<DeclType>)]) -> Arc<DeclType> {
    let fields = fields
        .iter()
        .map(|(name, decl)| Field::exact(name, Arc::clone(decl)));
    DeclType::object(ObjectType::new(name, fields.collect()))
}

/// Returns the type of `request`.
fn request() -> Arc<DeclType> {
    let text = DeclType::string();
    let texts = DeclType::list(text.clone(), 0);
    let kind = object(
        "kubernetes.GroupVersionKind",
        &[("group", &text), ("version", &text), ("kind", &text)],
    );
    let resource = object(
        "kubernetes.GroupVersionResource",
        &[("group", &text), ("version", &text), ("resource", &text)],
    );
    let user = object(
        "kubernetes.UserInfo",
        &[
            ("username", &text),
            ("uid", &text),
            ("groups", &texts),
            ("extra", &DeclType::map(texts.clone(), 0)),
        ],
    );
    object(
        "kubernetes.AdmissionRequest",
        &[
            ("kind", &kind),
            ("resource", &resource),
            ("subResource", &text),
            ("requestKind", &kind),
            ("requestResource", &resource),
            ("requestSubResource", &text),
            ("name", &text),
            ("namespace", &text),
            ("operation", &text),
            ("userInfo", &user),
            ("dryRun", &DeclType::bool()),
            ("options", &DeclType::dynamic()),
        ],
    )
}

/// Returns the type of `namespaceObject`.
fn namespace() -> Arc<DeclType> {
    let text = DeclType::string();
    let texts = DeclType::list(text.clone(), 0);
    let named = DeclType::map(text.clone(), 0);
    let time = DeclType::timestamp();
    let number = DeclType::int();
    let condition = object(
        "kubernetes.NamespaceCondition",
        &[
            ("status", &text),
            ("type", &text),
            ("lastTransitionTime", &time),
            ("message", &text),
            ("reason", &text),
        ],
    );
    let metadata = object(
        "kubernetes.NamespaceMetadata",
        &[
            ("name", &text),
            ("generateName", &text),
            ("namespace", &text),
            ("labels", &named),
            ("annotations", &named),
            ("UID", &text),
            ("creationTimestamp", &time),
            ("deletionGracePeriodSeconds", &number),
            ("deletionTimestamp", &time),
            ("generation", &number),
            ("resourceVersion", &text),
            ("finalizers", &texts),
        ],
    );
    let status = object(
        "kubernetes.NamespaceStatus",
        &[
            ("conditions", &DeclType::list(condition, 0)),
            ("phase", &text),
        ],
    );
    object(
        "kubernetes.Namespace",
        &[
            ("metadata", &metadata),
            (
                "spec",
                &object("kubernetes.NamespaceSpec", &[("finalizers", &texts)]),
            ),
            ("status", &status),
        ],
    )
}

#[cfg(test)]
mod tests;
