//! A request on its way through policies and webhooks: the review, the object in every form they ask for, and what was
//! changed.

use super::forms::{Form, forms_of};
use super::ground::Ground;
use super::matching::Target;
use bareboat_api::admission::Review;
use bareboat_api::{Object, Status, Str, Value};
use bytes::Bytes;
use std::collections::HashSet;
use std::sync::OnceLock;

/// The text of an object that does not exist.
const NULL: Bytes = Bytes::from_static(b"null");

/// What a stage remembers from the first to the second round: which of its members are called again.
#[derive(Debug, Default)]
pub(crate) struct Reinvocations {
    /// Members that were called in this round and may be called again.
    called: Vec<String>,
    again: HashSet<String>,
    /// The object as the stage left it.
    left: Option<Value>,
}

impl Reinvocations {
    /// Returns whether a member is called in the second round.
    pub(crate) fn wants(&self, member: &str) -> bool {
        self.again.contains(member)
    }

    /// Records that a member was called, which may be called again.
    pub(crate) fn called(&mut self, member: &str) {
        self.called.push(member.to_owned());
    }

    /// Records a change: members that were called before it are to be called again.
    pub(crate) fn changed(&mut self) {
        self.again.extend(self.called.drain(..));
    }

    /// Starts a round. In the second, a change by another part of the chain counts as well.
    pub(crate) fn begin(&mut self, round: usize, object: Option<&Value>) {
        if round > 0 && self.left.as_ref() != object {
            self.changed();
        }
    }

    /// Ends the first round.
    pub(crate) fn end(&mut self, round: usize, object: Option<&Value>) {
        if round == 0 && !(self.called.is_empty() && self.again.is_empty()) {
            self.left = object.cloned();
        }
    }
}

/// The objects in one form, converted and encoded when they are first needed.
#[derive(Default)]
struct View {
    is_ready: bool,
    /// Only for forms other than that of the request.
    object: Option<Object>,
    old: Option<Object>,
    object_text: OnceLock<Bytes>,
    old_text: OnceLock<Bytes>,
}

/// A request on its way through policies and webhooks.
pub(crate) struct Pass<'p, 'r> {
    review: &'p mut Review<'r>,
    ground: &'p Ground<'p>,
    forms: OnceLock<Vec<Form>>,
    /// By form.
    views: Vec<View>,
    round: usize,
    changed: bool,
}

impl<'p, 'r> Pass<'p, 'r> {
    pub(super) fn new(
        review: &'p mut Review<'r>,
        ground: &'p Ground<'p>,
        round: usize,
    ) -> Pass<'p, 'r> {
        Pass {
            review,
            ground,
            forms: OnceLock::new(),
            views: vec![View::default()],
            round,
            changed: false,
        }
    }

    /// The round of mutation: 0, or 1 if the chain runs again after a change.
    pub(crate) fn round(&self) -> usize {
        self.round
    }

    /// Returns the request in the terms of in-process plug-ins.
    pub(crate) fn review(&self) -> &Review<'r> {
        self.review
    }

    pub(crate) fn ground(&self) -> &'p Ground<'p> {
        self.ground
    }

    /// Returns what rules are matched against.
    pub(crate) fn target(&self) -> Target<'_> {
        Target::of(self.review)
    }

    /// Returns the groups that have the same objects, for an index of rules.
    pub(crate) fn aliases(&self) -> &'p [Str] {
        self.ground
            .state
            .admission
            .stages
            .groups_of(self.review.kind)
    }

    /// Returns the forms of the object: that of the request, then those equivalent to it.
    pub(crate) fn forms(&self) -> &[Form] {
        self.forms
            .get_or_init(|| forms_of(self.review, self.ground))
    }

    /// Returns a form. The first needs no lookup of others.
    pub(crate) fn form(&self, index: usize) -> Form {
        match index {
            0 => Form::own(self.review, self.ground),
            _ => self.forms()[index].clone(),
        }
    }

    /// Converts the objects to a form, once. Call it before the methods that return them.
    pub(crate) async fn prepare(&mut self, index: usize) -> Result<(), Status> {
        while self.views.len() <= index {
            self.views.push(View::default());
        }
        if index == 0 || self.views[index].is_ready {
            return Ok(());
        }
        let (own, form) = (self.form(0), self.form(index));
        let object = match self.review.object.as_deref() {
            Some(object) => form.convert(&own, object).await?,
            None => None,
        };
        let old = match self.review.old {
            Some(old) => form.convert(&own, old).await?,
            None => None,
        };
        let view = &mut self.views[index];
        *view = View {
            is_ready: true,
            object,
            old,
            ..View::default()
        };
        Ok(())
    }

    /// Returns the new object in a form.
    pub(crate) fn object(&self, index: usize) -> Option<&Value> {
        let converted = self.views.get(index).and_then(|view| view.object.as_ref());
        let object = converted.or(self.review.object.as_deref());
        object.map(Object::value)
    }

    /// Returns the old object in a form.
    pub(crate) fn old(&self, index: usize) -> Option<&Value> {
        let converted = self.views.get(index).and_then(|view| view.old.as_ref());
        converted.or(self.review.old).map(Object::value)
    }

    /// Returns the new object in a form as JSON, encoded once; `null` if there is none.
    pub(crate) fn object_text(&self, index: usize) -> Bytes {
        match (self.object(index), self.views.get(index)) {
            (Some(object), Some(view)) => {
                let text = &view.object_text;
                text.get_or_init(|| Bytes::from(object.to_json())).clone()
            }
            _ => NULL,
        }
    }

    /// Returns the old object in a form as JSON, encoded once; `null` if there is none.
    pub(crate) fn old_text(&self, index: usize) -> Bytes {
        match (self.old(index), self.views.get(index)) {
            (Some(old), Some(view)) => {
                let text = &view.old_text;
                text.get_or_init(|| Bytes::from(old.to_json())).clone()
            }
            _ => NULL,
        }
    }

    /// Replaces the new object by one that was made from it in this form: drops unknown fields, fills in defaults and
    /// converts it to the form of the request. Returns whether anything changed.
    pub(crate) async fn replace(&mut self, index: usize, new: Value) -> Result<bool, Status> {
        let (own, form) = (self.form(0), self.form(index));
        let mut new = Object::try_from(new)
            .map_err(|_| Status::internal("the patched object is not a JSON object"))?;
        form.conform(self.ground, &mut new)?;
        if self.object(index) == Some(new.value()) {
            return Ok(false);
        }
        let back = match index {
            0 => None,
            _ => own.convert(&form, &new).await?,
        };
        let (whole, shown) = match back {
            Some(mut back) => {
                own.conform(self.ground, &mut back)?;
                (back, Some(new))
            }
            None => (new, None),
        };
        let Some(object) = self.review.object.as_deref_mut() else {
            return Err(Status::internal("there is no object to change"));
        };
        *object = whole;
        // Old objects do not change.
        for (at, view) in self.views.iter_mut().enumerate() {
            view.object_text = OnceLock::new();
            if at == index {
                view.object = shown.clone();
            } else {
                view.object = None;
                view.is_ready = false;
            }
        }
        self.changed = true;
        Ok(true)
    }

    /// Returns whether a policy or a webhook changed the object in this round.
    pub(crate) fn has_changed(&self) -> bool {
        self.changed
    }

    /// Adds a warning for the client.
    pub(crate) fn warn(&mut self, text: String) {
        self.review.warnings.push(text);
    }

    /// Adds a remark to the audit event.
    pub(crate) fn annotate(&mut self, key: String, text: String) {
        self.review.audit_annotations.push((key, text));
    }
}
