//! Operators: logic that absorbs errors, comparisons, arithmetic, membership.

use std::cmp::Ordering;

use super::{Machine, arithmetic};
use crate::cost::Rule;
use crate::error::EvalError;
use crate::library::sets::holds;
use crate::program::{Arith, Comparison, OpId, Span};
use crate::value::{Val, compare, equal};

impl<'a> Machine<'_, 'a> {
    pub(super) fn not(&mut self, operand: OpId) -> Result<Val<'a>, EvalError> {
        match self.operand(operand)? {
            Val::Bool(value) => Ok(Val::Bool(!value)),
            _ => Err(EvalError::no_such_overload()),
        }
    }

    pub(super) fn negate(&mut self, operand: OpId) -> Result<Val<'a>, EvalError> {
        arithmetic::negate(&self.operand(operand)?)
    }

    pub(super) fn not_strictly_false(&mut self, operand: OpId) -> Result<Val<'a>, EvalError> {
        match self.operand(operand) {
            Err(EvalError::OutOfBudget) => Err(EvalError::OutOfBudget),
            Ok(Val::Bool(value)) => Ok(Val::Bool(value)),
            _ => Ok(Val::Bool(true)),
        }
    }

    pub(super) fn in_constants(&mut self, a: OpId, list: u32) -> Result<Val<'a>, EvalError> {
        let value = self.eval(a)?;
        match &self.code.constants[list as usize] {
            Val::List(items) => Ok(Val::Bool(holds(items, &value, self.budget)?)),
            _ => Err(EvalError::no_such_overload()),
        }
    }

    /// Evaluates `&&` (decided by false) or `||` (decided by true); an error counts only if no
    /// operand decides.
    pub(super) fn logical(&mut self, args: Span, decisive: bool) -> Result<Val<'a>, EvalError> {
        let code = self.code;
        let mut error = None;
        for arg in code.span(args) {
            match self.eval(*arg) {
                Ok(Val::Bool(value)) if value == decisive => return Ok(Val::Bool(decisive)),
                Ok(Val::Bool(_)) => {}
                Err(EvalError::OutOfBudget) => return Err(EvalError::OutOfBudget),
                Ok(_) => {
                    error.get_or_insert_with(EvalError::no_such_overload);
                }
                Err(failed) => {
                    error.get_or_insert(failed);
                }
            }
        }
        match error {
            Some(error) => Err(error),
            None => Ok(Val::Bool(!decisive)),
        }
    }

    pub(super) fn conditional(
        &mut self,
        args: Span,
        plain: [bool; 2],
    ) -> Result<Val<'a>, EvalError> {
        let code = self.code;
        let [condition, then, otherwise] = code.span(args) else {
            return Err(EvalError::no_such_overload());
        };
        let (branch, plain) = match self.eval(*condition)? {
            Val::Bool(true) => (*then, plain[0]),
            Val::Bool(false) => (*otherwise, plain[1]),
            _ => return Err(EvalError::no_such_overload()),
        };
        let value = self.eval(branch);
        self.budget.refund(u64::from(plain));
        value
    }

    /// Evaluates the operand of an operation that costs one even if the operand fails.
    fn operand(&mut self, operand: OpId) -> Result<Val<'a>, EvalError> {
        let value = self.eval(operand);
        self.budget.charge(1)?;
        value
    }

    /// Evaluates both operands of an operation that is charged even if one of them fails.
    fn operands(&mut self, a: OpId, b: OpId, rule: Rule) -> Result<(Val<'a>, Val<'a>), EvalError> {
        let a = self.eval(a);
        if matches!(a, Err(EvalError::OutOfBudget)) {
            return Err(EvalError::OutOfBudget);
        }
        let b = self.eval(b);
        let cost = match (&a, &b) {
            (Ok(a), Ok(b)) => rule.of_pair(a, b),
            (Err(_), Ok(b)) => rule.of_pair(&Val::Null, b),
            (Ok(a), Err(_)) => rule.of_pair(a, &Val::Null),
            (Err(_), Err(_)) => 1,
        };
        self.budget.charge(cost)?;
        let (a, b) = (a?, b?);
        self.budget.look_at(&a)?;
        self.budget.look_at(&b)?;
        Ok((a, b))
    }

    pub(super) fn equals(&mut self, a: OpId, b: OpId, negated: bool) -> Result<Val<'a>, EvalError> {
        let (a, b) = self.operands(a, b, Rule::Equality)?;
        Ok(Val::Bool(equal(&a, &b, self.budget)? != negated))
    }

    pub(super) fn compare(
        &mut self,
        a: OpId,
        b: OpId,
        how: Comparison,
        rule: Rule,
    ) -> Result<Val<'a>, EvalError> {
        let (a, b) = self.operands(a, b, rule)?;
        let order = compare(&a, &b)?;
        Ok(Val::Bool(match how {
            Comparison::Less => order == Some(Ordering::Less),
            Comparison::LessEquals => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Comparison::Greater => order == Some(Ordering::Greater),
            Comparison::GreaterEquals => {
                matches!(order, Some(Ordering::Greater | Ordering::Equal))
            }
        }))
    }

    pub(super) fn arithmetic(
        &mut self,
        a: OpId,
        b: OpId,
        how: Arith,
        rule: Rule,
    ) -> Result<Val<'a>, EvalError> {
        let (a, b) = self.operands(a, b, rule)?;
        match how {
            Arith::Add => arithmetic::add(a, b, self.budget),
            how => arithmetic::combine(how, &a, &b),
        }
    }

    pub(super) fn membership(
        &mut self,
        a: OpId,
        b: OpId,
        rule: Rule,
    ) -> Result<Val<'a>, EvalError> {
        let (value, container) = self.operands(a, b, rule)?;
        Ok(Val::Bool(match &container {
            Val::List(list) => holds(list, &value, self.budget)?,
            Val::Map(map) => map.get(&value).transpose()?.is_some(),
            Val::Object(object) => match value.as_str() {
                Some(name) => object.field(name).transpose()?.is_some(),
                None => return Err(EvalError::no_such_overload()),
            },
            _ => return Err(EvalError::no_such_overload()),
        }))
    }
}
