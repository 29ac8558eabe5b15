//! The environment of device selectors: the variable `device`, and the cost limit of a selector.
//!
//! Upstream: dynamic-resource-allocation cel/compile.go.

use std::sync::{Arc, LazyLock};

use bareboat_api::Str;

use crate::admission::Refused;
use crate::cost::{SizeHints, estimate_cost};
use crate::decl::{DeclType, Field, ObjectType};
use crate::env::Env;
use crate::program::Program;
use crate::types::Type;

/// The cost limit of evaluating a selector.
pub const SELECTOR_COST: u64 = 1_000_000;

const DOMAIN_LENGTH: u64 = 63;
const ID_LENGTH: u64 = 32;
const DRIVER_LENGTH: u64 = 63;
const VALUE_LENGTH: u64 = 64;
/// The maximum number of attributes and capacities together.
const ENTRIES: u64 = 32;

/// A compiled device selector.
pub struct DeviceSelector {
    /// The program; its result is a boolean or an attribute.
    pub program: Program,
    /// The estimated maximum cost.
    pub max_cost: u64,
}

bareboat_api::opaque_debug!(DeviceSelector);

/// Compiles a device selector.
pub fn compile_device_selector(expression: &str) -> Result<DeviceSelector, Refused> {
    let (env, device) = (&ENV.0, &ENV.1);
    let checked = env
        .compile(expression)
        .map_err(|issues| Refused::Invalid(format!("compilation failed: {issues}")))?;
    let given = checked.result_type();
    // An attribute may be a boolean, so its unknown type is accepted; `dyn` is rejected.
    if !matches!(given, Type::Bool | Type::Any) {
        return Err(Refused::Invalid(format!(
            "must evaluate to bool or the unknown type, not {}",
            given.full_name()
        )));
    }
    let program = env
        .program(&checked)
        .map_err(|error| Refused::Hopeless(format!("program instantiation failed: {error}")))?;
    let max_cost = estimate_cost(env, &checked, &Hints(device)).max;
    Ok(DeviceSelector { program, max_cost })
}

/// The size limits of a device.
struct Hints<'a>(&'a DeclType);

impl SizeHints for Hints<'_> {
    fn max_size(&self, path: &[Str]) -> Option<u64> {
        let (root, below) = path.split_first()?;
        if root != "device" {
            return None;
        }
        // Keys are strings: domains in the outer map, identifiers in the inner one. Selecting an
        // attribute by name counts like indexing the map.
        match below {
            [map, keys] if is_map(map) && keys == "@keys" => return Some(DOMAIN_LENGTH),
            [map, _, keys] if is_map(map) && keys == "@keys" => return Some(ID_LENGTH),
            [map, values, _] if map == "attributes" && values == "@values" => {
                return Some(VALUE_LENGTH);
            }
            _ => {}
        }
        self.0.at(below).map(DeclType::max_elements)
    }
}

fn is_map(name: &str) -> bool {
    matches!(name, "attributes" | "capacity")
}

static ENV: LazyLock<(Env, Arc<DeclType>)> = LazyLock::new(|| {
    let maps_of = |value: Arc<DeclType>| DeclType::map(DeclType::map(value, ENTRIES), ENTRIES);
    let quantity = DeclType::host(Type::message("kubernetes.Quantity"));
    let fields = vec![
        Field::exact("driver", DeclType::string_up_to(DRIVER_LENGTH)),
        Field::exact("allowMultipleAllocations", DeclType::bool()),
        Field::exact("attributes", maps_of(DeclType::any_up_to(VALUE_LENGTH))),
        Field::exact("capacity", maps_of(quantity)),
    ];
    let device = DeclType::object(ObjectType::new("kubernetes.DRADevice", fields));
    (Env::devices().declare("device", &device), device)
});

#[cfg(test)]
mod tests;
