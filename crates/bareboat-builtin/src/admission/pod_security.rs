//! PodSecurity: pods must fit the policy in the labels of their namespace.
//!
//! Pods that violate it are refused; templates of pods cause warnings and audit annotations only. The policies of
//! namespaces are kept here and change with them, so a namespace without labels costs a look into a map.
// Upstream: k8s.io/pod-security-admission.

mod checks;
mod configuration;
mod evaluate;
mod existing;
mod pod;
mod policy;

pub use configuration::{PodSecurityConfiguration, PodSecurityConfigurationError};
pub use evaluate::Violations;
pub use policy::{Level, LevelVersion, Version};

use super::refuse;
use crate::reach::Reach as _;
use bareboat_api::admission::{Lookup, Operation, Review, Validator, decided};
use bareboat_api::kind::BoxFuture;
use bareboat_api::status::GroupResource;
use bareboat_api::{FieldError, Object, Status, Value};
use policy::{PREFIX, Policy};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The minor version of Kubernetes that this server is like.
const CURRENT: u32 = 36;

/// Subresources of pods that do not write the spec. All others are checked, so that a new one is.
const HARMLESS: [&str; 8] = [
    "exec",
    "attach",
    "binding",
    "eviction",
    "log",
    "portforward",
    "proxy",
    "status",
];

/// Counts evaluations; the arrays are values of metric labels.
///
/// ```
/// # mod bareboat { pub mod builtin { pub use bareboat_builtin::*; } }
/// use bareboat::builtin::admission::PodSecurityMeter;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// /// Counts what was refused, and nothing else.
/// #[derive(Default)]
/// struct Refused(AtomicUsize);
///
/// impl PodSecurityMeter for Refused {
///     fn evaluated(&self, [decision, _, _, mode, ..]: [&str; 7]) {
///         if decision == "deny" && mode == "enforce" {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
///
///     fn exempted(&self, _: [&str; 3]) {}
///
///     fn failed(&self, _: [&str; 4]) {}
/// }
/// ```
pub trait PodSecurityMeter: Send + Sync {
    /// A policy was evaluated: decision, level, version, mode, operation, resource, subresource.
    fn evaluated(&self, labels: [&str; 7]);
    /// A request was exempt: operation, resource, subresource.
    fn exempted(&self, labels: [&str; 3]);
    /// A policy could not be read: whether that was fatal, operation, resource, subresource.
    fn failed(&self, labels: [&str; 4]);
}

/// The policy of a namespace with labels.
struct Labelled {
    policy: Policy,
    /// The problems in the labels, if any.
    wrong: Option<String>,
}

/// Checks pods, templates of pods and the labels of namespaces.
#[derive(Clone)]
pub struct PodSecurity(Arc<Inner>);

bareboat_api::opaque_debug!(PodSecurity);

struct Inner {
    configuration: PodSecurityConfiguration,
    meter: Arc<dyn PodSecurityMeter>,
    /// The namespaces that have labels of policies.
    labelled: RwLock<HashMap<Box<str>, Arc<Labelled>>>,
}

/// The kind of a checked object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    Namespace,
    Pod,
    /// An object with a template of pods at this path.
    Template(&'static [&'static str]),
}

impl Subject {
    fn of(group: &str, plural: &str) -> Option<Subject> {
        const IN_SPEC: Subject = Subject::Template(&["spec", "template"]);
        Some(match (group, plural) {
            ("", "pods") => Subject::Pod,
            ("", "namespaces") => Subject::Namespace,
            ("", "podtemplates") => Subject::Template(&["template"]),
            ("", "replicationcontrollers") => IN_SPEC,
            ("apps", "replicasets" | "deployments" | "statefulsets" | "daemonsets") => IN_SPEC,
            ("batch", "jobs") => IN_SPEC,
            ("batch", "cronjobs") => {
                Subject::Template(&["spec", "jobTemplate", "spec", "template"])
            }
            _ => return None,
        })
    }

