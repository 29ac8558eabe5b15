//! What a program can do with the library: read filters, searches, stores, writes, hooks, computed kinds, rules.
#![allow(clippy::unwrap_used)]

mod calls;
mod computed;
mod filters;
mod groups;
mod hooks;
mod kinds;
mod stores;
