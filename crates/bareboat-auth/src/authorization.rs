//! `AuthorizationConfiguration`: which authorizers are asked, in which order, and about which requests.

mod conditions;

pub use conditions::{MatchConditions, Matched};

use crate::strict::{ConfigurationError, Fields, Findings, document};
use bareboat_api::names::dns1123_subdomain;
use bareboat_api::{FieldError, FieldPath};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The supported types of authorizers.
const TYPES: [&str; 4] = ["AlwaysAllow", "AlwaysDeny", "RBAC", "Webhook"];
/// The maximum timeout of a webhook.
const LONGEST: Duration = Duration::from_secs(30);

/// The content of an authorization configuration file, validated and compiled.
#[derive(Debug, Default)]
pub struct AuthorizationConfiguration {
    /// The authorizers, in the order they are asked.
    pub authorizers: Vec<AuthorizerConfiguration>,
}

/// One authorizer of the list.
#[derive(Debug)]
pub struct AuthorizerConfiguration {
    /// The name of the authorizer, for metrics and logs.
    pub name: String,
    /// The type of the authorizer, with its settings.
    pub kind: AuthorizerKind,
}

/// The type of an authorizer.
#[derive(Debug)]
pub enum AuthorizerKind {
    /// Roles and bindings decide.
    Rbac,
    /// Everything is allowed.
    AlwaysAllow,
    /// Nothing is allowed.
    AlwaysDeny,
    /// Another server decides.
    Webhook(Box<WebhookConfiguration>),
}

/// The settings of an authorization webhook.
#[derive(Debug)]
pub struct WebhookConfiguration {
    /// The timeout of a request to the webhook.
    pub timeout: Duration,
    /// How long answers that allow a request are cached; `None` does not cache them.
    pub authorized_ttl: Option<Duration>,
    /// How long other answers are cached; `None` does not cache them.
    pub unauthorized_ttl: Option<Duration>,
    /// What happens if the webhook fails.
    pub failure_policy: FailurePolicy,
    /// The kubeconfig file with the address and the credentials of the webhook.
    pub kubeconfig: PathBuf,
    /// Only requests for which all conditions are true are sent to the webhook.
    pub conditions: MatchConditions,
}

impl WebhookConfiguration {
    /// Asks the server of a kubeconfig about everything, as `--authorization-webhook-config-file` of kube-apiserver does.
    pub fn of_file(kubeconfig: &Path) -> WebhookConfiguration {
        WebhookConfiguration {
            timeout: LONGEST,
            authorized_ttl: Some(Duration::from_secs(300)),
            unauthorized_ttl: Some(Duration::from_secs(30)),
            failure_policy: FailurePolicy::NoOpinion,
            kubeconfig: kubeconfig.to_owned(),
            conditions: MatchConditions::default(),
        }
    }
}

/// What happens if a webhook fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The next authorizer decides.
    NoOpinion,
    /// The request is refused.
    Deny,
}

impl AuthorizationConfiguration {
    /// Reads a file (YAML or JSON).
    pub fn parse(text: &str) -> Result<AuthorizationConfiguration, ConfigurationError> {
        let value = document(text, "AuthorizationConfiguration", &["v1", "v1beta1"])?;
        let mut findings = Findings::default();
        let known = ["apiVersion", "kind", "authorizers"];
        let root = findings.object(Some(&value), &FieldPath::root(), &known);
        let items = root.list("authorizers", &mut findings);
        if items.is_empty() && findings.is_empty() {
            findings.add(FieldError::required(
                FieldPath::new("authorizers"),
                "at least one authorization mode must be defined",
            ));
        }
        let (mut types, mut names) = (HashSet::new(), HashSet::new());
        let mut authorizers = Vec::new();
        for (path, item) in items {
            let fields = findings.object(Some(item), &path, &["type", "name", "webhook"]);
            let kind = fields.text("type", &mut findings);
            let name = fields.text("name", &mut findings);
            let place = path.child("type");
            if kind.is_empty() {
                findings.add(FieldError::required(place, ""));
                continue;
            }
            if !TYPES.contains(&kind.as_str()) {
                findings.add(FieldError::not_supported(place, kind.as_str(), TYPES));
                continue;
            }
            if !types.insert(kind.clone()) && kind != "Webhook" {
                findings.add(FieldError::duplicate(place, kind.as_str()));
                continue;
            }
            check_name(&name, path.child("name"), &mut names, &mut findings);
            if let Some(kind) = read_kind(&kind, &fields, &mut findings) {
                authorizers.push(AuthorizerConfiguration { name, kind });
            }
        }
        findings.finish(AuthorizationConfiguration { authorizers })
    }
}

fn check_name(name: &str, place: FieldPath, names: &mut HashSet<String>, findings: &mut Findings) {
    if name.is_empty() {
        findings.add(FieldError::required(place, ""));
    } else if !names.insert(name.to_owned()) {
        findings.add(FieldError::duplicate(place, name));
    } else {
        let wrong = dns1123_subdomain(name);
        if !wrong.is_empty() {
            let why = format!("authorizer name is invalid: {}", wrong.join(", "));
            findings.add(FieldError::invalid(place, name, why));
        }
    }
}

