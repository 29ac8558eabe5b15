//! Prepares a decoded object for storing: admission, preparation, validation.

use super::metadata::{self, Found};
use super::store::ENDING;
use crate::admission::{self, Ground, OptionsOf, Scaled};
use crate::diagnostics::Stage;
use crate::metrics::Step;
use crate::verbs::delete::options::DeleteOptions;
use crate::verbs::kind_request::KindRequest;
use bareboat_api::admission::{Operation, Review};
use bareboat_api::kind::{Fields, Generation, Reservations, Shape, SubresourceRole, WriteContext};
use bareboat_api::metadata::{validate_metadata, validate_metadata_update};
use bareboat_api::{FieldErrors, FieldPath, Object, Status, Str, Value};

/// One write.
pub(crate) struct Pipeline<'a> {
    pub(crate) call: &'a KindRequest,
    pub(crate) dry_run: bool,
    pub(crate) now: Str,
    /// The options of a deletion.
    deletion: Option<&'a DeleteOptions>,
    /// The shape of a posted object that is not of the kind itself.
    posted: Option<&'a dyn Shape>,
    /// How Scales are made of the object, for the scale subresource.
    scaled: Option<&'a dyn Scaled>,
}

/// Restores a field from the live object.
fn restore(object: &mut Object, live: &Object, path: &[&str]) {
    let Some((last, parents)) = path.split_last() else {
        return;
    };
    let before = live.at(path).cloned();
    let mut place = object.map_mut();
    for member in parents {
        place = place.object_mut(member);
    }
    match before {
        Some(value) => place.insert(*last, value),
        None => place.remove(last),
    };
}

/// An object to store, and the reservations it holds until it is stored.
pub(crate) struct Ready {
    pub(crate) object: Object,
    pub(crate) held: Reservations,
}

impl<'a> Pipeline<'a> {
    pub(crate) fn new(call: &'a KindRequest, dry_run: bool) -> Pipeline<'a> {
        Pipeline {
            call,
            dry_run,
            now: call.state.clock.text(),
            deletion: None,
            posted: None,
            scaled: None,
        }
    }

    /// A deletion.
    pub(crate) fn deleting(call: &'a KindRequest, options: &'a DeleteOptions) -> Pipeline<'a> {
        Pipeline {
            deletion: Some(options),
            ..Pipeline::new(call, options.dry_run)
        }
    }

    /// The same for a posted object of another type.
    pub(crate) fn posting(mut self, shape: &'a dyn Shape) -> Pipeline<'a> {
        self.posted = Some(shape);
        self
    }

    /// The same for a write through a Scale.
    pub(crate) fn scaling(mut self, scaled: Option<&'a dyn Scaled>) -> Pipeline<'a> {
        self.scaled = scaled;
        self
    }

    /// Returns the context for strategies.
    pub(crate) fn context(&self) -> WriteContext<'_> {
        let subresource = &self.call.ask.info.subresource;
        WriteContext {
            subresource: (!subresource.is_empty()).then_some(subresource.as_str()),
            user: &self.call.ask.user,
            now: &self.now,
            version: &self.call.version().name,
            dry_run: self.dry_run,
        }
    }

    /// Returns the role of the request's subresource; `None` for the object itself.
    fn role(&self) -> Option<&SubresourceRole> {
        let name = &self.call.ask.info.subresource;
        self.call
            .version()
            .subresource(name)
            .map(|subresource| &subresource.role)
    }

    /// Returns the namespace of new objects.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.call
            .served
            .kind
            .namespaced()
            .then_some(self.call.ask.info.namespace.as_str())
    }

    fn warn(&self, warnings: impl IntoIterator<Item = String>) {
        for warning in warnings {
            self.call.ask.warnings.add(warning);
        }
    }

    fn annotate(&self, annotations: Vec<(String, String)>) {
        if let Some(audited) = self.call.ask.trace.audited() {
            for (key, text) in annotations {
                audited.annotate(&key, &text);
            }
        }
    }

