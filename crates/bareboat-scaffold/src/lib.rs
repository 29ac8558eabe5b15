//! Files that Bareboat writes for its users: new projects, additions to projects, kubectl plug-ins.
//!
//! Text in, text out: the caller reads and writes files. `templates/` has the text of projects, with names in `@{…}`;
//! `tests/scaffolds` of the repository has projects made from them, which are built and tested with everything else.

pub mod add;
mod definition;
pub mod diff;
mod edit;
mod go;
pub mod names;
pub mod plugin;
pub mod project;
mod python;
mod rust;
mod template;

pub use project::{File, Flavor, Language, Project, create};
