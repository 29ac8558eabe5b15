//! Whether the rules of a definition compile, have the right types and are cheap enough.

use crate::schema::Node;
use bareboat_api::{FieldError, FieldPath};
use std::marker::PhantomData;

/// What is known at a place of a schema about the expressions there.
#[derive(Clone, Default)]
pub(super) struct Scope {}

impl Scope {
    pub(super) fn root(_root: Option<&Node>) -> Scope {
        Scope {}
    }
    pub(super) fn property(&self, _parent: Option<&Node>, _name: &str, _node: Option<&Node>) -> Scope {
        Scope {}
    }
    pub(super) fn element(&self, _parent: Option<&Node>, _node: Option<&Node>) -> Scope {
        Scope {}
    }
}

/// Checks expressions and adds up what they may cost.
pub(super) struct Expressions<'a> {
    pub(super) marker: PhantomData<&'a ()>,
}

impl Expressions<'_> {
    pub(super) fn new(_limit_each: bool) -> Self {
        Expressions { marker: PhantomData }
    }

    pub(super) fn check_total(&self, _path: &FieldPath, _errors: &mut Vec<FieldError>) {}

    pub(super) fn check(
        &mut self,
        _node: &Node,
        _scope: &Scope,
        _path: &FieldPath,
        _uncorrelatable: Option<&FieldPath>,
    ) -> Vec<FieldError> {
        Vec::new()
    }
}
