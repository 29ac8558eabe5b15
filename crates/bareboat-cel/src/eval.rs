//! Evaluation: walking a program's operations, counting the cost.
//!
//! Upstream: cel-go interpreter. Errors are values until they matter: `&&`, `||` and the loops built
//! on them absorb an error when the other side decides.

mod access;
mod activation;
pub(crate) mod arithmetic;
mod fold;

pub use activation::{Activation, Variables};

use std::cmp::Ordering;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::budget::Budget;
use crate::cost::Rule;
use crate::error::EvalError;
use crate::library::sets::holds;
use crate::library::{Func, lists};
use crate::program::{Arith, Code, Comparison, Op, OpId, Span, Targets};
use crate::types::Type;
use crate::value::{Built, Entries, List, MapVal, Object, Val, compare, equal};

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

/// A constant that borrows nothing.
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
    /// An error a loop carries along in case it is absorbed after all.
    Failed(EvalError),
    /// Computed when first read.
    Pending(OpId),
}

struct Machine<'m, 'a> {
    code: &'a Code,
    variables: &'m dyn Activation<'a>,
    budget: &'m mut Budget,
    slots: SmallVec<[Slot<'a>; 4]>,
}

impl<'a> Machine<'_, 'a> {
    fn eval(&mut self, id: OpId) -> Result<Val<'a>, EvalError> {
        let code = self.code;
        match &code.ops[id as usize] {
            Op::Constant(index) => Ok(code.constants[*index as usize].clone()),
            Op::Variable(index) => self.variable(&code.variables[usize::from(*index)]),
            Op::Local(slot) => self.local(*slot),
            Op::Unknown(name) => {
                let name = &code.fields[*name as usize];
                Err(EvalError::new(format!("no such attribute(s): {name}")))
            }
            Op::Unbound(name) => {
                let name = &code.fields[*name as usize];
                Err(EvalError::new(format!("unbound function: {name}()")))
            }
            Op::Select {
                operand,
                field,
                computed,
            } => {
                let operand = self.eval(*operand)?;
                self.budget.charge(1 + u64::from(*computed))?;
                access::select(operand, &code.fields[*field as usize])
            }
            Op::Has {
                operand,
                field,
                computed,
            } => {
                let operand = self.eval(*operand)?;
                self.budget.charge(u64::from(*computed))?;
                access::has(operand, &code.fields[*field as usize]).map(Val::Bool)
            }
            Op::OptSelect {
                operand,
                field,
                computed,
            } => {
                let operand = self.eval(*operand)?;
                let value = access::opt_select(operand, &code.fields[*field as usize]);
                self.optional(value, *computed, false)
            }
            Op::Index {
                operand,
                index,
                computed,
                plain,
            } => {
                let operand = self.eval(*operand)?;
                let index = self.eval(*index)?;
                self.budget.charge(1 + u64::from(*computed))?;
                self.budget.refund(u64::from(*plain));
                access::index(operand, &index)
            }
            Op::OptIndex {
                operand,
                index,
                computed,
                plain,
            } => {
                let operand = self.eval(*operand)?;
                let index = self.eval(*index)?;
                let value = access::opt_index(operand, &index);
                self.optional(value, *computed, *plain)
            }
            Op::And(args) => self.logical(*args, false),
            Op::Or(args) => self.logical(*args, true),
            Op::Conditional { args, plain } => self.conditional(*args, *plain),
            Op::Not(operand) => {
                let operand = self.operand(*operand)?;
                match operand {
                    Val::Bool(value) => Ok(Val::Bool(!value)),
                    _ => Err(EvalError::no_such_overload()),
                }
            }
            Op::Negate(operand) => {
                let operand = self.operand(*operand)?;
                arithmetic::negate(&operand)
            }
            Op::NotStrictlyFalse(operand) => match self.operand(*operand) {
                Err(EvalError::OutOfBudget) => Err(EvalError::OutOfBudget),
                Ok(Val::Bool(value)) => Ok(Val::Bool(value)),
                _ => Ok(Val::Bool(true)),
            },
            Op::Equals { a, b, negated } => self.equals(*a, *b, *negated),
            Op::Compare { a, b, how, rule } => self.compare(*a, *b, *how, *rule),
            Op::Arithmetic { a, b, how, rule } => self.arithmetic(*a, *b, *how, *rule),
            Op::In { a, b, rule } => self.membership(*a, *b, *rule),
            Op::InConstants { a, list } => {
                let value = self.eval(*a)?;
                match &code.constants[*list as usize] {
                    Val::List(items) => Ok(Val::Bool(holds(items, &value)?)),
                    _ => Err(EvalError::no_such_overload()),
                }
            }
            Op::List(list) => self.list(list.items, &list.optional),
            Op::Map(map) => self.map(map.entries, &map.optional),
            Op::Struct(_) => self.message(id),
            Op::Call { site, args } => self.call(*site, *args),
            Op::OptOr { a, b, value } => self.opt_or(*a, *b, *value),
            Op::Fold(fold) => self.fold(fold),
            Op::Append { slot, item } => self.append(*slot, *item),
            Op::Insert { slot, args } => self.insert(*slot, *args),
            Op::Bind {
                slot,
                value,
                result,
            } => {
                self.slots[usize::from(*slot)] = Slot::Pending(*value);
                // The empty list that upstream's fold would walk.
                let result = self.eval(*result);
                self.slots[usize::from(*slot)] = Slot::Empty;
                result
            }
        }
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

