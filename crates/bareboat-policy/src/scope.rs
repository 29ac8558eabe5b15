//! Evaluates expressions: binds the variables, computes those of the policy when they are read, and counts the cost.

use crate::code::{Code, Compiled};
use crate::inputs::Inputs;
use bareboat_api::Value;
use bareboat_cel::{Activation, Budget, Entries, EvalError, MapVal, Val};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

/// The cost that the validations, or one mutation, of a binding may have.
pub(crate) const BUDGET: u64 = 10_000_000;
/// The cost that the match conditions of a policy may have.
pub(crate) const CONDITIONS_BUDGET: u64 = 2_500_000;

/// The cost of one expression, and the work of all of them, in a first attempt: well under a millisecond.
const TRIAL_COST: u64 = 10_000;
const TRIAL_WORK: u64 = 1 << 16;

/// The message of an evaluation that stops because the budget is used up.
pub(crate) const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The evaluation stopped because its budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfBudget;

/// Which variables expressions of a purpose see.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight {
    pub(crate) authorizer: bool,
    pub(crate) namespace: bool,
}

/// A variable of the policy.
enum Variable<'a> {
    /// It is being computed; a variable of the same name refers to it.
    Pending,
    Known(Result<Val<'a>, EvalError>),
}

/// The variables of several evaluations with one budget. Each variable of the policy is computed once.
pub(crate) struct Scope<'a> {
    code: &'a Code,
    inputs: &'a Inputs<'a>,
    sight: Sight,
    known: RefCell<HashMap<&'a str, Variable<'a>>>,
    /// Memory and work of all evaluations.
    pool: RefCell<Budget>,
    left: Cell<u64>,
    /// The cost of variables since the current expression began.
    variables_cost: Cell<u64>,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(
        code: &'a Code,
        inputs: &'a Inputs<'a>,
        sight: Sight,
        cost: u64,
    ) -> Scope<'a> {
        Scope {
            code,
            inputs,
            sight,
            known: RefCell::default(),
            pool: RefCell::new(match inputs.trial {
                Some(_) => Budget::with_per_call(u64::MAX, TRIAL_COST).with_work(TRIAL_WORK),
                None => Budget::new(u64::MAX),
            }),
            left: Cell::new(cost),
            variables_cost: Cell::new(0),
        }
    }

    /// Returns the cost that is left.
    pub(crate) fn left(&self) -> u64 {
        self.left.get()
    }

    /// Evaluates an expression. The inner error is the message of a failed evaluation.
    pub(crate) fn evaluate(
        &self,
        program: &'a Compiled,
        expression: &str,
    ) -> Result<Result<Val<'a>, String>, OutOfBudget> {
        let program = match program {
            Ok(program) => program,
            Err(why) => return Ok(Err(format!("compilation error: {why}"))),
        };
        self.variables_cost.set(0);
        let (result, cost) = self.run(program);
        let cost = cost.saturating_add(self.variables_cost.get());
        let left = self.left.get().checked_sub(cost).ok_or(OutOfBudget)?;
        self.left.set(left);
        Ok(result.map_err(|error| format!("expression '{expression}' resulted in error: {error}")))
    }

    fn run(&self, program: &'a bareboat_cel::Program) -> (Result<Val<'a>, EvalError>, u64) {
        let mut budget = self.pool.borrow_mut().split();
        let result = program.eval(self, &mut budget);
        let cost = budget.last_cost();
        if let Some(trial) = self.inputs.trial
            && (cost > TRIAL_COST || matches!(result, Err(EvalError::OutOfBudget)))
        {
            trial.exceed();
        }
        self.pool.borrow_mut().rejoin(budget);
        (result, cost)
    }

    fn variable(&self, name: &str) -> Option<Result<Val<'a>, EvalError>> {
        let (name, compiled) = self.code.variables.get_key_value(name)?;
        let name = name.as_str();
        match self.known.borrow().get(name) {
            Some(Variable::Known(value)) => return Some(value.clone()),
            Some(Variable::Pending) => {
                let why = format!("composited variable {name:?} refers to itself");
                return Some(Err(EvalError::new(why)));
            }
            None => {}
        }
        if self.variables_cost.get() > self.left.get() {
            return Some(Err(EvalError::OutOfBudget));
        }
        let value = match compiled {
            Err(why) => Err(EvalError::new(format!(
                "composited variable {name:?} fails to compile: {why}"
            ))),
            Ok(program) => {
                self.known.borrow_mut().insert(name, Variable::Pending);
                let (value, cost) = self.run(program);
                let total = self.variables_cost.get().saturating_add(cost);
                self.variables_cost.set(total);
                value.map_err(|error| {
                    EvalError::new(format!(
                        "composited variable {name:?} fails to evaluate: {error}"
                    ))
                })
            }
        };
        let known = Variable::Known(value.clone());
        self.known.borrow_mut().insert(name, known);
        Some(value)
    }

    /// Returns the names of the variables; `has(variables.x)` reads it.
    fn variables(&self) -> Val<'a> {
        let names = self.code.variables.keys();
        let entries = names.map(|name| (Val::str(name), Val::Null));
        Val::map(entries).unwrap_or_else(|_| Val::Map(MapVal::Values(Arc::new(Entries::default()))))
    }
}

fn or_null<'a>(value: Option<&'a Value>) -> Val<'a> {
    value.map_or(Val::Null, Val::of_json)
}

impl<'a> Activation<'a> for Scope<'a> {
    fn resolve(&self, name: &str) -> Option<Result<Val<'a>, EvalError>> {
        let inputs = self.inputs;
        let authorizer = || inputs.authorizer.clone().filter(|_| self.sight.authorizer);
        Some(Ok(match name {
            "object" => or_null(inputs.object),
            "oldObject" => or_null(inputs.old_object),
            "params" => or_null(inputs.params),
            "request" => Val::of_json(inputs.request),
            "namespaceObject" if !self.sight.namespace => Val::Null,
            "namespaceObject" => or_null(inputs.namespace),
            "authorizer" => Val::authorizer(authorizer()?),
            "authorizer.requestResource" => {
                Val::resource_check(authorizer()?, inputs.request_resource.clone())
            }
            "variables" => self.variables(),
            _ => return self.variable(name.strip_prefix("variables.")?),
        }))
    }
}
