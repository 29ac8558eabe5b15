//! Admission of requests that store nothing: posted reviews, and connections to subresources.

use super::chain::{mutate, validate};
use super::ground::Ground;
use crate::metrics::Step;
use crate::request::ask::Ask;
use crate::server::state::State;
use bareboat_api::admission::{Operation, RequestOptions, Review};
use bareboat_api::kind::{Kind, Reservations, Shape};
use bareboat_api::{Object, Status};
use std::sync::Arc;
use std::time::Instant;

/// A request that stores nothing.
pub(crate) struct Alone<'a> {
    pub(crate) state: &'a Arc<State>,
    pub(crate) ask: &'a Ask,
    pub(crate) kind: &'a Kind,
    pub(crate) operation: Operation,
    /// The shape of the object, if it has one.
    pub(crate) shape: Option<&'a dyn Shape>,
    pub(crate) options: &'a dyn RequestOptions,
    pub(crate) dry_run: bool,
}

impl Alone<'_> {
    /// Runs all of admission on an object, which plug-ins may change.
    pub(crate) async fn admit(&self, object: &mut Object) -> Result<(), Status> {
        let Alone { state, ask, .. } = self;
        let info = &ask.info;
        let own = object.name().to_owned();
        let ground = Ground {
            state,
            served: None,
            shape: self.shape,
            scaled: None,
            deadline: ask.deadline,
            audited: ask.trace.audited(),
            recorder: ask.trace.recorder(),
        };
        let mut review = Review {
            operation: self.operation,
            kind: self.kind,
            version: &info.version,
            subresource: &info.subresource,
            namespace: match self.kind.namespaced() {
                true => &info.namespace,
                false => "",
            },
            name: match info.name.is_empty() {
                true => &own,
                false => &info.name,
            },
            object: Some(object),
            old: None,
            options: self.options,
            user: &ask.user,
            dry_run: self.dry_run,
            warnings: Vec::new(),
            audit_annotations: Vec::new(),
            reservations: Reservations::default(),
        };
        let started = Instant::now();
        let mutated = mutate(&state.admission, &mut review, &ground).await;
        let measured = &state.metrics.admission;
        measured.observe(
            Step::Admit,
            self.operation,
            mutated.is_err(),
            started.elapsed(),
        );
        let result = match mutated {
            Err(status) => Err(status),
            Ok(_) => {
                let started = Instant::now();
                let validated = validate(&state.admission, &mut review, &ground).await;
                measured.observe(
                    Step::Validate,
                    self.operation,
                    validated.is_err(),
                    started.elapsed(),
                );
                validated
            }
        };
        for warning in std::mem::take(&mut review.warnings) {
            ask.warnings.add(warning);
        }
        if let Some(audited) = ask.trace.audited() {
            for (key, text) in &review.audit_annotations {
                audited.annotate(key, text);
            }
        }
        result
    }
}
