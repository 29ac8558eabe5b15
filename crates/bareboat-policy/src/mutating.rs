//! Evaluates a mutation of a policy and applies it to an object.

use crate::apply::{apply, check_names};
use crate::code::PatchType;
use crate::inputs::Inputs;
use crate::json_patch::patch;
use crate::policy::Policy;
use crate::scope::{BUDGET, OUT_OF_BUDGET, OutOfBudget, Scope, Sight};
use bareboat_api::Value;
use bareboat_api::typing::TypeNode;
use bareboat_cel::{Object, Val};
use std::fmt;

/// The maximum size of an object that a mutation builds, as JSON.
const MAX_BUILT: usize = 3 << 20;

/// The error of a mutation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MutationError(pub String);

impl fmt::Display for MutationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MutationError {}

impl Policy {
    /// Evaluates a mutation and applies it to the object of the inputs, whose type is `node`. Returns the changed
    /// object; `None` if there is nothing to change.
    pub fn mutate(
        &self,
        index: usize,
        inputs: &Inputs<'_>,
        node: &dyn TypeNode,
    ) -> Result<Option<Value>, MutationError> {
        let (Some(object), Some((ty, program))) = (inputs.object, self.code().mutations.get(index))
        else {
            return Ok(None);
        };
        // Unlike other expressions, one that does not compile is reported without a prefix.
        if let Err(why) = program {
            return Err(MutationError(why.clone()));
        }
        let sight = Sight {
            authorizer: true,
            namespace: true,
        };
        let scope = Scope::new(self.code(), inputs, sight, BUDGET);
        let member = match ty {
            PatchType::ApplyConfiguration => "applyConfiguration",
            PatchType::JsonPatch => "jsonPatch",
        };
        let expression = self.list("mutations")[index].at(&[member, "expression"]);
        let expression = expression.and_then(Value::as_str).unwrap_or_default();
        let value = match scope.evaluate(program, expression) {
            Ok(value) => value.map_err(MutationError)?,
            Err(OutOfBudget) => return Err(MutationError(OUT_OF_BUDGET.to_owned())),
        };
        match ty {
            PatchType::ApplyConfiguration => merged(object, &value, node).map(Some),
            PatchType::JsonPatch => patch(object, &value),
        }
        .map_err(MutationError)
    }

    /// Returns whether a mutation is a JSON patch, whose result is decoded strictly.
    pub fn is_json_patch(&self, index: usize) -> bool {
        let mutation = self.code().mutations.get(index);
        mutation.is_some_and(|(ty, _)| *ty == PatchType::JsonPatch)
    }

    /// Returns the message about a mutation, or about its policy, that failed for a binding.
    pub fn mutation_denied(&self, binding: Option<&str>, why: &str) -> String {
        let name = &self.name;
        match binding {
            Some(binding) => {
                format!("policy '{name}' with binding '{binding}' denied request: {why}")
            }
            None => format!("policy {:?} denied request: {why}", name.as_str()),
        }
    }
}

fn merged(object: &Value, built: &Val<'_>, node: &dyn TypeNode) -> Result<Value, String> {
    if !matches!(built, Val::Object(Object::Built(_))) {
        let found = built.type_of();
        let found = found.name();
        return Err(format!(
            "unsupported return type from ApplyConfiguration expression: {found}"
        ));
    }
    check_names(built)?;
    let config = to_json(built).ok_or("invalid return type: the value has no JSON form")?;
    apply(object, config, node).map_err(|error| format!("error applying patch: {error}"))
}

/// Returns the JSON of a value, if it has one and is not too large.
pub(crate) fn to_json(value: &Val<'_>) -> Option<Value> {
    value.json_size(MAX_BUILT)?;
    value.to_json()
}
