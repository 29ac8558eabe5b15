//! What built-in kinds fill in when a writer left it out.
//!
//! Functions from an object that conforms to its type to the same object with defaults; one file
//! per family of kinds. Values that depend on who writes or on other objects are filled in by
//! strategies.

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

/// The defaults of kinds that have none.
pub(crate) fn none(_object: &mut Value) {}

/// The members of an object and of its `spec`.
fn spec(object: &mut Value) -> &mut Map {
    object.make_object().object_mut("spec")
}

/// Amounts of resources are counted in thousandths; finer ones are rounded up.
fn round_resources(list: Option<&mut Map>) {
    for (_, amount) in list.into_iter().flat_map(Map::iter_mut) {
        // Only amounts in millionths or finer can be rounded; most texts end in none of these.
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
