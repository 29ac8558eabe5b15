//! A strategy made of functions, for kinds that need only some of them.

use super::check::{Errors, path};
use crate::reach::Reach as _;
use bareboat_api::kind::{Companion, Strategy, WriteContext};
use bareboat_api::{FieldError, Object, Str, Value};

/// Says what is wrong with an object by itself.
pub(crate) type Validate = fn(&Object, &mut Errors);
/// Says what is wrong with changing one object into another.
pub(crate) type ValidateUpdate = fn(&Object, &Object, &mut Errors);

/// Says what is wrong with a change through the named subresource.
pub(crate) type ValidatePart = fn(&Object, &Object, &str, &mut Errors);
/// Warns about a new object, or about one that replaces another.
pub(crate) type Warn = fn(&Object, Option<&Object>) -> Vec<String>;

/// A strategy made of functions.
#[derive(Clone, Copy, Default)]
pub(crate) struct Rules {
    /// Completes a new object.
    pub(crate) prepare_create: Option<fn(&mut Object, &WriteContext<'_>)>,
    /// Completes a changed object; not called for subresources.
    pub(crate) prepare_update: Option<fn(&mut Object, &Object, &WriteContext<'_>)>,
    /// Completes an object changed through a subresource.
    pub(crate) prepare_part: Option<fn(&mut Object, &Object, &WriteContext<'_>)>,
    /// Checks new and changed objects; not called for subresources.
    pub(crate) validate: Option<Validate>,
    /// Checks new objects on top.
    pub(crate) validate_new: Option<Validate>,
    /// Checks changes on top; not called for subresources.
    pub(crate) validate_update: Option<ValidateUpdate>,
    /// Checks changes through a subresource.
    pub(crate) validate_part: Option<ValidatePart>,
    /// Checks changes of the status.
    pub(crate) validate_status: Option<ValidateUpdate>,
    /// Warns.
    pub(crate) warnings: Option<Warn>,
    /// Kinds whose objects of the same name go with an object.
    pub(crate) companions: &'static [(&'static str, &'static str)],
}

impl Rules {
    /// Rules that check objects by themselves.
    pub(crate) fn validating(validate: Validate) -> Rules {
        Rules {
            validate: Some(validate),
            ..Rules::default()
        }
    }

    /// The same rules with checks of changes.
    pub(crate) fn updating(mut self, validate: ValidateUpdate) -> Rules {
        self.validate_update = Some(validate);
        self
    }

    /// The same rules with checks of new objects.
    pub(crate) fn at_first(mut self, validate: Validate) -> Rules {
        self.validate_new = Some(validate);
        self
    }

    /// The same rules with checks of changes of the status.
    pub(crate) fn statuses(mut self, validate: ValidateUpdate) -> Rules {
        self.validate_status = Some(validate);
        self
    }

    /// The same rules with a completion of new objects.
    pub(crate) fn creating(mut self, prepare: fn(&mut Object, &WriteContext<'_>)) -> Rules {
        self.prepare_create = Some(prepare);
        self
    }

    /// The same rules with a completion of changed objects.
    pub(crate) fn changing(
        mut self,
        prepare: fn(&mut Object, &Object, &WriteContext<'_>),
    ) -> Rules {
        self.prepare_update = Some(prepare);
        self
    }

    /// The same rules with warnings.
    pub(crate) fn warning(mut self, warnings: Warn) -> Rules {
        self.warnings = Some(warnings);
        self
    }

    /// The same rules with kinds whose objects of the same name go with an object.
    pub(crate) fn with_companions(
        mut self,
        kinds: &'static [(&'static str, &'static str)],
    ) -> Rules {
        self.companions = kinds;
        self
    }

    /// The same rules with a completion of objects changed through a subresource.
    pub(crate) fn phases(mut self, prepare: fn(&mut Object, &Object, &WriteContext<'_>)) -> Rules {
        self.prepare_part = Some(prepare);
        self
    }
}

/// Finalizers without a domain are those this API knows.
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
            // Who changes the scale is told what there is to know of the whole.
            .filter(|_| matches!(ctx.subresource, None | Some("scale")))
            .map_or_else(Vec::new, |warnings| warnings(new, old))
    }
}
