//! Estimates the maximum cost of an expression from the maximum size of its data.
//!
//! Upstream: cel-go checker/cost.go.

use bareboat_api::Str;

use super::functions::{self, Argument, CallEstimate};
use super::hints::SizeHints;
use super::size::{CostEstimate, Size};
use super::{LIST, MAP, STRUCT};
use crate::check::{Checked, Reference};
use crate::env::Env;
use crate::syntax::ast::{ACCUMULATOR, Expr, Fold, Id, Literal, UNUSED, operator};
use crate::types::Type;
use crate::value::characters;

/// Estimates the cost of an expression.
pub fn estimate_cost(env: &Env, checked: &Checked, hints: &dyn SizeHints) -> CostEstimate {
    let count = checked.ast.nodes.len();
    let mut estimator = Estimator {
        env,
        checked,
        hints,
        costs: vec![None; count],
        paths: vec![Vec::new(); count],
        sizes: vec![None; count],
        entries: vec![None; count],
        locals: Vec::new(),
    };
    estimator.cost(checked.ast.root)
}

/// The sizes of the keys (or indexes) and values of a container.
#[derive(Clone, Copy)]
struct EntrySize {
    list: bool,
    key: Size,
    value: Size,
}

struct Local {
    name: Str,
    path: Vec<Str>,
    size: Option<Size>,
    entry: Option<EntrySize>,
}

pub(super) struct Estimator<'e> {
    env: &'e Env,
    checked: &'e Checked,
    pub(super) hints: &'e dyn SizeHints,
    /// Costs computed before: macros share nodes.
    costs: Vec<Option<CostEstimate>>,
    paths: Vec<Vec<Str>>,
    sizes: Vec<Option<Size>>,
    entries: Vec<Option<EntrySize>>,
    locals: Vec<Local>,
}

