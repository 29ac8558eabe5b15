//! Operators and calls.

use super::super::code::{Arith, CallSite, Comparison, Op, OpId, Span, Targets};
use super::{Lowering, positions};
use crate::check::Reference;
use crate::cost::Rule;
use crate::error::EvalError;
use crate::library::{Function, go_regex};
use crate::syntax::ast::{ACCUMULATOR, Expr, Id, Literal, operator};
use crate::value::{List, Val};

impl Lowering<'_> {
    pub(super) fn call(
        &mut self,
        id: Id,
        target: Option<Id>,
        name: &str,
        args: &[Id],
    ) -> Result<OpId, EvalError> {
        let env = self.env;
        let mut target = target;
        let mut found = None;
        if self.checked.is_none()
            && let Some(prefix) = target.and_then(|target| self.qualified(target))
        {
            found = env.function(&format!("{prefix}.{name}"));
            if found.is_some() {
                target = None;
            }
        }
        let Some((name, function)) = found.or_else(|| env.function(name)) else {
            let name = self.field(name);
            return Ok(self.add(Op::Unbound(name)));
        };
        let ids: Vec<Id> = target.into_iter().chain(args.iter().copied()).collect();
        if let (Some(_), "or" | "orValue", [a, b]) = (target, name.as_str(), &ids[..]) {
            let (a, b) = (self.expr(*a)?, self.expr(*b)?);
            let value = name == "orValue";
            return Ok(self.add(Op::OptOr { a, b, value }));
        }
        if name == operator::MAP_INSERT
            && let Some((slot, args)) = self.accumulated(&ids)?
        {
            return Ok(self.add(Op::Insert { slot, args }));
        }
        let ops = self.all(&ids)?;
        self.check_pattern(&name, &ops)?;
        let site = self.call_site(id, &name, function, target.is_some(), ops.len())?;
        let constant = is_conversion(&name) && ops.len() == 1 && self.as_constant(ops[0]).is_some();
        let args = self.span(ops);
        self.calls.push(site);
        let site = self.calls.len() as u32 - 1;
        let op = self.add(Op::Call { site, args });
        if constant {
            return self.fold_constant(op);
        }
        Ok(op)
    }

    /// Compiles the other arguments of a call whose first one is an accumulator.
    fn accumulated(&mut self, ids: &[Id]) -> Result<Option<(u16, Span)>, EvalError> {
        let [first, rest @ ..] = ids else {
            return Ok(None);
        };
        let Some(slot) = self.accumulator(*first) else {
            return Ok(None);
        };
        let rest = self.all(rest)?;
        Ok(Some((slot, self.span(rest))))
    }

    fn accumulator(&self, id: Id) -> Option<u16> {
        match self.ast.expr(id) {
            Expr::Ident(name) if name == ACCUMULATOR => {
                let slot = self.locals.iter().rposition(|local| local == name)?;
                Some(slot as u16)
            }
            _ => None,
        }
    }

    /// Checks the pattern of `matches`, `find` and `findAll` if it is a literal, so that an invalid
    /// one is an error of the program and not of its evaluation; only if the environment validates
    /// literals.
    fn check_pattern(&self, name: &str, ops: &[OpId]) -> Result<(), EvalError> {
        if !matches!(name, "matches" | "find" | "findAll") || !self.env.validates_literals() {
            return Ok(());
        }
        match ops.get(1).and_then(|op| self.as_constant(*op)) {
            Some(Val::String(pattern)) => match go_regex::check_pattern(pattern.as_str()) {
                Ok(_) => Ok(()),
                Err(message) => Err(EvalError::new(message)),
            },
            _ => Ok(()),
        }
    }

    fn overloads(&self, id: Id, function: &Function, member: bool, count: usize) -> Vec<u16> {
        if let Some(Reference::Overloads(chosen)) = self.reference(id) {
            return chosen.clone();
        }
        positions(
            function
                .overloads
                .iter()
                .map(|overload| overload.member == member && overload.args.len() == count),
        )
        .iter()
        .map(|index| *index as u16)
        .collect()
    }

    fn call_site(
        &self,
        id: Id,
        name: &str,
        function: &Function,
        member: bool,
        count: usize,
    ) -> Result<CallSite, EvalError> {
        let chosen: Vec<_> = self
            .overloads(id, function, member, count)
            .into_iter()
            .filter_map(|index| function.overloads.get(usize::from(index)))
            .collect();
        let first = chosen.first().ok_or_else(EvalError::no_such_overload)?;
        let overload = if chosen.len() == 1 { first.id } else { "" };
        let targets = if chosen.iter().all(|other| other.family == first.family) {
            Targets::One(first.call)
        } else {
            let several = chosen
                .iter()
                .map(|overload| (overload.args.clone().into(), overload.call));
            Targets::Several(several.collect())
        };
        Ok(CallSite {
            targets,
            rule: Rule::of(name, overload),
            name: (chosen.len() > 1).then(|| name.into()),
        })
    }

    /// Returns the overload of a call to an operator, if there is only one.
    fn single_overload(&self, id: Id, name: &str) -> &'static str {
        let Some(Reference::Overloads(chosen)) = self.reference(id) else {
            return "";
        };
        match (&chosen[..], self.env.function(name)) {
            ([index], Some((_, function))) => function
                .overloads
                .get(usize::from(*index))
                .map_or("", |overload| overload.id),
            _ => "",
        }
    }

    pub(super) fn operator(
        &mut self,
        id: Id,
        target: Option<Id>,
        name: &str,
        args: &[Id],
    ) -> Result<Option<OpId>, EvalError> {
        if target.is_some() {
            return Ok(None);
        }
        if let [a, b] = args
            && let Some(op) = self.binary(id, name, *a, *b)?
        {
            return Ok(Some(op));
        }
        let op = match (name, args) {
            (operator::AND, args) => {
                let args = self.all(args)?;
                Op::And(self.span(args))
            }
            (operator::OR, args) => {
                let args = self.all(args)?;
                Op::Or(self.span(args))
            }
            (operator::CONDITIONAL, [_, _, _]) => {
                let args = self.all(args)?;
                let plain = [self.is_plain(args[1]), self.is_plain(args[2])];
                let args = self.span(args);
                Op::Conditional { args, plain }
            }
            (operator::NOT, [a]) => Op::Not(self.expr(*a)?),
            (operator::NEGATE, [a]) => Op::Negate(self.expr(*a)?),
            (operator::NOT_STRICTLY_FALSE, [a]) => Op::NotStrictlyFalse(self.expr(*a)?),
            (operator::OPT_SELECT, [operand, field]) => {
                let Expr::Literal(Literal::String(field)) = self.ast.expr(*field) else {
                    return Err(EvalError::no_such_overload());
                };
                let operand = self.expr(*operand)?;
                let field = self.field(field);
                Op::OptSelect {
                    operand,
                    field,
                    computed: self.is_computed(operand),
                }
            }
            _ => return Ok(None),
        };
        Ok(Some(self.add(op)))
    }

    fn binary(&mut self, id: Id, name: &str, a: Id, b: Id) -> Result<Option<OpId>, EvalError> {
        enum How {
            Arith(Arith),
            Compare(Comparison),
            Equals,
            Index,
            OptIndex,
            In,
        }
        let how = match name {
            operator::ADD => {
                if let Some(op) = self.append(a, b)? {
                    return Ok(Some(op));
                }
                How::Arith(Arith::Add)
            }
            operator::SUBTRACT => How::Arith(Arith::Subtract),
            operator::MULTIPLY => How::Arith(Arith::Multiply),
            operator::DIVIDE => How::Arith(Arith::Divide),
            operator::MODULO => How::Arith(Arith::Modulo),
            operator::LESS => How::Compare(Comparison::Less),
            operator::LESS_EQUALS => How::Compare(Comparison::LessEquals),
            operator::GREATER => How::Compare(Comparison::Greater),
            operator::GREATER_EQUALS => How::Compare(Comparison::GreaterEquals),
            operator::EQUALS | operator::NOT_EQUALS => How::Equals,
            operator::INDEX => How::Index,
            operator::OPT_INDEX => How::OptIndex,
            operator::IN => How::In,
            _ => return Ok(None),
        };
        let overload = self.single_overload(id, name);
        let rule = Rule::of(name, overload);
        let (a, b) = (self.expr(a)?, self.expr(b)?);
        Ok(Some(self.add(match how {
            How::Arith(how) => Op::Arithmetic { a, b, how, rule },
            How::Compare(how) => Op::Compare { a, b, how, rule },
            How::Equals => Op::Equals {
                a,
                b,
                negated: name == operator::NOT_EQUALS,
            },
            How::Index => Op::Index {
                operand: a,
                index: b,
                computed: self.is_computed(a),
                plain: self.is_plain(b),
            },
            How::OptIndex => Op::OptIndex {
                operand: a,
                index: b,
                computed: self.is_computed(a),
                plain: self.is_plain(b),
            },
            How::In => match self.constant_list(b) {
                Some(list) if overload == "in_list" => Op::InConstants { a, list },
                _ => Op::In { a, b, rule },
            },
        })))
    }

    /// Returns whether an operation reads a variable or a part of one.
    ///
    /// Upstream reads such a chain in one step. It charges that step once where the chain is alone,
    /// but not where it is a branch or an index.
    pub(super) fn is_plain(&self, op: OpId) -> bool {
        matches!(
            self.ops[op as usize],
            Op::Variable(_)
                | Op::Local(_)
                | Op::Select { .. }
                | Op::OptSelect { .. }
                | Op::Index { .. }
                | Op::OptIndex { .. }
        )
    }

    /// Returns whether selecting from an operation begins a new chain.
    pub(super) fn is_computed(&self, op: OpId) -> bool {
        !self.is_plain(op) && !matches!(self.ops[op as usize], Op::Conditional { .. })
    }

    /// Returns the constant that is a list of primitive values.
    fn constant_list(&self, op: OpId) -> Option<u32> {
        let Op::Constant(index) = self.ops[op as usize] else {
            return None;
        };
        match self.constants.get(index as usize) {
            Some(Val::List(items)) if is_primitive(items) => Some(index),
            _ => None,
        }
    }

    /// Compiles `accumulator + [item]`, which the list-building macros generate.
    fn append(&mut self, a: Id, b: Id) -> Result<Option<OpId>, EvalError> {
        let Expr::List { items, optional } = self.ast.expr(b) else {
            return Ok(None);
        };
        let ([item], true) = (&items[..], optional.is_empty()) else {
            return Ok(None);
        };
        let Some(slot) = self.accumulator(a) else {
            return Ok(None);
        };
        let item = self.expr(*item)?;
        let constant = self.as_constant(item).is_some();
        Ok(Some(self.add(Op::Append {
            slot,
            item,
            constant,
        })))
    }
}

fn is_conversion(name: &str) -> bool {
    matches!(
        name,
        "bool"
            | "bytes"
            | "double"
            | "duration"
            | "dyn"
            | "int"
            | "string"
            | "timestamp"
            | "type"
            | "uint"
    )
}

fn is_primitive(list: &List<'_>) -> bool {
    list.iter().all(|item| {
        matches!(
            item,
            Ok(Val::Bool(_) | Val::Int(_) | Val::Uint(_) | Val::Double(_) | Val::String(_))
        )
    })
}
