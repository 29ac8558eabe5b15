//! Validation of a definition's rules: they must compile, have the right types and be cheap enough.
//!
//! Upstream: apiextensions pkg/apis/apiextensions/validation, cel_validation.go.

use crate::rules::{Rule, Wanted, check_expression, declare};
use crate::schema::{Additional, Flags, Kind, Node};
use bareboat_api::{FieldError, FieldErrors, FieldPath, Map, Value, interrupt};
use bareboat_cel::{DeclType, estimate_cost};

/// The cost limit of one expression, over all values it runs on.
const EXPRESSION_LIMIT: u64 = 10_000_000;
/// The cost limit of all expressions of a schema together.
const SCHEMA_LIMIT: u64 = 100_000_000;

/// How often values of a schema node can occur in an object.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scope {
    /// `None` when some list or map above has no bound.
    cardinality: Option<u64>,
    resource: bool,
}

impl Scope {
    /// Returns the scope of the object itself, which occurs once.
    pub(super) fn root() -> Scope {
        Scope {
            cardinality: Some(1),
            resource: true,
        }
    }

    /// Returns the scope of a node directly below a parent.
    pub(super) fn below(self, parent: Option<&Node>, node: Option<&Node>) -> Scope {
        let factor = parent.and_then(max_elements);
        Scope {
            cardinality: match (self.cardinality, factor) {
                (Some(count), Some(factor)) => Some(count.saturating_mul(factor)),
                _ => None,
            },
            resource: node.is_some_and(|node| node.has(Flags::EMBEDDED)),
        }
    }
}

/// Returns the maximum number of values below a node.
fn max_elements(node: &Node) -> Option<u64> {
    let checks = node.checks.as_deref();
    let bound = |limit: Option<i64>| limit.map(|limit| limit.max(0) as u64);
    match node.kind {
        Kind::Object if !matches!(node.additional, Additional::Absent) => {
            bound(checks?.max_properties)
        }
        Kind::Array => bound(checks?.max_items),
        _ => Some(1),
    }
}

/// The maximum number of schemas in the types of all rules of a schema. Each rule sees everything
/// below it, so rules at many levels multiply.
const MAX_DECLARED: u64 = 500_000;

/// Checks expressions and sums up their costs.
pub(super) struct Expressions {
    /// Whether each expression has its own cost limit.
    limit_each: bool,
    total: u64,
    /// The number of schemas in the types of `self` so far.
    declared: u64,
    /// The most expensive rules, in descending order.
    dearest: Vec<(u64, FieldPath)>,
}

impl Expressions {
    pub(super) fn new(limit_each: bool) -> Expressions {
        Expressions {
            limit_each,
            total: 0,
            declared: 0,
            dearest: Vec::new(),
        }
    }

    /// Checks the rules of a node.
    pub(super) fn check(
        &mut self,
        node: &Node,
        scope: Scope,
        path: &FieldPath,
        uncorrelatable: Option<&FieldPath>,
    ) -> Vec<FieldError> {
        let Some(rules) = &node.rules else {
            return Vec::new();
        };
        self.declared += u64::from(node.size);
        if self.limit_each && self.declared > MAX_DECLARED {
            let detail = format!(
                "rules of this schema stand above too many others: the types of their values have \
                 more than {MAX_DECLARED} parts"
            );
            return vec![FieldError::forbidden(path.clone(), detail)];
        }
        let Some(decl) = declare(node, scope.resource) else {
            return vec![FieldError::internal(
                path.clone(),
                "internal error: failed to construct type information for \
                 x-kubernetes-validations rules: unable to convert structural schema to CEL \
                 declarations",
            )];
        };
        let mut errors = FieldErrors::default();
        for (index, rule) in rules.list.iter().enumerate() {
            if interrupt::requested() {
                break;
            }
            if rule.rule.trim().is_empty() {
                continue;
            }
            self.rule(
                rule,
                &decl,
                scope,
                &path.index(index),
                uncorrelatable,
                &mut errors,
            );
        }
        errors.into_list()
    }

