//! CEL, the Common Expression Language, in Kubernetes' dialect: types, libraries, cost.
//!
//! Expressions are compiled against an [`Env`] and evaluated directly on JSON values, without
//! converting them. No I/O, no clock; authorization checks go through [`Authorizer`].
//!
//! ```
//! use bareboat_api::value;
//! use bareboat_cel::{Budget, DeclType, Env, Field, ObjectType, Val, Variables, estimate_cost};
//!
//! // What the expression may see: usually `DeclType::from_schema` makes this from a schema.
//! let fields = ["replicas", "maxReplicas"];
//! let fields = fields.iter().filter_map(|name| Field::new(name, DeclType::int()));
//! let spec = DeclType::object(ObjectType::new("spec", fields.collect()));
//!
//! let env = Env::kubernetes().declare("self", &spec);
//! let checked = env.compile("self.replicas <= self.maxReplicas").expect("it makes sense");
//! assert_eq!(checked.result_type().name(), "bool");
//! assert!(!checked.uses("oldSelf"));
//! assert_eq!(estimate_cost(&env, &checked, &*spec).max, 5);
//! let program = env.program(&checked).expect("nothing in it fails early");
//!
//! let data = value!({"replicas": 3, "maxReplicas": 5});
//! let variables = Variables::new().bind("self", Val::of(&data, &spec));
//! let mut budget = Budget::new(10_000_000);
//! let result = program.eval(&variables, &mut budget).expect("all fields are there");
//! assert_eq!(result.as_bool(), Some(true));
//! assert_eq!(budget.last_cost(), 5);
//! ```

mod admission;
mod budget;
mod check;
mod cost;
mod decl;
mod devices;
mod env;
mod error;
mod escape;
mod eval;
mod issue;
mod library;
mod program;
mod syntax;
mod types;
mod value;

pub use admission::{AdmissionEnv, Purpose, Refused};
pub use budget::{Budget, PER_CALL_LIMIT};
pub use check::Checked;
pub use cost::{CostEstimate, NoHints, SizeHints, estimate_cost};
pub use decl::{DeclType, Field, ObjectType, SchemaView};
pub use devices::{DeviceSelector, SELECTOR_COST, compile_device_selector};
pub use env::Env;
pub use error::EvalError;
pub use escape::{escape, is_identifier};
pub use eval::{Activation, Variables};
pub use issue::{Issue, Issues};
pub use library::go_regex::{GoPattern, PatternSize, check_pattern, forget_idle_patterns};
pub use library::{AccessCheck, AccessDecision, Authorizer, Library};
pub use program::Program;
pub use types::{Opaque, Param, Type};
pub use value::{Built, Entries, List, MapVal, Moment, Object, SpecialVal, Text, Val};
