//! How claims become a user: the sections `claimMappings`, `claimValidationRules` and `userValidationRules`.

use crate::expressions::{CLAIMS, Expression, Gives, USER, Variable};
use crate::strict::{Fields, Findings};
use bareboat_api::names::{dns1123_subdomain, is_dns1123_subdomain};
use bareboat_api::{FieldError, FieldPath, Value};
use std::collections::HashSet;

const BOTH: &str = "claim and expression can't both be set";
const EMAIL: &str = "claims.email_verified must be used in claimMappings.username.expression or \
    claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in \
    claimMappings.username.expression";

/// Where a part of a user comes from.
#[derive(Debug)]
pub(crate) enum Mapping {
    /// A claim with a prefix.
    Claim { name: String, prefix: String },
    /// An expression over the claims.
    Expression(Expression),
}

impl Mapping {
    /// Returns whether the configuration itself contains names that begin with `system:`.
    pub(crate) fn may_be_system(&self) -> bool {
        match self {
            Mapping::Claim { prefix, .. } => prefix.starts_with("system:"),
            Mapping::Expression(expression) => expression.source().contains("system:"),
        }
    }
}

/// A validation rule for the claims of a token or for the mapped user.
#[derive(Debug)]
pub(crate) enum Rule {
    /// A claim has this value.
    Claim { name: String, value: String },
    /// An expression is true.
    Expression {
        expression: Expression,
        message: String,
    },
}

/// The rules and mappings of one issuer, compiled.
#[derive(Debug)]
pub(crate) struct Mappings {
    pub(crate) claim_rules: Vec<Rule>,
    pub(crate) username: Mapping,
    pub(crate) groups: Option<Mapping>,
    pub(crate) uid: Option<Mapping>,
    pub(crate) extra: Vec<(String, Expression)>,
    pub(crate) user_rules: Vec<Rule>,
}

/// Reads the three sections of one issuer.
pub(crate) fn read(issuer: &Fields<'_>, findings: &mut Findings) -> Option<Mappings> {
    let claim_rules = claim_rules(issuer, findings);
    let known = ["username", "groups", "uid", "extra"];
    let path = issuer.at("claimMappings");
    let fields = findings.object(issuer.get("claimMappings"), &path, &known);
    let username = prefixed(&fields, "username", true, findings);
    let groups = prefixed(&fields, "groups", false, findings);
    let uid = uid(&fields, findings);
    let extra = extra(&fields, findings);
    if let Some(Mapping::Expression(name)) = &username
        && name.reads("email")
    {
        let rules = claim_rules.iter().filter_map(|rule| match rule {
            Rule::Expression { expression, .. } => Some(expression),
            Rule::Claim { .. } => None,
        });
        let mut all = rules
            .chain(extra.iter().map(|(_, value)| value))
            .chain([name]);
        if !all.any(|expression| expression.reads("email_verified")) {
            let place = path.child("username").child("expression");
            findings.add(FieldError::invalid(place, name.source(), EMAIL));
        }
    }
    let user_rules = user_rules(issuer, findings);
    Some(Mappings {
        claim_rules,
        username: username?,
        groups,
        uid,
        extra,
        user_rules,
    })
}

fn compile(
    source: &str,
    variable: &'static Variable,
    gives: Gives,
    path: FieldPath,
    findings: &mut Findings,
) -> Option<Expression> {
    match Expression::compile(source, variable, gives) {
        Ok(expression) => Some(expression),
        Err(why) => {
            findings.add(FieldError::invalid(path, source, why));
            None
        }
    }
}