    /// `&&` (decided by false) and `||` (decided by true): errors count only if nothing decides.
    fn logical(&mut self, args: Span, decisive: bool) -> Result<Val<'a>, EvalError> {
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

    fn conditional(&mut self, args: Span, plain: [bool; 2]) -> Result<Val<'a>, EvalError> {
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

    /// The operand of an operation that costs one whether the operand fails or not.
    fn operand(&mut self, operand: OpId) -> Result<Val<'a>, EvalError> {
        let value = self.eval(operand);
        self.budget.charge(1)?;
        value
    }

    /// Both operands of an operation that is paid for even if one of them fails.
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
        Ok((a?, b?))
    }

    /// Looking for something optional costs only if it is there.
    fn optional(
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

    fn equals(&mut self, a: OpId, b: OpId, negated: bool) -> Result<Val<'a>, EvalError> {
        let (a, b) = self.operands(a, b, Rule::Equality)?;
        Ok(Val::Bool(equal(&a, &b)? != negated))
    }

    fn compare(
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

    fn arithmetic(
        &mut self,
        a: OpId,
        b: OpId,
        how: Arith,
        rule: Rule,
    ) -> Result<Val<'a>, EvalError> {
        let (a, b) = self.operands(a, b, rule)?;
        match how {
            Arith::Add => arithmetic::add(a, b),
            how => arithmetic::combine(how, &a, &b),
        }
    }

    fn membership(&mut self, a: OpId, b: OpId, rule: Rule) -> Result<Val<'a>, EvalError> {
        let (value, container) = self.operands(a, b, rule)?;
        Ok(Val::Bool(match &container {
            Val::List(list) => holds(list, &value)?,
            Val::Map(map) => map.get(&value).transpose()?.is_some(),
            Val::Object(object) => match value.as_str() {
                Some(name) => object.field(name).transpose()?.is_some(),
                None => return Err(EvalError::no_such_overload()),
            },
            _ => return Err(EvalError::no_such_overload()),
        }))
    }

    fn list(&mut self, items: Span, optional: &[u32]) -> Result<Val<'a>, EvalError> {
        let code = self.code;
        let mut values = Vec::with_capacity(items.len as usize);
        for (index, item) in (0..).zip(code.span(items)) {
            let value = match self.eval(*item) {
                Ok(value) => value,
                Err(error) => {
                    self.budget.charge(crate::cost::LIST)?;
                    return Err(error);
                }
            };
            if optional.contains(&index) {
                values.extend(present(value)?);
            } else {
                values.push(value);
            }
        }
        self.budget.charge(crate::cost::LIST)?;
        Ok(Val::list(values))
    }

    fn map(&mut self, entries: Span, optional: &[u32]) -> Result<Val<'a>, EvalError> {
        let code = self.code;
        let mut map = Entries::default();
        for (index, entry) in (0..).zip(code.span(entries).chunks_exact(2)) {
            let key = self.eval(entry[0])?;
            let mut value = self.eval(entry[1])?;
            if optional.contains(&index) {
                match present(value)? {
                    Some(inner) => value = inner,
                    None => continue,
                }
            }
            if code.unique_keys {
                let shown = key.clone();
                if !map.insert(key, value)? {
                    return Err(EvalError::new(format!("repeated key: {shown}")));
                }
            } else {
                map.set(key, value)?;
            }
        }
        self.budget.charge(crate::cost::MAP)?;
        Ok(Val::Map(MapVal::Values(Arc::new(map))))
    }

    fn message(&mut self, id: OpId) -> Result<Val<'a>, EvalError> {
        let code = self.code;
        let Op::Struct(message) = &code.ops[id as usize] else {
            return Err(EvalError::no_such_overload());
        };
        let mut fields = Vec::with_capacity(message.names.len());
        let values = message.names.iter().zip(code.span(message.values));
        for (index, (name, op)) in (0..).zip(values) {
            let mut value = self.eval(*op)?;
            if message.optional.contains(&index) {
                match present(value)? {
                    Some(inner) => value = inner,
                    None => continue,
                }
            }
            fields.push((name.clone(), value));
        }
        self.budget.charge(crate::cost::STRUCT)?;
        Ok(Val::Object(Object::Built(Arc::new(Built {
            ty: message.ty.clone(),
            fields,
        }))))
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
            Ok(result) => site.rule.of_call(&values, Some(result)),
            Err(_) => site.rule.of_call(&values, None),
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

    fn append(&mut self, slot: u16, item: OpId) -> Result<Val<'a>, EvalError> {
        // Reading the accumulator, the list of one, and the addition.
        self.budget.charge(1)?;
        let list = match std::mem::replace(&mut self.slots[usize::from(slot)], Slot::Empty) {
            Slot::Value(list) => list,
            Slot::Failed(error) => return Err(error),
            _ => return Err(EvalError::no_such_overload()),
        };
        let item = self.eval(item)?;
        self.budget.charge(crate::cost::LIST + 1)?;
        match list {
            Val::List(List::Values { mut items, decl }) => {
                Arc::make_mut(&mut items).push(item);
                Ok(Val::List(List::Values { items, decl }))
            }
            other => arithmetic::add(other, Val::list(vec![item])),
        }
    }

    fn insert(&mut self, slot: u16, args: Span) -> Result<Val<'a>, EvalError> {
        let code = self.code;
        self.budget.charge(1)?;
        let map = match std::mem::replace(&mut self.slots[usize::from(slot)], Slot::Empty) {
            Slot::Value(map) => map,
            Slot::Failed(error) => return Err(error),
            _ => return Err(EvalError::no_such_overload()),
        };
        let mut added: SmallVec<[Val<'a>; 2]> = SmallVec::new();
        for arg in code.span(args) {
            added.push(self.eval(*arg)?);
        }
        self.budget.charge(1)?;
        lists::insert(map, &added)
    }
}

/// What an optional holds.
fn present(value: Val<'_>) -> Result<Option<Val<'_>>, EvalError> {
    match value {
        Val::Optional(inner) => Ok(inner.map(|inner| (*inner).clone())),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Whether a value may be an argument of that type, as far as a glance tells.
fn may_be(value: &Val<'_>, ty: &Type) -> bool {
    match (ty, value) {
        (Type::Dyn | Type::Param(_), _) => true,
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