    fn rule(
        &mut self,
        rule: &Rule,
        decl: &DeclType,
        scope: Scope,
        path: &FieldPath,
        uncorrelatable: Option<&FieldPath>,
        errors: &mut FieldErrors,
    ) {
        let at = path.child("rule");
        let (env, checked) = match check_expression(decl, rule, &rule.rule, Wanted::Truth) {
            Ok(compiled) => compiled,
            Err(problem) => {
                errors.push(FieldError::invalid(at, shown(rule), problem));
                return;
            }
        };
        if let Err(error) = env.program(&checked) {
            let detail = format!("program instantiation failed: {error}");
            errors.push(FieldError::invalid(at, shown(rule), detail));
            return;
        }
        let times = scope.cardinality.unwrap_or_else(|| decl.max_cardinality());
        let cost = estimate_cost(&env, &checked, decl)
            .max
            .saturating_mul(times);
        self.observe("estimated rule cost", cost, &at, errors);
        self.message(rule, decl, path, errors);
        if checked.uses("oldSelf") {
            if let Some(place) = uncorrelatable {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within \
                     {place}"
                );
                errors.push(FieldError::invalid(at, rule.rule.clone(), detail));
            }
        } else if let Some(given) = rule.optional_old_self {
            errors.push(FieldError::invalid(
                path.child("optionalOldSelf"),
                given,
                "may not be set if oldSelf is not used in rule",
            ));
        }
    }

    fn message(
        &mut self,
        rule: &Rule,
        decl: &DeclType,
        path: &FieldPath,
        errors: &mut FieldErrors,
    ) {
        if rule.message_expression.is_empty() {
            return;
        }
        let at = path.child("messageExpression");
        let text = &rule.message_expression;
        match check_expression(decl, rule, text, Wanted::Message) {
            Err(problem) => errors.push(FieldError::invalid(at, shown(rule), problem)),
            Ok((env, checked)) => {
                let cost = estimate_cost(&env, &checked, decl).max;
                self.observe("estimated messageExpression cost", cost, &at, errors);
            }
        }
    }

    fn observe(&mut self, what: &str, cost: u64, at: &FieldPath, errors: &mut FieldErrors) {
        if self.limit_each && cost > EXPRESSION_LIMIT {
            let detail = too_expensive(what, cost, EXPRESSION_LIMIT);
            errors.push(FieldError::forbidden(at.clone(), detail));
        }
        self.total = self.total.saturating_add(cost);
        // Rules below a hundredth of the limit are not named in the error.
        if cost >= SCHEMA_LIMIT / 100 {
            self.dearest.push((cost, at.clone()));
            self.dearest
                .sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.dearest.truncate(4);
        }
    }

    /// Checks the total cost of all expressions.
    pub(super) fn check_total(&self, path: &FieldPath, errors: &mut FieldErrors) {
        if self.total <= SCHEMA_LIMIT {
            return;
        }
        for (_, at) in &self.dearest {
            errors.push(FieldError::forbidden(
                at.clone(),
                "contributed to estimated rule cost total exceeding cost limit for entire \
                 OpenAPIv3 schema",
            ));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let detail = too_expensive(what, self.total, SCHEMA_LIMIT);
        errors.push(FieldError::forbidden(path.clone(), detail));
    }
}

fn too_expensive(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding \
         maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

/// Returns the rule as shown in an error.
fn shown(rule: &Rule) -> Value {
    let mut map = Map::new();
    for (key, text) in [
        ("rule", &rule.rule),
        ("message", &rule.message),
        ("messageExpression", &rule.message_expression),
        ("reason", &rule.reason),
        ("fieldPath", &rule.field_path),
    ] {
        if !text.is_empty() {
            map.insert(key, Value::String(text.clone()));
        }
    }
    Value::Object(map)
}
