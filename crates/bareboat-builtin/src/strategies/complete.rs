//! Wraps the strategy of a kind that has a status: new objects get an empty status.
//!
//! The empty status of a built-in type is not always `{}` (StatefulSet has `replicas: 0`), so it is taken from the
//! type.

use crate::typed;
use bareboat_api::facts::{MessageRef, Type};
use bareboat_api::kind::{Strategy, WriteContext};
use bareboat_api::{Object, Str, Value};
use std::sync::Arc;

/// A strategy that gives new objects an empty status before the kind's own strategy sees them.
pub(crate) struct Complete {
    /// The kind's own strategy.
    pub(crate) inner: Arc<dyn Strategy>,
    /// Keeps the status of a new object.
    pub(crate) keeps_status: bool,
    /// The message type of each version.
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
    fn inner(&self) -> Option<&dyn Strategy> {
        Some(&*self.inner)
    }

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
}
