//! Runs the rules of a schema on an object.
//!
//! Upstream: apiextensions pkg/apiserver/schema/cel, validation.go.

use super::compile::CompiledRule;
use super::{OBJECT_BUDGET, Rule};
use crate::schema::{Flags, Kind, Node};
use crate::validate::{Findings, Old, same};
use bareboat_api::{
    FieldError, FieldErrorKind, FieldErrors, FieldPath, Value, field::go_quote, interrupt,
};
use bareboat_cel::{Budget, DeclType, EvalError, PER_CALL_LIMIT, Val, Variables};

/// The maximum length of a computed message.
const MAX_MESSAGE: usize = 5 * 1024;
const EXHAUSTED: &str = "validation failed due to running out of cost budget, \
                         no further validation rules will be run";

/// Runs every rule on an object; a rule violated by an unchanged value only causes a warning.
pub(crate) fn evaluate(root: &Node, new: &Value, old: Option<&Value>, findings: &mut Findings) {
    let base = FieldPath::root();
    let mut run = Run::new(&base, OBJECT_BUDGET);
    let old = old.map(|value| Old { value, node: root });
    run.visit(root, new, Before::start(old, true), true, &Trail::start());
    findings.errors.append(&mut run.errors.into_list());
    findings.warnings.append(&mut run.warnings);
}

/// Runs the rules on a default, both as an old and as a new value; returns the remaining budget.
pub(crate) fn check_default(
    node: &Node,
    value: &Value,
    resource: bool,
    path: &FieldPath,
    budget: u64,
    errors: &mut FieldErrors,
) -> u64 {
    if !node.has(Flags::RULES_BELOW) {
        return budget;
    }
    let mut left = budget;
    for old in [Some(Old { value, node }), None] {
        let mut run = Run::new(path, budget);
        run.visit(
            node,
            value,
            Before::start(old, false),
            resource,
            &Trail::start(),
        );
        left = left.min(run.budget.remaining());
        if !run.errors.is_empty() {
            errors.append(&mut run.errors);
            break;
        }
    }
    left
}

/// The old value of a place.
#[derive(Clone, Copy)]
struct Before<'a> {
    here: Option<Old<'a>>,
    /// The nearest value above that has an old one; it decides for places without an old value.
    above: Option<(&'a Value, Old<'a>)>,
    /// Whether rules violated by unchanged values only cause warnings.
    forgive: bool,
}

impl<'a> Before<'a> {
    fn start(old: Option<Old<'a>>, forgive: bool) -> Before<'a> {
        Before {
            here: old,
            above: None,
            forgive,
        }
    }

    fn below(self, value: &'a Value, here: impl FnOnce(Old<'a>) -> Option<Old<'a>>) -> Before<'a> {
        match self.here {
            None => self,
            Some(old) => Before {
                here: here(old),
                above: Some((value, old)),
                forgive: self.forgive,
            },
        }
    }

    /// Returns the value that decides whether something changed, and its old value.
    fn decisive(self, value: &'a Value) -> Option<(&'a Value, Old<'a>)> {
        match self.here {
            _ if !self.forgive => None,
            Some(old) => Some((value, old)),
            None => self.above,
        }
    }
}

/// A path below the object, printed only for errors.
struct Trail<'a> {
    parent: Option<&'a Trail<'a>>,
    step: Step<'a>,
}

enum Step<'a> {
    Start,
    Member(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> Trail<'a> {
    fn start() -> Trail<'a> {
        Trail {
            parent: None,
            step: Step::Start,
        }
    }

    fn then(&'a self, step: Step<'a>) -> Trail<'a> {
        Trail {
            parent: Some(self),
            step,
        }
    }

    fn path(&self, base: &FieldPath) -> FieldPath {
        let parent = match self.parent {
            Some(parent) => parent.path(base),
            None => base.clone(),
        };
        match self.step {
            Step::Start => parent,
            Step::Member(name) => parent.child(name),
            Step::Key(key) => parent.key(key),
            Step::Index(index) => parent.index(index),
        }
    }
}

struct Run<'b> {
    base: &'b FieldPath,
    budget: Budget,
    /// Whether to run no more rules: the budget is spent, the message of a broken rule could not be
    /// computed, or the work was interrupted.
    stopped: bool,
    /// The number of values above with another type than in their schema: rules below cannot be
    /// compiled.
    untyped: usize,
    /// The last two values that were compared, and whether they are equal.
    compared: Option<((*const Value, *const Value), bool)>,
    errors: FieldErrors,
    warnings: Vec<String>,
}

