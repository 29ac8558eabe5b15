//! Wraps the strategy of a kind with a status: new objects start with an empty one.
//!
//! An empty status of a built-in type is not always `{}` (a stateful set's has `replicas: 0`),
//! so it is taken from the type.

use crate::typed;
use bareboat_api::facts::{MessageRef, Type};
use bareboat_api::kind::{Reservation, Strategy, WriteContext};
use bareboat_api::{FieldError, Object, Status, Str, Value};
use std::sync::Arc;

/// A strategy that gives new objects an empty status before the kind's own strategy sees them.
pub(crate) struct Complete {
    /// The kind's own strategy.
    pub(crate) inner: Arc<dyn Strategy>,
    /// A status that comes with a new object stays.
    pub(crate) keeps_status: bool,
    /// The message of each version.
    pub(crate) messages: Vec<(Str, MessageRef)>,
}

impl Complete {
    fn empty_status(&self, version: &str) -> Option<Value> {
        let (_, message) = self.messages.iter().find(|(name, _)| name == version)?;
        let field = message.get().field("status")?;
        match field.ty {
            Type::Message(status) if !field.omit_empty => {
                Some(Value::Object(typed::empty(status.get())))
            }
            _ => None,
        }
    }
}

impl Strategy for Complete {
    fn prepare_create(&self, new: &mut Object, ctx: &WriteContext<'_>) {
        let given = new
            .get("status")
            .and_then(Value::as_object)
            .is_some_and(|status| !status.is_empty());
        if !(self.keeps_status && given) {
            match self.empty_status(ctx.version) {
                Some(status) => new.map_mut().insert("status", status),
                None => new.map_mut().remove("status"),
            };
        }
        self.inner.prepare_create(new, ctx);
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, ctx: &WriteContext<'_>) {
        self.inner.prepare_update(new, old, ctx);
    }

    fn validate_create(&self, new: &Object, ctx: &WriteContext<'_>) -> Vec<FieldError> {
        self.inner.validate_create(new, ctx)
    }

    fn validate_update(
        &self,
        new: &Object,
        old: &Object,
        ctx: &WriteContext<'_>,
    ) -> Vec<FieldError> {
        self.inner.validate_update(new, old, ctx)
    }

    fn warnings(&self, new: &Object, old: Option<&Object>, ctx: &WriteContext<'_>) -> Vec<String> {
        self.inner.warnings(new, old, ctx)
    }

    fn forbid_delete(&self, object: &Object) -> Option<String> {
        self.inner.forbid_delete(object)
    }

    fn begin_delete(&self, object: &mut Object, ctx: &WriteContext<'_>) -> bool {
        self.inner.begin_delete(object, ctx)
    }

    fn holds_back_deletion(&self, object: &Object) -> bool {
        self.inner.holds_back_deletion(object)
    }

    fn shows_its_end(&self) -> bool {
        self.inner.shows_its_end()
    }

    fn keeps_generation_on_delete(&self) -> bool {
        self.inner.keeps_generation_on_delete()
    }

    fn reserve(
        &self,
        new: &mut Object,
        old: Option<&Object>,
        ctx: &WriteContext<'_>,
    ) -> Result<Reservation, Status> {
        self.inner.reserve(new, old, ctx)
    }

    fn companions(&self) -> &'static [(&'static str, &'static str)] {
        self.inner.companions()
    }
}
