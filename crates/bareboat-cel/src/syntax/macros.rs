//! The macros: calls that are expanded to other expressions before checking.

use bareboat_api::Str;

use super::ast::{ACCUMULATOR, Expr, Fold, Id, Literal, UNUSED, operator};
use super::parser::Parser;

/// The macros beyond those of the core.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Macros {
    /// `all`, `exists`, `existsOne`, `transformList`, `transformMap` with two variables.
    pub(crate) two_variables: bool,
    /// `optMap` and `optFlatMap`.
    pub(crate) optional: bool,
    /// `sortBy`.
    pub(crate) sort_by: bool,
    /// `cel.bind`.
    pub(crate) bind: bool,
    /// `math.greatest` and `math.least`.
    pub(crate) math: bool,
}

/// A message and its offset.
type Refused = (usize, String);

/// Expands a call, if it is a macro.
pub(super) fn expand(
    parser: &mut Parser<'_>,
    offset: usize,
    target: Option<Id>,
    name: &str,
    args: &[Id],
) -> Option<Result<Id, Refused>> {
    let enabled = parser.macros();
    let mut at = Expander { parser, offset };
    let Some(target) = target else {
        return (name == "has" && args.len() == 1).then(|| at.has(args[0]));
    };
    if enabled.bind && name == "bind" && args.len() == 3 && at.is_ident(target, "cel") {
        return Some(at.bind(args));
    }
    if enabled.math && at.is_ident(target, "math") {
        match name {
            "greatest" => return Some(at.extreme("math.@max", "math.greatest()", args)),
            "least" => return Some(at.extreme("math.@min", "math.least()", args)),
            _ => {}
        }
    }
    Some(match (name, args.len()) {
        ("all", 2) => at.all(target, args),
        ("exists", 2) => at.exists(target, args),
        ("exists_one" | "existsOne", 2) => at.exists_one(target, args),
        ("map", 2 | 3) => at.map(target, args),
        ("filter", 2) => at.filter(target, args),
        ("optMap", 2) if enabled.optional => at.opt_map(target, args, true),
        ("optFlatMap", 2) if enabled.optional => at.opt_map(target, args, false),
        ("sortBy", 2) if enabled.sort_by => at.sort_by(target, args),
        ("all", 3) if enabled.two_variables => at.all(target, args),
        ("exists", 3) if enabled.two_variables => at.exists(target, args),
        ("exists_one" | "existsOne", 3) if enabled.two_variables => at.exists_one(target, args),
        ("transformList", 3 | 4) if enabled.two_variables => at.transform_list(target, args),
        ("transformMap", 3 | 4) if enabled.two_variables => at.transform_map(target, args, true),
        ("transformMapEntry", 3 | 4) if enabled.two_variables => {
            at.transform_map(target, args, false)
        }
        _ => return None,
    })
}

struct Expander<'p, 's> {
    parser: &'p mut Parser<'s>,
    offset: usize,
}

impl Expander<'_, '_> {
    fn add(&mut self, expr: Expr) -> Id {
        self.parser.add(self.offset, expr)
    }

    fn literal(&mut self, literal: Literal) -> Id {
        self.add(Expr::Literal(literal))
    }

    fn ident(&mut self, name: &str) -> Id {
        self.add(Expr::Ident(name.into()))
    }

    fn accumulator(&mut self) -> Id {
        self.ident(ACCUMULATOR)
    }

    fn call(&mut self, function: &str, args: Vec<Id>) -> Id {
        self.parser.call(self.offset, function, args)
    }

    fn method(&mut self, target: Id, function: &str, args: Vec<Id>) -> Id {
        self.add(Expr::Call {
            target: Some(target),
            function: function.into(),
            args,
        })
    }

    fn list(&mut self, items: Vec<Id>) -> Id {
        let optional = Vec::new();
        self.add(Expr::List { items, optional })
    }

    fn is_ident(&self, id: Id, name: &str) -> bool {
        matches!(self.parser.expr_of(id), Expr::Ident(found) if found == name)
    }

    fn refuse<T>(&self, id: Id, message: impl Into<String>) -> Result<T, Refused> {
        Err((self.parser.offset_of(id), message.into()))
    }