    /// Prepares a decoded object for creation.
    pub(crate) async fn create(&self, mut object: Object) -> Result<Ready, Status> {
        self.clear(&mut object)?;
        let kind = &self.call.served.kind;
        if kind.terminating {
            let name = object.name();
            return Err(Status::forbidden(kind.group_resource(), name, ENDING));
        }
        self.admit(Operation::Create, Some(&mut object), None)
            .await?;
        self.fill(&mut object);
        if let Some(audited) = self.call.ask.trace.audited() {
            audited.creates(object.name());
        }
        let mut held = self.complete(&mut object)?;
        let checked = self.check(Operation::Create, Some(&mut object), None);
        held.append(checked.await?);
        Ok(Ready { object, held })
    }

    /// Prepares an object that the server makes for creation, without admission.
    pub(crate) fn make(&self, mut object: Object) -> Result<Ready, Status> {
        self.clear(&mut object)?;
        self.fill(&mut object);
        let held = self.complete(&mut object)?;
        Ok(Ready { object, held })
    }

    /// Drops duplicate owners, with a warning. The result of a patch is checked after admission.
    fn drop_duplicate_owners(&self, object: &mut Object, when: Found) {
        if when == Found::AfterAdmission || self.call.ask.info.verb != "patch" {
            self.warn(metadata::drop_duplicate_owners(object, when));
        }
    }

    /// Removes metadata that only the server sets. Mutating admission sees the new object like this.
    fn clear(&self, object: &mut Object) -> Result<(), Status> {
        let counts = self.call.served.kind.policy.generation != Generation::Untracked;
        metadata::for_create(object, self.namespace(), counts)?;
        metadata::tidy(object);
        self.drop_duplicate_owners(object, Found::BeforeAdmission);
        Ok(())
    }

    /// Sets the metadata of a new object: uid, time of creation, and a generated name.
    fn fill(&self, object: &mut Object) {
        metadata::fill(object, &self.now);
        if object.name().is_empty() && !object.meta_str("generateName").is_empty() {
            let name = metadata::generate_name(object.meta_str("generateName"));
            object.set_meta("name", Value::from(name));
        }
    }

    /// Checks the namespace after mutating admission. Restores the metadata that only the server sets; a new object
    /// loses it.
    fn settle(&self, object: &mut Object, live: Option<&Object>) -> Result<(), Status> {
        if self.posted.is_some() {
            return Ok(());
        }
        metadata::place(object, self.namespace())?;
        match live {
            Some(live) => metadata::for_update(object, live),
            None => {
                let counts = self.call.served.kind.policy.generation != Generation::Untracked;
                metadata::for_create(object, self.namespace(), counts)?;
            }
        }
        metadata::tidy(object);
        Ok(())
    }

    /// Completes and validates a new object; returns its reservations.
    fn complete(&self, object: &mut Object) -> Result<Reservations, Status> {
        let kind = &self.call.served.kind;
        self.drop_duplicate_owners(object, Found::AfterAdmission);
        if self.call.version().has_status() && !kind.policy.status_on_create {
            self.set_status(object, None);
        }
        if kind.policy.generation != Generation::Untracked {
            object.set_meta("generation", Value::Int(1));
        }
        let context = self.context();
        kind.strategy.prepare_create(object, &context);
        let held = kind.strategy.reserve(object, None, &context)?;
        self.validate_create(object)?;
        Ok(held)
    }

    /// Prepares a changed object that replaces `live`.
    pub(crate) async fn update(&self, mut object: Object, live: &Object) -> Result<Ready, Status> {
        let kind = &self.call.served.kind;
        metadata::place(&mut object, self.namespace())?;
        metadata::for_update(&mut object, live);
        metadata::tidy(&mut object);
        self.drop_duplicate_owners(&mut object, Found::BeforeAdmission);
        self.admit(Operation::Update, Some(&mut object), Some(live))
            .await?;
        self.drop_duplicate_owners(&mut object, Found::AfterAdmission);
        self.keep_what_is_not_addressed(&mut object, live);
        for path in Fields::at(kind.policy.resets, &self.call.ask.info.subresource) {
            restore(&mut object, live, path);
        }
        let context = self.context();
        kind.strategy.prepare_update(&mut object, live, &context);
        let mut held = kind.strategy.reserve(&mut object, Some(live), &context)?;
        self.move_generation(&mut object, live);
        self.validate_update(&object, live)?;
        let checked = self.check(Operation::Update, Some(&mut object), Some(live));
        held.append(checked.await?);
        Ok(Ready { object, held })
    }

