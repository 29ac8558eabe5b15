//! Compiles a tree to a program.

mod calls;

use std::collections::HashMap;
use std::sync::Arc;

use bareboat_api::Str;

use super::Program;
use super::code::{CallSite, Code, FoldOp, ListOp, MapOp, Op, OpId, Span, StructOp};
use crate::check::{Checked, Reference};
use crate::decl::ObjectType;
use crate::env::{Env, Named};
use crate::error::EvalError;
use crate::syntax::ast::{Ast, Entry, Expr, Fold, Id, Literal, StructField, UNUSED};
use crate::types::Type;
use crate::value::Val;

/// Builds a program from a tree, with or without the results of the checker.
pub(crate) fn build(env: &Env, ast: &Ast, checked: Option<&Checked>) -> Result<Program, EvalError> {
    let mut lowering = Lowering {
        env,
        ast,
        checked,
        ops: Vec::new(),
        operands: Vec::new(),
        constants: Vec::new(),
        variables: Vec::new(),
        fields: Vec::new(),
        field_places: HashMap::new(),
        calls: Vec::new(),
        locals: Vec::new(),
        slots: 0,
        shared: HashMap::new(),
    };
    let root = lowering.expr(ast.root)?;
    let code = Code {
        ops: lowering.ops.into(),
        root,
        operands: lowering.operands.into(),
        constants: lowering.constants.into(),
        variables: lowering.variables.into(),
        fields: lowering.fields.into(),
        calls: lowering.calls.into(),
        slots: lowering.slots,
        unique_keys: env.unique_keys(),
        depth: ast.depth,
    };
    Ok(Program {
        code: Arc::new(code),
    })
}

struct Lowering<'e> {
    env: &'e Env,
    ast: &'e Ast,
    checked: Option<&'e Checked>,
    ops: Vec<Op>,
    operands: Vec<OpId>,
    constants: Vec<Val<'static>>,
    variables: Vec<Str>,
    fields: Vec<Str>,
    field_places: HashMap<Str, u32>,
    calls: Vec<CallSite>,
    /// Local variables in scope, innermost last; the index is the slot.
    locals: Vec<Str>,
    slots: u16,
    /// Compiled nodes: macros share some.
    shared: HashMap<Id, OpId>,
}

