//! Evaluation: runs the operations of a program and counts the cost.
//!
//! Upstream: cel-go interpreter. An error is a value at first: `&&`, `||` and the loops built on
//! them absorb it when the other operand decides.

mod access;
mod activation;
pub(crate) mod arithmetic;
mod build;
mod fold;
mod operators;

pub use activation::{Activation, Variables};

use std::sync::Arc;

use smallvec::SmallVec;

use crate::budget::Budget;
use crate::error::EvalError;
use crate::library::Func;
use crate::program::{Code, Op, OpId, Span, Targets};
use crate::types::Type;
use crate::value::{Entries, MapVal, Val};

/// Runs a program.
pub(crate) fn run<'a>(
    code: &'a Code,
    variables: &dyn Activation<'a>,
    budget: &mut Budget,
) -> Result<Val<'a>, EvalError> {
    budget.start();
    let mut machine = Machine {
        code,
        variables,
        budget,
        slots: SmallVec::new(),
    };
    machine.slots.resize(usize::from(code.slots), Slot::Empty);
    let result = machine.eval(code.root);
    budget.finish();
    result
}

/// Evaluates an operation on constants.
pub(crate) fn constant(code: &Code) -> Result<Val<'static>, EvalError> {
    let mut budget = Budget::new(crate::budget::PER_CALL_LIMIT);
    let value = run(code, &Variables::new(), &mut budget)?;
    detached(&value).ok_or_else(EvalError::no_such_overload)
}

