//! Match conditions: whether a policy applies to a request at all.

use crate::inputs::Inputs;
use crate::policy::{FailurePolicy, Policy};
use crate::scope::{CONDITIONS_BUDGET, OUT_OF_BUDGET, Scope, Sight};
use bareboat_cel::Val;

/// Whether the match conditions of a policy hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matched {
    /// All of them hold.
    Yes,
    /// One of them does not hold, or cannot be evaluated and the policy ignores failures.
    No,
    /// None is false, but some cannot be evaluated; the text says why.
    Failed(String),
}

/// The result of evaluating match conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// Whether they hold.
    pub matched: Matched,
    /// How many could not be evaluated.
    pub errors: usize,
}

impl Policy {
    /// Returns whether the policy has match conditions.
    pub fn has_conditions(&self) -> bool {
        !self.list("matchConditions").is_empty()
    }

    /// Returns whether the match conditions hold.
    pub fn matches(&self, inputs: &Inputs<'_>) -> Matched {
        self.conditions(inputs).matched
    }

    /// Evaluates the match conditions.
    pub fn conditions(&self, inputs: &Inputs<'_>) -> Conditions {
        let mut errors = 0;
        let matched = match self.has_conditions() {
            true => self.evaluate_conditions(inputs, &mut errors),
            false => Matched::Yes,
        };
        Conditions { matched, errors }
    }

    fn evaluate_conditions(&self, inputs: &Inputs<'_>, failures: &mut usize) -> Matched {
        let failed = |why: String| match self.failure_policy {
            FailurePolicy::Fail => Matched::Failed(why),
            FailurePolicy::Ignore => Matched::No,
        };
        // Conditions do not see the namespace.
        let sight = Sight {
            authorizer: true,
            namespace: false,
        };
        let code = self.code();
        let scope = Scope::new(code, inputs, sight, CONDITIONS_BUDGET);
        let mut errors: Vec<String> = Vec::new();
        let mut is_false = false;
        // A condition that is false decides, but one after it may still exceed the budget.
        for (index, condition) in code.conditions.iter().enumerate() {
            let expression = self.text("matchConditions", index, "expression");
            match scope.evaluate(condition, expression) {
                Err(_) => return failed(OUT_OF_BUDGET.to_owned()),
                Ok(Err(error)) => {
                    *failures += 1;
                    if !errors.contains(&error) {
                        errors.push(error);
                    }
                }
                Ok(Ok(value)) => is_false |= matches!(value, Val::Bool(false)),
            }
            if is_false && errors.is_empty() {
                return Matched::No;
            }
        }
        match errors.as_slice() {
            _ if is_false => Matched::No,
            [] => Matched::Yes,
            [one] => failed(one.clone()),
            several => failed(format!("[{}]", several.join(", "))),
        }
    }
}
