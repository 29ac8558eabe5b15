//! Which objects of a collection are meant: label and field selectors on the requested version.

use crate::kinds::served::Served;
use crate::request::options::ListOptions;
use bareboat_api::kind::{SelectableField, UnknownField};
use bareboat_api::{Object, Status, fields, labels};
use bareboat_storage::{Entry, LabelSignature};

/// Selectors, made ready for many objects of one kind and version.
#[derive(Clone)]
pub(crate) struct Selection {
    labels: Option<labels::Selector>,
    /// Terms about the name and the namespace, which the key answers.
    keyed: Vec<(KeyPart, fields::Term)>,
    /// Terms that need the object in the requested version.
    deep: Vec<(SelectableField, fields::Term)>,
    /// What the stored labels of every match have in common.
    signature: LabelSignature,
    /// Labels of the requested version are not those that are stored.
    labels_need_object: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyPart {
    Name,
    Namespace,
}

impl Selection {
    /// Reads the selectors of a request.
    pub(crate) fn parse(
        served: &Served,
        version: usize,
        options: &ListOptions,
    ) -> Result<Selection, Status> {
        let labels = match &options.label_selector {
            None => None,
            Some(text) => {
                let selector = labels::Selector::parse(text)
                    .map_err(|error| Status::bad_request(error.to_string()))?;
                (!selector.is_everything()).then_some(selector)
            }
        };
        let mut selection = Selection {
            labels_need_object: !served.metadata_is_shared()
                && served.stored_version() != Some(version),
            signature: LabelSignature::default(),
            labels,
            keyed: Vec::new(),
            deep: Vec::new(),
        };
        if let Some(selector) = &selection.labels
            && !selection.labels_need_object
        {
            selection.signature = LabelSignature::of(selector.equality_terms());
        }
        if let Some(text) = &options.field_selector {
            let selector = fields::Selector::parse(text)
                .map_err(|error| Status::bad_request(error.to_string()))?;
            for term in selector.terms() {
                selection.add_field(served, version, term.clone())?;
            }
        }
        Ok(selection)
    }

    fn add_field(
        &mut self,
        served: &Served,
        version: usize,
        term: fields::Term,
    ) -> Result<(), Status> {
        match term.field.as_str() {
            "metadata.name" => self.keyed.push((KeyPart::Name, term)),
            // Cluster-scoped built-in kinds tolerate the term, too: their namespace is empty.
            "metadata.namespace" if served.kind.namespaced() || !served.kind.custom => {
                self.keyed.push((KeyPart::Namespace, term));
            }
            other => {
                let known = &served.version(version).selectable;
                match known.iter().find(|field| field.name == other) {
                    Some(field) => self.deep.push((field.clone(), term)),
                    None => return Err(unknown_field(served, version, other)),
                }
            }
        }
        Ok(())
    }

    /// Whether everything is meant.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_none() && self.keyed.is_empty() && self.deep.is_empty()
    }

    /// Whether the object itself must be looked at, beyond key and stored labels.
    pub(crate) fn needs_object(&self) -> bool {
        !self.deep.is_empty() || (self.labels_need_object && self.labels.is_some())
    }

    /// The one name that can match.
    pub(crate) fn pinned_name(&self) -> Option<&str> {
        self.pinned(KeyPart::Name)
    }

    /// The one namespace that can match.
    pub(crate) fn pinned_namespace(&self) -> Option<&str> {
        self.pinned(KeyPart::Namespace)
    }

    fn pinned(&self, part: KeyPart) -> Option<&str> {
        self.keyed
            .iter()
            .find(|(of, term)| *of == part && !term.negated)
            .map(|(_, term)| term.value.as_str())
    }

    /// One label with its value that every match carries, for the index of watchers.
    pub(crate) fn label_hint(&self) -> Option<(&str, &str)> {
        if self.labels_need_object {
            return None;
        }
        self.labels.as_ref()?.equality_terms().next()
    }

    /// What the stored labels of every match have in common.
    pub(crate) fn signature(&self) -> LabelSignature {
        self.signature
    }

    /// Whether an entry matches as far as its key and stored labels tell.
    pub(crate) fn matches_entry(&self, entry: &Entry) -> bool {
        self.keyed.iter().all(|(part, term)| {
            term.matches(match part {
                KeyPart::Name => entry.name(),
                KeyPart::Namespace => entry.namespace().unwrap_or(""),
            })
        }) && match &self.labels {
            Some(selector) if !self.labels_need_object => {
                let facets = entry.facets();
                selector.matches(|key| facets.label(key))
            }
            _ => true,
        }
    }

    /// Whether an object of the requested version matches, beyond what the entry told.
    pub(crate) fn matches_object(&self, object: &Object) -> bool {
        let labels = match &self.labels {
            Some(selector) if self.labels_need_object => {
                selector.matches_map(object.meta("labels").and_then(|labels| labels.as_object()))
            }
            _ => true,
        };
        labels
            && self
                .deep
                .iter()
                .all(|(field, term)| term.matches(&(field.read)(object.value())))
    }

    /// Whether an object that is in no store matches.
    pub(crate) fn matches_loose(&self, object: &Object) -> bool {
        self.keyed.iter().all(|(part, term)| {
            term.matches(match part {
                KeyPart::Name => object.name(),
                KeyPart::Namespace => object.namespace(),
            })
        }) && self.labels.as_ref().is_none_or(|selector| {
            selector.matches_map(object.meta("labels").and_then(|labels| labels.as_object()))
        }) && self
            .deep
            .iter()
            .all(|(field, term)| term.matches(&(field.read)(object.value())))
    }
}

fn unknown_field(served: &Served, version: usize, field: &str) -> Status {
    let plain = served.version(version).selectable.is_empty();
    let shown = bareboat_api::field::go_quote(field);
    let kind = &served.kind.names.kind;
    if served.kind.custom || !plain {
        return Status::bad_request(match served.kind.policy.unknown_field {
            UnknownField::Plain => format!("field label not supported: {field}"),
            UnknownField::OfKind => format!("field label {shown} not supported for {kind}"),
            UnknownField::OfType => {
                let of = served.api_version(version);
                format!("field label not supported for {of}, Kind={kind}: {field}")
            }
        });
    }
    Status::bad_request(format!(
        "{shown} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    ))
}