fn prefixed(
    fields: &Fields<'_>,
    key: &str,
    required: bool,
    findings: &mut Findings,
) -> Option<Mapping> {
    let path = fields.at(key);
    let known = ["claim", "prefix", "expression"];
    let mapping = findings.object(fields.get(key), &path, &known);
    let claim = mapping.text("claim", findings);
    let prefix = mapping.text_or_none("prefix", findings);
    let expression = mapping.text("expression", findings);
    match (claim.is_empty(), expression.is_empty()) {
        (false, false) => findings.add(FieldError::invalid(path, "", BOTH)),
        (true, true) if required => {
            findings.add(FieldError::required(path, "claim or expression is required"));
        }
        (true, true) => {}
        (true, false) => {
            if let Some(prefix) = prefix {
                findings.add(FieldError::invalid(
                    path.child("prefix"),
                    prefix.as_str(),
                    "may not be specified when expression is set",
                ));
            }
            let place = path.child("expression");
            return compile(&expression, &CLAIMS, Gives::Anything, place, findings)
                .map(Mapping::Expression);
        }
        (false, true) => match prefix {
            Some(prefix) => {
                return Some(Mapping::Claim {
                    name: claim,
                    prefix,
                });
            }
            None => findings.add(FieldError::required(
                path.child("prefix"),
                "prefix is required when claim is set. It can be set to an empty string to disable prefixing",
            )),
        },
    }
    None
}

fn uid(fields: &Fields<'_>, findings: &mut Findings) -> Option<Mapping> {
    let path = fields.at("uid");
    let mapping = findings.object(fields.get("uid"), &path, &["claim", "expression"]);
    let claim = mapping.text("claim", findings);
    let expression = mapping.text("expression", findings);
    match (claim.is_empty(), expression.is_empty()) {
        (false, false) => {
            findings.add(FieldError::invalid(path, "", BOTH));
            None
        }
        (true, true) => None,
        (false, true) => Some(Mapping::Claim {
            name: claim,
            prefix: String::new(),
        }),
        (true, false) => {
            let place = path.child("expression");
            compile(&expression, &CLAIMS, Gives::Anything, place, findings).map(Mapping::Expression)
        }
    }
}

fn extra(fields: &Fields<'_>, findings: &mut Findings) -> Vec<(String, Expression)> {
    let mut seen = HashSet::new();
    let mut extra = Vec::new();
    for (path, item) in fields.list("extra", findings) {
        let mapping = findings.object(Some(item), &path, &["key", "valueExpression"]);
        let key = mapping.text("key", findings);
        let expression = mapping.text("valueExpression", findings);
        let place = path.child("key");
        for why in domain_prefixed_path(&key) {
            findings.add(match key.is_empty() {
                true => FieldError::required(place.clone(), ""),
                false => FieldError::invalid(place.clone(), key.as_str(), why),
            });
        }
        if key != key.to_lowercase() {
            findings.add(FieldError::invalid(
                place.clone(),
                key.as_str(),
                "must be lowercase",
            ));
        }
        if is_reserved(&key) {
            findings.add(FieldError::invalid(
                place.clone(),
                key.as_str(),
                "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use",
            ));
        }
        if !seen.insert(key.clone()) {
            findings.add(FieldError::duplicate(place, key.as_str()));
            continue;
        }
        let place = path.child("valueExpression");
        if expression.is_empty() {
            findings.add(FieldError::required(place, ""));
            continue;
        }
        let compiled = compile(&expression, &CLAIMS, Gives::Anything, place, findings);
        extra.extend(compiled.map(|compiled| (key, compiled)));
    }
    extra
}

