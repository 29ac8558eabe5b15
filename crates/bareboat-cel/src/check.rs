//! Types: whether an expression makes sense, what each part of it is, and which functions it calls.
//!
//! Upstream: cel-go checker/checker.go.

mod assign;
mod expr;
mod validate;

use bareboat_api::Str;

use crate::env::Env;
use crate::issue::{Issue, Issues};
use crate::syntax::ast::{Ast, Expr, Id};
use crate::types::Type;

/// What a node refers to.
#[derive(Clone, Debug, Default)]
pub(crate) enum Reference {
    #[default]
    None,
    /// A variable, by its full name.
    Variable(Str),
    /// A type used as a value.
    Type(Type),
    /// The overloads of a function that a call may mean, by their place among all of them.
    Overloads(Vec<u16>),
}

/// An expression that makes sense.
#[derive(Debug)]
pub struct Checked {
    pub(crate) ast: Ast,
    pub(crate) types: Vec<Type>,
    pub(crate) references: Vec<Reference>,
}

impl Checked {
    /// The type of the result.
    pub fn result_type(&self) -> &Type {
        self.type_of(self.ast.root)
    }

    /// Whether the expression reads the variable.
    pub fn uses(&self, variable: &str) -> bool {
        self.references
            .iter()
            .any(|reference| matches!(reference, Reference::Variable(name) if name == variable))
    }

    /// The variables the expression reads, each once.
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
                // Nodes only messages would have been about, such as the names of loop variables.
                None => Type::Dyn,
            })
            .collect();
        Ok(Checked {
            ast: std::mem::replace(
                &mut self.ast,
                Ast {
                    nodes: Vec::new(),
                    root: 0,
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

    /// The dotted name a chain of selections spells, if it is one.
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
