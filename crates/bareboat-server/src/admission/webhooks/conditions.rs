//! Match conditions of a webhook: expressions that decide whether it is called.

use crate::admission::access::AccessChecks;
use crate::admission::pass::Pass;
use crate::work;
use bareboat_api::{Str, Value};
use bareboat_cel::{AdmissionEnv, Budget, EvalError, Program, Purpose, Val, Variables};
use std::sync::OnceLock;

/// What the conditions of one webhook may cost.
const COST: u64 = 2_500_000;
/// The error of conditions that cost more.
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The conditions of a webhook, compiled when they are first used.
pub(super) struct Conditions {
    expressions: Vec<Str>,
    compiled: OnceLock<Vec<Compiled>>,
}

type Compiled = Result<Program, String>;

/// Whether a request matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Matched {
    /// All conditions are true.
    Yes,
    /// A condition is false.
    No,
    /// No condition is false, but one or more failed: the joined errors, and how many.
    Failed(String, usize),
}

impl Conditions {
    pub(super) fn read(hook: &Value) -> Conditions {
        let items = hook.get("matchConditions").and_then(Value::as_array);
        let items = items.unwrap_or(&[]).iter();
        let text = |item: &Value| {
            let text = item.get("expression").and_then(Value::as_str);
            text.map(Str::new)
        };
        Conditions {
            expressions: items.filter_map(text).collect(),
            compiled: OnceLock::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.expressions.is_empty()
    }

    fn compiled(&self) -> &[Compiled] {
        self.compiled.get_or_init(|| {
            let env = AdmissionEnv::new(false);
            let compile = |expression: &Str| {
                let program = env.compile(expression, Purpose::MatchCondition);
                program.map_err(|refused| format!("compilation error: {refused}"))
            };
            self.expressions.iter().map(compile).collect()
        })
    }

    /// Evaluates the conditions on a request in a form, which is prepared.
    pub(super) async fn check(&self, pass: &Pass<'_, '_>, form: usize) -> Matched {
        // Expressions may cost far more than the size of the object suggests.
        work::large().await;
        let programs = self.compiled();
        let request = pass.request_value(form);
        let uses = |name: &str| {
            let mut programs = programs.iter().flatten();
            programs.any(|program| program.uses(name))
        };
        let access = (uses("authorizer") || uses("authorizer.requestResource"))
            .then(|| AccessChecks::new(pass));
        loop {
            let matched = {
                let mut variables = Variables::new()
                    .bind("object", json(pass.object(form)))
                    .bind("oldObject", json(pass.old(form)))
                    .bind("request", Val::of_json(&request))
                    .bind("namespaceObject", Val::Null);
                if let Some(access) = &access {
                    variables.set("authorizer", access.value());
                    variables.set("authorizer.requestResource", access.request_resource());
                }
                self.evaluate(programs, &variables)
            };
            match &access {
                Some(access) if access.settle().await => {}
                _ => return matched,
            }
        }
    }

    fn evaluate(&self, programs: &[Compiled], variables: &Variables<'_>) -> Matched {
        let mut budget = Budget::new(COST);
        let mut errors: Vec<String> = Vec::new();
        for (program, expression) in programs.iter().zip(&self.expressions) {
            let result = match program {
                Ok(program) => program.eval(variables, &mut budget),
                Err(why) => {
                    errors.push(why.clone());
                    continue;
                }
            };
            match result.map(|value| value.as_bool()) {
                Ok(Some(false)) => return Matched::No,
                Ok(_) => {}
                Err(EvalError::OutOfBudget) => errors.push(OUT_OF_BUDGET.to_owned()),
                Err(error) => errors.push(format!(
                    "expression '{expression}' resulted in error: {error}"
                )),
            }
        }
        let count = errors.len();
        errors.dedup();
        match errors.as_slice() {
            [] => Matched::Yes,
            [one] => Matched::Failed(one.clone(), count),
            several => Matched::Failed(format!("[{}]", several.join(", ")), count),
        }
    }
}

fn json(value: Option<&Value>) -> Val<'_> {
    value.map_or(Val::Null, Val::of_json)
}
