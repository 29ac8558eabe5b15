//! The environments of admission: which variables the expressions of policies and webhooks may use,
//! and what each of them must give.
//!
//! The same expressions are compiled when a policy is written, to refuse what makes no sense, and
//! when it is put to work. Values are bound by whoever runs them.
//!
//! Upstream: apiserver pkg/admission/plugin/cel/compile.go and composition.go.

use std::fmt;
use std::sync::{Arc, LazyLock};

use crate::decl::{DeclType, Field, ObjectType};
use crate::env::{Composed, Env};
use crate::library::authorizer::{AUTHORIZER, RESOURCE_CHECK};
use crate::program::Program;
use crate::types::Type;

/// What an expression of admission is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Whether a policy or a webhook is asked at all.
    MatchCondition,
    /// Whether a request passes.
    Validation,
    /// What is said to whom a validation refuses; it may not ask the authorizer.
    Message,
    /// What is written into the audit log.
    AuditAnnotation,
    /// A value that others use as `variables.name`.
    Variable,
    /// What is applied to an object.
    ApplyConfiguration,
    /// A patch of an object.
    JsonPatch,
}

impl Purpose {
    fn sees_authorizer(self) -> bool {
        self != Purpose::Message
    }

    fn builds_objects(self) -> bool {
        matches!(self, Purpose::ApplyConfiguration | Purpose::JsonPatch)
    }

    /// Match conditions stand before a policy, and before its variables.
    fn sees_variables(self) -> bool {
        self != Purpose::MatchCondition
    }

    /// The types the result may have; none means any.
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

/// Why an expression is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The expression makes no sense, or gives something else than it must.
    Invalid(String),
    /// The expression makes sense, but can only fail.
    Hopeless(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Invalid(detail) | Refused::Hopeless(detail) => f.write_str(detail),
        }
    }
}

impl std::error::Error for Refused {}

/// What the expressions of one policy, or of one webhook, may use.
#[derive(Clone)]
pub struct AdmissionEnv {
    params: bool,
    /// The variables defined so far with their types, where a policy has variables.
    variables: Option<Arc<Composed>>,
}

impl AdmissionEnv {
    /// For expressions that see `params` only if something has parameters.
    pub fn new(params: bool) -> AdmissionEnv {
        AdmissionEnv {
            params,
            variables: None,
        }
    }

    /// The same with `variables`, of which there are none yet.
    pub fn composed(mut self) -> AdmissionEnv {
        self.variables = Some(Arc::default());
        self
    }

    /// Compiles a variable; expressions that are compiled from now on may use it.
    ///
    /// One that does not compile is known, too, so that its mistake is told once.
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

    /// The environment of an expression.
    ///
    /// `variables` is an object with a field for each variable, and each of them is a variable of
    /// its own by its dotted name, which is what programs ask for when they read one; `variables`
    /// itself is asked for only by `has(variables.x)`.
    fn env(&self, purpose: Purpose) -> Env {
        let mut env = if purpose.builds_objects() {
            MUTATING.clone()
        } else {
            PLAIN.clone()
        };
        if self.params {
            env = env.variable("params", Type::Dyn);
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

/// The type a variable has for others: what is made inside an expression is `dyn` outside of it.
fn plain(ty: &Type) -> Type {
    match ty {
        Type::List(items) => Type::list(plain(items)),
        Type::Map(entry) => Type::map(plain(&entry.0), plain(&entry.1)),
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

/// The type of `request`.
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

/// The type of `namespaceObject`.
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
