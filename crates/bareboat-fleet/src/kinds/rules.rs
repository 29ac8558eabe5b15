//! Rules for PediaClusters: nothing in a kubeconfig may make this server run programs or read files.

use super::{AUTHORIZATION, INSECURE, SYNC};
use crate::kubeconfig;
use crate::options::SyncOptions;
use bareboat_api::kind::{Strategy, WriteContext};
use bareboat_api::{FieldError, FieldPath, Object, Value};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::sync::Arc;

/// The rules of PediaClusters, in addition to their schema.
pub(super) struct ClusterRules {
    pub(super) inner: Arc<dyn Strategy>,
}

impl Strategy for ClusterRules {
    fn inner(&self) -> Option<&dyn Strategy> {
        Some(&*self.inner)
    }

    fn validate_create(&self, new: &Object, ctx: &WriteContext<'_>) -> Vec<FieldError> {
        let mut errors = self.inner.validate_create(new, ctx);
        errors.extend(validate(new));
        errors
    }

    fn validate_update(
        &self,
        new: &Object,
        old: &Object,
        ctx: &WriteContext<'_>,
    ) -> Vec<FieldError> {
        let mut errors = self.inner.validate_update(new, old, ctx);
        let annotations = ["metadata", "annotations"];
        let same =
            new.get("spec") == old.get("spec") && new.at(&annotations) == old.at(&annotations);
        // An object that does not change stays valid, so that its end is not held up.
        if ctx.subresource.is_none() && !same {
            errors.extend(validate(new));
        }
        errors
    }

    fn warnings(&self, new: &Object, old: Option<&Object>, ctx: &WriteContext<'_>) -> Vec<String> {
        let mut warnings = self.inner.warnings(new, old, ctx);
        if ctx.subresource.is_none() && old.is_none_or(|old| old.get("spec") != new.get("spec")) {
            let inline = ["kubeconfig", "tokenData", "keyData"];
            let inline = inline.iter().filter(|key| !text(new, key).is_empty());
            for key in inline {
                warnings.push(format!(
                    "spec.{key}: everyone who may read this object can read the credential; spec.authenticationFrom names a Secret instead"
                ));
            }
        }
        let insecure = |object: &Object| object.annotation(INSECURE) == Some("true");
        if ctx.subresource.is_none() && insecure(new) && !old.is_some_and(insecure) {
            warnings.push(format!(
                "metadata.annotations[{INSECURE}]: the certificate of the member is not verified"
            ));
        }
        warnings
    }
}

fn text<'o>(object: &'o Object, key: &str) -> &'o str {
    let value = object.at(&["spec", key]);
    value.and_then(Value::as_str).unwrap_or("")
}

fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = FieldPath::new("spec");
    let encoded = text(object, "kubeconfig");
    if !encoded.is_empty() {
        let insecure = object.annotation(INSECURE) == Some("true");
        let decoded = BASE64_STANDARD.decode(encoded);
        let judged = match &decoded {
            Ok(bytes) => kubeconfig::read(bytes, insecure).map(drop),
            Err(_) => Err("it is not base64".to_owned()),
        };
        if let Err(why) = judged {
            // The value is not repeated: it holds credentials.
            errors.push(FieldError::forbidden(spec.child("kubeconfig"), why));
        }
    }
    let url = text(object, "apiserver");
    if url.contains("://") && !url.starts_with("https://") {
        let why = "members are reached by https only";
        errors.push(FieldError::invalid(spec.child("apiserver"), url, why));
    }
    if let Some(annotation) = object.annotation(SYNC)
        && let Err(why) = SyncOptions::parse(annotation)
    {
        let path = FieldPath::new("metadata").child("annotations").key(SYNC);
        errors.push(FieldError::invalid(path, annotation, why));
    }
    if let Some(annotation) = object.annotation(AUTHORIZATION)
        && !matches!(annotation, "Hub" | "Member")
    {
        let path = FieldPath::new("metadata").child("annotations");
        let why = "it must be Hub or Member";
        errors.push(FieldError::invalid(
            path.key(AUTHORIZATION),
            annotation,
            why,
        ));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::value;

    fn check(spec: Value, annotations: Value) -> Vec<String> {
        let object = value!({"metadata": {"name": "c1", "annotations": annotations}, "spec": spec});
        let object = Object::try_from(object).expect("it is an object");
        validate(&object).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn kubeconfigs_that_run_programs_or_read_files_are_refused() {
        let users = [
            "exec: {command: /bin/sh}",
            "auth-provider: {name: gcp}",
            "tokenFile: /etc/token",
            "client-certificate: /etc/cert",
            "client-key: /etc/key",
            "username: joe",
        ];
        for user in users {
            let text = format!(
                "current-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
                 clusters: [{{name: a, cluster: {{server: 'https://a'}}}}]\nusers: [{{name: b, user: {{{user}}}}}, {{name: a, user: {{token: t}}}}]\n"
            );
            let encoded = BASE64_STANDARD.encode(text);
            let errors = check(value!({"kubeconfig": (encoded.as_str())}), value!({}));
            assert_eq!(errors.len(), 1, "{user}");
            assert!(errors[0].contains("spec.kubeconfig"), "{errors:?}");
            assert!(!errors[0].contains(&encoded), "{errors:?}");
        }
    }

    #[test]
    fn addresses_and_settings_are_checked() {
        assert_eq!(
            check(value!({"apiserver": "https://a:6443"}), value!({})),
            Vec::<String>::new()
        );
        assert_eq!(
            check(value!({"apiserver": "http://a"}), value!({})).len(),
            1
        );
        let bad = value!({"fleet.bareboat.dev/sync": "{\"keep\": \"object.\"}"});
        assert_eq!(check(value!({}), bad).len(), 1);
        let by = |who: &str| {
            check(
                value!({}),
                value!({"fleet.bareboat.dev/authorization": who}),
            )
        };
        assert_eq!(by("Member"), Vec::<String>::new());
        assert_eq!(by("Hub"), Vec::<String>::new());
        assert_eq!(by("member").len(), 1);
    }
}
