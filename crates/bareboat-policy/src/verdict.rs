//! Combines the results of bindings: denials, warnings, audit annotations and what metrics count.

use crate::binding::{Action, Binding};
use crate::first_few::FirstFew;
use crate::policy::{FailurePolicy, Policy};
use crate::validating::{Evaluation, Validated};
use bareboat_api::status::GroupResource;
use bareboat_api::value::print_string;
use bareboat_api::{Status, Str};

/// The maximum length of an audit annotation of a policy, in bytes.
const MAX_ANNOTATION: usize = 10 * 1024;
/// The audit annotation with failed validations.
const FAILURES: &str = "validation.policy.admission.k8s.io/validation_failure";

/// A denial of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The message, with the names of policy and binding.
    pub message: String,
    /// The reason of the Status.
    pub reason: &'static str,
}

impl Denial {
    /// Returns the HTTP code of the reason.
    pub fn code(&self) -> u16 {
        match self.reason {
            "Unauthorized" => 401,
            "Forbidden" => 403,
            "RequestEntityTooLarge" => 413,
            _ => 422,
        }
    }

    /// Returns the answer to a request for this object.
    pub fn status(&self, what: GroupResource<'_>, name: &str) -> Status {
        let mut status = Status::forbidden(what, name, &self.message);
        status.code = self.code();
        status.reason = self.reason.into();
        status.with_cause("", self.message.clone(), "")
    }
}

/// The kind of error that metrics count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorType {
    /// The expression does not compile.
    Compile,
    /// The cost budget was used up.
    OutOfBudget,
    /// The validation failed, or could not be evaluated.
    Invalid,
    /// There was none.
    None,
}

impl ErrorType {
    /// Returns the kind of an error with this message.
    pub fn of(message: &str) -> ErrorType {
        if message.starts_with("compilation") {
            ErrorType::Compile
        } else if message.starts_with("validation failed due to running out of cost budget") {
            ErrorType::OutOfBudget
        } else {
            ErrorType::Invalid
        }
    }

    /// Returns the value of the metrics' label.
    pub fn label(self) -> &'static str {
        match self {
            ErrorType::Compile => "compile_error",
            ErrorType::OutOfBudget => "out_of_budget",
            ErrorType::Invalid => "invalid_error",
            ErrorType::None => "no_error",
        }
    }
}

/// What a policy did to a request, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforcement {
    /// An error was ignored.
    Allow,
    /// The request was refused.
    Deny,
    /// A warning was sent.
    Warn,
    /// An audit annotation was made.
    Audit,
}

impl Enforcement {
    /// Returns the value of the metrics' label.
    pub fn label(self) -> &'static str {
        match self {
            Enforcement::Allow => "allow",
            Enforcement::Deny => "deny",
            Enforcement::Warn => "warn",
            Enforcement::Audit => "audit",
        }
    }
}

/// A check that metrics count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The name of the policy.
    pub policy: Str,
    /// The name of the binding.
    pub binding: Str,
    /// What went wrong.
    pub error: ErrorType,
    /// What was done about it.
    pub enforcement: Enforcement,
}

/// The values of an audit annotation of a policy.
#[derive(Debug)]
struct Annotation {
    key: String,
    values: FirstFew,
}

/// The combined result of validating policies for a request.
#[derive(Debug, Default)]
pub struct Verdict {
    denial: Option<Denial>,
    warnings: FirstFew,
    failures: FirstFew,
    annotations: Vec<Annotation>,
}

impl Verdict {
    /// Adds the result of a policy for a binding and a parameter object. Returns what metrics count.
    pub fn add(&mut self, policy: &Policy, binding: &Binding, validated: Validated) -> Vec<Check> {
        let mut checks = Vec::new();
        let mut check = |error: ErrorType, enforcement: Enforcement| {
            checks.push(Check {
                policy: policy.name.clone(),
                binding: binding.name.clone(),
                error,
                enforcement,
            });
        };
        for decision in validated.decisions {
            let error = ErrorType::of(&decision.message);
            if decision.admitted {
                debug_assert_eq!(decision.evaluation, Evaluation::Error);
                check(error, Enforcement::Allow);
                continue;
            }
            for action in &binding.actions {
                let enforcement = match action {
                    Action::Deny => {
                        self.deny(policy, Some(binding), &decision.message, decision.reason);
                        Enforcement::Deny
                    }
                    Action::Warn => {
                        self.warnings.add_new(format!(
                            "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                            policy.name, binding.name, decision.message
                        ));
                        Enforcement::Warn
                    }
                    Action::Audit => {
                        self.fail(binding, decision.index, &decision.message);
                        Enforcement::Audit
                    }
                };
                check(error, enforcement);
            }
        }
        for audit in validated.audits {
            match audit.value {
                Ok(value) => self.annotate(policy, &audit.key, value),
                Err(error) => {
                    self.deny(policy, Some(binding), &error, "");
                    check(ErrorType::of(&error), Enforcement::Deny);
                }
            }
        }
        checks
    }