impl<'e> Estimator<'e> {
    fn expr(&self, id: Id) -> &'e Expr {
        self.checked.ast.expr(id)
    }

    fn cost(&mut self, id: Id) -> CostEstimate {
        if let Some(known) = self.costs[id as usize] {
            return known;
        }
        let cost = match self.expr(id) {
            Expr::Literal(_) => CostEstimate::default(),
            Expr::Ident(name) => self.ident(id, name),
            Expr::Select {
                operand,
                field,
                test,
            } => self.select(id, *operand, field, *test),
            Expr::Call {
                target,
                function,
                args,
            } => self.call(id, *target, function, args),
            Expr::List { items, .. } => {
                let mut sum = CostEstimate::fixed(LIST);
                let mut size: Option<Size> = None;
                for item in items {
                    sum = sum.add(self.cost(*item));
                    size = Some(widen(size, self.size_or_unknown(*item)));
                }
                self.entries[id as usize] = Some(EntrySize {
                    list: true,
                    key: Size::fixed(1),
                    value: size.unwrap_or(Size::fixed(0)),
                });
                sum
            }
            Expr::Map(entries) => {
                let mut sum = CostEstimate::fixed(MAP);
                let (mut key, mut value) = (None, None);
                for entry in entries {
                    sum = sum.add(self.cost(entry.key)).add(self.cost(entry.value));
                    key = Some(widen(key, self.size_or_unknown(entry.key)));
                    value = Some(widen(value, self.size_or_unknown(entry.value)));
                }
                self.entries[id as usize] = Some(EntrySize {
                    list: false,
                    key: key.unwrap_or(Size::fixed(0)),
                    value: value.unwrap_or(Size::fixed(0)),
                });
                sum
            }
            Expr::Struct { fields, .. } => fields
                .iter()
                .fold(CostEstimate::fixed(STRUCT), |sum, field| {
                    sum.add(self.cost(field.value))
                }),
            Expr::Fold(fold) if fold.var == UNUSED => self.bind(id, fold),
            Expr::Fold(fold) => self.fold(id, fold),
        };
        self.costs[id as usize] = Some(cost);
        cost
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    fn ident(&mut self, id: Id, name: &Str) -> CostEstimate {
        self.paths[id as usize] = match self.local(name) {
            Some(local) => local.path.clone(),
            None => vec![name.clone()],
        };
        CostEstimate::fixed(1)
    }

    fn path(&self, id: Id) -> Vec<Str> {
        if let Expr::Ident(name) = self.expr(id)
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths[id as usize].clone()
    }

    fn extended(&self, id: Id, step: &str) -> Vec<Str> {
        let mut path = self.path(id);
        path.push(step.into());
        path
    }

    fn select(&mut self, id: Id, operand: Id, field: &str, test: bool) -> CostEstimate {
        let mut sum = self.cost(operand);
        if test {
            return sum;
        }
        match self.checked.type_of(operand) {
            Type::Map(_) | Type::Object(_) | Type::Param(_) => {
                sum = sum.add(CostEstimate::fixed(1))
            }
            Type::Opaque(opaque) if opaque.message => sum = sum.add(CostEstimate::fixed(1)),
            _ => {}
        }
        self.paths[id as usize] = self.extended(operand, field);
        sum
    }

    fn argument(&mut self, id: Id) -> Argument<'e> {
        let mut path = self.path(id);
        if path.first().is_some_and(|root| root == ACCUMULATOR) {
            path.clear();
        }
        Argument {
            path,
            ty: self.checked.type_of(id).clone(),
            size: self.size(id),
            expr: Some(self.expr(id)),
        }
    }

    fn call(&mut self, id: Id, target: Option<Id>, name: &Str, args: &[Id]) -> CostEstimate {
        if let ("dyn", [arg]) = (name.as_str(), args) {
            let cost = self.cost(*arg);
            self.sizes[id as usize] = self.size(*arg);
            self.entries[id as usize] = self.entry(*arg);
            return cost.add(CostEstimate::fixed(1));
        }
        let mut costs = Vec::with_capacity(args.len());
        let mut arguments = Vec::with_capacity(args.len());
        for arg in args {
            costs.push(self.cost(*arg));
            arguments.push(self.argument(*arg));
        }
        let mut sum = CostEstimate::default();
        let receiver = target.map(|target| {
            sum = self.cost(target);
            self.argument(target)
        });
        let overloads = self.overloads(id, name);
        if overloads.is_empty() {
            return CostEstimate::default();
        }
        let mut cost: Option<CostEstimate> = None;
        let mut size: Option<Size> = None;
        for overload in overloads {
            let estimate = self.function(
                id,
                name,
                overload,
                receiver.as_ref(),
                args,
                &arguments,
                &costs,
            );
            cost = Some(match cost {
                Some(cost) => cost.union(estimate.cost),
                None => estimate.cost,
            });
            size = match (size, estimate.size) {
                (Some(known), Some(new)) => Some(known.union(new)),
                (known, new) => known.or(new),
            };
            if let ("index_list" | "index_map", Some(operand)) = (overload, args.first()) {
                size = self.entry(*operand).map(|entry| entry.value);
                let step = match overload {
                    "index_list" => "@items",
                    _ => "@values",
                };
                self.paths[id as usize] = self.extended(*operand, step);
            }
            if size.is_none() {
                size = self.size(id);
            }
        }
        if size.is_some() {
            self.sizes[id as usize] = size;
        }
        sum.add(cost.unwrap_or_default())
    }

    fn overloads(&self, id: Id, name: &str) -> Vec<&'static str> {
        if name == operator::OPT_SELECT {
            return vec!["select_optional_field"];
        }
        let (Reference::Overloads(chosen), Some((_, function))) =
            (self.checked.reference(id), self.env.function(name))
        else {
            return Vec::new();
        };
        chosen
            .iter()
            .filter_map(|index| function.overloads.get(usize::from(*index)))
            .map(|overload| overload.id)
            .collect()
    }

    /// Returns the estimate for one overload, including the cost of the arguments.
    #[expect(clippy::too_many_arguments, reason = "the parts of a call")]
    fn function(
        &mut self,
        id: Id,
        name: &str,
        overload: &str,
        target: Option<&Argument<'_>>,
        ids: &[Id],
        args: &[Argument<'_>],
        costs: &[CostEstimate],
    ) -> CallEstimate {
        let all = costs
            .iter()
            .fold(CostEstimate::default(), |sum, cost| sum.add(*cost));
        let known = functions::of_overload(self, overload, target, args)
            .or_else(|| functions::of_function(self, name, overload, target, args));
        if let Some(estimate) = known {
            return CallEstimate {
                cost: estimate.cost.add(all),
                size: estimate.size,
            };
        }
        match (overload, ids, costs) {
            ("logical_and" | "logical_or", _, [first, ..]) => {
                return CallEstimate {
                    cost: CostEstimate {
                        min: first.min,
                        max: all.max,
                    },
                    size: None,
                };
            }
            ("conditional", [_, then, otherwise], [condition, then_cost, otherwise_cost]) => {
                let size = self
                    .size_or_unknown(*then)
                    .union(self.size_or_unknown(*otherwise));
                if let Some(entry) = union(self.entry(*then), self.entry(*otherwise)) {
                    self.entries[id as usize] = Some(entry);
                }
                return CallEstimate {
                    cost: condition.add(then_cost.union(*otherwise_cost)),
                    size: Some(size),
                };
            }
            ("add_list" | "add_string" | "add_bytes", [a, b], _) => {
                if let Some(entry) = union(self.entry(*a), self.entry(*b)) {
                    self.entries[id as usize] = Some(entry);
                }
            }
            _ => {}
        }
        let estimate = functions::of_core(overload, target, args);
        CallEstimate {
            cost: estimate.cost.add(all),
            size: estimate.size,
        }
    }

    fn push(&mut self, name: &Str, path: Vec<Str>, size: Option<Size>, entry: Option<EntrySize>) {
        self.locals.push(Local {
            name: name.clone(),
            path,
            size,
            entry,
        });
    }

    fn push_accumulator(&mut self, name: &Str, init: Id) {
        let path = self.path(init);
        let size = self.size(init);
        let entry = self.entry(init);
        self.push(name, path, size, entry);
    }

    fn bind(&mut self, id: Id, fold: &Fold) -> CostEstimate {
        let sum = self.cost(fold.range).add(self.cost(fold.init));
        self.push_accumulator(&fold.accu, fold.init);
        let sum = sum.add(self.cost(fold.result));
        let (size, entry) = (self.size(fold.result), self.entry(fold.result));
        self.locals.pop();
        if size.is_some() {
            self.sizes[id as usize] = size;
        }
        if entry.is_some() {
            self.entries[id as usize] = entry;
        }
        sum
    }

    fn fold(&mut self, id: Id, fold: &Fold) -> CostEstimate {
        let mut sum = self.cost(fold.range).add(self.cost(fold.init));
        self.push_accumulator(&fold.accu, fold.init);
        let entry = self.entry(fold.range);
        let list = match entry {
            Some(entry) => entry.list,
            None => matches!(self.checked.type_of(fold.range), Type::List(_)),
        };
        let (key, value) = match list {
            true => ("@indices", "@items"),
            false => ("@keys", "@values"),
        };
        let key_size = entry.map(|entry| entry.key);
        let value_size = entry.map(|entry| entry.value);
        match &fold.var2 {
            Some(var2) => {
                self.push(&fold.var, self.extended(fold.range, key), key_size, None);
                self.push(var2, self.extended(fold.range, value), value_size, None);
            }
            None if list => {
                self.push(
                    &fold.var,
                    self.extended(fold.range, value),
                    value_size,
                    None,
                );
            }
            None => self.push(&fold.var, self.extended(fold.range, key), key_size, None),
        }
        let each = self.cost(fold.condition).add(self.cost(fold.step));
        let step_entry = self.entry(fold.step);
        let variables = 1 + usize::from(fold.var2.is_some());
        self.locals.truncate(self.locals.len() - variables);
        sum = sum.add(self.cost(fold.result));
        self.locals.pop();
        let range = self.size_or_unknown(fold.range);
        sum = sum.add(range.cost(each));
        match self.expr(fold.init) {
            Expr::Literal(_) => self.sizes[id as usize] = self.size(fold.init),
            Expr::List { .. } | Expr::Map(_) => {
                self.sizes[id as usize] = Some(range);
                if step_entry.is_some() {
                    self.entries[id as usize] = step_entry;
                }
            }
            _ => {}
        }
        sum
    }

    fn size(&mut self, id: Id) -> Option<Size> {
        if let Some(known) = self.sizes[id as usize] {
            return Some(known);
        }
        if let Some(size) = literal_size(self.expr(id)) {
            return Some(size);
        }
        let path = self.path(id);
        if !path.is_empty()
            && let Some(max) = self.hints.max_size(&path)
        {
            let size = Size { min: 0, max };
            self.sizes[id as usize] = Some(size);
            return Some(size);
        }
        if is_scalar(self.checked.type_of(id)) {
            return Some(Size::fixed(1));
        }
        match self.expr(id) {
            Expr::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    fn size_or_unknown(&mut self, id: Id) -> Size {
        self.size(id).unwrap_or(Size::UNKNOWN)
    }

    fn entry(&self, id: Id) -> Option<EntrySize> {
        self.entries[id as usize].or_else(|| match self.expr(id) {
            Expr::Ident(name) => self.local(name).and_then(|local| local.entry),
            _ => None,
        })
    }
}

fn widen(known: Option<Size>, new: Size) -> Size {
    known.map_or(new, |known| known.union(new))
}

fn union(a: Option<EntrySize>, b: Option<EntrySize>) -> Option<EntrySize> {
    let (a, b) = (a?, b?);
    Some(EntrySize {
        list: a.list,
        key: a.key.union(b.key),
        value: a.value.union(b.value),
    })
}

fn literal_size(expr: &Expr) -> Option<Size> {
    Some(Size::fixed(match expr {
        Expr::Literal(Literal::String(text)) => characters(text) as u64,
        Expr::Literal(Literal::Bytes(bytes)) => bytes.len() as u64,
        Expr::Literal(_) => 1,
        Expr::List { items, .. } => items.len() as u64,
        Expr::Map(entries) => entries.len() as u64,
        _ => return None,
    }))
}

fn is_scalar(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => {
            true
        }
        other => other.as_optional().is_some_and(is_scalar),
    }
}
