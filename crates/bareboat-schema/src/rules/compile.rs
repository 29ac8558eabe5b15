//! Compiles the text of rules to programs.

use super::{Rule, Rules};
use crate::path::field_path;
use crate::schema::Node;
use bareboat_api::{FieldPath, interrupt};
use bareboat_cel::{Checked, DeclType, Env, Program, Type};
use std::sync::Arc;

/// The compiled rules of a node.
pub(super) struct Compiled {
    /// The type of `self`; `None` if expressions cannot read such values.
    pub(super) decl: Option<Arc<DeclType>>,
    pub(super) rules: Box<[CompiledRule]>,
}

/// One compiled rule.
pub(super) struct CompiledRule {
    /// The program or its compile error; `None` for a rule without text.
    pub(super) program: Option<Result<Program, String>>,
    pub(super) uses_old_self: bool,
    pub(super) message: Option<Program>,
    /// The path of errors, below the value.
    pub(super) target: Option<FieldPath>,
}

/// Returns the type of a node for expressions, if they can read it.
pub(crate) fn declare(node: &Node, resource: bool) -> Option<Arc<DeclType>> {
    DeclType::from_schema(node, resource, "selfType")
}

/// Compiles an expression with the result type `wanted`; the error has Kubernetes' text.
pub(crate) fn check_expression(
    decl: &DeclType,
    rule: &Rule,
    expression: &str,
    wanted: Wanted,
) -> Result<(Env, Checked), String> {
    let old = match rule.takes_no_old_self() {
        true => Type::optional(decl.ty().clone()),
        false => decl.ty().clone(),
    };
    let env = Env::kubernetes()
        .declare("self", decl)
        .variable("oldSelf", old);
    let checked = env
        .compile(expression)
        .map_err(|issues| format!("{}compilation failed: {issues}", wanted.prefix()))?;
    let given = checked.result_type();
    let fits = match wanted {
        Wanted::Truth => matches!(given, Type::Bool),
        Wanted::Message => matches!(given, Type::String),
    };
    if !fits {
        return Err(match wanted {
            Wanted::Truth => "cel expression must evaluate to a bool".to_owned(),
            Wanted::Message => "messageExpression must evaluate to a string".to_owned(),
        });
    }
    Ok((env, checked))
}

/// The purpose of an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A rule, which passes or fails.
    Truth,
    /// The message of a failed rule.
    Message,
}

impl Wanted {
    fn prefix(self) -> &'static str {
        match self {
            Wanted::Truth => "",
            Wanted::Message => "messageExpression ",
        }
    }
}

impl Rules {
    /// Returns the compiled rules, and compiles them for the first object.
    pub(super) fn compiled(&self, node: &Node, resource: bool) -> &Compiled {
        let make = || {
            let decl = declare(node, resource);
            let rules = match &decl {
                Some(decl) => self
                    .list
                    .iter()
                    .map(|rule| compile(node, decl, rule))
                    .collect(),
                None => Box::default(),
            };
            Compiled { decl, rules }
        };
        self.compiled[usize::from(resource)].get_or_init(|| interrupt::shielded(make))
    }
}

fn compile(node: &Node, decl: &DeclType, rule: &Rule) -> CompiledRule {
    let mut compiled = CompiledRule {
        program: None,
        uses_old_self: false,
        message: None,
        target: None,
    };
    if rule.rule.trim().is_empty() {
        return compiled;
    }
    let program =
        check_expression(decl, rule, &rule.rule, Wanted::Truth).and_then(|(env, checked)| {
            compiled.uses_old_self = checked.uses("oldSelf");
            env.program(&checked)
                .map_err(|error| format!("program instantiation failed: {error}"))
        });
    compiled.program = Some(program);
    if !rule.message_expression.is_empty() {
        // If the message expression does not compile, the rule uses its other message.
        compiled.message = check_expression(decl, rule, &rule.message_expression, Wanted::Message)
            .ok()
            .and_then(|(env, checked)| env.program(&checked).ok());
    }
    if !rule.field_path.is_empty() {
        compiled.target = field_path(&rule.field_path, node, true)
            .ok()
            .map(|target| target.path);
    }
    compiled
}
