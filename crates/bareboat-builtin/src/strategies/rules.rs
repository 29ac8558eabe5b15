//! A strategy made of functions, for kinds that need only a few.

use super::check::{Errors, path};
use crate::reach::Reach as _;
use bareboat_api::kind::{Companion, Strategy, WriteContext};
use bareboat_api::{FieldError, Object, Str, Value};

/// Validates an object.
pub(crate) type Validate = fn(&Object, &mut Errors);
/// Validates an update.
pub(crate) type ValidateUpdate = fn(&Object, &Object, &mut Errors);

/// Validates an update through the named subresource.
pub(crate) type ValidatePart = fn(&Object, &Object, &str, &mut Errors);
/// Returns warnings about a new or updated object.
pub(crate) type Warn = fn(&Object, Option<&Object>) -> Vec<String>;

/// A strategy made of functions.
#[derive(Clone, Copy, Default)]
pub(crate) struct Rules {
    /// Prepares a new object.
    pub(crate) prepare_create: Option<fn(&mut Object, &WriteContext<'_>)>,
    /// Prepares an updated object; not called for subresources.
    pub(crate) prepare_update: Option<fn(&mut Object, &Object, &WriteContext<'_>)>,
    /// Prepares an object updated through a subresource.
    pub(crate) prepare_part: Option<fn(&mut Object, &Object, &WriteContext<'_>)>,
    /// Validates new and updated objects; not called for subresources.
    pub(crate) validate: Option<Validate>,
    /// Validates new objects in addition.
    pub(crate) validate_new: Option<Validate>,
    /// Validates updates in addition; not called for subresources.
    pub(crate) validate_update: Option<ValidateUpdate>,
    /// Validates updates through a subresource.
    pub(crate) validate_part: Option<ValidatePart>,
    /// Validates updates of the status.
    pub(crate) validate_status: Option<ValidateUpdate>,
    /// Returns warnings.
    pub(crate) warnings: Option<Warn>,
    /// Returns the deletion grace period in seconds, given the requested one.
    pub(crate) grace: Option<fn(&Object, Option<i64>) -> i64>,
    /// Kinds whose objects of the same name are deleted together with an object.
    pub(crate) companions: &'static [(&'static str, &'static str)],
}

impl Rules {
    /// Creates rules with a validation function.
    pub(crate) fn validating(validate: Validate) -> Rules {
        Rules {
            validate: Some(validate),
            ..Rules::default()
        }
    }

    /// Adds validation of updates.
    pub(crate) fn updating(mut self, validate: ValidateUpdate) -> Rules {
        self.validate_update = Some(validate);
        self
    }

    /// Adds validation of new objects.
    pub(crate) fn at_first(mut self, validate: Validate) -> Rules {
        self.validate_new = Some(validate);
        self
    }

    /// Adds validation of status updates.
    pub(crate) fn statuses(mut self, validate: ValidateUpdate) -> Rules {
        self.validate_status = Some(validate);
        self
    }

    /// Adds preparation of new objects.
    pub(crate) fn creating(mut self, prepare: fn(&mut Object, &WriteContext<'_>)) -> Rules {
        self.prepare_create = Some(prepare);
        self
    }

    /// Adds preparation of updated objects.
    pub(crate) fn changing(
        mut self,
        prepare: fn(&mut Object, &Object, &WriteContext<'_>),
    ) -> Rules {
        self.prepare_update = Some(prepare);
        self
    }

    /// Adds warnings.
    pub(crate) fn warning(mut self, warnings: Warn) -> Rules {
        self.warnings = Some(warnings);
        self
    }

    /// Adds kinds whose objects of the same name are deleted together with an object.
    pub(crate) fn with_companions(
        mut self,
        kinds: &'static [(&'static str, &'static str)],
    ) -> Rules {
        self.companions = kinds;
        self
    }

    /// Adds preparation of objects updated through a subresource.
    pub(crate) fn phases(mut self, prepare: fn(&mut Object, &Object, &WriteContext<'_>)) -> Rules {
        self.prepare_part = Some(prepare);
        self
    }
}

/// Validates finalizers. Those without a domain must be known.
fn finalizers(new: &Object, wrong: &mut Errors) {
    const KNOWN: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];
    let given = new.value().list(&["metadata", "finalizers"]);
    for (index, name) in given.iter().filter_map(Value::as_str).enumerate() {
        if !name.contains('/') && !KNOWN.contains(&name) {
            let place = path(&["metadata", "finalizers"]).index(index);
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            wrong.push(FieldError::invalid(place, name, detail));
        }
    }
}

impl Strategy for Rules {
    fn prepare_create(&self, new: &mut Object, ctx: &WriteContext<'_>) {
        if let Some(prepare) = self.prepare_create {
            prepare(new, ctx);
        }
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, ctx: &WriteContext<'_>) {
        let prepare = match ctx.subresource {
            None => self.prepare_update,
            Some(_) => self.prepare_part,
        };
        if let Some(prepare) = prepare {
            prepare(new, old, ctx);
        }
    }

    fn validate_create(&self, new: &Object, _ctx: &WriteContext<'_>) -> Vec<FieldError> {
        let mut wrong = Errors::default();
        finalizers(new, &mut wrong);
        for validate in [self.validate, self.validate_new].into_iter().flatten() {
            validate(new, &mut wrong);
        }
        wrong.into_list()
    }

    fn validate_update(
        &self,
        new: &Object,
        old: &Object,
        ctx: &WriteContext<'_>,
    ) -> Vec<FieldError> {
        let mut wrong = Errors::default();
        finalizers(new, &mut wrong);
        match ctx.subresource {
            None => {
                if let Some(validate) = self.validate {
                    validate(new, &mut wrong);
                }
                if let Some(validate) = self.validate_update {
                    validate(new, old, &mut wrong);
                }
            }
            Some(part) => {
                if let Some(validate) = self.validate_part {
                    validate(new, old, part, &mut wrong);
                }
                if let Some(validate) = self.validate_status.filter(|_| part == "status") {
                    validate(new, old, &mut wrong);
                }
            }
        }
        wrong.into_list()
    }

    fn grace_seconds(&self, object: &Object, requested: Option<i64>) -> i64 {
        self.grace.map_or(0, |grace| grace(object, requested))
    }

    fn companions(&self, object: &Object) -> Vec<Companion> {
        let named = |(group, resource): &(&'static str, &'static str)| Companion {
            group,
            resource,
            name: Str::new(object.name()),
            says: None,
        };
        self.companions.iter().map(named).collect()
    }

    fn warnings(&self, new: &Object, old: Option<&Object>, ctx: &WriteContext<'_>) -> Vec<String> {
        self.warnings
            // A client that changes the scale gets the warnings about the whole object.
            .filter(|_| matches!(ctx.subresource, None | Some("scale")))
            .map_or_else(Vec::new, |warnings| warnings(new, old))
    }
}
