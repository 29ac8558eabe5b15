//! The compiled expressions of a policy.

use crate::policy::{Policy, PolicyKind};
use bareboat_api::{Str, Value};
use bareboat_cel::{AdmissionEnv, Program, Purpose};
use std::collections::HashMap;

/// The maximum depth of a variable together with the variables it reads, directly and through others: the same as that
/// of one expression. Evaluation recurses that deep, and values nest that deep.
const MAX_DEPTH: usize = 300;

/// A program, or the reason why the expression does not compile.
pub(crate) type Compiled = Result<Program, String>;

/// The form in which a mutation changes an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchType {
    ApplyConfiguration,
    JsonPatch,
}

/// A compiled validation.
pub(crate) struct Validation {
    pub(crate) program: Compiled,
    pub(crate) message: Option<Compiled>,
}

/// The compiled expressions of a policy.
#[derive(Default)]
pub(crate) struct Code {
    pub(crate) conditions: Vec<Compiled>,
    /// By name; of two variables with the same name the last one counts.
    pub(crate) variables: HashMap<Str, Compiled>,
    pub(crate) validations: Vec<Validation>,
    pub(crate) audits: Vec<Compiled>,
    pub(crate) mutations: Vec<(PatchType, Compiled)>,
    /// Whether an expression reads `authorizer`.
    pub(crate) needs_authorizer: bool,
    /// Whether an expression reads `namespaceObject`.
    pub(crate) needs_namespace: bool,
}

impl Code {
    /// Compiles all expressions of a policy.
    pub(crate) fn compile(policy: &Policy) -> Code {
        let params = policy.param_kind.is_some();
        let mut env = AdmissionEnv::new(params).composed();
        let mut code = Code::default();
        let mut depths: HashMap<Str, usize> = HashMap::new();
        for variable in policy.list("variables") {
            let name = text(variable, "name");
            let compiled = env.define(name, text(variable, "expression"));
            let compiled = bounded(
                compiled.map_err(|refused| refused.to_string()),
                name,
                &mut depths,
            );
            code.variables.insert(Str::new(name), compiled);
        }
        let compile = |expression: &str, purpose: Purpose| {
            let compiled = env.compile(expression, purpose);
            compiled.map_err(|refused| refused.to_string())
        };
        let conditions = policy.list("matchConditions").iter();
        code.conditions = conditions
            .map(|entry| compile(text(entry, "expression"), Purpose::MatchCondition))
            .collect();
        match policy.kind {
            PolicyKind::Validating => code.validating(policy, compile),
            PolicyKind::Mutating => code.mutating(policy, compile),
        }
        code.needs_authorizer = code.uses("authorizer") || code.uses("authorizer.requestResource");
        code.needs_namespace = code.uses("namespaceObject");
        code
    }

    /// Returns whether an expression reads the variable.
    fn uses(&self, variable: &str) -> bool {
        let validations = self.validations.iter();
        let validations =
            validations.flat_map(|one| std::iter::once(&one.program).chain(&one.message));
        let mutations = self.mutations.iter().map(|(_, program)| program);
        let all = self.conditions.iter().chain(self.variables.values());
        let mut all = all.chain(&self.audits).chain(validations).chain(mutations);
        all.any(|compiled| {
            compiled
                .as_ref()
                .is_ok_and(|program| program.uses(variable))
        })
    }

    fn validating(&mut self, policy: &Policy, compile: impl Fn(&str, Purpose) -> Compiled) {
        let validations = policy.list("validations").iter();
        self.validations = validations
            .map(|entry| Validation {
                program: compile(text(entry, "expression"), Purpose::Validation),
                message: match text(entry, "messageExpression") {
                    "" => None,
                    expression => Some(compile(expression, Purpose::Message)),
                },
            })
            .collect();
        let audits = policy.list("auditAnnotations").iter();
        self.audits = audits
            .map(|entry| compile(text(entry, "valueExpression"), Purpose::AuditAnnotation))
            .collect();
    }

    fn mutating(&mut self, policy: &Policy, compile: impl Fn(&str, Purpose) -> Compiled) {
        let mutations = policy.list("mutations").iter();
        self.mutations = mutations
            .map(|entry| {
                let (ty, purpose, member) = match text(entry, "patchType") {
                    "JSONPatch" => (PatchType::JsonPatch, Purpose::JsonPatch, "jsonPatch"),
                    _ => (
                        PatchType::ApplyConfiguration,
                        Purpose::ApplyConfiguration,
                        "applyConfiguration",
                    ),
                };
                let inner = entry.get(member).unwrap_or(&Value::Null);
                (ty, compile(text(inner, "expression"), purpose))
            })
            .collect();
    }
}

/// Refuses a variable that refers to others too deeply.
fn bounded(compiled: Compiled, name: &str, depths: &mut HashMap<Str, usize>) -> Compiled {
    let program = compiled?;
    let used = program.variables().filter_map(|used| {
        let used = used.strip_prefix("variables.")?;
        depths.get(used)
    });
    let depth = program.depth() + used.max().unwrap_or(&0);
    if depth > MAX_DEPTH {
        return Err("the variables refer to each other too deeply".to_owned());
    }
    depths.insert(Str::new(name), depth);
    Ok(program)
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    let text = value.get(member).and_then(Value::as_str);
    text.unwrap_or_default()
}
