//! Expensive expressions are stopped.

use super::{denied, policy};
use crate::scope::OUT_OF_BUDGET;
use crate::{ErrorType, Inputs, Matched, Trial};
use bareboat_api::{Value, value};

/// An expression that costs about as much as one call may.
const LONG: &str = "'0123456789'.split('').all(a, '0123456789'.split('').all(b, '0123456789'.split('').all(c, '0123456789'.split('').all(d, a + b + c + d != 'x'))))";
/// One that costs far more.
const TOO_LONG: &str = "'0123456789'.split('').all(a, '0123456789'.split('').all(b, '0123456789'.split('').all(c, '0123456789'.split('').all(d, '0123456789'.split('').all(e, '0123456789'.split('').all(f, a + b + c + d + e + f != 'x'))))))";

fn validations(expression: &str, count: usize) -> Value {
    let one = value!({"expression": (expression)});
    vec![one; count].into_iter().collect()
}

#[test]
fn one_expression_has_a_limit() {
    let message = denied(value!({"validations": (validations(TOO_LONG, 1))}));
    let wanted = "resulted in error: operation cancelled: actual cost limit exceeded";
    assert!(message.ends_with(wanted), "{message}");
}

#[test]
fn all_expressions_together_have_a_limit() {
    assert_eq!(denied(value!({"validations": (validations(LONG, 1))})), "");
    let message = denied(value!({"validations": (validations(LONG, 200))}));
    assert_eq!(message, OUT_OF_BUDGET);
    assert_eq!(ErrorType::of(&message), ErrorType::OutOfBudget);
    assert_eq!(
        denied(value!({"failurePolicy": "Ignore", "validations": (validations(LONG, 200))})),
        ""
    );
}

#[test]
fn variables_count() {
    let mut variables = Vec::new();
    let mut sum = vec!["true".to_owned()];
    for index in 0..200 {
        variables.push(value!({"name": (format!("v{index}")), "expression": (LONG)}));
        sum.push(format!("variables.v{index}"));
    }
    let variables: Value = variables.into_iter().collect();
    let message = denied(value!({
        "variables": (variables),
        "validations": [{"expression": (sum.join(" && "))}],
    }));
    assert_eq!(message, OUT_OF_BUDGET);
}

#[test]
fn match_conditions_have_a_smaller_limit() {
    let conditions: Value = (0..60)
        .map(|index| value!({"name": (format!("c{index}")), "expression": (LONG)}))
        .collect();
    let request = value!({});
    let inputs = Inputs::new(None, None, &request);
    let policy = policy(value!({"matchConditions": (conditions)}));
    assert_eq!(
        policy.matches(&inputs),
        Matched::Failed(OUT_OF_BUDGET.to_owned())
    );
}

#[test]
fn a_trial_notices_what_takes_long() {
    let request = value!({});
    for (expression, exceeded) in [("1 + 1 == 2", false), (LONG, true)] {
        let policy = policy(value!({"validations": [{"expression": (expression)}]}));
        let trial = Trial::default();
        let mut inputs = Inputs::new(None, None, &request);
        inputs.trial = Some(&trial);
        policy.validate(&inputs);
        assert_eq!(trial.exceeded(), exceeded, "{expression}");
    }
}

#[test]
fn a_chain_of_many_deep_variables_ends_in_an_error() {
    let mut variables = vec![value!({"name": "v0", "expression": "[1]"})];
    let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(99), "]".repeat(99));
    for index in 1..60 {
        let before = format!("variables.v{}", index - 1);
        variables.push(value!({"name": (format!("v{index}")), "expression": (deep(&before))}));
    }
    let variables: Value = variables.into_iter().collect();
    for (last, wanted) in [("v2", ""), ("v40", "composited variable")] {
        let message = denied(value!({
            "variables": (variables.clone()),
            "validations": [{"expression": (format!("size(variables.{last}) == 1"))}],
        }));
        assert!(message.contains(wanted), "{last}: {message}");
        assert_eq!(message.is_empty(), wanted.is_empty(), "{last}: {message}");
    }
}
