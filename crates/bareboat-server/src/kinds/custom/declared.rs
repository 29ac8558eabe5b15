//! Conversion by the expressions that a definition declares, compiled when the first object needs them.
//!
//! `bareboat_schema` evaluates them; `conversion` implements conversion by webhook.

use super::shape::read;
use super::warm::{Lazy, Warm};
use bareboat_api::kind::{ConvertError, PureConvert};
use bareboat_schema::crd::Conversions;
use bareboat_storage::Entry;
use std::sync::Arc;

/// Returns the conversions that the definition in an entry declares.
pub(super) fn converter(entry: Arc<Entry>, warm: Arc<Warm>) -> PureConvert {
    let compiled: Arc<Lazy<Option<Arc<Conversions>>>> = Lazy::new(&warm);
    Arc::new(move |object, to, _live| {
        let compiled = compiled.get(|| Conversions::of(&read(&entry), warm.schemas()));
        match &*compiled {
            Some(conversions) => conversions.convert(object, to),
            None => Err(ConvertError("no conversion is declared".to_owned())),
        }
    })
}