    /// Adds the error of a policy, or of one of its bindings, that cannot be evaluated as it is configured.
    pub fn misconfigured(&mut self, policy: &Policy, binding: Option<&Binding>, error: &str) {
        if policy.failure_policy == FailurePolicy::Fail {
            let part = match binding {
                Some(_) => "binding",
                None => "policy",
            };
            let message = format!("failed to configure {part}: {error}");
            self.deny(policy, binding, &message, "");
        }
    }

    /// Remembers the first denial.
    fn deny(
        &mut self,
        policy: &Policy,
        binding: Option<&Binding>,
        message: &str,
        reason: &'static str,
    ) {
        self.denial.get_or_insert_with(|| {
            let policy = &policy.name;
            let by = match binding {
                Some(binding) => format!(
                    "ValidatingAdmissionPolicy '{policy}' with binding '{}'",
                    binding.name
                ),
                None => format!("ValidatingAdmissionPolicy '{policy}'"),
            };
            Denial {
                message: format!("{by} denied request: {message}"),
                reason: match reason {
                    "" => "Invalid",
                    reason => reason,
                },
            }
        });
    }

    /// Adds a failure to the audit annotation.
    fn fail(&mut self, binding: &Binding, index: usize, message: &str) {
        self.failures.add(|| {
            let actions = binding.actions.iter();
            let actions: Vec<String> = actions.map(|action| go_string(action.name())).collect();
            failure(
                message,
                (&binding.policy, &binding.name),
                index,
                &actions.join(","),
            )
        });
    }

    fn annotate(&mut self, policy: &Policy, key: &str, mut value: String) {
        if value.len() > MAX_ANNOTATION {
            let mut end = MAX_ANNOTATION;
            while !value.is_char_boundary(end) {
                end -= 1;
            }
            value.truncate(end);
        }
        let key = format!("{}/{key}", policy.name);
        match self.annotations.iter_mut().find(|known| known.key == key) {
            Some(known) => known.values.add_new(value),
            None => {
                let mut values = FirstFew::default();
                values.add(|| value);
                self.annotations.push(Annotation { key, values });
            }
        }
    }

    /// Returns the first denial.
    pub fn denial(&self) -> Option<&Denial> {
        self.denial.as_ref()
    }

    /// Returns the warnings for the client.
    pub fn warnings(&self) -> Vec<String> {
        let warnings = &self.warnings;
        warnings.with_remark(|more| format!("{more} more failed validations were left out"))
    }

    /// Returns keys and values for the audit event.
    pub fn audit_annotations(&self) -> Vec<(String, String)> {
        let joined = self.annotations.iter().map(|annotation| {
            let values = &annotation.values;
            let values = values.with_remark(|more| format!("{more} more values were left out"));
            (annotation.key.clone(), values.join(", "))
        });
        let mut all: Vec<(String, String)> = joined.collect();
        if !self.failures.kept().is_empty() {
            let failures = self.failures.with_remark(|more| {
                let message = format!("{more} more failed validations were left out");
                failure(&message, ("", ""), 0, "")
            });
            let value = format!("[{}]", failures.join(","));
            all.push((FAILURES.to_owned(), value));
        }
        all
    }
}

/// Prints a failed validation, with its members in the order that Kubernetes writes.
fn failure(message: &str, (policy, binding): (&str, &str), index: usize, actions: &str) -> String {
    format!(
        r#"{{"message":{},"policy":{},"binding":{},"expressionIndex":{index},"validationActions":[{actions}]}}"#,
        go_string(message),
        go_string(policy),
        go_string(binding),
    )
}

/// Prints a string as Go's JSON encoder does, which escapes some characters of HTML.
fn go_string(text: &str) -> String {
    let printed = print_string(text);
    if !printed.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return printed;
    }
    printed
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}
