//! Which requests a webhook, a policy or a binding applies to: rules, selectors and match policy.

mod index;
mod rule;

pub(crate) use index::Index;
pub(crate) use rule::{Place, Rule, Target};

use super::pass::Pass;
use bareboat_api::admission::Operation;
use bareboat_api::labels::Selector;
use bareboat_api::status::GroupResource;
use bareboat_api::{Kind, Object, Status, Value};

/// The group whose configurations admission itself reads.
const GROUP: &str = "admissionregistration.k8s.io";
/// The storage resource of namespaces.
const NAMESPACES: &str = "core/namespaces";

/// Returns whether a kind configures admission. Webhooks and policies never see such objects, so that a broken one can
/// always be repaired.
pub(crate) fn is_exempt(kind: &Kind) -> bool {
    kind.group == GROUP
        && matches!(
            kind.names.kind.as_str(),
            "ValidatingWebhookConfiguration"
                | "MutatingWebhookConfiguration"
                | "ValidatingAdmissionPolicy"
                | "ValidatingAdmissionPolicyBinding"
                | "MutatingAdmissionPolicy"
                | "MutatingAdmissionPolicyBinding"
        )
}

/// Which requests something applies to.
#[derive(Debug)]
pub(crate) struct Criteria {
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    /// Whether no rules at all match everything.
    open: bool,
    /// Whether only the version of the request itself is matched.
    exact: bool,
    namespaces: Labels,
    objects: Labels,
}

/// A label selector, or the error in it.
type Labels = Result<Selector, String>;

impl Criteria {
    /// Reads a webhook.
    pub(crate) fn of_webhook(webhook: &Value) -> Criteria {
        Criteria::read(webhook, "rules", false)
    }

    /// Reads `matchConstraints` of a policy or `matchResources` of a binding. Without rules they match everything.
    pub(crate) fn of_match_resources(resources: &Value) -> Criteria {
        Criteria::read(resources, "resourceRules", true)
    }

    fn read(from: &Value, rules: &str, open: bool) -> Criteria {
        let list = |key: &str| {
            let items = from.get(key).and_then(Value::as_array).unwrap_or(&[]);
            items.iter().map(Rule::read).collect::<Vec<Rule>>()
        };
        let selector = |key: &str| match from.get(key) {
            None | Some(Value::Null) => Selector::from_object(&Value::object()),
            Some(selector) => Selector::from_object(selector),
        };
        let selector = |key: &str| selector(key).map_err(|error| error.to_string());
        Criteria {
            rules: list(rules),
            excluded: list("excludeResourceRules"),
            open,
            exact: from.get("matchPolicy").and_then(Value::as_str) == Some("Exact"),
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
        }
    }

    /// Returns the rules, for an [`Index`]. `None` means that every request may match.
    pub(crate) fn rules(&self) -> Option<&[Rule]> {
        (!self.open || !self.rules.is_empty()).then_some(&self.rules)
    }

    /// Returns the form of the object in which the request matches: 0 is that of the request, others are equivalent to
    /// it. `None` if it does not match.
    pub(crate) fn matches(&self, pass: &Pass<'_, '_>) -> Result<Option<usize>, Status> {
        let namespace = self.matches_namespace(pass);
        if matches!(namespace, Ok(false)) {
            return Ok(None);
        }
        let object = self.matches_object(pass);
        if matches!(object, Ok(false)) {
            return Ok(None);
        }
        if self.find(&self.excluded, pass).is_some() {
            return Ok(None);
        }
        let form = match self.open && self.rules.is_empty() {
            true => Some(0),
            false => self.find(&self.rules, pass),
        };
        // An error in a selector matters only if the request matches otherwise.
        if form.is_some() {
            namespace?;
            object?;
        }
        Ok(form)
    }

    /// Returns the form that the first matching rule names.
    fn find(&self, rules: &[Rule], pass: &Pass<'_, '_>) -> Option<usize> {
        let target = pass.target();
        let own = target.place;
        if rules.iter().any(|rule| rule.matches(&target, own)) {
            return Some(0);
        }
        // Equivalent forms are looked up only if a rule could match one of them.
        if self.exact || !rules.iter().any(|rule| rule.may_match(&target)) {
            return None;
        }
        let forms = pass.forms();
        rules.iter().find_map(|rule| {
            let others = forms.iter().enumerate().skip(1);
            let mut found = others.filter(|(_, form)| rule.matches(&target, form.place()));
            found.next().map(|(index, _)| index)
        })
    }

    fn matches_namespace(&self, pass: &Pass<'_, '_>) -> Result<bool, Status> {
        let target = pass.target();
        let own = target.place.resource == "namespaces";
        if target.namespace.is_empty() && !own {
            return Ok(true);
        }
        let selector = self.namespaces.as_ref().map_err(Status::internal)?;
        if selector.is_everything() {
            return Ok(true);
        }
        // A namespace that is written has labels that are not stored yet.
        if own && target.subresource.is_empty() && target.operation.writes() {
            return Ok(has(selector, pass.review().object.as_deref()));
        }
        let stored = pass.ground().state.store.resource(NAMESPACES);
        let Some(entry) = stored.get(target.namespace) else {
            let what = GroupResource {
                group: "",
                resource: "namespaces",
            };
            return Err(Status::not_found(what, target.namespace));
        };
        let facets = entry.facets();
        Ok(selector.matches(|key| facets.label(key)))
    }

    fn matches_object(&self, pass: &Pass<'_, '_>) -> Result<bool, Status> {
        let selector = self.objects.as_ref().map_err(Status::internal)?;
        let review = pass.review();
        if selector.is_everything() {
            return Ok(true);
        }
        // Options of a connection have no labels, not even an empty set of them.
        let labelled = review.operation != Operation::Connect;
        Ok(labelled && (has(selector, review.object.as_deref()) || has(selector, review.old)))
    }
}

/// Returns whether there is an object with these labels.
fn has(selector: &Selector, object: Option<&Object>) -> bool {
    object.is_some_and(|object| selector.matches(|key| object.label(key)))
}