/// Returns whether a key is in a domain of Kubernetes.
fn is_reserved(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    ["kubernetes.io", "k8s.io"].iter().any(|reserved| {
        domain
            .strip_suffix(reserved)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

/// Returns what is wrong with a name such as `example.org/foo`; empty if it is valid.
fn domain_prefixed_path(key: &str) -> Vec<String> {
    let odd = || vec!["must be a domain-prefixed path (such as \"acme.io/foo\")".to_owned()];
    let Some((domain, rest)) = key.split_once('/') else {
        return odd();
    };
    if domain.is_empty() || rest.is_empty() {
        return odd();
    }
    if !is_dns1123_subdomain(domain) {
        return dns1123_subdomain(domain);
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@%/".contains(c);
    match rest.chars().all(allowed) {
        true => Vec::new(),
        false => vec!["Invalid path (characters that are not allowed in URLs)".to_owned()],
    }
}

fn claim_rules(issuer: &Fields<'_>, findings: &mut Findings) -> Vec<Rule> {
    let (mut claims, mut expressions) = (HashSet::new(), HashSet::new());
    let mut rules = Vec::new();
    for (path, item) in issuer.list("claimValidationRules", findings) {
        let known = ["claim", "requiredValue", "expression", "message"];
        let rule = findings.object(Some(item), &path, &known);
        let [claim, value, expression, message] = known.map(|key| rule.text(key, findings));
        match (claim.is_empty(), expression.is_empty()) {
            (false, false) => findings.add(FieldError::invalid(path, claim.as_str(), BOTH)),
            (true, true) => {
                findings.add(FieldError::required(
                    path,
                    "claim or expression is required",
                ));
            }
            (false, true) => {
                refuse(
                    &path,
                    "message",
                    &message,
                    "may not be specified when claim is set",
                    findings,
                );
                if !claims.insert(claim.clone()) {
                    let place = path.child("claim");
                    findings.add(FieldError::duplicate(place, claim.as_str()));
                }
                rules.push(Rule::Claim { name: claim, value });
            }
            (true, false) => {
                let why = "may not be specified when expression is set";
                refuse(&path, "requiredValue", &value, why, findings);
                let rule = condition(
                    &path,
                    &expression,
                    message,
                    &CLAIMS,
                    &mut expressions,
                    findings,
                );
                rules.extend(rule);
            }
        }
    }
    rules
}

fn refuse(path: &FieldPath, key: &str, value: &str, why: &str, findings: &mut Findings) {
    if !value.is_empty() {
        findings.add(FieldError::invalid(path.child(key), value, why));
    }
}

fn condition(
    path: &FieldPath,
    source: &str,
    message: String,
    variable: &'static Variable,
    seen: &mut HashSet<String>,
    findings: &mut Findings,
) -> Option<Rule> {
    let place = path.child("expression");
    if !seen.insert(source.to_owned()) {
        findings.add(FieldError::duplicate(place, source));
        return None;
    }
    let expression = compile(source, variable, Gives::Bool, place, findings)?;
    Some(Rule::Expression {
        expression,
        message,
    })
}

fn user_rules(issuer: &Fields<'_>, findings: &mut Findings) -> Vec<Rule> {
    let mut seen = HashSet::new();
    let mut rules = Vec::new();
    for (path, item) in issuer.list("userValidationRules", findings) {
        let rule = findings.object(Some(item), &path, &["expression", "message"]);
        let expression = rule.text("expression", findings);
        let message = rule.text("message", findings);
        if expression.is_empty() {
            findings.add(FieldError::required(path.child("expression"), ""));
            continue;
        }
        rules.extend(condition(
            &path,
            &expression,
            message,
            &USER,
            &mut seen,
            findings,
        ));
    }
    rules
}

impl Rule {
    /// Checks claims or a user; the error is for the log and for TokenReviews.
    pub(crate) fn check(&self, data: &Value) -> Result<(), String> {
        match self {
            Rule::Claim { name, value } => match data.get(name) {
                None => Err(format!("claim {name} not present")),
                Some(found) if found.as_str() == Some(value.as_str()) => Ok(()),
                Some(_) => Err(format!("claim {name} does not have the required value")),
            },
            Rule::Expression {
                expression,
                message,
            } => match expression.holds(data)? {
                true => Ok(()),
                false if message.is_empty() => Err(format!(
                    "validation expression '{}' failed",
                    expression.source()
                )),
                false => Err(format!(
                    "validation expression '{}' failed: {message}",
                    expression.source()
                )),
            },
        }
    }
}