    /// Restores what the endpoint does not write: a write to the object keeps its status, a write to the status keeps
    /// the object, and a raw write keeps everything but metadata.
    fn keep_what_is_not_addressed(&self, object: &mut Object, live: &Object) {
        if self.call.ask.raw {
            let mut written = std::mem::replace(object, live.clone());
            if let Some(metadata) = written.map_mut().remove("metadata") {
                object.map_mut().insert("metadata", metadata);
            }
            return;
        }
        match self.role() {
            None if self.call.version().has_status() => self.set_status(object, live.get("status")),
            Some(SubresourceRole::Status) => {
                let written = std::mem::replace(object, live.clone());
                match written.get("status") {
                    Some(status) => {
                        object.map_mut().insert("status", status.clone());
                    }
                    None => self.set_status(object, None),
                }
                let through: &[&str] = if self.call.served.kind.policy.status_keeps_metadata {
                    &[
                        "labels",
                        "annotations",
                        "finalizers",
                        "ownerReferences",
                        "managedFields",
                    ]
                } else {
                    &["managedFields"]
                };
                for key in through {
                    match written.meta(key) {
                        Some(value) => object.set_meta(key, value.clone()),
                        None => {
                            object.remove_meta(key);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// Sets the status, or an empty one where the kind always shows one.
    fn set_status(&self, object: &mut Object, status: Option<&Value>) {
        match status {
            Some(status) => {
                object.map_mut().insert("status", status.clone());
            }
            None if self.call.served.kind.conventions.empty_status => {
                object.map_mut().insert("status", Value::object());
            }
            None => {
                object.map_mut().remove("status");
            }
        }
    }

    fn move_generation(&self, object: &mut Object, live: &Object) {
        let with_status = match self.call.served.kind.policy.generation {
            Generation::Untracked => return,
            Generation::OutsideStatus => false,
            Generation::OutsideMetadata => true,
        };
        let counts = |key: &str| key != "metadata" && (with_status || key != "status");
        let differs = {
            let mut new = object.map().iter().filter(|(key, _)| counts(key));
            let mut old = live.map().iter().filter(|(key, _)| counts(key));
            loop {
                match (new.next(), old.next()) {
                    (None, None) => break false,
                    (Some(new), Some(old)) if new == old => {}
                    _ => break true,
                }
            }
        };
        let counted = self.call.served.kind.policy.generation_counts;
        let differs = differs || counted.iter().any(|key| object.meta(key) != live.meta(key));
        if differs && !matches!(self.role(), Some(SubresourceRole::Status)) {
            object.set_meta("generation", Value::Int(live.generation() + 1));
        }
    }

    fn validate_create(&self, object: &Object) -> Result<(), Status> {
        let kind = &self.call.served.kind;
        let mut errors = FieldErrors::default();
        let empty = bareboat_api::Map::new();
        let metadata = object.metadata().unwrap_or(&empty);
        let path = FieldPath::new("metadata");
        errors.extend(validate_metadata(
            metadata,
            kind.namespaced(),
            kind.policy.name_rule,
            &path,
        ));
        let validated = self.call.version().shape.validate(object.value(), None);
        self.warn(validated.warnings);
        errors.extend(validated.errors);
        errors.extend(kind.strategy.validate_create(object, &self.context()));
        self.refuse(object, errors)?;
        self.warn(kind.strategy.warnings(object, None, &self.context()));
        Ok(())
    }

    fn validate_update(&self, object: &Object, live: &Object) -> Result<(), Status> {
        let kind = &self.call.served.kind;
        let mut errors = FieldErrors::default();
        let empty = bareboat_api::Map::new();
        let path = FieldPath::new("metadata");
        let (new, old) = (
            object.metadata().unwrap_or(&empty),
            live.metadata().unwrap_or(&empty),
        );
        errors.extend(validate_metadata_update(new, old, &path));
        // A stored object may not fit the current schema, and a raw write does not change that.
        if !self.call.ask.raw {
            let shape = &self.call.version().shape;
            let (new, old) = (object.value(), live.value());
            let validated = match self.role() {
                Some(SubresourceRole::Status) => shape.validate_status(new, old),
                _ => shape.validate(new, Some(old)),
            };
            self.warn(validated.warnings);
            errors.extend(validated.errors);
        }
        errors.extend(kind.strategy.validate_update(object, live, &self.context()));
        self.refuse(object, errors)?;
        self.warn(kind.strategy.warnings(object, Some(live), &self.context()));
        Ok(())
    }

    fn refuse(&self, object: &Object, errors: FieldErrors) -> Result<(), Status> {
        if errors.is_empty() {
            return Ok(());
        }
        Err(Status::invalid(
            self.call.served.kind.group_kind(),
            object.name(),
            errors.kept(),
        ))
    }

    /// Runs mutating admission.
    pub(crate) async fn admit(
        &self,
        operation: Operation,
        mut object: Option<&mut Object>,
        old: Option<&Object>,
    ) -> Result<(), Status> {
        let (state, trace) = (&self.call.state, &self.call.ask.trace);
        trace.skip(Stage::Decoded);
        let name = self.name(object.as_deref(), old);
        let options = self.options(operation);
        let mut review = self.review(operation, &name, object.as_deref_mut(), old, &options);
        let began = trace.elapsed();
        let result = admission::mutate(&state.admission, &mut review, &self.ground()).await;
        let ended = trace.elapsed();
        let (measured, took) = (&state.metrics.admission, ended.saturating_sub(began));
        measured.observe(Step::Admit, operation, result.is_err(), took);
        let warnings = std::mem::take(&mut review.warnings);
        self.annotate(std::mem::take(&mut review.audit_annotations));
        drop(review);
        self.warn(warnings);
        let has_changed = result?;
        if let (true, Some(object)) = (has_changed, object) {
            self.settle(object, old)?;
        }
        trace.pass_after(Stage::Mutated, ended);
        Ok(())
    }

    /// Runs validating admission; returns its reservations.
    pub(crate) async fn check(
        &self,
        operation: Operation,
        object: Option<&mut Object>,
        old: Option<&Object>,
    ) -> Result<Reservations, Status> {
        let (state, trace) = (&self.call.state, &self.call.ask.trace);
        let began = trace.pass(Stage::Validated);
        let name = self.name(object.as_deref(), old);
        let options = self.options(operation);
        let mut review = self.review(operation, &name, object, old, &options);
        let result = admission::validate(&state.admission, &mut review, &self.ground()).await;
        let ended = trace.elapsed();
        let (measured, took) = (&state.metrics.admission, ended.saturating_sub(began));
        measured.observe(Step::Validate, operation, result.is_err(), took);
        let warnings = std::mem::take(&mut review.warnings);
        let reservations = std::mem::take(&mut review.reservations);
        self.annotate(std::mem::take(&mut review.audit_annotations));
        drop(review);
        self.warn(warnings);
        result?;
        trace.pass_after(Stage::Admitted, ended);
        Ok(reservations)
    }

    fn ground(&self) -> Ground<'_> {
        let call = self.call;
        Ground {
            state: &call.state,
            served: self
                .posted
                .is_none()
                .then_some((&call.served, call.version)),
            shape: self.posted,
            scaled: self.scaled,
            deadline: call.ask.deadline,
            audited: call.ask.trace.audited(),
            recorder: call.ask.trace.recorder(),
        }
    }

    /// Returns the name of the object under review: that of the URL, otherwise its own.
    fn name(&self, object: Option<&Object>, old: Option<&Object>) -> Str {
        match (self.call.ask.info.name.is_empty(), object.or(old)) {
            (true, Some(object)) => Str::new(object.name()),
            _ => self.call.ask.info.name.clone(),
        }
    }

    fn options(&self, operation: Operation) -> OptionsOf<'_> {
        match self.deletion {
            Some(options) => OptionsOf::Delete(options),
            None => OptionsOf::Write {
                operation,
                query: &self.call.ask.query,
            },
        }
    }

    fn review<'r>(
        &'r self,
        operation: Operation,
        name: &'r str,
        object: Option<&'r mut Object>,
        old: Option<&'r Object>,
        options: &'r OptionsOf<'r>,
    ) -> Review<'r> {
        let info = &self.call.ask.info;
        Review {
            operation,
            kind: &self.call.served.kind,
            version: &self.call.version().name,
            subresource: &info.subresource,
            namespace: if self.call.served.kind.namespaced() {
                &info.namespace
            } else {
                ""
            },
            name,
            object,
            old,
            options,
            user: &self.call.ask.user,
            dry_run: self.dry_run,
            warnings: Vec::new(),
            audit_annotations: Vec::new(),
            reservations: Reservations::default(),
        }
    }
}
