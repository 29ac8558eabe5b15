//! CEL rules of a typed kind.

use super::shape::TypedShape;
use super::{TypedKind, TypedKindError};
use bareboat_api::{Value, value};
use std::sync::Arc;

impl TypedKind {
    /// Adds a CEL rule for objects of the last version, such as `self.spec.max >= self.spec.min`, with the message of its
    /// violation. Rules about the old object use `oldSelf`. Needs the feature `expressions`.
    #[must_use]
    pub fn rule(mut self, expression: &str, message: &str) -> TypedKind {
        let (Some(schema), Some(version)) = (self.schemas.last_mut(), self.versions.last_mut())
        else {
            let rule = format!("the rule {expression:?}");
            self.fail(TypedKindError::BeforeVersions(rule));
            return self;
        };
        let rules = schema.make_object();
        let mut all: Vec<Value> = match rules.get("x-kubernetes-validations") {
            Some(Value::Array(rules)) => rules.to_vec(),
            _ => Vec::new(),
        };
        all.push(value!({"rule": expression, "message": message}));
        rules.insert("x-kubernetes-validations", Value::Array(all));
        version.shape = Arc::new(TypedShape::new(schema.clone()));
        if let Some(why) = fault(schema) {
            self.fail(TypedKindError::Rule {
                rule: expression.to_owned(),
                why,
            });
        }
        self
    }
}

/// Returns why a schema cannot be served, for example because a rule does not compile.
fn fault(schema: &Value) -> Option<String> {
    let version = value!({
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": (schema.clone())},
    });
    let definition = value!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "rules.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "versions": [(version)],
            "names": {"plural": "rules", "singular": "rule", "kind": "Rule", "listKind": "RuleList"},
            "conversion": {"strategy": "None"},
        },
    });
    let errors = bareboat_schema::crd::validate_create(&definition);
    let rules = |error: &&bareboat_api::FieldError| error.to_string().contains("validations");
    errors.iter().find(rules).map(ToString::to_string)
}