impl Lowering<'_> {
    fn add(&mut self, op: Op) -> OpId {
        self.ops.push(op);
        self.ops.len() as OpId - 1
    }

    fn constant(&mut self, value: Val<'static>) -> OpId {
        self.constants.push(value);
        let index = self.constants.len() as u32 - 1;
        self.add(Op::Constant(index))
    }

    fn as_constant(&self, op: OpId) -> Option<&Val<'static>> {
        match &self.ops[op as usize] {
            Op::Constant(index) => self.constants.get(*index as usize),
            _ => None,
        }
    }

    fn span(&mut self, ops: Vec<OpId>) -> Span {
        let start = self.operands.len() as u32;
        let len = ops.len() as u32;
        self.operands.extend(ops);
        Span { start, len }
    }

    fn field(&mut self, name: &str) -> u32 {
        if let Some(known) = self.field_places.get(name) {
            return *known;
        }
        let name = Str::new(name);
        self.fields.push(name.clone());
        let place = self.fields.len() as u32 - 1;
        self.field_places.insert(name, place);
        place
    }

    fn variable(&mut self, name: &str) -> OpId {
        let known = self.variables.iter().position(|variable| variable == name);
        let index = known.unwrap_or_else(|| {
            self.variables.push(name.into());
            self.variables.len() - 1
        });
        self.add(Op::Variable(index as u16))
    }

    fn push_local(&mut self, name: &Str) -> u16 {
        self.locals.push(name.clone());
        self.slots = self.slots.max(self.locals.len() as u16);
        self.locals.len() as u16 - 1
    }

    fn all(&mut self, ids: &[Id]) -> Result<Vec<OpId>, EvalError> {
        ids.iter().map(|id| self.expr(*id)).collect()
    }

    fn reference(&self, id: Id) -> Option<&Reference> {
        self.checked.map(|checked| checked.reference(id))
    }

    fn expr(&mut self, id: Id) -> Result<OpId, EvalError> {
        if let Some(done) = self.shared.get(&id) {
            return Ok(*done);
        }
        let ast = self.ast;
        let op = match ast.expr(id) {
            Expr::Literal(literal) => self.constant(literal_value(literal)),
            Expr::Ident(name) => self.ident(id, name),
            Expr::Select {
                operand,
                field,
                test,
            } => self.select(id, *operand, field, *test)?,
            Expr::Call {
                target,
                function,
                args,
            } => match self.operator(id, *target, function, args)? {
                Some(op) => op,
                None => self.call(id, *target, function, args)?,
            },
            Expr::List { items, optional } => self.list(items, optional)?,
            Expr::Map(entries) => self.map(entries)?,
            Expr::Struct { name, fields } => self.message(id, name, fields)?,
            Expr::Fold(fold) => self.fold(fold)?,
        };
        self.shared.insert(id, op);
        Ok(op)
    }

    fn message(&mut self, id: Id, name: &str, fields: &[StructField]) -> Result<OpId, EvalError> {
        let ty = match self.reference(id) {
            Some(Reference::Type(Type::Object(object))) => object.clone(),
            _ => self.object_type(name)?,
        };
        let optional = positions(fields.iter().map(|field| field.optional));
        let names = fields.iter().map(|field| field.name.clone()).collect();
        let values: Vec<Id> = fields.iter().map(|field| field.value).collect();
        let values = self.all(&values)?;
        let values = self.span(values);
        Ok(self.add(Op::Struct(Box::new(StructOp {
            ty,
            names,
            values,
            optional,
        }))))
    }

    fn object_type(&self, name: &str) -> Result<Arc<ObjectType>, EvalError> {
        let mut candidates = self.env.candidates(name).into_iter();
        let found = candidates.find_map(|candidate| match self.env.named(&candidate)? {
            Named::Type(Type::Object(object)) => Some(object),
            _ => None,
        });
        found.ok_or_else(|| EvalError::new(format!("unknown type: {name}")))
    }

    fn ident(&mut self, id: Id, name: &Str) -> OpId {
        match self.reference(id).cloned() {
            Some(Reference::Variable(name)) => return self.variable(&name),
            Some(Reference::Type(ty)) => return self.constant(Val::Type(ty)),
            _ => {}
        }
        self.named(name).unwrap_or_else(|| {
            let field = self.field(name);
            self.add(Op::Unknown(field))
        })
    }

    /// Returns the operation for a local variable, variable or type of that name.
    fn named(&mut self, name: &str) -> Option<OpId> {
        if let Some(slot) = self.locals.iter().rposition(|local| local == name) {
            return Some(self.add(Op::Local(slot as u16)));
        }
        for candidate in self.env.candidates(name) {
            match self.env.named(&candidate) {
                Some(Named::Variable(_)) => return Some(self.variable(&candidate)),
                Some(Named::Type(ty)) => return Some(self.constant(Val::Type(ty))),
                None => {}
            }
        }
        None
    }

    fn qualified(&self, id: Id) -> Option<Str> {
        match self.ast.expr(id) {
            Expr::Ident(name) => Some(name.clone()),
            Expr::Select {
                operand,
                field,
                test: false,
            } => {
                let mut name = self.qualified(*operand)?;
                name.push('.');
                name.push_str(field);
                Some(name)
            }
            _ => None,
        }
    }

    fn select(&mut self, id: Id, operand: Id, field: &str, test: bool) -> Result<OpId, EvalError> {
        if self.checked.is_none()
            && !test
            && let Some(name) = self.qualified(id)
            && !self
                .locals
                .iter()
                .any(|local| name.split('.').next() == Some(local))
            && let Some(op) = self.named(&name)
        {
            return Ok(op);
        }
        let operand = self.expr(operand)?;
        let field = self.field(field);
        let computed = self.is_computed(operand);
        Ok(self.add(if test {
            Op::Has {
                operand,
                field,
                computed,
            }
        } else {
            Op::Select {
                operand,
                field,
                computed,
            }
        }))
    }

    fn list(&mut self, items: &[Id], optional: &[u32]) -> Result<OpId, EvalError> {
        let ops = self.all(items)?;
        if optional.is_empty() {
            let values: Option<Vec<_>> = ops
                .iter()
                .map(|op| self.as_constant(*op).cloned())
                .collect();
            if let Some(values) = values {
                return Ok(self.constant(Val::list(values)));
            }
        }
        let items = self.span(ops);
        Ok(self.add(Op::List(Box::new(ListOp {
            items,
            optional: optional.into(),
        }))))
    }

    fn map(&mut self, entries: &[Entry]) -> Result<OpId, EvalError> {
        let mut ops = Vec::with_capacity(entries.len() * 2);
        for entry in entries {
            ops.push(self.expr(entry.key)?);
            ops.push(self.expr(entry.value)?);
        }
        let optional = positions(entries.iter().map(|entry| entry.optional));
        let constant = optional.is_empty() && ops.iter().all(|op| self.as_constant(*op).is_some());
        let entries = self.span(ops);
        let op = self.add(Op::Map(Box::new(MapOp { entries, optional })));
        if constant {
            return self.fold_constant(op);
        }
        Ok(op)
    }

    /// Evaluates the last operation, whose operands are constants, at compile time. It runs as a
    /// separate program, so that the cost of many of them is linear in the length of the
    /// expression.
    fn fold_constant(&mut self, op: OpId) -> Result<OpId, EvalError> {
        let (span, call) = match &self.ops[op as usize] {
            Op::Map(map) => (map.entries, None),
            Op::Call { args, .. } => (*args, self.calls.pop()),
            _ => return Ok(op),
        };
        let own = Span { start: 0, ..span };
        let alone = match call {
            Some(_) => Op::Call { site: 0, args: own },
            None => Op::Map(Box::new(MapOp {
                entries: own,
                optional: Box::default(),
            })),
        };
        let operands = &self.operands[span.start as usize..];
        let constants = operands
            .iter()
            .filter_map(|op| self.as_constant(*op).cloned());
        let constants: Box<[Val<'static>]> = constants.collect();
        let loads = (0..span.len).map(Op::Constant);
        let code = Code {
            ops: loads.chain([alone]).collect(),
            root: span.len,
            operands: (0..span.len).collect(),
            constants,
            variables: Box::default(),
            fields: Box::default(),
            calls: call.into_iter().collect(),
            slots: 0,
            unique_keys: self.env.unique_keys(),
            depth: 1,
        };
        let value = crate::eval::constant(&code);
        self.calls.extend(code.calls);
        // In the permissive language an invalid literal fails when it is evaluated.
        match value {
            Ok(value) => Ok(self.constant(value)),
            Err(_) if !self.env.validates_literals() => Ok(op),
            Err(error) => Err(error),
        }
    }

    fn fold(&mut self, fold: &Fold) -> Result<OpId, EvalError> {
        let outside = self.locals.len();
        if fold.var == UNUSED {
            let value = self.expr(fold.init)?;
            let slot = self.push_local(&fold.accu);
            let result = self.expr(fold.result)?;
            self.locals.truncate(outside);
            return Ok(self.add(Op::Bind {
                slot,
                value,
                result,
            }));
        }
        let range = self.expr(fold.range)?;
        let init = self.expr(fold.init)?;
        let accu = self.push_local(&fold.accu);
        let var = self.push_local(&fold.var);
        let var2 = fold.var2.as_ref().map(|name| self.push_local(name));
        let condition = match self.ast.expr(fold.condition) {
            Expr::Literal(Literal::Bool(true)) => None,
            _ => Some(self.expr(fold.condition)?),
        };
        let step = self.expr(fold.step)?;
        self.locals.truncate(outside + 1);
        let result = self.expr(fold.result)?;
        self.locals.truncate(outside);
        Ok(self.add(Op::Fold(Box::new(FoldOp {
            range,
            init,
            condition,
            step,
            result,
            accu,
            var,
            var2,
        }))))
    }
}

/// Returns the positions of true values.
fn positions(flags: impl Iterator<Item = bool>) -> Box<[u32]> {
    (0..)
        .zip(flags)
        .filter(|(_, flag)| *flag)
        .map(|(index, _)| index)
        .collect()
}

fn literal_value(literal: &Literal) -> Val<'static> {
    match literal {
        Literal::Null => Val::Null,
        Literal::Bool(value) => Val::Bool(*value),
        Literal::Int(value) => Val::Int(*value),
        Literal::Uint(value) => Val::Uint(*value),
        Literal::Double(value) => Val::Double(*value),
        Literal::String(text) => Val::text(text.as_str()),
        Literal::Bytes(bytes) => Val::bytes(&bytes[..]),
    }
}
