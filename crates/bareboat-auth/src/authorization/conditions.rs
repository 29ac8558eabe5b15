//! Match conditions: whether a request is sent to a webhook at all.

use crate::expressions::{Expression, Gives, Variable};
use crate::strict::{Fields, Findings};
use bareboat_api::{FieldError, FieldPath, Value};
use bareboat_cel::{DeclType, Field, ObjectType};
use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

/// The most conditions there may be.
const MOST: usize = 64;

/// The conditions of one webhook. Without any, all requests are sent to it.
#[derive(Debug, Default)]
pub struct MatchConditions(Vec<Expression>);

/// Whether a request matches the conditions of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matched {
    /// All conditions are true.
    Yes,
    /// One condition is false.
    No,
    /// No condition is false, but one failed with this error.
    Failed(String),
}

impl MatchConditions {
    /// Returns whether there are no conditions.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks the spec of a SubjectAccessReview.
    pub fn check(&self, request: &Value) -> Matched {
        let mut failure = None;
        for condition in &self.0 {
            match condition.holds(request) {
                Ok(true) => {}
                Ok(false) => return Matched::No,
                Err(why) => failure = Some(format!("{:?}: {why}", condition.source())),
            }
        }
        failure.map_or(Matched::Yes, Matched::Failed)
    }
}

/// The spec of a SubjectAccessReview.
static REQUEST: LazyLock<Variable> = LazyLock::new(|| {
    let text = DeclType::string();
    let texts = DeclType::list(text.clone(), 0);
    let object = |name: &str, fields: &[(&str, &Arc<DeclType>)]| {
        let fields = fields
            .iter()
            .map(|(name, decl)| Field::exact(name, Arc::clone(decl)));
        DeclType::object(ObjectType::new(name, fields.collect()))
    };
    let requirement = |name: &str| {
        let fields = [("key", &text), ("operator", &text), ("values", &texts)];
        DeclType::list(object(name, &fields), 0)
    };
    let selector = |name: &str, requirements: &Arc<DeclType>| {
        let fields = [("rawSelector", &text), ("requirements", requirements)];
        object(name, &fields)
    };
    let fields = requirement("kubernetes.FieldSelectorRequirement");
    let labels = requirement("kubernetes.LabelSelectorRequirement");
    let resource = object(
        "kubernetes.ResourceAttributes",
        &[
            ("namespace", &text),
            ("verb", &text),
            ("group", &text),
            ("version", &text),
            ("resource", &text),
            ("subresource", &text),
            ("name", &text),
            (
                "fieldSelector",
                &selector("kubernetes.FieldSelectorAttributes", &fields),
            ),
            (
                "labelSelector",
                &selector("kubernetes.LabelSelectorAttributes", &labels),
            ),
        ],
    );
    let path = object(
        "kubernetes.NonResourceAttributes",
        &[("path", &text), ("verb", &text)],
    );
    let spec = object(
        "kubernetes.SubjectAccessReviewSpec",
        &[
            ("resourceAttributes", &resource),
            ("nonResourceAttributes", &path),
            ("user", &text),
            ("groups", &texts),
            ("extra", &DeclType::map(texts.clone(), 0)),
            ("uid", &text),
        ],
    );
    Variable::new("request", spec)
});

/// Reads the conditions of a webhook.
pub(super) fn read(
    hook: &Fields<'_>,
    path: &FieldPath,
    findings: &mut Findings,
) -> MatchConditions {
    let items = hook.list("matchConditions", findings);
    let root = path.child("matchConditions");
    if items.len() > MOST {
        findings.add(FieldError::too_many(root, items.len(), MOST));
        return MatchConditions::default();
    }
    let mut seen = HashSet::new();
    let mut conditions = Vec::new();
    for (index, (place, item)) in items.into_iter().enumerate() {
        let condition = findings.object(Some(item), &place, &["expression"]);
        let source = condition.text("expression", findings);
        let place = root.index(index).child("expression");
        if source.trim().is_empty() {
            findings.add(FieldError::required(place, ""));
        } else if !seen.insert(source.clone()) {
            findings.add(FieldError::duplicate(place, source.as_str()));
        } else {
            match Expression::compile(&source, &REQUEST, Gives::Bool) {
                Ok(compiled) => conditions.push(compiled),
                Err(why) => findings.add(FieldError::invalid(place, source.as_str(), why)),
            }
        }
    }
    MatchConditions(conditions)
}
