//! An AdmissionRequest: what webhooks and expressions learn about a request.

use super::forms::Form;
use super::pass::Pass;
use bareboat_api::kind::User;
use bareboat_api::{Map, Value};

impl Pass<'_, '_> {
    /// Returns the request as the variable `request` of expressions shows it: an AdmissionRequest without uid and
    /// objects.
    pub(crate) fn request_value(&self, form: usize) -> Value {
        let review = self.review();
        let (own, form) = (self.form(0), self.form(form));
        let mut map = Map::new();
        map.insert("kind", kind(&form));
        map.insert("resource", resource(&form));
        map.insert("requestKind", kind(&own));
        map.insert("requestResource", resource(&own));
        for (key, text) in [
            ("subResource", review.subresource),
            ("requestSubResource", review.subresource),
            ("name", review.name),
            ("namespace", review.attributed_namespace()),
        ] {
            if !text.is_empty() {
                map.insert(key, Value::string(text));
            }
        }
        map.insert("operation", review.operation.name().into());
        map.insert("userInfo", user(review.user));
        map.insert("dryRun", Value::Bool(review.dry_run));
        map.insert("options", review.options.object().unwrap_or_default());
        Value::Object(map)
    }
}

fn kind(form: &Form) -> Value {
    let (group, version) = form.kind_group_version();
    bareboat_api::value!({"group": (group), "version": (version), "kind": (form.kind.as_str())})
}

fn resource(form: &Form) -> Value {
    bareboat_api::value!({
        "group": (form.group.as_str()),
        "version": (form.version.as_str()),
        "resource": (form.resource.as_str()),
    })
}

fn user(user: &User) -> Value {
    let mut map = Map::new();
    for (key, text) in [("username", &user.name), ("uid", &user.uid)] {
        if !text.is_empty() {
            map.insert(key, Value::String(text.clone()));
        }
    }
    if !user.groups.is_empty() {
        let groups = user.groups.iter().cloned().map(Value::String);
        map.insert("groups", groups.collect());
    }
    if !user.extra.is_empty() {
        let extra = map.object_mut("extra");
        for (key, values) in &user.extra {
            let values: Value = values.iter().map(Value::string).collect();
            extra.insert(key.as_str(), values);
        }
    }
    Value::Object(map)
}
