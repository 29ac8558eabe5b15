//! From a decoded object to one that may be stored: admission, preparation, validation.

use super::metadata::{self, Found};
use crate::admission;
use crate::metrics::Step;
use crate::verbs::call::Call;
use bareboat_api::admission::{Operation, Review};
use bareboat_api::kind::{Fields, Generation, Holds, SubresourceRole, WriteContext};
use bareboat_api::metadata::{validate_metadata, validate_metadata_update};
use bareboat_api::{FieldError, FieldPath, Object, Status, Str, Value};
use std::time::Instant;

/// One write on its way.
pub(crate) struct Pipeline<'a> {
    pub(crate) call: &'a Call,
    pub(crate) dry_run: bool,
    pub(crate) now: Str,
}

/// Sets a field back to what it was.
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

/// What may be stored, and what is held until it is.
pub(crate) struct Ready {
    pub(crate) object: Object,
    pub(crate) held: Holds,
}

impl<'a> Pipeline<'a> {
    pub(crate) fn new(call: &'a Call, dry_run: bool) -> Pipeline<'a> {
        Pipeline {
            call,
            dry_run,
            now: metadata::now(),
        }
    }

    /// The circumstances, as strategies are told them.
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

    /// What the subresource of the request is; nothing for the object itself.
    fn role(&self) -> Option<&SubresourceRole> {
        let name = &self.call.ask.info.subresource;
        self.call
            .version()
            .subresource(name)
            .map(|subresource| &subresource.role)
    }

    /// The namespace new objects live in.
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

    /// Takes a decoded object all the way to what may be created.
    pub(crate) async fn create(&self, mut object: Object) -> Result<Ready, Status> {
        self.stamp(&mut object)?;
        let kind = &self.call.served.kind;
        if kind.terminating {
            let why = "create not allowed while custom resource definition is terminating";
            let name = object.name();
            return Err(Status::forbidden(kind.group_resource(), name, why));
        }
        self.admit(Operation::Create, Some(&mut object), None)
            .await?;
        let mut held = self.complete(&mut object)?;
        let checked = self.check(Operation::Create, Some(&mut object), None);
        held.append(checked.await?);
        Ok(Ready { object, held })
    }

    /// Takes an object that the server itself makes all the way to what may be created: nobody else is asked.
    pub(crate) fn make(&self, mut object: Object) -> Result<Ready, Status> {
        self.stamp(&mut object)?;
        let held = self.complete(&mut object)?;
        Ok(Ready { object, held })
    }

    /// Drops owners that stand there twice, and says so. What a patch makes is looked at once admission has seen it.
    fn drop_duplicate_owners(&self, object: &mut Object, when: Found) {
        if when == Found::AfterAdmission || self.call.ask.info.verb != "patch" {
            self.warn(metadata::drop_duplicate_owners(object, when));
        }
    }

    /// Gives a new object its metadata.
    fn stamp(&self, object: &mut Object) -> Result<(), Status> {
        let counts = self.call.served.kind.policy.generation != Generation::Untracked;
        metadata::for_create(object, self.namespace(), counts, &self.now)?;
        metadata::tidy(object);
        self.drop_duplicate_owners(object, Found::BeforeAdmission);
        Ok(())
    }

    /// Completes a new object and judges it; gives what is held for it.
    fn complete(&self, object: &mut Object) -> Result<Holds, Status> {
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

    /// Takes a changed object all the way to what may replace `live`.
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

    /// A write to the object keeps its status, a write to the status keeps the object, and a write to an object as it
    /// is stored keeps everything but metadata.
    fn keep_what_is_not_addressed(&self, object: &mut Object, live: &Object) {
        if self.call.ask.as_stored {
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

    /// Built-in kinds always show a status, if an empty one; custom kinds only what they have.
    fn set_status(&self, object: &mut Object, status: Option<&Value>) {
        match status {
            Some(status) => {
                object.map_mut().insert("status", status.clone());
            }
            None if self.call.served.kind.custom => {
                object.map_mut().remove("status");
            }
            None => {
                object.map_mut().insert("status", Value::object());
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
        let mut errors = Vec::new();
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
        let mut errors = Vec::new();
        let empty = bareboat_api::Map::new();
        let path = FieldPath::new("metadata");
        let (new, old) = (
            object.metadata().unwrap_or(&empty),
            live.metadata().unwrap_or(&empty),
        );
        errors.extend(validate_metadata_update(new, old, &path));
        // What is stored may have a form that nobody knows any more, and it did not change.
        if !self.call.ask.as_stored {
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

    fn refuse(&self, object: &Object, errors: Vec<FieldError>) -> Result<(), Status> {
        if errors.is_empty() {
            return Ok(());
        }
        Err(Status::invalid(
            self.call.served.kind.group_kind(),
            object.name(),
            &errors,
        ))
    }

    /// Lets mutating admission have its say.
    pub(crate) async fn admit(
        &self,
        operation: Operation,
        object: Option<&mut Object>,
        old: Option<&Object>,
    ) -> Result<(), Status> {
        let state = &self.call.state;
        let mut review = self.review(operation, object, old);
        let started = Instant::now();
        let result = admission::mutate(&state.admission, &mut review, state.as_ref()).await;
        let measured = &state.metrics.admission;
        measured.observe(Step::Admit, operation, result.is_err(), started);
        let warnings = std::mem::take(&mut review.warnings);
        self.warn(warnings);
        result
    }

    /// Lets validating admission have its say; gives what it holds for the write.
    pub(crate) async fn check(
        &self,
        operation: Operation,
        object: Option<&mut Object>,
        old: Option<&Object>,
    ) -> Result<Holds, Status> {
        let state = &self.call.state;
        let mut review = self.review(operation, object, old);
        let started = Instant::now();
        let result = admission::validate(&state.admission, &mut review, state.as_ref()).await;
        let measured = &state.metrics.admission;
        measured.observe(Step::Validate, operation, result.is_err(), started);
        let warnings = std::mem::take(&mut review.warnings);
        let holds = std::mem::take(&mut review.holds);
        drop(review);
        self.warn(warnings);
        result.map(|()| holds)
    }

    fn review<'r>(
        &'r self,
        operation: Operation,
        object: Option<&'r mut Object>,
        old: Option<&'r Object>,
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
            name: &info.name,
            object,
            old,
            user: &self.call.ask.user,
            dry_run: self.dry_run,
            warnings: Vec::new(),
            holds: Holds::default(),
        }
    }
}
