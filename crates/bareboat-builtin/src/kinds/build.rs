//! A builder for built-in kinds.

use crate::facts;
use crate::shape::{BuiltinShape, Defaults};
use crate::strategies::{Complete, Rules};
use crate::typed::Empties;
use bareboat_api::kind::{
    Action, Column, Fields, Generation, Kind, NameRule, Names, ScalePaths, Scope, SelectableField,
    Strategy, Subresource, SubresourceRole, UnknownField, Verb, Verbs, Version,
};
use bareboat_api::{Str, Value};
use std::sync::Arc;

/// A kind under construction. Each method changes one default.
pub(super) struct Build {
    kind: Kind,
    empties: Empties,
    versions: Vec<(&'static str, Defaults)>,
    columns: Vec<Column>,
    subresources: Vec<Subresource>,
    selectable: Vec<SelectableField>,
    deprecation: Option<&'static str>,
}

/// Starts a namespaced kind.
pub(super) fn namespaced(group: &str, plural: &str, kind: &str) -> Build {
    Build::new(group, plural, kind, Scope::Namespaced)
}

/// Starts a cluster-scoped kind.
pub(super) fn cluster(group: &str, plural: &str, kind: &str) -> Build {
    Build::new(group, plural, kind, Scope::Cluster)
}

/// Returns the discovery priority of a group.
fn priority(group: &str) -> u32 {
    match group {
        "" => 18000,
        "apiregistration.k8s.io" => 20000,
        "apps" => 17800,
        "events.k8s.io" => 17750,
        "authentication.k8s.io" => 17700,
        "authorization.k8s.io" => 17600,
        "autoscaling" => 17500,
        "batch" => 17400,
        "certificates.k8s.io" => 17300,
        "networking.k8s.io" => 17200,
        "policy" => 17100,
        "rbac.authorization.k8s.io" => 17000,
        "storage.k8s.io" => 16800,
        "admissionregistration.k8s.io" | "apiextensions.k8s.io" => 16700,
        "scheduling.k8s.io" => 16600,
        "coordination.k8s.io" => 16500,
        "node.k8s.io" => 16300,
        "discovery.k8s.io" | "resource.k8s.io" => 16200,
        "flowcontrol.apiserver.k8s.io" => 16100,
        "internal.apiserver.k8s.io" => 16000,
        "storagemigration.k8s.io" => 15800,
        _ => 15900,
    }
}

impl Build {
    fn new(group: &str, plural: &str, name: &str, scope: Scope) -> Build {
        let mut kind = Kind::new(group, Names::new(plural, name), scope);
        kind.group_priority = priority(group);
        Build {
            kind,
            empties: Empties::Null,
            versions: Vec::new(),
            columns: crate::columns::created_at(),
            subresources: Vec::new(),
            selectable: Vec::new(),
            deprecation: None,
        }
    }

    /// Adds a version with its defaults. The first version is preferred and stored.
    pub(super) fn version(mut self, name: &'static str, defaults: Defaults) -> Build {
        self.versions.push((name, defaults));
        self
    }

    pub(super) fn short(mut self, names: &[&str]) -> Build {
        self.kind.names.short = names.iter().map(Str::new).collect();
        self
    }

    pub(super) fn categories(mut self, names: &[&str]) -> Build {
        self.kind.names.categories = names.iter().map(Str::new).collect();
        self
    }

    pub(super) fn singular(mut self, name: &str) -> Build {
        self.kind.names.singular = Str::new(name);
        self
    }

    pub(super) fn verbs(mut self, verbs: Verbs) -> Build {
        self.kind.verbs = verbs;
        self
    }

    /// Allows `create` only; objects are answered and not stored.
    pub(super) fn create_only(self) -> Build {
        self.verbs(Verbs::of(&[Verb::Create]))
    }

    pub(super) fn columns(mut self, columns: Vec<Column>) -> Build {
        self.columns = columns;
        self
    }

    pub(super) fn status(self) -> Build {
        self.subresource(Subresource::status())
    }

    pub(super) fn scale(self, label_selector: &str) -> Build {
        self.subresource(Subresource::scale(ScalePaths {
            spec_replicas: Str::const_new(".spec.replicas"),
            status_replicas: Str::const_new(".status.replicas"),
            label_selector: Some(Str::new(label_selector)),
        }))
    }

    /// Adds a subresource with the given verbs.
    pub(super) fn part(self, name: &str, verbs: &[Verb]) -> Build {
        let mut part = Subresource::part(name, SubresourceRole::Part);
        part.verbs = Verbs::of(verbs);
        self.subresource(part)
    }

    /// Adds a subresource whose posted objects trigger an action.
    pub(super) fn action(
        self,
        name: &str,
        response: (&str, &str, &str),
        action: impl Action + 'static,
    ) -> Build {
        self.subresource(Subresource::action(name, response, action))
    }

    /// Adds a subresource whose action is implemented in another crate.
    pub(super) fn action_of_others(self, name: &str, response: (&str, &str, &str)) -> Build {
        let mut part = Subresource::part(name, SubresourceRole::Action);
        part.verbs = Verbs::of(&[Verb::Create]);
        part.response = Some((response.0.into(), response.1.into(), response.2.into()));
        self.subresource(part)
    }

    /// Adds a connect subresource. Its options are a kind of the group's own version.
    pub(super) fn connect(self, name: &str, verbs: &[Verb], options: &str) -> Build {
        let mut part = Subresource::connection(name, verbs);
        if name == "proxy" {
            part = part.with_paths();
        }
        part.response = Some((self.kind.group.clone(), "v1".into(), options.into()));
        self.subresource(part)
    }

