//! The strategy of CustomResourceDefinition: defaults, validation, and conditions set in the write itself.

use super::drafts::Drafts;
use super::{Names, subresources};
use bareboat_api::kind::{Reservations, Strategy, WriteContext};
use bareboat_api::{FieldError, Object, Str, Value};
use bareboat_schema::crd::{self, Condition, reconcile, set_condition};

/// Finalizer that keeps a deleted definition until its instances are gone.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The strategy of definitions.
pub(crate) struct DefinitionStrategy {
    names: Names,
    drafts: Drafts,
}

impl DefinitionStrategy {
    pub(super) fn new(names: Names, drafts: Drafts) -> DefinitionStrategy {
        DefinitionStrategy { names, drafts }
    }

    /// Accepts names and sets the conditions: the write that completes a definition also establishes it.
    fn settle(&self, new: &mut Object, ctx: &WriteContext<'_>) {
        let group = new
            .at(&["spec", "group"])
            .and_then(Value::as_str)
            .unwrap_or("");
        let wanted = new.at(&["spec", "names"]).unwrap_or(&Value::Null);
        let taken = self.names.lock().taken(group, new.name(), wanted);
        if let Some(status) = reconcile(new.value(), &taken, ctx.now) {
            new.map_mut().insert("status", status);
        }
    }
}

impl Strategy for DefinitionStrategy {
    fn prepare_create(&self, new: &mut Object, _ctx: &WriteContext<'_>) {
        crd::default(new.value_mut());
        crd::prepare(new.value_mut(), None);
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, ctx: &WriteContext<'_>) {
        if ctx.subresource.is_some() {
            return;
        }
        crd::default(new.value_mut());
        crd::prepare(new.value_mut(), Some(old.value()));
    }

    fn validate_create(&self, new: &Object, _ctx: &WriteContext<'_>) -> Vec<FieldError> {
        let mut errors = crd::validate_create(new.value());
        errors.append(&mut subresources::check(new.value(), None));
        errors
    }

    fn validate_update(
        &self,
        new: &Object,
        old: &Object,
        ctx: &WriteContext<'_>,
    ) -> Vec<FieldError> {
        if ctx.subresource == Some("status") {
            return crd::validate_status(new.value());
        }
        let mut errors = crd::validate_update(new.value(), old.value());
        errors.append(&mut subresources::check(new.value(), Some(old.value())));
        errors
    }

    fn warnings(&self, new: &Object, old: Option<&Object>, _ctx: &WriteContext<'_>) -> Vec<String> {
        crd::warnings(new.value(), old.map(Object::value))
    }

    fn advise(&self, version: &str, object: Option<&Value>) -> Option<String> {
        (version == "v1beta1").then(|| crd::advise_v1beta1(object))
    }

    /// Definitions of a group share one namespace of names, so their names are accepted one at a time.
    fn turn<'a>(&self, object: &'a Object) -> Option<&'a str> {
        object.at(&["spec", "group"])?.as_str()
    }

    /// Names are not accepted earlier: another definition may take them while a webhook reviews this one.
    fn conclude(&self, new: &mut Object, ctx: &WriteContext<'_>) {
        if ctx.subresource.is_none() {
            self.settle(new, ctx);
        }
    }

    fn begin_delete(&self, object: &mut Object, ctx: &WriteContext<'_>) -> bool {
        let first = object.deletion_timestamp().is_none();
        if first && !object.finalizers().any(|name| name == CLEANUP_FINALIZER) {
            let mut finalizers: Vec<Str> = object.finalizers().map(Str::new).collect();
            finalizers.push(Str::const_new(CLEANUP_FINALIZER));
            object.set_finalizers(finalizers);
        }
        if first {
            let status = object
                .map_mut()
                .entry_or_insert_with("status", Value::object);
            let text = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
            set_condition(
                status,
                Condition::new("Terminating", "True", "InstanceDeletionPending", text),
                ctx.now,
            );
        }
        false
    }

    /// Parses the definition here, because the commit must not.
    fn storing(&self, object: &Object) -> Reservations {
        Reservations::from(self.drafts.add(object))
    }

    fn keeps_generation_on_delete(&self) -> bool {
        true
    }
}