    /// Returns the value of the metric label.
    fn name(self) -> &'static str {
        match self {
            Subject::Namespace => "namespace",
            Subject::Pod => "pod",
            Subject::Template(_) => "controller",
        }
    }
}

impl PodSecurity {
    /// A plug-in with a configuration. It learns of namespaces by [`PodSecurity::note`].
    pub fn new(
        configuration: PodSecurityConfiguration,
        meter: Arc<dyn PodSecurityMeter>,
    ) -> PodSecurity {
        PodSecurity(Arc::new(Inner {
            configuration,
            meter,
            labelled: RwLock::default(),
        }))
    }

    /// Takes the labels of a namespace; none for one that is gone.
    pub fn note<'a>(&self, namespace: &str, labels: impl Iterator<Item = (&'a str, &'a str)>) {
        let labels: Vec<_> = labels.filter(|(key, _)| key.starts_with(PREFIX)).collect();
        let known = self.0.labelled.read();
        let known = known.unwrap_or_else(PoisonError::into_inner);
        if labels.is_empty() && !known.contains_key(namespace) {
            return;
        }
        drop(known);
        let all = self.0.labelled.write();
        let mut all = all.unwrap_or_else(PoisonError::into_inner);
        if labels.is_empty() {
            all.remove(namespace);
            return;
        }
        let find = |name: &str| labels.iter().find(|(key, _)| *key == name).map(|it| it.1);
        let (policy, wrong) = Policy::of_labels(find, &self.0.configuration.defaults);
        let wrong = (!wrong.is_empty()).then(|| aggregate(&wrong));
        all.insert(namespace.into(), Arc::new(Labelled { policy, wrong }));
    }

    /// Forgets all namespaces.
    pub fn forget(&self) {
        let all = self.0.labelled.write();
        all.unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn labelled(&self, namespace: &str) -> Option<Arc<Labelled>> {
        let all = self.0.labelled.read();
        let all = all.unwrap_or_else(PoisonError::into_inner);
        all.get(namespace).cloned()
    }

    async fn check(
        &self,
        subject: Subject,
        review: &mut Review<'_>,
        lookup: &dyn Lookup,
    ) -> Result<(), Status> {
        let sub = review.subresource;
        match subject {
            Subject::Namespace if sub.is_empty() => self.namespace(review, lookup).await,
            Subject::Pod if !HARMLESS.contains(&sub) => self.pods(subject, review),
            Subject::Template(_) if sub.is_empty() => self.pods(subject, review),
            _ => Ok(()),
        }
    }

    /// Checks a pod or a template of pods.
    fn pods(&self, subject: Subject, review: &mut Review<'_>) -> Result<(), Status> {
        let Inner {
            configuration,
            meter,
            ..
        } = &*self.0;
        let operation = operation(review);
        let place = [operation, subject.name(), review.subresource];
        let is_in = |list: &[String], name: &str| list.iter().any(|known| known == name);
        let exempt_as = if is_in(&configuration.namespaces, review.namespace) {
            Some("namespace")
        } else if is_in(&configuration.usernames, &review.user.name) {
            Some("user")
        } else {
            None
        };
        if let Some(reason) = exempt_as {
            meter.exempted(place);
            annotate(review, "exempt", reason);
            return Ok(());
        }
        let labelled = self.labelled(review.namespace);
        let (policy, wrong) = match &labelled {
            Some(labelled) => (labelled.policy, labelled.wrong.as_deref()),
            None => (configuration.defaults, None),
        };
        let enforces = subject == Subject::Pod;
        if wrong.is_none() {
            if enforces && policy.is_privileged() {
                let allowed = (true, LevelVersion::default(), "enforce");
                self.count(allowed, place);
                annotate(review, "enforce-policy", "privileged:latest");
                return Ok(());
            }
            if !enforces && policy.warn.level.max(policy.audit.level) == Level::Privileged {
                return Ok(());
            }
        }
        let Some(new) = review.object.as_deref() else {
            return Ok(());
        };
        if let (Subject::Pod, Operation::Update, Some(old)) =
            (subject, review.operation, review.old)
            && !is_significant(new, old)
        {
            return Ok(());
        }
        let pod = match subject {
            Subject::Template(path) => new.value().at(path).filter(|found| !found.is_null()),
            _ => Some(new.value()),
        };
        let Some(pod) = pod else { return Ok(()) };
        if self.is_exempt(pod) {
            meter.exempted(place);
            annotate(review, "exempt", "runtimeClass");
            return Ok(());
        }
        let mut results: Vec<(LevelVersion, Violations)> = Vec::with_capacity(3);
        let mut evaluate = |policy: LevelVersion| -> Violations {
            if let Some((_, known)) = results.iter().find(|(of, _)| *of == policy) {
                return known.clone();
            }
            let found = Violations::of(pod, policy);
            results.push((policy, found.clone()));
            found
        };
        let enforced = enforces.then(|| evaluate(policy.enforce));
        let audited = evaluate(policy.audit);
        let refusal = enforced.as_ref().filter(|found| !found.is_empty());
        let refusal = refusal.map(|found| {
            let why = format!(
                "violates PodSecurity \"{}\": {}",
                policy.enforce,
                found.details()
            );
            refuse(review.kind, new, why)
        });
        let warned = match refusal {
            Some(_) => Violations::default(),
            None => evaluate(policy.warn),
        };
        if let Some(wrong) = wrong {
            let [operation, resource, subresource] = place;
            meter.failed(["false", operation, resource, subresource]);
            annotate(review, "error", &format!("Failed to parse policy: {wrong}"));
        }
        if enforces {
            annotate(review, "enforce-policy", &policy.enforce.to_string());
            self.count((refusal.is_none(), policy.enforce, "enforce"), place);
        }
        let would = |of: LevelVersion, found: &Violations| {
            format!("would violate PodSecurity \"{of}\": {}", found.details())
        };
        if !audited.is_empty() {
            annotate(review, "audit-violations", &would(policy.audit, &audited));
            self.count((false, policy.audit, "audit"), place);
        }
        if !warned.is_empty() {
            review.warnings.push(would(policy.warn, &warned));
            self.count((false, policy.warn, "warn"), place);
        }
        refusal.map_or(Ok(()), Err)
    }

    fn is_exempt(&self, pod: &Value) -> bool {
        let class = pod.text(&["spec", "runtimeClassName"]);
        let exempt = &self.0.configuration.runtime_classes;
        !class.is_empty() && exempt.iter().any(|known| known == class)
    }

    /// Counts an evaluation: whether the pod is allowed, the policy, the mode.
    fn count(
        &self,
        (allowed, policy, mode): (bool, LevelVersion, &str),
        [operation, resource, subresource]: [&str; 3],
    ) {
        let version = match policy.version {
            _ if policy.level == Level::Privileged => "latest".to_owned(),
            Version::Minor(minor) if minor > CURRENT => "future".to_owned(),
            version => version.to_string(),
        };
        let decision = if allowed { "allow" } else { "deny" };
        let level = policy.level.name();
        let labels = [
            decision,
            level,
            &version,
            mode,
            operation,
            resource,
            subresource,
        ];
        self.0.meter.evaluated(labels);
    }

    /// Checks the labels of a namespace, and warns about its pods if a stricter level is to be enforced.
    async fn namespace(&self, review: &mut Review<'_>, lookup: &dyn Lookup) -> Result<(), Status> {
        let Some(new) = review.object.as_deref() else {
            return Ok(());
        };
        let defaults = &self.0.configuration.defaults;
        let read = |object: &Object| Policy::of_labels(|name| object.label(name), defaults);
        let name = new.name().to_owned();
        let is_exempt = self.0.configuration.namespaces.contains(&name);
        let (policy, wrong) = read(new);
        let before = match (review.operation, review.old) {
            (Operation::Create, _) => None,
            (Operation::Update, Some(old)) => Some(read(old)),
            _ => return Ok(()),
        };
        // Invalid labels of old may stay.
        let is_new = before.as_ref().is_none_or(|(_, old)| *old != wrong);
        if !wrong.is_empty() && is_new {
            let what = GroupResource {
                group: "",
                resource: "Namespace",
            };
            return Err(Status::invalid(what, &name, &wrong));
        }
        let unnoticed = match &before {
            None => !is_exempt,
            Some((old, _)) => {
                policy.enforce == old.enforce
                    || policy.enforce.level == Level::Privileged
                    || (policy.enforce.version == old.enforce.version
                        && policy.enforce.level <= old.enforce.level)
            }
        };
        if unnoticed {
            return Ok(());
        }
        if is_exempt {
            let warning = self.ignored(new, &policy);
            review.warnings.extend(warning);
            return Ok(());
        }
        let (pods, total) = lookup.list_first("core/pods", &name, existing::MOST).await;
        let exempt = |pod: &Value| self.is_exempt(pod);
        let warnings = existing::warnings(&name, policy.enforce, pods, total, exempt);
        review.warnings.extend(warnings);
        Ok(())
    }

    /// Returns the warning about labels of a namespace that is exempt.
    fn ignored(&self, namespace: &Object, policy: &Policy) -> Option<String> {
        if policy.is_privileged() || policy.is_equivalent(&self.0.configuration.defaults) {
            return None;
        }
        let modes = [
            ("enforce", policy.enforce),
            ("audit", policy.audit),
            ("warn", policy.warn),
        ];
        let set = |mode: &str| {
            let has = |name: String| namespace.label(&name).is_some();
            has(format!("{PREFIX}{mode}")) || has(format!("{PREFIX}{mode}-version"))
        };
        let texts: Vec<String> = modes
            .iter()
            .filter(|(mode, of)| of.level != Level::Privileged && set(mode))
            .map(|(mode, of)| format!("{mode}={of}"))
            .collect();
        Some(format!(
            "namespace {:?} is exempt from Pod Security, and the policy ({}) will be ignored",
            namespace.name(),
            texts.join(", ")
        ))
    }
}