    /// Returns the loop variables: one or two, depending on how many arguments come before the last
    /// `rest`.
    fn variables(&self, args: &[Id], rest: usize) -> Result<(Str, Option<Str>), Refused> {
        let mut names = Vec::with_capacity(2);
        for id in &args[..args.len() - rest] {
            let name = match self.parser.expr_of(*id) {
                Expr::Ident(name) if !name.starts_with('.') => name.clone(),
                _ if args.len() - rest == 1 && rest > 1 => {
                    return self.refuse(*id, "argument is not an identifier");
                }
                _ => return self.refuse(*id, "argument must be a simple name"),
            };
            if name == "__result__" || name == ACCUMULATOR {
                return self.refuse(*id, "iteration variable overwrites accumulator variable");
            }
            if names.contains(&name) {
                return self.refuse(*id, format!("duplicate variable name: {name}"));
            }
            names.push(name);
        }
        let second = if names.len() > 1 { names.pop() } else { None };
        let first = names.pop().unwrap_or_default();
        Ok((first, second))
    }

    fn fold(
        &mut self,
        range: Id,
        (var, var2): (Str, Option<Str>),
        [init, condition, step, result]: [Id; 4],
    ) -> Id {
        self.add(Expr::Fold(Box::new(Fold {
            range,
            var,
            var2,
            accu: ACCUMULATOR.into(),
            init,
            condition,
            step,
            result,
        })))
    }

    fn has(&mut self, arg: Id) -> Result<Id, Refused> {
        match self.parser.expr_of(arg) {
            Expr::Select { operand, field, .. } => {
                let (operand, field) = (*operand, field.clone());
                Ok(self.add(Expr::Select {
                    operand,
                    field,
                    test: true,
                }))
            }
            _ => self.refuse(arg, "invalid argument to has() macro"),
        }
    }

    fn all(&mut self, target: Id, args: &[Id]) -> Result<Id, Refused> {
        let variables = self.variables(args, 1)?;
        let init = self.literal(Literal::Bool(true));
        let accu = self.accumulator();
        let condition = self.call(operator::NOT_STRICTLY_FALSE, vec![accu]);
        let accu = self.accumulator();
        let step = self.call(operator::AND, vec![accu, args[args.len() - 1]]);
        let result = self.accumulator();
        Ok(self.fold(target, variables, [init, condition, step, result]))
    }

    fn exists(&mut self, target: Id, args: &[Id]) -> Result<Id, Refused> {
        let variables = self.variables(args, 1)?;
        let init = self.literal(Literal::Bool(false));
        let accu = self.accumulator();
        let not = self.call(operator::NOT, vec![accu]);
        let condition = self.call(operator::NOT_STRICTLY_FALSE, vec![not]);
        let accu = self.accumulator();
        let step = self.call(operator::OR, vec![accu, args[args.len() - 1]]);
        let result = self.accumulator();
        Ok(self.fold(target, variables, [init, condition, step, result]))
    }

    fn exists_one(&mut self, target: Id, args: &[Id]) -> Result<Id, Refused> {
        let variables = self.variables(args, 1)?;
        let init = self.literal(Literal::Int(0));
        let condition = self.literal(Literal::Bool(true));
        let accu = self.accumulator();
        let one = self.literal(Literal::Int(1));
        let more = self.call(operator::ADD, vec![accu, one]);
        let step = self.keep_or(args[args.len() - 1], more);
        let accu = self.accumulator();
        let one = self.literal(Literal::Int(1));
        let result = self.call(operator::EQUALS, vec![accu, one]);
        Ok(self.fold(target, variables, [init, condition, step, result]))
    }

    /// Builds `filter ? step : accumulator`.
    fn keep_or(&mut self, filter: Id, step: Id) -> Id {
        let accu = self.accumulator();
        self.call(operator::CONDITIONAL, vec![filter, step, accu])
    }

    /// Builds `accumulator + [item]`.
    fn append(&mut self, item: Id) -> Id {
        let accu = self.accumulator();
        let list = self.list(vec![item]);
        self.call(operator::ADD, vec![accu, list])
    }

    fn collect(&mut self, target: Id, variables: (Str, Option<Str>), init: Id, step: Id) -> Id {
        let condition = self.literal(Literal::Bool(true));
        let result = self.accumulator();
        self.fold(target, variables, [init, condition, step, result])
    }

    fn map(&mut self, target: Id, args: &[Id]) -> Result<Id, Refused> {
        let rest = args.len() - 1;
        let variables = match self.variables(args, rest) {
            Err((at, _))
                if rest == 1 && !matches!(self.parser.expr_of(args[0]), Expr::Ident(_)) =>
            {
                return Err((at, "argument is not an identifier".into()));
            }
            variables => variables?,
        };
        let init = self.list(Vec::new());
        let mut step = self.append(args[rest]);
        if rest == 2 {
            step = self.keep_or(args[1], step);
        }
        Ok(self.collect(target, variables, init, step))
    }