/// Returns a constant that borrows nothing.
fn detached(value: &Val<'_>) -> Option<Val<'static>> {
    Some(match value {
        Val::Null => Val::Null,
        Val::Bool(value) => Val::Bool(*value),
        Val::Int(value) => Val::Int(*value),
        Val::Uint(value) => Val::Uint(*value),
        Val::Double(value) => Val::Double(*value),
        Val::String(text) => Val::text(text.as_str()),
        Val::Bytes(bytes) => Val::Bytes(bytes.clone()),
        Val::Duration(value) => Val::Duration(*value),
        Val::Timestamp(value) => Val::Timestamp(*value),
        Val::Type(ty) => Val::Type(ty.clone()),
        Val::Special(special) => Val::Special(special.clone()),
        Val::Optional(None) => Val::Optional(None),
        Val::Optional(Some(inner)) => Val::some(detached(inner)?),
        Val::List(list) => {
            let items = list.iter().map(|item| detached(&item.ok()?));
            Val::list(items.collect::<Option<_>>()?)
        }
        Val::Map(map) => {
            let mut entries = Entries::default();
            for key in map.keys() {
                let value = map.get(&key)?.ok()?;
                entries.insert(detached(&key)?, detached(&value)?).ok()?;
            }
            Val::Map(MapVal::Values(Arc::new(entries)))
        }
        Val::Object(_) => return None,
    })
}

/// A local variable.
#[derive(Clone)]
enum Slot<'a> {
    Empty,
    Value(Val<'a>),
    /// An error that a loop carries along, because a later operand may absorb it.
    Failed(EvalError),
    /// A value that is computed at its first read.
    Pending(OpId),
}

struct Machine<'m, 'a> {
    code: &'a Code,
    variables: &'m dyn Activation<'a>,
    budget: &'m mut Budget,
    slots: SmallVec<[Slot<'a>; 4]>,
}

impl<'a> Machine<'_, 'a> {
    /// Evaluates an operation. Each operation is a separate method, because this one recurses and
    /// its frame must stay small.
    fn eval(&mut self, id: OpId) -> Result<Val<'a>, EvalError> {
        let code = self.code;
        match &code.ops[id as usize] {
            Op::Constant(index) => Ok(borrowed(&code.constants[*index as usize])),
            Op::Variable(index) => self.variable(&code.variables[usize::from(*index)]),
            Op::Local(slot) => self.local(*slot),
            Op::Unknown(name) => self.unknown("no such attribute(s): ", *name, ""),
            Op::Unbound(name) => self.unknown("unbound function: ", *name, "()"),
            Op::Select {
                operand,
                field,
                computed,
            } => self.select(*operand, *field, *computed),
            Op::Has {
                operand,
                field,
                computed,
            } => self.has(*operand, *field, *computed),
            Op::OptSelect {
                operand,
                field,
                computed,
            } => self.opt_select(*operand, *field, *computed),
            Op::Index {
                operand,
                index,
                computed,
                plain,
            } => self.index(*operand, *index, *computed, *plain),
            Op::OptIndex {
                operand,
                index,
                computed,
                plain,
            } => self.opt_index(*operand, *index, *computed, *plain),
            Op::And(args) => self.logical(*args, false),
            Op::Or(args) => self.logical(*args, true),
            Op::Conditional { args, plain } => self.conditional(*args, *plain),
            Op::Not(operand) => self.not(*operand),
            Op::Negate(operand) => self.negate(*operand),
            Op::NotStrictlyFalse(operand) => self.not_strictly_false(*operand),
            Op::Equals { a, b, negated } => self.equals(*a, *b, *negated),
            Op::Compare { a, b, how, rule } => self.compare(*a, *b, *how, *rule),
            Op::Arithmetic { a, b, how, rule } => self.arithmetic(*a, *b, *how, *rule),
            Op::In { a, b, rule } => self.membership(*a, *b, *rule),
            Op::InConstants { a, list } => self.in_constants(*a, *list),
            Op::List(list) => self.list(list.items, &list.optional),
            Op::Map(map) => self.map(map.entries, &map.optional),
            Op::Struct(message) => self.message(message),
            Op::Call { site, args } => self.call(*site, *args),
            Op::OptOr { a, b, value } => self.opt_or(*a, *b, *value),
            Op::Fold(fold) => self.fold(fold),
            Op::Append {
                slot,
                item,
                constant,
            } => self.append(*slot, *item, *constant),
            Op::Insert { slot, args } => self.insert(*slot, *args),
            Op::Bind {
                slot,
                value,
                result,
            } => self.bind(*slot, *value, *result),
        }
    }

    fn unknown(&self, before: &str, name: u32, after: &str) -> Result<Val<'a>, EvalError> {
        let name = &self.code.fields[name as usize];
        Err(EvalError::new(format!("{before}{name}{after}")))
    }

    fn select(&mut self, operand: OpId, field: u32, computed: bool) -> Result<Val<'a>, EvalError> {
        let operand = self.eval(operand)?;
        self.budget.charge(1 + u64::from(computed))?;
        access::select(operand, &self.code.fields[field as usize])
    }

    fn has(&mut self, operand: OpId, field: u32, computed: bool) -> Result<Val<'a>, EvalError> {
        let operand = self.eval(operand)?;
        self.budget.charge(u64::from(computed))?;
        access::has(operand, &self.code.fields[field as usize]).map(Val::Bool)
    }

    fn opt_select(
        &mut self,
        operand: OpId,
        field: u32,
        computed: bool,
    ) -> Result<Val<'a>, EvalError> {
        let operand = self.eval(operand)?;
        let value = access::opt_select(operand, &self.code.fields[field as usize]);
        self.charge_optional(value, computed, false)
    }

    fn index(
        &mut self,
        operand: OpId,
        index: OpId,
        computed: bool,
        plain: bool,
    ) -> Result<Val<'a>, EvalError> {
        let operand = self.eval(operand)?;
        let index = self.eval(index)?;
        self.budget.charge(1 + u64::from(computed))?;
        self.budget.refund(u64::from(plain));
        self.budget.look_at(&index)?;
        access::index(operand, &index)
    }

    fn opt_index(
        &mut self,
        operand: OpId,
        index: OpId,
        computed: bool,
        plain: bool,
    ) -> Result<Val<'a>, EvalError> {
        let operand = self.eval(operand)?;
        let index = self.eval(index)?;
        self.budget.look_at(&index)?;
        let value = access::opt_index(operand, &index);
        self.charge_optional(value, computed, plain)
    }

    fn bind(&mut self, slot: u16, value: OpId, result: OpId) -> Result<Val<'a>, EvalError> {
        self.slots[usize::from(slot)] = Slot::Pending(value);
        let result = self.eval(result);
        self.slots[usize::from(slot)] = Slot::Empty;
        result
    }

    fn variable(&mut self, name: &str) -> Result<Val<'a>, EvalError> {
        self.budget.charge(1)?;
        match self.variables.resolve(name) {
            Some(value) => value,
            None => Err(EvalError::new(format!("no such attribute(s): {name}"))),
        }
    }

    fn local(&mut self, slot: u16) -> Result<Val<'a>, EvalError> {
        self.budget.charge(1)?;
        let pending = match &self.slots[usize::from(slot)] {
            Slot::Value(value) => return Ok(value.clone()),
            Slot::Failed(error) => return Err(error.clone()),
            Slot::Empty => return Err(EvalError::new("no such attribute(s)")),
            Slot::Pending(op) => *op,
        };
        let value = self.eval(pending);
        self.slots[usize::from(slot)] = match &value {
            Ok(value) => Slot::Value(value.clone()),
            Err(error) => Slot::Failed(error.clone()),
        };
        value
    }

    /// Charges for an optional selection (`a.?b`, `a[?i]`) and returns its result `value`: 1 unless that is `none`, 1
    /// more if the operand is `computed`, 1 less if the index is `plain`.
    fn charge_optional(
        &mut self,
        value: Result<Val<'a>, EvalError>,
        computed: bool,
        plain: bool,
    ) -> Result<Val<'a>, EvalError> {
        let present = !matches!(value, Ok(Val::Optional(None)));
        self.budget
            .charge(u64::from(present) + u64::from(computed))?;
        self.budget.refund(u64::from(plain));
        value
    }

    fn call(&mut self, site: u32, args: Span) -> Result<Val<'a>, EvalError> {
        let code = self.code;
        let site = &code.calls[site as usize];
        let mut values: SmallVec<[Val<'a>; 3]> = SmallVec::new();
        for arg in code.span(args) {
            match self.eval(*arg) {
                Ok(value) => values.push(value),
                Err(error) => {
                    self.budget.charge(1)?;
                    return Err(error);
                }
            }
        }
        for value in &values {
            self.budget.look_through(value)?;
        }
        let function: Func = match &site.targets {
            Targets::One(function) => *function,
            Targets::Several(several) => {
                let fitting = several.iter().find(|(types, _)| {
                    types.len() == values.len()
                        && types
                            .iter()
                            .zip(&values)
                            .all(|(ty, value)| may_be(value, ty))
                });
                match fitting {
                    Some((_, function)) => *function,
                    None => |_, _| Err(EvalError::no_such_overload()),
                }
            }
        };
        let result = function(self.budget, &values);
        let cost = match &result {
            Ok(result) => site.rule.of_call(&values, Some(result), self.budget)?,
            Err(_) => site.rule.of_call(&values, None, self.budget)?,
        };
        self.budget.charge(cost)?;
        match (result, &site.name) {
            (Err(error), Some(name)) if error.is_no_such_overload() => {
                Err(EvalError::new(format!("no such overload: {name}")))
            }
            (result, _) => result,
        }
    }

    fn opt_or(&mut self, a: OpId, b: OpId, value: bool) -> Result<Val<'a>, EvalError> {
        let optional = self.eval(a)?;
        match optional {
            Val::Optional(Some(inner)) => Ok(if value {
                (*inner).clone()
            } else {
                Val::Optional(Some(inner))
            }),
            Val::Optional(None) => {
                let other = self.eval(b)?;
                match other {
                    Val::Optional(_) => Ok(other),
                    _ if value => Ok(other),
                    _ => Err(EvalError::no_such_overload()),
                }
            }
            _ => Err(EvalError::no_such_overload()),
        }
    }
}

/// Returns a constant for the time of an evaluation: text is borrowed instead of reference-counted.
fn borrowed<'a>(constant: &'a Val<'static>) -> Val<'a> {
    match constant {
        Val::String(text) => Val::str(text.as_str()),
        other => other.clone(),
    }
}

/// Returns whether a value may be an argument of that type; elements of collections are not
/// checked.
fn may_be(value: &Val<'_>, ty: &Type) -> bool {
    match (ty, value) {
        (Type::Dyn | Type::Any | Type::Param(_), _) => true,
        (Type::List(_), Val::List(_)) | (Type::Map(_), Val::Map(_) | Val::Object(_)) => true,
        (Type::Type(_), Val::Type(_)) | (Type::Object(_), Val::Object(_)) => true,
        (Type::Opaque(_), Val::Optional(_)) => ty.as_optional().is_some(),
        (Type::Opaque(opaque), Val::Special(special)) => opaque.name == special.0.ty().name(),
        (Type::List(_) | Type::Map(_) | Type::Type(_) | Type::Object(_) | Type::Opaque(_), _) => {
            false
        }
        (ty, value) => value.type_of().is_exactly(ty),
    }
}
