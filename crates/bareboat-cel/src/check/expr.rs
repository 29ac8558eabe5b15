//! Type rules for each kind of expression.

use bareboat_api::Str;

use super::assign::{Substitutions, most_general};
use super::{Checker, Reference};
use crate::decl::ObjectType;
use crate::env::Named;
use crate::library::Function;
use crate::syntax::ast::{Expr, Fold, Id, Literal, StructField, operator};
use crate::types::Type;

impl Checker<'_> {
    pub(super) fn expr(&mut self, id: Id) {
        // Macros share nodes; one visit is enough.
        if self.types[id as usize].is_some() {
            return;
        }
        match self.ast.expr(id).clone() {
            Expr::Literal(literal) => self.set(
                id,
                match literal {
                    Literal::Null => Type::Null,
                    Literal::Bool(_) => Type::Bool,
                    Literal::Int(_) => Type::Int,
                    Literal::Uint(_) => Type::Uint,
                    Literal::Double(_) => Type::Double,
                    Literal::String(_) => Type::String,
                    Literal::Bytes(_) => Type::Bytes,
                },
            ),
            Expr::Ident(name) => {
                if !self.resolve_name(id, &name) {
                    self.undeclared(id, &name);
                }
            }
            Expr::Select {
                operand,
                field,
                test,
            } => self.select(id, operand, &field, test),
            Expr::Call {
                target,
                function,
                args,
            } => self.call(id, target, &function, args),
            Expr::List { items, optional } => self.list(id, &items, &optional),
            Expr::Map(entries) => self.map(id, &entries),
            Expr::Struct { name, fields } => self.message(id, &name, &fields),
            Expr::Fold(fold) => self.fold(id, &fold),
        }
    }

    fn undeclared(&mut self, id: Id, name: &str) {
        let name = name.trim_start_matches('.');
        let container = self.env.container_name();
        self.set(id, Type::Error);
        self.report(
            id,
            format!("undeclared reference to '{name}' (in container '{container}')"),
        );
    }

    /// Resolves a node's name to a variable or type, if there is one.
    fn resolve_name(&mut self, id: Id, name: &str) -> bool {
        // A local variable hides other names; a leading dot skips local variables.
        let local = self.locals.iter().rev().find(|(local, _)| local == name);
        if let Some((_, ty)) = local {
            let ty = ty.clone();
            self.set(id, ty);
            return true;
        }
        let found = self.env.candidates(name).into_iter().find_map(|candidate| {
            match self.env.named(&candidate)? {
                Named::Variable(ty) => {
                    Some((candidate.clone(), ty, Reference::Variable(candidate)))
                }
                Named::Type(ty) => {
                    Some((candidate, Type::type_of(ty.clone()), Reference::Type(ty)))
                }
            }
        });
        let Some((name, ty, reference)) = found else {
            return false;
        };
        self.set(id, ty);
        self.references[id as usize] = reference;
        self.ast.nodes[id as usize].expr = Expr::Ident(name);
        true
    }

    /// Returns whether a dotted name begins with a local variable.
    fn begins_locally(&self, name: &str) -> bool {
        let first = name.split('.').next().unwrap_or_default();
        self.locals.iter().any(|(local, _)| local == first)
    }

    fn select(&mut self, id: Id, operand: Id, field: &str, test: bool) {
        if !test
            && let Some(name) = self.qualified(id)
            && !self.begins_locally(&name)
            && self.resolve_name(id, &name)
        {
            return;
        }
        let ty = self.field(id, operand, field, false);
        let ty = if test { Type::Bool } else { ty };
        let ty = self.substitutions.resolve(&ty, false);
        self.set(id, ty);
    }

    /// Returns the type of a field, optional if the operand or the selection is optional.
    fn field(&mut self, id: Id, operand: Id, field: &str, optional: bool) -> Type {
        self.expr(operand);
        let operand = self.substitutions.resolve(&self.get(operand), false);
        let (target, wrapped) = match operand.as_optional() {
            Some(inner) => (inner.clone(), true),
            None => (operand, false),
        };
        let ty = match &target {
            Type::Map(entry) => entry.1.clone(),
            Type::Object(object) => self.field_type(id, object, field),
            Type::Opaque(opaque) if opaque.message => {
                let name = &opaque.name;
                self.report(id, format!("unexpected failed resolution of '{name}'"));
                Type::Error
            }
            Type::Param(_) => {
                self.substitutions.assignable(&Type::Dyn, &target);
                Type::Dyn
            }
            Type::Dyn | Type::Any | Type::Error => Type::Dyn,
            other => {
                self.report(
                    id,
                    format!("type '{other}' does not support field selection"),
                );
                Type::Dyn
            }
        };
        if wrapped || optional {
            Type::optional(ty)
        } else {
            ty
        }
    }

    fn field_type(&mut self, id: Id, object: &ObjectType, field: &str) -> Type {
        match object.field(field) {
            Some(found) => found.decl.ty.clone(),
            None if object.is_open() => Type::Dyn,
            None => {
                if let Some(ty) = self.env.composed_field(object, field) {
                    return ty;
                }
                self.report(id, format!("undefined field '{field}'"));
                Type::Error
            }
        }
    }

    fn call(&mut self, id: Id, target: Option<Id>, name: &str, args: Vec<Id>) {
        if name == operator::OPT_SELECT {
            return self.optional_select(id, &args);
        }
        for arg in &args {
            self.expr(*arg);
        }
        let env = self.env;
        let Some(target) = target else {
            return match env.function(name) {
                Some((full, function)) => self.resolve_call(id, full, function, None, args),
                None => self.undeclared(id, name),
            };
        };
        // `a.b.c()` may be the function `a.b.c` before it is the method `c` of `a.b`.
        if let Some(prefix) = self.qualified(target)
            && let Some((full, function)) = env.function(&format!("{prefix}.{name}"))
        {
            return self.resolve_call(id, full, function, None, args);
        }
        self.expr(target);
        match env.function(name) {
            Some((full, function)) => self.resolve_call(id, full, function, Some(target), args),
            None => self.undeclared(id, name),
        }
    }

    fn optional_select(&mut self, id: Id, args: &[Id]) {
        let field = match args {
            [_, field] => self.ast.expr(*field).clone(),
            _ => return self.undeclared(id, operator::OPT_SELECT),
        };
        if let Expr::Literal(Literal::String(field)) = field {
            let ty = self.field(id, args[0], &field, true);
            let ty = self.substitutions.resolve(&ty, false);
            self.set(id, ty);
            self.set(args[1], Type::String);
        }
    }

    fn resolve_call(
        &mut self,
        id: Id,
        full: Str,
        function: &Function,
        target: Option<Id>,
        args: Vec<Id>,
    ) {
        let types: Vec<Type> = target.iter().chain(&args).map(|id| self.get(*id)).collect();
        if full == operator::AND || full == operator::OR {
            return self.logical(id, &args, &types);
        }
        let mut result: Option<Type> = None;
        let mut chosen = Vec::new();
        for (index, overload) in function.overloads.iter().enumerate() {
            if overload.member != target.is_some() || overload.args.len() != types.len() {
                continue;
            }
            let letters: Vec<_> = overload
                .params
                .iter()
                .map(|letter| (*letter, self.substitutions.fresh()))
                .collect();
            let wanted: Vec<Type> = overload
                .args
                .iter()
                .map(|ty| Substitutions::instantiate(ty, &letters))
                .collect();
            if !self.substitutions.assignable_all(&types, &wanted) {
                continue;
            }
            chosen.push(index as u16);
            let ty = Substitutions::instantiate(&overload.result, &letters);
            let ty = self.substitutions.resolve(&ty, false);
            result = Some(match result {
                None => ty,
                Some(known) if known.is_dyn() || ty.is_exactly(&known) => known,
                Some(_) => Type::Dyn,
            });
        }
        let Some(result) = result else {
            return self.no_overload(id, &full, target.is_some(), &types);
        };
        self.set(id, result);
        self.references[id as usize] = Reference::Overloads(chosen);
        self.ast.nodes[id as usize].expr = Expr::Call {
            target,
            function: full,
            args,
        };
    }

    fn logical(&mut self, id: Id, args: &[Id], types: &[Type]) {
        for (arg, ty) in args.iter().zip(types) {
            if !self.substitutions.assignable(ty, &Type::Bool) {
                let ty = self.substitutions.resolve(ty, false);
                self.report(*arg, format!("expected type 'bool' but found '{ty}'"));
            }
        }
        self.set(id, Type::Bool);
        self.references[id as usize] = Reference::Overloads(vec![0]);
    }

    fn no_overload(&mut self, id: Id, name: &str, member: bool, types: &[Type]) {
        let mut shown = types
            .iter()
            .map(|ty| self.substitutions.resolve(ty, true).to_string());
        let receiver = match member {
            true => format!("{}.", shown.next().unwrap_or_default()),
            false => String::new(),
        };
        let signature = shown.collect::<Vec<_>>().join(", ");
        self.set(id, Type::Error);
        self.report(
            id,
            format!("found no matching overload for '{name}' applied to '{receiver}({signature})'"),
        );
    }

    /// Returns the type of a value; unwraps the optional of `?value`.
    fn unwrapped(&mut self, id: Id, optional: bool) -> Type {
        let ty = self.get(id);
        if !optional {
            return ty;
        }
        match ty.as_optional() {
            Some(inner) => inner.clone(),
            None => {
                if !ty.is_dyn_or_error() {
                    let wanted = Type::optional(ty.clone());
                    self.report(id, format!("expected type '{wanted}' but found '{ty}'"));
                }
                ty
            }
        }
    }

    fn join(&mut self, known: Option<Type>, ty: Type) -> Type {
        match known {
            None => ty,
            Some(known) if self.substitutions.assignable(&known, &ty) => {
                most_general(&known, &ty).clone()
            }
            // Kubernetes requires literals of one type, but reports that during validation.
            Some(_) => Type::Dyn,
        }
    }

    fn list(&mut self, id: Id, items: &[Id], optional: &[u32]) {
        let mut element = None;
        for (index, item) in (0..).zip(items) {
            self.expr(*item);
            let ty = self.unwrapped(*item, optional.contains(&index));
            element = Some(self.join(element, ty));
        }
        let element = element.unwrap_or_else(|| self.substitutions.fresh());
        self.set(id, Type::list(element));
    }

    fn map(&mut self, id: Id, entries: &[crate::syntax::ast::Entry]) {
        let (mut key, mut value) = (None, None);
        for entry in entries {
            self.expr(entry.key);
            let ty = self.get(entry.key);
            key = Some(self.join(key, ty));
            self.expr(entry.value);
            let ty = self.unwrapped(entry.value, entry.optional);
            value = Some(self.join(value, ty));
        }
        let key = key.unwrap_or_else(|| self.substitutions.fresh());
        let value = value.unwrap_or_else(|| self.substitutions.fresh());
        self.set(id, Type::map(key, value));
    }

    fn message(&mut self, id: Id, name: &str, fields: &[StructField]) {
        let found = self
            .env
            .candidates(name)
            .into_iter()
            .find_map(|candidate| self.env.named(&candidate));
        let object = match found {
            None => {
                self.undeclared(id, name);
                None
            }
            Some(Named::Type(Type::Object(object))) => {
                self.set(id, Type::Object(object.clone()));
                self.references[id as usize] = Reference::Type(Type::Object(object.clone()));
                Some(object)
            }
            Some(Named::Type(ty)) => {
                self.set(id, Type::Error);
                self.report(id, format!("'{ty}' is not a message type"));
                None
            }
            Some(Named::Variable(ty)) => {
                self.set(id, Type::Error);
                self.report(id, format!("'{ty}' is not a type"));
                None
            }
        };
        for field in fields {
            self.expr(field.value);
            let Some(object) = &object else { continue };
            let given = self.unwrapped(field.value, field.optional);
            let wanted = match object.field(&field.name) {
                Some(found) => found.decl.ty.clone(),
                None if object.is_open() => Type::Dyn,
                None => {
                    let message = format!("undefined field '{}'", field.name);
                    self.report_at(field.offset, message);
                    continue;
                }
            };
            if !self.substitutions.assignable(&wanted, &given) {
                let given = self.substitutions.resolve(&given, false);
                self.report_at(
                    field.offset,
                    format!(
                        "expected type of field '{}' is '{wanted}' but provided type is '{given}'",
                        field.name
                    ),
                );
            }
        }
    }

    fn report_at(&mut self, offset: u32, message: String) {
        let issue = crate::issue::Issue::new(self.source, offset as usize, message);
        self.issues.push(issue);
    }

    fn fold(&mut self, id: Id, fold: &Fold) {
        self.expr(fold.range);
        self.expr(fold.init);
        let range = self.substitutions.resolve(&self.get(fold.range), false);
        let accumulator = self.get(fold.init);
        let outside = self.locals.len();
        self.locals.push((fold.accu.clone(), accumulator.clone()));
        let two = fold.var2.is_some();
        let (first, second) = match &range {
            Type::List(element) if two => (Type::Int, (**element).clone()),
            Type::List(element) => ((**element).clone(), Type::Dyn),
            Type::Map(entry) => (entry.0.clone(), entry.1.clone()),
            Type::Dyn | Type::Any | Type::Error | Type::Param(_) => {
                self.substitutions.assignable(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                self.report(
                    fold.range,
                    format!(
                        "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                    ),
                );
                (Type::Error, Type::Error)
            }
        };
        self.locals.push((fold.var.clone(), first));
        if let Some(var2) = &fold.var2 {
            self.locals.push((var2.clone(), second));
        }
        self.expr(fold.condition);
        self.assert(fold.condition, &Type::Bool);
        self.expr(fold.step);
        self.assert(fold.step, &accumulator);
        self.locals.truncate(outside + 1);
        self.expr(fold.result);
        self.locals.truncate(outside);
        let result = self.substitutions.resolve(&self.get(fold.result), false);
        self.set(id, result);
    }

    fn assert(&mut self, id: Id, wanted: &Type) {
        let found = self.get(id);
        if !self.substitutions.assignable(wanted, &found) {
            let wanted = self.substitutions.resolve(wanted, false);
            let found = self.substitutions.resolve(&found, false);
            self.report(id, format!("expected type '{wanted}' but found '{found}'"));
        }
    }
}