fn read_kind(kind: &str, fields: &Fields<'_>, findings: &mut Findings) -> Option<AuthorizerKind> {
    let place = fields.at("webhook");
    if kind == "Webhook" {
        if fields.get("webhook").is_none() {
            findings.add(FieldError::required(place, "required when type=Webhook"));
            return None;
        }
        return webhook(fields, findings).map(|it| AuthorizerKind::Webhook(Box::new(it)));
    }
    if fields.get("webhook").is_some() {
        let why = "may only be specified when type=Webhook";
        findings.add(FieldError::invalid(place, "non-null", why));
    }
    Some(match kind {
        "AlwaysAllow" => AuthorizerKind::AlwaysAllow,
        "AlwaysDeny" => AuthorizerKind::AlwaysDeny,
        _ => AuthorizerKind::Rbac,
    })
}

fn webhook(fields: &Fields<'_>, findings: &mut Findings) -> Option<WebhookConfiguration> {
    let known = [
        "timeout",
        "authorizedTTL",
        "cacheAuthorizedRequests",
        "unauthorizedTTL",
        "cacheUnauthorizedRequests",
        "subjectAccessReviewVersion",
        "matchConditionSubjectAccessReviewVersion",
        "failurePolicy",
        "connectionInfo",
        "matchConditions",
    ];
    let hook = findings.object(fields.get("webhook"), &fields.at("webhook"), &known);
    let path = fields.path.clone();
    let timeout = duration(&hook, "timeout", &path, findings);
    match timeout {
        None => findings.add(FieldError::required(path.child("timeout"), "")),
        Some(time) if time > LONGEST => {
            let text = hook.text("timeout", findings);
            let why = "must be > 0s and <= 30s";
            findings.add(FieldError::invalid(
                path.child("timeout"),
                text.as_str(),
                why,
            ));
        }
        Some(_) => {}
    }
    let authorized = duration(&hook, "authorizedTTL", &path, findings);
    let unauthorized = duration(&hook, "unauthorizedTTL", &path, findings);
    let keep_authorized = hook.flag("cacheAuthorizedRequests", findings);
    let keep_unauthorized = hook.flag("cacheUnauthorizedRequests", findings);
    one_of(
        &hook,
        "subjectAccessReviewVersion",
        &["v1"],
        &path,
        findings,
    );
    let conditions = conditions::read(&hook, &path, findings);
    let version = "matchConditionSubjectAccessReviewVersion";
    if hook.get(version).is_some() {
        one_of(&hook, version, &["v1"], &path, findings);
    } else if !conditions.is_empty() {
        let why = "required if match conditions are specified";
        findings.add(FieldError::required(path.child(version), why));
    }
    let policies = ["NoOpinion", "Deny"];
    let policy = one_of(&hook, "failurePolicy", &policies, &path, findings);
    let kubeconfig = connection(&hook, &path, findings);
    let minutes = |given: Option<Duration>, seconds| given.unwrap_or(Duration::from_secs(seconds));
    Some(WebhookConfiguration {
        timeout: timeout?,
        authorized_ttl: (keep_authorized != Some(false)).then(|| minutes(authorized, 300)),
        unauthorized_ttl: (keep_unauthorized != Some(false)).then(|| minutes(unauthorized, 30)),
        failure_policy: match policy.as_str() {
            "Deny" => FailurePolicy::Deny,
            _ => FailurePolicy::NoOpinion,
        },
        kubeconfig: kubeconfig?,
        conditions,
    })
}

/// Reads a duration such as `3s`; `None` if it is absent or zero.
fn duration(
    hook: &Fields<'_>,
    key: &str,
    path: &FieldPath,
    findings: &mut Findings,
) -> Option<Duration> {
    let text = hook.text_or_none(key, findings)?;
    let place = path.child(key);
    let Ok(nanoseconds) = bareboat_api::time::parse_duration(&text) else {
        let why = "must be a duration like 3s or 5m";
        findings.add(FieldError::invalid(place, text.as_str(), why));
        return None;
    };
    match u64::try_from(nanoseconds) {
        Ok(0) => None,
        Ok(nanoseconds) => Some(Duration::from_nanos(nanoseconds)),
        Err(_) => {
            findings.add(FieldError::invalid(place, text.as_str(), "must be > 0s"));
            // Otherwise the invalid value would also be reported as absent.
            Some(Duration::from_secs(1))
        }
    }
}

/// Reads a text that must be one of the known ones.
fn one_of(
    hook: &Fields<'_>,
    key: &str,
    allowed: &[&str],
    path: &FieldPath,
    findings: &mut Findings,
) -> String {
    let text = hook.text(key, findings);
    let place = path.child(key);
    if text.is_empty() {
        findings.add(FieldError::required(place, ""));
    } else if !allowed.contains(&text.as_str()) {
        findings.add(FieldError::not_supported(place, text.as_str(), allowed));
    }
    text
}

fn connection(hook: &Fields<'_>, path: &FieldPath, findings: &mut Findings) -> Option<PathBuf> {
    let place = path.child("connectionInfo");
    let known = ["type", "kubeConfigFile"];
    let info = findings.object(hook.get("connectionInfo"), &place, &known);
    one_of(&info, "type", &["KubeConfigFile"], &place, findings);
    let file = info.text("kubeConfigFile", findings);
    let place = place.child("kubeConfigFile");
    if file.is_empty() {
        findings.add(FieldError::required(place, ""));
    } else if !Path::new(&file).is_absolute() {
        let why = "must be an absolute path";
        findings.add(FieldError::invalid(place, file.as_str(), why));
    } else {
        return Some(PathBuf::from(file));
    }
    None
}

#[cfg(test)]
mod tests;