impl<'b> Run<'b> {
    fn new(base: &'b FieldPath, budget: u64) -> Run<'b> {
        Run {
            base,
            budget: Budget::new(budget),
            stopped: false,
            untyped: 0,
            compared: None,
            errors: FieldErrors::default(),
            warnings: Vec::new(),
        }
    }

    fn visit<'a>(
        &mut self,
        node: &'a Node,
        value: &'a Value,
        before: Before<'a>,
        resource: bool,
        trail: &Trail<'_>,
    ) {
        self.stopped |= interrupt::requested();
        if self.stopped || value.is_null() || !node.has(Flags::RULES_BELOW) {
            return;
        }
        self.rules(node, value, before, resource, trail);
        let untyped = usize::from(match value {
            Value::Array(_) => node.kind != Kind::Array,
            Value::Object(_) => node.kind == Kind::Array,
            _ => false,
        });
        self.untyped += untyped;
        self.below(node, value, before, trail);
        self.untyped -= untyped;
    }

    /// Visits the items of a list or the members of an object, and runs their rules; those of the
    /// value itself have already run.
    fn below<'a>(
        &mut self,
        node: &'a Node,
        value: &'a Value,
        before: Before<'a>,
        trail: &Trail<'_>,
    ) {
        match value {
            Value::Array(list) => {
                let Some(items) = node.items.as_deref() else {
                    return;
                };
                let mut elements = before.here.map(Old::elements);
                for (index, item) in list.iter().enumerate() {
                    let before = before.below(value, |_| elements.as_mut()?.find(item));
                    let trail = trail.then(Step::Index(index));
                    self.visit(items, item, before, items.has(Flags::EMBEDDED), &trail);
                }
            }
            Value::Object(map) => {
                let mut declared = node.in_order();
                for (name, member) in map.iter() {
                    let (schema, step) = match (declared.property(name), node.additional()) {
                        (Some(schema), _) => (schema, Step::Member(name)),
                        (None, Some(schema)) => (schema, Step::Key(name)),
                        (None, None) => continue,
                    };
                    if !is_visible(schema) {
                        continue;
                    }
                    let mut before = before.below(value, |old| old.member(name));
                    if trail.parent.is_none() && matches!(name, "apiVersion" | "kind") {
                        before.forgive = false;
                    }
                    let trail = trail.then(step);
                    self.visit(schema, member, before, schema.has(Flags::EMBEDDED), &trail);
                }
            }
            _ => {}
        }
    }

    fn rules<'a>(
        &mut self,
        node: &'a Node,
        value: &'a Value,
        before: Before<'a>,
        resource: bool,
        trail: &Trail<'_>,
    ) {
        let Some(rules) = &node.rules else { return };
        let compiled = rules.compiled(node, resource);
        let path = || trail.path(self.base);
        let decl = compiled.decl.as_ref().filter(|_| self.untyped == 0);
        let Some(decl) = decl else {
            let detail = "rule compiler initialization error: \
                          failed to convert to declType for CEL validation rules";
            self.errors.push(whole(node, path(), detail.to_owned()));
            return;
        };
        if self.budget.remaining() == 0 {
            self.errors.push(whole(node, path(), EXHAUSTED.to_owned()));
            self.stopped = true;
            return;
        }
        let old = before
            .here
            .map(|old| old.value)
            .filter(|old| !old.is_null());
        for (rule, compiled) in rules.list.iter().zip(&compiled.rules) {
            let scene = Scene {
                node,
                value,
                old,
                decl,
                before,
            };
            self.rule(rule, compiled, scene, trail);
            if self.stopped {
                return;
            }
        }
    }

    fn rule(&mut self, rule: &Rule, compiled: &CompiledRule, scene: Scene<'_>, trail: &Trail<'_>) {
        let node = scene.node;
        let program = match &compiled.program {
            None => return,
            Some(Ok(program)) => program,
            Some(Err(problem)) => {
                let detail = format!("rule compile error: {problem}");
                self.errors.push(whole(node, trail.path(self.base), detail));
                return;
            }
        };
        if compiled.uses_old_self && scene.old.is_none() && !rule.takes_no_old_self() {
            return;
        }
        let before = self.budget.remaining();
        let variables = scene.variables(rule.takes_no_old_self());
        let kept = match program.eval(&variables, &mut self.budget) {
            Ok(result) => result.as_bool() == Some(true),
            Err(error) => {
                let detail = self.failure(&error, before, rule);
                self.errors.push(whole(node, trail.path(self.base), detail));
                return;
            }
        };
        if !kept {
            self.broken(rule, compiled, scene, trail);
        }
    }

    /// Returns the message of a rule that failed to run.
    fn failure(&mut self, error: &EvalError, budget_before: u64, rule: &Rule) -> String {
        let words = rule.words();
        match error {
            EvalError::OutOfBudget => {
                self.stopped = true;
                if budget_before < PER_CALL_LIMIT {
                    return EXHAUSTED.to_owned();
                }
                format!(
                    "'{error}': no further validation rules will be run due to call cost exceeds \
                     limit for rule: {words}"
                )
            }
            EvalError::Failed(text) if text.starts_with("no such overload") => format!(
                "'{error}': call arguments did not match a supported operator, function or macro \
                 signature for rule: {words}"
            ),
            EvalError::Failed(_) => format!("{error} evaluating rule: {words}"),
        }
    }

    fn broken(
        &mut self,
        rule: &Rule,
        compiled: &CompiledRule,
        scene: Scene<'_>,
        trail: &Trail<'_>,
    ) {
        let mut path = trail.path(self.base);
        if let Some(target) = &compiled.target {
            path = path.child(target.as_str());
        }
        let detail = match self.message(rule, compiled, &scene) {
            Ok(Some(message)) => message,
            Ok(None) if rule.message.is_empty() => format!("failed rule: {}", rule.words()),
            Ok(None) => rule.message.trim().to_owned(),
            Err(detail) => {
                self.stopped = true;
                let error = whole(scene.node, path, detail);
                return self.report(error, compiled, &scene);
            }
        };
        // Objects and lists are too long for a message.
        let shown = match scene.node.kind {
            Kind::Object | Kind::Array => None,
            _ => Some(scene.value.clone()),
        };
        let (kind, value, detail) = match rule.reason.as_str() {
            "FieldValueForbidden" => (FieldErrorKind::Forbidden, None, detail),
            "FieldValueRequired" => (FieldErrorKind::Required, None, detail),
            "FieldValueDuplicate" => (FieldErrorKind::Duplicate, shown, String::new()),
            _ => (FieldErrorKind::Invalid, shown, detail),
        };
        let error = FieldError {
            kind,
            path,
            value,
            detail,
        };
        self.report(error, compiled, &scene);
    }

    /// Returns whether a value is unchanged. All elements of a list may check the same list.
    fn unchanged(&mut self, scene: &Scene<'_>) -> bool {
        let Some((value, old)) = scene.before.decisive(scene.value) else {
            return false;
        };
        let places = (std::ptr::from_ref(value), std::ptr::from_ref(old.value));
        if let Some((asked, answer)) = self.compared
            && asked == places
        {
            return answer;
        }
        let answer = same(value, old);
        self.compared = Some((places, answer));
        answer
    }

    fn report(&mut self, error: FieldError, compiled: &CompiledRule, scene: &Scene<'_>) {
        if !compiled.uses_old_self && self.unchanged(scene) {
            self.warnings.push(error.to_string());
        } else {
            self.errors.push(error);
        }
    }

    /// Evaluates a message expression; returns `None` if the result is not usable, and an error if
    /// it used up the budget.
    fn message(
        &mut self,
        rule: &Rule,
        compiled: &CompiledRule,
        scene: &Scene<'_>,
    ) -> Result<Option<String>, String> {
        let Some(program) = &compiled.message else {
            return Ok(None);
        };
        let before = self.budget.remaining();
        let variables = scene.variables(rule.takes_no_old_self());
        match program.eval(&variables, &mut self.budget) {
            Ok(result) => Ok(result.as_str().map(str::trim).and_then(|text| {
                let usable = !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
                usable.then(|| text.to_owned())
            })),
            Err(EvalError::OutOfBudget) if before < PER_CALL_LIMIT => Err(
                "messageExpression evaluation failed due to running out of cost budget, \
                 no further validation rules will be run"
                    .to_owned(),
            ),
            Err(EvalError::OutOfBudget) => Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for \
                 messageExpression: {}",
                go_quote(&rule.message_expression)
            )),
            Err(EvalError::Failed(_)) => Ok(None),
        }
    }
}