fn operation(review: &Review<'_>) -> &'static str {
    match review.operation {
        Operation::Create => "create",
        _ => "update",
    }
}

fn annotate(review: &mut Review<'_>, name: &str, value: &str) {
    let annotation = (format!("{PREFIX}{name}"), value.to_owned());
    review.audit_annotations.push(annotation);
}

/// Joins problems as upstream does.
fn aggregate(wrong: &[FieldError]) -> String {
    let texts: Vec<String> = wrong.iter().map(ToString::to_string).collect();
    match texts.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

/// Returns whether an update changes what containers run; everything else that matters cannot be changed.
fn is_significant(new: &Object, old: &Object) -> bool {
    let (new, old) = (new.value(), old.value());
    let image = |container: &Value| container.text(&["image"]).to_owned();
    let fixed = ["containers", "initContainers"].iter().any(|list| {
        let (new, old) = (new.list(&["spec", list]), old.list(&["spec", list]));
        let pairs = || new.iter().zip(old);
        new.len() != old.len() || pairs().any(|(new, old)| image(new) != image(old))
    });
    let ephemeral = ["spec", "ephemeralContainers"];
    fixed
        || new.list(&ephemeral).iter().any(|container| {
            let name = container.text(&["name"]);
            let mut old = old.list(&ephemeral).iter();
            let old = old.find(|old| old.text(&["name"]) == name);
            old.is_none_or(|old| image(old) != image(container))
        })
}

impl Validator for PodSecurity {
    fn name(&self) -> &'static str {
        "PodSecurity"
    }

    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        lookup: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let writes = matches!(review.operation, Operation::Create | Operation::Update);
        let subject = Subject::of(&review.kind.group, &review.kind.names.plural);
        match subject.filter(|_| writes) {
            Some(subject) => Box::pin(self.check(subject, review, lookup)),
            None => decided(Ok(())),
        }
    }
}
