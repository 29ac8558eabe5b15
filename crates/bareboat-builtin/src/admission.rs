//! Admission that belongs to built-in kinds: upstream's default plug-ins, as far as they need no network.

mod completion;
mod limit_ranger;
mod namespace_lifecycle;

pub use completion::{Completion, complete_on_create, complete_on_update};
pub use limit_ranger::LimitRanger;
pub use namespace_lifecycle::NamespaceLifecycle;
