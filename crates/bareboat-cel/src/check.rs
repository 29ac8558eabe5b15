//! The type checker: finds the type of every node and the function overloads it calls.
//!
//! Upstream: cel-go checker/checker.go.

mod assign;
mod expr;
mod validate;

use bareboat_api::Str;

use crate::env::Env;
use crate::issue::{Issue, Issues};
use crate::syntax::ast::{Ast, Expr, Id, Literal, operator};
use crate::types::Type;

/// The target of a node's name.
#[derive(Clone, Debug, Default)]
pub(crate) enum Reference {
    #[default]
    None,
    /// A variable, by its full name.
    Variable(Str),
    /// A type used as a value.
    Type(Type),
    /// The overloads that a call may use, as indexes into the list of all overloads.
    Overloads(Vec<u16>),
}

/// A type-checked expression.
#[derive(Debug)]
pub struct Checked {
    pub(crate) ast: Ast,
    pub(crate) types: Vec<Type>,
    pub(crate) references: Vec<Reference>,
}

impl Checked {
    /// Returns the type of the result.
    pub fn result_type(&self) -> &Type {
        self.type_of(self.ast.root)
    }

    /// Returns whether the expression reads the variable.
    pub fn uses(&self, variable: &str) -> bool {
        self.references
            .iter()
            .any(|reference| matches!(reference, Reference::Variable(name) if name == variable))
    }

    /// Returns the variables that the expression reads, each once.
    pub fn variables(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self
            .references
            .iter()
            .filter_map(|reference| match reference {
                Reference::Variable(name) => Some(name.as_str()),
                _ => None,
            })
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether the expression names a member of a variable: `claims.email`, `claims.?email` or `claims["email"]`.
    pub fn selects(&self, variable: &str, member: &str) -> bool {
        let is_variable =
            |id: &Id| matches!(self.ast.expr(*id), Expr::Ident(name) if name == variable);
        let is_member = |id: &Id| matches!(self.ast.expr(*id), Expr::Literal(Literal::String(text)) if text == member);
        self.ast.nodes.iter().any(|node| match &node.expr {
            Expr::Select { operand, field, .. } => field == member && is_variable(operand),
            Expr::Call { function, args, .. } => {
                let reads = [operator::OPT_SELECT, operator::INDEX, operator::OPT_INDEX];
                reads.contains(&function.as_str())
                    && matches!(args.as_slice(), [of, key] if is_variable(of) && is_member(key))
            }
            _ => false,
        })
    }

    pub(crate) fn type_of(&self, id: Id) -> &Type {
        &self.types[id as usize]
    }

    pub(crate) fn reference(&self, id: Id) -> &Reference {
        &self.references[id as usize]
    }
}

pub(crate) fn check(source: &str, ast: Ast, env: &Env) -> Result<Checked, Issues> {
    let count = ast.nodes.len();
    let root = ast.root;
    let mut checker = Checker {
        env,
        source,
        ast,
        types: vec![None; count],
        references: vec![Reference::None; count],
        locals: Vec::new(),
        substitutions: assign::Substitutions::default(),
        issues: Vec::new(),
    };
    checker.expr(root);
    let checked = checker.finish();
    let checked = match checked {
        Ok(checked) => checked,
        Err(mut issues) => {
            sort(&mut issues);
            return Err(Issues(issues));
        }
    };
    let mut issues = validate::validate(source, &checked, env);
    if issues.is_empty() {
        return Ok(checked);
    }
    sort(&mut issues);
    Err(Issues(issues))
}

fn sort(issues: &mut Vec<Issue>) {
    issues.sort_by_key(|issue| (issue.line, issue.column));
    issues.dedup();
}

struct Checker<'e> {
    env: &'e Env,
    source: &'e str,
    ast: Ast,
    types: Vec<Option<Type>>,
    references: Vec<Reference>,
    /// The variables of enclosing comprehensions, innermost last.
    locals: Vec<(Str, Type)>,
    substitutions: assign::Substitutions,
    issues: Vec<Issue>,
}

impl Checker<'_> {
    fn finish(mut self) -> Result<Checked, Vec<Issue>> {
        if !self.issues.is_empty() {
            return Err(self.issues);
        }
        let types = self
            .types
            .iter()
            .map(|ty| match ty {
                Some(ty) => self.substitutions.resolve(ty, true),
                // Nodes without a type, such as the names of loop variables, only matter in
                // messages.
                None => Type::Dyn,
            })
            .collect();
        Ok(Checked {
            ast: std::mem::replace(
                &mut self.ast,
                Ast {
                    nodes: Vec::new(),
                    root: 0,
                    depth: 0,
                },
            ),
            types,
            references: self.references,
        })
    }

    fn report(&mut self, id: Id, message: String) {
        let offset = self.ast.node(id).offset as usize;
        self.issues.push(Issue::new(self.source, offset, message));
    }

    fn set(&mut self, id: Id, ty: Type) {
        self.types[id as usize] = Some(ty);
    }

    fn get(&self, id: Id) -> Type {
        self.types[id as usize].clone().unwrap_or(Type::Error)
    }

    /// Returns the dotted name of a chain of selections, if it is one.
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
}