/// The value and node that a rule runs on.
#[derive(Clone, Copy)]
struct Scene<'a> {
    node: &'a Node,
    value: &'a Value,
    old: Option<&'a Value>,
    decl: &'a DeclType,
    before: Before<'a>,
}

impl<'a> Scene<'a> {
    fn variables(&self, optional_old: bool) -> Variables<'a> {
        let mut variables = Variables::new().bind("self", Val::of(self.value, self.decl));
        let old = self.old.map(|old| Val::of(old, self.decl));
        match (old, optional_old) {
            (Some(old), false) => variables.set("oldSelf", old),
            (Some(old), true) => variables.set("oldSelf", old.map(Val::some)),
            (None, true) => variables.set("oldSelf", Val::Optional(None)),
            (None, false) => {}
        }
        variables
    }
}

/// Returns whether expressions can read values of this schema.
fn is_visible(node: &Node) -> bool {
    if node.has(Flags::INT_OR_STRING) {
        return true;
    }
    match node.kind {
        Kind::Any => false,
        Kind::Array => node.items.as_deref().is_some_and(is_visible),
        Kind::Object => node.additional().is_none_or(is_visible),
        _ => true,
    }
}

fn whole(node: &Node, path: FieldPath, detail: String) -> FieldError {
    FieldError::invalid(path, node.kind.name(), detail)
}
