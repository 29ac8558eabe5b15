//! Type checking: the warnings of a ValidatingAdmissionPolicy's `status.typeChecking`.

use bareboat_api::{Object, Str, Value};
use bareboat_cel::{AdmissionEnv, DeclType};
use std::sync::Arc;

/// The maximum number of kinds that a policy is checked for.
pub const MAX_CHECKED_KINDS: usize = 10;

/// A kind that a policy matches, and the type of its objects.
#[derive(Clone, Debug)]
pub struct CheckedKind {
    /// The group, version and kind, which order the warnings.
    pub gvk: (Str, Str, Str),
    /// The type of its objects.
    pub decl: Arc<DeclType>,
}

/// A warning about an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionWarning {
    /// The path of the expression in the policy.
    pub field_ref: String,
    /// The errors, by kind.
    pub warning: String,
}

/// Returns group, version and resource of the rules that name concrete resources, in the order in which they are
/// looked up. Rules with wildcards, and subresources, are not checked.
pub fn rules_to_check(policy: &Object) -> Vec<(Str, Str, Str)> {
    let rules = policy.at(&["spec", "matchConstraints", "resourceRules"]);
    let mut found = Vec::new();
    for rule in rules.and_then(Value::as_array).unwrap_or_default() {
        let texts = |member: &str| {
            let list = rule.get(member).and_then(Value::as_array);
            let list = list.unwrap_or_default().iter();
            let mut texts: Vec<&str> = list.filter_map(Value::as_str).collect();
            texts.sort_unstable();
            texts
        };
        let (groups, versions) = (texts("apiGroups"), texts("apiVersions"));
        let wild = |texts: &[&str]| texts.iter().any(|text| text.contains('*'));
        if wild(&groups) || wild(&versions) {
            continue;
        }
        for group in &groups {
            for version in &versions {
                for resource in texts("resources") {
                    if !resource.contains(['*', '/']) {
                        found.push((Str::new(group), Str::new(version), Str::new(resource)));
                    }
                }
            }
        }
    }
    found
}

/// Checks the validations of a policy and their messages against the types of the kinds it matches.
pub fn check_types(
    policy: &Object,
    mut kinds: Vec<CheckedKind>,
    params: Option<Arc<DeclType>>,
) -> Vec<ExpressionWarning> {
    kinds.sort_by(|a, b| a.gvk.cmp(&b.gvk));
    kinds.dedup_by(|a, b| a.gvk == b.gvk);
    kinds.truncate(MAX_CHECKED_KINDS);
    let spec = policy.get("spec").unwrap_or(&Value::Null);
    let list = |member: &str| {
        spec.get(member)
            .and_then(Value::as_array)
            .unwrap_or_default()
    };
    let has_params = spec.get("paramKind").is_some_and(|kind| !kind.is_null());
    let environments: Vec<(String, AdmissionEnv)> = kinds
        .into_iter()
        .map(|kind| {
            let (group, version, name) = &kind.gvk;
            let mut env = AdmissionEnv::new(has_params).composed();
            env = env.with_types(Some(kind.decl), params.clone());
            for variable in list("variables") {
                env.define_checked(text(variable, "name"), text(variable, "expression"));
            }
            (format!("{group}/{version}, Kind={name}"), env)
        })
        .collect();
    let mut warnings = Vec::new();
    for (index, validation) in list("validations").iter().enumerate() {
        for member in ["expression", "messageExpression"] {
            let expression = text(validation, member);
            if expression.is_empty() {
                continue;
            }
            let problems = environments.iter().filter_map(|(kind, env)| {
                let issues = env.check(expression).err()?;
                Some(format!("{kind}: {issues}\n"))
            });
            let problems: Vec<String> = problems.collect();
            if !problems.is_empty() {
                warnings.push(ExpressionWarning {
                    field_ref: format!("spec.validations[{index}].{member}"),
                    warning: problems.join("\n"),
                });
            }
        }
    }
    warnings
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    let text = value.get(member).and_then(Value::as_str);
    text.unwrap_or_default()
}
