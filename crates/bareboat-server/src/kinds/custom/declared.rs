//! Conversion by the expressions a definition declares, compiled when the first object needs them.
//!
//! What they mean is `bareboat_schema`'s to know; conversion by webhook is next door, in `conversion`.

use super::shape::read;
use super::warm::{Lazy, Warm};
use bareboat_api::kind::{ConvertError, PureConvert};
use bareboat_schema::crd::Conversions;
use bareboat_storage::Entry;
use std::sync::Arc;

/// The conversions declared by the definition an entry holds.
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
