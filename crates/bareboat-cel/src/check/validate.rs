//! Kubernetes' additional checks of literals.

use super::Checked;
use crate::env::Env;
use crate::issue::Issue;
use crate::library::{go_regex, interpolate};
use crate::syntax::ast::{Expr, Id, Literal};
use crate::types::Type;
use crate::value::time::{parse_duration, parse_timestamp};

pub(super) fn validate(source: &str, checked: &Checked, env: &Env) -> Vec<Issue> {
    if !env.validates_literals() {
        return Vec::new();
    }
    let mut validator = Validator {
        source,
        checked,
        issues: Vec::new(),
        visited: vec![false; checked.ast.nodes.len()],
    };
    validator.walk(checked.ast.root, false);
    validator.issues
}

struct Validator<'c> {
    source: &'c str,
    checked: &'c Checked,
    issues: Vec<Issue>,
    visited: Vec<bool>,
}

impl Validator<'_> {
    fn report(&mut self, id: Id, message: String) {
        let offset = self.checked.ast.node(id).offset as usize;
        self.issues.push(Issue::new(self.source, offset, message));
    }

    /// Checks a node; `exempt` means that it is inside a call to `format`, whose arguments may have
    /// any types.
    fn walk(&mut self, id: Id, exempt: bool) {
        if std::mem::replace(&mut self.visited[id as usize], true) {
            return;
        }
        let checked = self.checked;
        match checked.ast.expr(id) {
            Expr::Literal(_) | Expr::Ident(_) => {}
            Expr::Select { operand, .. } => self.walk(*operand, exempt),
            Expr::Call {
                target,
                function,
                args,
            } => {
                self.call(id, *target, function, args);
                let exempt = exempt || function == "format";
                for child in target.iter().chain(args) {
                    self.walk(*child, exempt);
                }
            }
            Expr::List { items, optional } => {
                if !exempt {
                    let types = (0..).zip(items).map(|(index, item)| {
                        (*item, self.unwrapped(*item, optional.contains(&index)))
                    });
                    let types = types.collect::<Vec<_>>();
                    self.homogeneous(&types);
                }
                items.iter().for_each(|item| self.walk(*item, exempt));
            }
            Expr::Map(entries) => {
                if !exempt {
                    let keys = entries
                        .iter()
                        .map(|e| (e.key, self.unwrapped(e.key, false)));
                    let keys = keys.collect::<Vec<_>>();
                    let values = entries
                        .iter()
                        .map(|e| (e.value, self.unwrapped(e.value, e.optional)));
                    let values = values.collect::<Vec<_>>();
                    self.homogeneous(&keys);
                    self.homogeneous(&values);
                }
                for entry in entries {
                    self.walk(entry.key, exempt);
                    self.walk(entry.value, exempt);
                }
            }
            Expr::Struct { fields, .. } => {
                fields
                    .iter()
                    .for_each(|field| self.walk(field.value, exempt));
            }
            Expr::Fold(fold) => {
                for child in [
                    fold.range,
                    fold.init,
                    fold.condition,
                    fold.step,
                    fold.result,
                ] {
                    self.walk(child, exempt);
                }
            }
        }
    }

    fn unwrapped(&self, id: Id, optional: bool) -> Type {
        let ty = self.checked.type_of(id);
        match ty.as_optional() {
            Some(inner) if optional => inner.clone(),
            _ => ty.clone(),
        }
    }

    fn homogeneous(&mut self, items: &[(Id, Type)]) {
        let Some((_, first)) = items.first() else {
            return;
        };
        if let Some((id, found)) = items.iter().find(|(_, ty)| !ty.is_exactly(first)) {
            let message = format!("expected type '{first}' but found '{found}'");
            self.report(*id, message);
        }
    }

    fn literal(&self, id: Id) -> Option<&str> {
        match self.checked.ast.expr(id) {
            Expr::Literal(Literal::String(text)) => Some(text),
            _ => None,
        }
    }

    fn call(&mut self, id: Id, target: Option<Id>, function: &str, args: &[Id]) {
        let last = args.first().copied();
        let text = last.and_then(|arg| self.literal(arg));
        let number = last.map(|arg| checked_number(self.checked, arg));
        let wrong = match (function, text) {
            // Upstream rejects a literal number here, but not a computed one.
            ("duration", None) => number == Some(true),
            ("duration", Some(text)) => parse_duration(text).is_none(),
            ("timestamp", Some(text)) => parse_timestamp(text).is_none(),
            ("matches", Some(text)) if target.is_some() => go_regex::check_pattern(text).is_err(),
            ("format", _) => return self.format(id, target, args),
            _ => false,
        };
        if let (true, Some(arg)) = (wrong, last) {
            self.report(arg, format!("invalid {function} argument"));
        }
    }

    fn format(&mut self, id: Id, target: Option<Id>, args: &[Id]) {
        let (Some(target), [list]) = (target, args) else {
            return;
        };
        let Expr::List { items, .. } = self.checked.ast.expr(*list) else {
            return;
        };
        let Some(text) = self.literal(target) else {
            return;
        };
        let clauses = match interpolate::check_literal(text, items.len()) {
            Ok(clauses) => clauses,
            Err(message) => return self.report(id, message),
        };
        for (item, clause) in items.clone().into_iter().zip(clauses) {
            if let Some((culprit, ty)) = self.refused(item, clause.verb) {
                let detail = interpolate::refusal(clause.verb, ty.name());
                self.report(culprit, format!("error during formatting: {detail}"));
                return;
            }
        }
    }

    /// Returns the part of a literal argument that a clause does not accept.
    fn refused(&self, id: Id, verb: char) -> Option<(Id, Type)> {
        let ty = self.checked.type_of(id);
        let taken = match (verb, ty) {
            (_, Type::Dyn | Type::Any | Type::Error | Type::Param(_)) => true,
            ('s', Type::Opaque(_) | Type::Object(_)) => false,
            ('s', _) => true,
            ('d' | 'o', Type::Int | Type::Uint) => true,
            ('b', Type::Int | Type::Uint | Type::Bool) => true,
            ('x' | 'X', Type::Int | Type::Uint | Type::String | Type::Bytes) => true,
            ('f' | 'e', Type::Double) => true,
            ('f' | 'e', Type::String) => self
                .literal(id)
                .is_none_or(|text| matches!(text, "NaN" | "Infinity" | "-Infinity")),
            _ => false,
        };
        if !taken {
            return Some((id, ty.clone()));
        }
        let parts: Vec<Id> = match self.checked.ast.expr(id) {
            Expr::List { items, .. } => items.clone(),
            Expr::Map(entries) => entries.iter().flat_map(|e| [e.key, e.value]).collect(),
            _ => return None,
        };
        parts.into_iter().find_map(|part| self.refused(part, verb))
    }
}

fn checked_number(checked: &Checked, id: Id) -> bool {
    matches!(checked.ast.expr(id), Expr::Literal(Literal::Int(_)))
}
