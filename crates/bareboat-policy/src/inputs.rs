//! The values of variables: what expressions read of a request.

use bareboat_api::Value;
use bareboat_cel::{AccessCheck, Authorizer};
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

/// A first attempt with small limits, for callers that must not take long. If it exceeded them, its result means
/// nothing, and the caller evaluates again without a trial.
#[derive(Debug, Default)]
pub struct Trial(Cell<bool>);

impl Trial {
    /// Returns whether the limits were exceeded.
    pub fn exceeded(&self) -> bool {
        self.0.get()
    }

    pub(crate) fn exceed(&self) {
        self.0.set(true);
    }
}

/// The values of the variables of one evaluation.
#[derive(Clone)]
pub struct Inputs<'a> {
    /// The new object; none for deletions.
    pub object: Option<&'a Value>,
    /// The object before the request; none for creations.
    pub old_object: Option<&'a Value>,
    /// The request: an AdmissionRequest without uid and objects. Empty members are absent, as in its JSON.
    pub request: &'a Value,
    /// The parameters, if any.
    pub params: Option<&'a Value>,
    /// The namespace of the object; none for cluster-scoped objects.
    pub namespace: Option<&'a Value>,
    /// Answers checks of `authorizer` for the user of the request.
    pub authorizer: Option<Arc<dyn Authorizer>>,
    /// The resource of the request, for `authorizer.requestResource`.
    pub request_resource: AccessCheck,
    /// Makes the evaluation an attempt with small limits.
    pub trial: Option<&'a Trial>,
}

impl<'a> Inputs<'a> {
    /// Returns inputs without parameters, namespace and authorizer.
    pub fn new(
        object: Option<&'a Value>,
        old_object: Option<&'a Value>,
        request: &'a Value,
    ) -> Inputs<'a> {
        Inputs {
            object,
            old_object,
            request,
            params: None,
            namespace: None,
            authorizer: None,
            request_resource: AccessCheck::default(),
            trial: None,
        }
    }
}

impl fmt::Debug for Inputs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Objects may be confidential.
        f.debug_struct("Inputs").finish_non_exhaustive()
    }
}
