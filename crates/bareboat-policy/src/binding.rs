//! Reads a binding: the policy it binds, its parameters and its actions.

use crate::policy::Policy;
use bareboat_api::labels::{Selector, SelectorError};
use bareboat_api::{Object, Str, Value};

/// What a failed validation causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The request is refused.
    Deny,
    /// The answer has a warning.
    Warn,
    /// The audit event has an annotation.
    Audit,
}

impl Action {
    /// Returns the name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Action::Deny => "Deny",
            Action::Warn => "Warn",
            Action::Audit => "Audit",
        }
    }
}

/// The binding of a policy.
#[derive(Debug)]
pub struct Binding {
    /// The name of the object.
    pub name: Str,
    /// The name of the policy.
    pub policy: Str,
    /// The reference to parameters.
    pub param_ref: Option<ParamRef>,
    /// What failed validations cause, in the order of the binding.
    pub actions: Vec<Action>,
}

/// The reference of a binding to its parameters.
#[derive(Debug)]
pub struct ParamRef {
    /// The name of the parameters; empty if a selector selects them.
    pub name: Str,
    /// The namespace; empty for that of the request.
    pub namespace: Str,
    /// Selects parameters by their labels.
    pub selector: Option<Result<Selector, SelectorError>>,
    /// Whether the request fails if there are no parameters.
    pub required: bool,
}

/// The parameters to evaluate a policy with.
#[derive(Debug)]
pub enum Params<'a> {
    /// None: the policy is evaluated once, and `params` is null.
    None,
    /// One object by its name.
    Named {
        /// The namespace; empty for cluster-scoped parameters.
        namespace: &'a str,
        /// The name.
        name: &'a str,
    },
    /// All objects with these labels; the policy is evaluated for each of them.
    Selected {
        /// The namespace; empty for cluster-scoped parameters.
        namespace: &'a str,
        /// The labels.
        selector: &'a Selector,
    },
}

impl Binding {
    /// Reads a ValidatingAdmissionPolicyBinding or a MutatingAdmissionPolicyBinding.
    pub fn new(object: &Object) -> Binding {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let actions = spec.get("validationActions").and_then(Value::as_array);
        let actions = actions.unwrap_or_default().iter();
        Binding {
            name: Str::new(object.name()),
            policy: Str::new(text(spec, "policyName")),
            param_ref: spec
                .get("paramRef")
                .filter(|reference| !reference.is_null())
                .map(ParamRef::read),
            actions: actions
                .filter_map(|action| match action.as_str()? {
                    "Deny" => Some(Action::Deny),
                    "Warn" => Some(Action::Warn),
                    "Audit" => Some(Action::Audit),
                    _ => None,
                })
                .collect(),
        }
    }

    /// Returns which parameters to use for a request in a namespace; `namespaced` is the scope of the parameters' kind.
    pub fn params<'a>(
        &'a self,
        policy: &Policy,
        namespaced: bool,
        request_namespace: &'a str,
    ) -> Result<Params<'a>, String> {
        // Without a kind of parameters, a reference is ignored.
        let (Some(_), Some(reference)) = (&policy.param_kind, &self.param_ref) else {
            return Ok(Params::None);
        };
        let namespace = match (namespaced, reference.namespace.as_str()) {
            (false, "") => "",
            (false, _) => {
                return Err(
                    "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
                        .to_owned(),
                );
            }
            (true, "") if request_namespace.is_empty() => {
                return Err("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources".to_owned());
            }
            (true, "") => request_namespace,
            (true, namespace) => namespace,
        };
        match (reference.name.as_str(), &reference.selector) {
            ("", None) => Err("one of name or selector must be provided".to_owned()),
            ("", Some(Ok(selector))) => Ok(Params::Selected {
                namespace,
                selector,
            }),
            ("", Some(Err(error))) => Err(error.to_string()),
            (_, Some(_)) => {
                Err("paramRef.name and paramRef.selector are mutually exclusive".to_owned())
            }
            (name, None) => Ok(Params::Named { namespace, name }),
        }
    }

    /// Returns the error of a binding whose parameters were not found, if that is an error.
    pub fn without_params(&self) -> Result<(), String> {
        match &self.param_ref {
            Some(reference) if reference.required => Err(
                "no params found for policy binding with `Deny` parameterNotFoundAction".to_owned(),
            ),
            _ => Ok(()),
        }
    }
}

impl ParamRef {
    fn read(reference: &Value) -> ParamRef {
        let selector = reference
            .get("selector")
            .filter(|selector| !selector.is_null());
        ParamRef {
            name: Str::new(text(reference, "name")),
            namespace: Str::new(text(reference, "namespace")),
            selector: selector.map(Selector::from_object),
            required: text(reference, "parameterNotFoundAction") == "Deny",
        }
    }
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    let text = value.get(member).and_then(Value::as_str);
    text.unwrap_or_default()
}
