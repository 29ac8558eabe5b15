//! What writes do: an action, a strategy and an admission rule.

use crate::foo::Base64;
use bareboat::api::admission::{Lookup, Review, Validator};
use bareboat::api::kind::{BoxFuture, ObjectEdit, ObjectRef};
use bareboat::prelude::*;
use bareboat::typed::ActionCall;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// Where `v2`, the stored version, has the messages.
const CONFIG: [&str; 2] = ["spec", "config"];

/// Writes to `/config` change the messages only.
pub(crate) struct OnlyConfig;

impl Strategy for OnlyConfig {
    fn prepare_update(&self, new: &mut Object, old: &Object, context: &WriteContext<'_>) {
        if context.subresource == Some("config")
            && let Some(config) = new.at(&CONFIG).cloned()
        {
            let version = Value::string(new.resource_version());
            *new = old.clone();
            new.set_meta("resourceVersion", version);
            new.map_mut().object_mut("spec").insert("config", config);
        }
    }
}

/// Encodes messages of a Foo in place.
pub(crate) async fn encode(call: ActionCall<'_, Base64>) -> Result<Base64, Status> {
    let names = &call.body.spec.field_names;
    let edit = |mut edited: Object| {
        let config = edited.map_mut().object_mut("spec").object_mut("config");
        for name in names {
            let text = config.get(name).and_then(Value::as_str);
            let text = text.ok_or_else(|| Status::bad_request(format!("no message {name}")))?;
            let encoded = Value::from(BASE64_STANDARD.encode(text));
            config.insert(name, encoded);
        }
        Ok(edited)
    };
    let target = ObjectRef {
        group: "hello.zeng.dev",
        resource: "foos",
        namespace: call.posted.namespace,
        name: call.posted.name,
    };
    let change = ObjectEdit {
        target,
        manager: Some(("base64", "base64")),
        edit: &edit,
        dry_run: call.posted.dry_run,
    };
    call.objects.edit(change).await?;
    Ok(call.body)
}

/// Refuses messages that contain a word.
pub(crate) struct Disallow(pub(crate) String);

impl Validator for Disallow {
    fn name(&self) -> &'static str {
        "Disallow"
    }

    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        _: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let spec = review.object.as_ref().and_then(|object| object.get("spec"));
        // `v1` has the messages in `spec`, `v2` in `spec.config`.
        let messages = spec.map(|spec| spec.get("config").unwrap_or(spec));
        let message = |name| messages?.get(name).and_then(Value::as_str);
        let bad = |name| message(name).is_some_and(|text| text.contains(&self.0));
        let answer = match ["msg", "msg1"].into_iter().find(|name| bad(name)) {
            None => Ok(()),
            Some(name) => {
                let why = format!("{name} contains the word {:?}", self.0);
                Err(Status::forbidden(
                    review.kind.group_resource(),
                    review.name,
                    why,
                ))
            }
        };
        Box::pin(std::future::ready(answer))
    }
}
