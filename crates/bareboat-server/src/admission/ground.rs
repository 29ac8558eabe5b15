//! What admission needs to know about a request beside the review itself.

use crate::audit::Audited;
use crate::kinds::stored_kind::StoredKind;
use crate::server::state::State;
use crate::spans::Recorder;
use bareboat_api::kind::Shape;
use bareboat_api::{Object, Status};
use std::sync::Arc;
use std::time::Instant;

/// What admission needs to know about a request beside the review itself.
pub(crate) struct Ground<'a> {
    pub(crate) state: &'a Arc<State>,
    /// The stored kind and the version of the request, if the objects under review are of that kind.
    pub(crate) served: Option<(&'a Arc<StoredKind>, usize)>,
    /// The shape of objects of another type, such as posted actions.
    pub(crate) shape: Option<&'a dyn Shape>,
    /// How Scales are made of the objects under review, for the scale subresource.
    pub(crate) scaled: Option<&'a dyn Scaled>,
    /// When the answer is due.
    pub(crate) deadline: Instant,
    pub(crate) audited: Option<&'a Arc<Audited>>,
    /// Records calls for distributed tracing.
    pub(crate) recorder: Option<&'a Arc<Recorder>>,
}

/// Shows objects as Scales.
pub(crate) trait Scaled: Send + Sync {
    /// Returns the Scale of an object.
    fn show(&self, whole: &Object) -> Result<Object, Status>;

    /// Writes a Scale that was changed into the object.
    fn write_back(&self, scale: &Object, whole: &mut Object) -> Result<(), Status>;
}
