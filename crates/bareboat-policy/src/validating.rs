//! Evaluates the validations and audit annotations of a policy for one binding and one parameter object.

use crate::code::Validation;
use crate::conditions::Matched;
use crate::inputs::Inputs;
use crate::policy::{FailurePolicy, Policy};
use crate::scope::{BUDGET, OUT_OF_BUDGET, OutOfBudget, Scope, Sight};
use bareboat_api::Value;
use bareboat_cel::Val;

/// The maximum length of the result of a message expression, in bytes.
const MAX_MESSAGE: usize = 5 * 1024;

/// How an evaluation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evaluation {
    /// The validation failed.
    Denied,
    /// It could not be evaluated.
    Error,
}

/// A validation that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The position of the validation in the policy.
    pub index: usize,
    /// How its evaluation ended.
    pub evaluation: Evaluation,
    /// Whether the request is admitted nevertheless, because the policy ignores failures.
    pub admitted: bool,
    /// The message for the client.
    pub message: String,
    /// The reason of the Status, such as `Invalid`; empty after an error.
    pub reason: &'static str,
}

/// An audit annotation with its value, or with the error that refuses the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditAnnotation {
    /// The key in the policy.
    pub key: String,
    /// The value, or the error.
    pub value: Result<String, String>,
}

/// The result of a policy for one binding and one parameter object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validated {
    /// The validations that did not succeed.
    pub decisions: Vec<Decision>,
    /// The audit annotations to publish.
    pub audits: Vec<AuditAnnotation>,
}

impl Policy {
    /// Evaluates match conditions, validations and audit annotations.
    pub fn validate(&self, inputs: &Inputs<'_>) -> Validated {
        match self.matches(inputs) {
            Matched::No => Validated::default(),
            Matched::Failed(why) => self.failed(why),
            Matched::Yes => self.judge(inputs),
        }
    }

    /// Evaluates validations and audit annotations, for a request that meets the match conditions.
    pub fn judge(&self, inputs: &Inputs<'_>) -> Validated {
        let decisions = match self.decide(inputs) {
            Ok(decisions) => decisions,
            Err(OutOfBudget) => return self.failed(OUT_OF_BUDGET.to_owned()),
        };
        match self.annotate(inputs) {
            Ok(audits) => Validated { decisions, audits },
            Err(OutOfBudget) => self.failed(OUT_OF_BUDGET.to_owned()),
        }
    }

    /// Returns the result of a policy that could not be evaluated as a whole.
    pub fn failed(&self, message: String) -> Validated {
        Validated {
            decisions: vec![self.error(0, message)],
            audits: Vec::new(),
        }
    }

    fn error(&self, index: usize, message: String) -> Decision {
        Decision {
            index,
            evaluation: Evaluation::Error,
            admitted: self.failure_policy == FailurePolicy::Ignore,
            message,
            reason: "",
        }
    }

    fn decide(&self, inputs: &Inputs<'_>) -> Result<Vec<Decision>, OutOfBudget> {
        let code = self.code();
        let sight = Sight {
            authorizer: true,
            namespace: true,
        };
        let scope = Scope::new(code, inputs, sight, BUDGET);
        let mut decisions = Vec::new();
        let mut denied: Vec<usize> = Vec::new();
        for (index, validation) in code.validations.iter().enumerate() {
            let expression = self.text("validations", index, "expression");
            match scope.evaluate(&validation.program, expression)? {
                Err(error) => decisions.push(self.error(index, error)),
                Ok(Val::Bool(true)) => {}
                Ok(_) => {
                    denied.push(decisions.len());
                    decisions.push(Decision {
                        index,
                        evaluation: Evaluation::Denied,
                        admitted: false,
                        message: String::new(),
                        reason: self.reason(index),
                    });
                }
            }
        }
        if denied.is_empty() {
            return Ok(decisions);
        }
        // Messages have the rest of the budget, and variables of their own.
        let sight = Sight {
            authorizer: false,
            namespace: true,
        };
        let messages = Scope::new(code, inputs, sight, scope.left());
        for at in denied {
            let index = decisions[at].index;
            match self.message(index, &code.validations[index], &messages) {
                Ok(message) => decisions[at].message = message,
                Err(OutOfBudget) => {
                    let why = format!("failed messageExpression: {OUT_OF_BUDGET}");
                    decisions[at] = self.error(index, why);
                }
            }
        }
        Ok(decisions)
    }

    /// Returns the message of a failed validation: that of its expression, its text, or the expression that failed.
    fn message<'a>(
        &self,
        index: usize,
        validation: &'a Validation,
        scope: &Scope<'a>,
    ) -> Result<String, OutOfBudget> {
        if let Some(program) = &validation.message {
            let expression = self.text("validations", index, "messageExpression");
            let value = scope.evaluate(program, expression)?;
            let text = value.as_ref().ok().and_then(Val::as_str).map(str::trim);
            let usable =
                |text: &&str| !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
            if let Some(text) = text.filter(usable) {
                return Ok(text.to_owned());
            }
        }
        Ok(match self.text("validations", index, "message").trim() {
            "" => {
                let expression = self.text("validations", index, "expression");
                format!("failed expression: {}", expression.trim())
            }
            text => text.to_owned(),
        })
    }

    fn reason(&self, index: usize) -> &'static str {
        match self.text("validations", index, "reason") {
            "Unauthorized" => "Unauthorized",
            "Forbidden" => "Forbidden",
            "RequestEntityTooLarge" => "RequestEntityTooLarge",
            _ => "Invalid",
        }
    }

    fn annotate(&self, inputs: &Inputs<'_>) -> Result<Vec<AuditAnnotation>, OutOfBudget> {
        let code = self.code();
        let mut audits = Vec::new();
        if code.audits.is_empty() {
            return Ok(audits);
        }
        let sight = Sight {
            authorizer: false,
            namespace: true,
        };
        let scope = Scope::new(code, inputs, sight, BUDGET);
        for (index, program) in code.audits.iter().enumerate() {
            let text = |member: &str| self.text("auditAnnotations", index, member);
            let value = match scope.evaluate(program, text("valueExpression"))? {
                Ok(value) => match value.as_str().map(str::trim) {
                    None | Some("") => continue,
                    Some(text) => Ok(text.to_owned()),
                },
                Err(_) if self.failure_policy == FailurePolicy::Ignore => continue,
                Err(error) => Err(error),
            };
            let key = text("key").to_owned();
            audits.push(AuditAnnotation { key, value });
        }
        Ok(audits)
    }
}

/// Returns the namespace as expressions see it, without its managed fields and owners.
pub fn visible_namespace(namespace: &Value) -> Value {
    let mut visible = namespace.clone();
    if let Some(metadata) = visible.at_mut(&["metadata"]).and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        metadata.remove("ownerReferences");
        metadata.remove("selfLink");
    }
    visible
}