    pub(super) fn subresource(mut self, part: Subresource) -> Build {
        self.subresources.push(part);
        self
    }

    /// Adds field selectors that equal their path.
    pub(super) fn selectable(mut self, fields: &[&str]) -> Build {
        self.selectable
            .extend(fields.iter().map(|name| SelectableField::at_path(name)));
        self
    }

    /// Adds a warning to every request for the kind.
    pub(super) fn deprecated(mut self, warning: &'static str) -> Build {
        self.deprecation = Some(warning);
        self
    }

    /// Keeps the status of new objects (for nodes: the kubelet sends it).
    pub(super) fn status_on_create(mut self) -> Build {
        self.kind.policy.status_on_create = true;
        self
    }

    /// Makes writes to the status ignore all metadata.
    pub(super) fn status_alone(mut self) -> Build {
        self.kind.policy.status_keeps_metadata = false;
        self
    }

    /// Adds fields that writes to some subresources reset, beyond the default ones.
    pub(super) fn resets(mut self, fields: &'static [Fields]) -> Build {
        self.kind.policy.resets = fields;
        self
    }

    /// Adds fields that writes to some subresources may change without owning them.
    pub(super) fn unowned(mut self, fields: &'static [Fields]) -> Build {
        self.kind.policy.unowned = fields;
        self
    }

    /// Sets the only fields that writes to some subresources change.
    pub(super) fn touches(mut self, fields: &'static [Fields]) -> Build {
        self.kind.policy.touches = fields;
        self
    }

    pub(super) fn selectable_by(mut self, field: SelectableField) -> Build {
        self.selectable.push(field);
        self
    }

    /// Sets the error text for unknown field selectors.
    pub(super) fn unknown_field(mut self, words: UnknownField) -> Build {
        self.kind.policy.unknown_field = words;
        self
    }

    /// Sets the row conditions of table rows.
    pub(super) fn row_conditions(mut self, tell: fn(&Value) -> Option<Value>) -> Build {
        self.kind.policy.row_conditions = Some(tell);
        self
    }

    pub(super) fn names_are(mut self, rule: NameRule) -> Build {
        self.kind.policy.name_rule = rule;
        self
    }

    /// Increments the generation with every change outside of metadata and status.
    pub(super) fn generation(mut self) -> Build {
        self.kind.policy.generation = Generation::OutsideStatus;
        self
    }

    /// Like [`Build::generation`], and also with changes of the given metadata fields.
    pub(super) fn generation_with(mut self, metadata: &'static [&'static str]) -> Build {
        self.kind.policy.generation_counts = metadata;
        self.generation()
    }

    pub(super) fn create_on_update(mut self) -> Build {
        self.kind.policy.create_on_update = true;
        self
    }

    /// Requires a resourceVersion in PUT.
    pub(super) fn conditional_update(mut self) -> Build {
        self.kind.policy.unconditional_update = false;
        self
    }

    pub(super) fn delete_returns_object(mut self) -> Build {
        self.kind.policy.delete_returns_object = true;
        self
    }

    pub(super) fn graceful(mut self) -> Build {
        self.kind.policy.graceful_deletion = true;
        self
    }

    /// Sets the warning for deletions that orphan dependents by default.
    pub(super) fn orphan_warning(mut self, text: &'static str) -> Build {
        self.kind.policy.orphan_warning = Some(text);
        self
    }

    pub(super) fn orphan_by_default(mut self) -> Build {
        self.kind.policy.orphan_by_default = true;
        self
    }

    pub(super) fn ttl(mut self, seconds: u64) -> Build {
        self.kind.policy.ttl_seconds = Some(seconds);
        self
    }

    /// Keeps empty lists that the type always prints.
    pub(super) fn keeps_empty_lists(mut self) -> Build {
        self.empties = Empties::Keep;
        self
    }

    pub(super) fn strategy(mut self, strategy: impl Strategy + 'static) -> Build {
        self.kind.strategy = Arc::new(strategy);
        self
    }

    /// Sets a strategy made of functions.
    pub(super) fn rules(self, rules: Rules) -> Build {
        self.strategy(rules)
    }

    /// Applies any other change.
    pub(super) fn with(mut self, change: impl FnOnce(&mut Kind)) -> Build {
        change(&mut self.kind);
        self
    }

    pub(super) fn done(mut self) -> Kind {
        let columns: Arc<[Column]> = self.columns.into();
        let mut messages = Vec::new();
        for (version, defaults) in self.versions {
            let message = facts::kind(&self.kind.group, version, &self.kind.names.kind)
                .expect("the table of facts has every built-in kind");
            messages.push((Str::const_new(version), message));
            self.kind = self.kind.with_version(Version {
                name: Str::const_new(version),
                served: true,
                deprecation: self.deprecation.map(Str::const_new),
                shape: Arc::new(BuiltinShape::new(message, defaults, self.empties)),
                columns: columns.clone(),
                subresources: self.subresources.clone(),
                selectable: self.selectable.clone(),
            });
        }
        let has_status = self
            .subresources
            .iter()
            .any(|part| part.role == SubresourceRole::Status);
        if has_status {
            self.kind.strategy = Arc::new(Complete {
                inner: self.kind.strategy,
                keeps_status: self.kind.policy.status_on_create,
                messages,
            });
        }
        self.kind
    }
}
