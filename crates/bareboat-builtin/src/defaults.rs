//! Static defaults of built-in kinds.
//!
//! Each function takes an object that conforms to its type and sets the defaults; one file per family of kinds.
//! Strategies set values that depend on the user or on other objects.

mod apps;
mod batch;
mod core;
mod extension;
mod network;
mod pod;
mod resource;
mod storage;
mod volume;

pub(crate) use apps::*;
pub(crate) use batch::*;
pub(crate) use core::*;
pub(crate) use extension::*;
pub(crate) use network::*;
pub(crate) use pod::{pod, pod_template};
pub(crate) use resource::*;
pub(crate) use storage::*;

use bareboat_api::quantity::Quantity;
use bareboat_api::{Map, Value};

/// Sets no defaults.
pub(crate) fn none(_object: &mut Value) {}

/// Returns the `spec` of an object.
fn spec(object: &mut Value) -> &mut Map {
    object.make_object().object_mut("spec")
}

/// Rounds resource amounts up to thousandths.
fn round_resources(list: Option<&mut Map>) {
    for (_, amount) in list.into_iter().flat_map(Map::iter_mut) {
        // Only amounts below thousandths need rounding; most texts have no such suffix.
        let Some(quantity) = amount
            .as_str()
            .filter(|text| text.ends_with(['n', 'u']))
            .and_then(|text| Quantity::parse(text).ok())
        else {
            continue;
        };
        let rounded = Quantity::from_millis(quantity.millis(), quantity.format());
        *amount = rounded.to_string().into();
    }
}
