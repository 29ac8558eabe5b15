//! Tests of the size of programs, because servers keep thousands of them.

#![allow(clippy::unwrap_used)]

use crate::program::Op;
use crate::{DeclType, Env, Val};

#[test]
fn operations_and_values_stay_small() {
    assert!(size_of::<Op>() <= 24, "{}", size_of::<Op>());
    assert!(size_of::<Val<'_>>() <= 32, "{}", size_of::<Val<'_>>());
}

#[test]
fn names_and_constants_are_kept_once() {
    let decl = DeclType::map(DeclType::int(), 10);
    let env = Env::kubernetes().declare("self", &decl);
    let checked = env
        .compile("self.a + self.a + self.b > 0 && self.a in [1, 2]")
        .unwrap();
    let program = env.program(&checked).unwrap();
    assert_eq!(program.code.fields.len(), 2);
    assert_eq!(program.code.variables.len(), 1);
}

#[test]
fn programs_are_shared_between_threads() {
    fn shared<T: Send + Sync + Clone>() {}
    shared::<crate::Program>();
    shared::<Env>();
}