    fn filter(&mut self, target: Id, args: &[Id]) -> Result<Id, Refused> {
        if !matches!(self.parser.expr_of(args[0]), Expr::Ident(_)) {
            return self.refuse(args[0], "argument is not an identifier");
        }
        let variables = self.variables(args, 1)?;
        let init = self.list(Vec::new());
        let step = self.append(args[0]);
        let step = self.keep_or(args[1], step);
        Ok(self.collect(target, variables, init, step))
    }

    fn transform_list(&mut self, target: Id, args: &[Id]) -> Result<Id, Refused> {
        let variables = self.variables(args, args.len() - 2)?;
        let init = self.list(Vec::new());
        let mut step = self.append(args[args.len() - 1]);
        if args.len() == 4 {
            step = self.keep_or(args[2], step);
        }
        Ok(self.collect(target, variables, init, step))
    }

    fn transform_map(&mut self, target: Id, args: &[Id], keyed: bool) -> Result<Id, Refused> {
        let variables = self.variables(args, args.len() - 2)?;
        let init = self.add(Expr::Map(Vec::new()));
        let mut insert = vec![self.accumulator()];
        if keyed {
            insert.push(self.ident(&variables.0));
        }
        insert.push(args[args.len() - 1]);
        let mut step = self.call(operator::MAP_INSERT, insert);
        if args.len() == 4 {
            step = self.keep_or(args[2], step);
        }
        Ok(self.collect(target, variables, init, step))
    }

    /// Builds a fold over an empty list, whose accumulator is the bound variable.
    fn binding(&mut self, name: Str, value: Id, result: Id) -> Id {
        let range = self.list(Vec::new());
        let condition = self.literal(Literal::Bool(false));
        let step = self.ident(&name);
        self.add(Expr::Fold(Box::new(Fold {
            range,
            var: UNUSED.into(),
            var2: None,
            accu: name,
            init: value,
            condition,
            step,
            result,
        })))
    }

    fn simple_name(&self, id: Id, macro_name: &str) -> Result<Str, Refused> {
        match self.parser.expr_of(id) {
            Expr::Ident(name) if !name.starts_with('.') => Ok(name.clone()),
            _ => self.refuse(id, macro_name),
        }
    }

    fn bind(&mut self, args: &[Id]) -> Result<Id, Refused> {
        let name = self.simple_name(
            args[0],
            "cel.bind() variable names must be simple identifiers",
        )?;
        Ok(self.binding(name, args[1], args[2]))
    }

    fn opt_map(&mut self, target: Id, args: &[Id], wrap: bool) -> Result<Id, Refused> {
        let name = self.simple_name(
            args[0],
            if wrap {
                "optMap() variable name must be a simple identifier"
            } else {
                "optFlatMap() variable name must be a simple identifier"
            },
        )?;
        let condition = self.method(target, "hasValue", Vec::new());
        let value = self.method(target, "value", Vec::new());
        let mut bound = self.binding(name, value, args[1]);
        if wrap {
            bound = self.call("optional.of", vec![bound]);
        }
        let none = self.call("optional.none", Vec::new());
        Ok(self.call(operator::CONDITIONAL, vec![condition, bound, none]))
    }

    fn sort_by(&mut self, target: Id, args: &[Id]) -> Result<Id, Refused> {
        const INPUT: &str = "@__sortBy_input__";
        if matches!(
            self.parser.expr_of(target),
            Expr::Literal(_) | Expr::Map(_) | Expr::Struct { .. }
        ) {
            return self.refuse(
                target,
                "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
            );
        }
        let input = self.ident(INPUT);
        let keys = self.map(input, args)?;
        let input = self.ident(INPUT);
        let sorted = self.method(input, operator::SORT_BY_KEYS, vec![keys]);
        Ok(self.binding(INPUT.into(), target, sorted))
    }

    fn extreme(&mut self, function: &str, shown: &str, args: &[Id]) -> Result<Id, Refused> {
        match args {
            [] => Err((
                self.offset,
                format!("{shown} requires at least one argument"),
            )),
            [_] | [_, _] => Ok(self.call(function, args.to_vec())),
            _ => {
                let list = self.list(args.to_vec());
                Ok(self.call(function, vec![list]))
            }
        }
    }
}
