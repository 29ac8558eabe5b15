//! Label and field selectors, evaluated on the requested version.

use crate::kinds::stored_kind::StoredKind;
use crate::request::options::ListOptions;
use bareboat_api::kind::{FieldSelectors, Search, Sees, SelectableField, UnknownField};
use bareboat_api::{Object, Status, fields, labels};
use bareboat_storage::{Entry, LabelSignature};
use std::collections::HashSet;
use std::sync::Arc;

/// Selectors, prepared for many objects of one kind and version.
#[derive(Clone)]
pub(crate) struct Selection {
    labels: Option<labels::Selector>,
    /// Terms on name and namespace, which the key answers.
    keyed: Vec<(KeyPart, fields::Term)>,
    /// Terms that need the object in the requested version.
    deep: Vec<(SelectableField, fields::Term)>,
    /// Terms that a function of the kind answers.
    searches: Vec<(Search, fields::Term)>,
    /// The keys that the searches found.
    found: Option<Arc<HashSet<String>>>,
    /// What the user sees, if the kind has a read filter.
    sees: Option<Sees>,
    /// Signature that the stored labels of every match have.
    signature: LabelSignature,
    /// Whether labels of the requested version differ from the stored ones.
    labels_need_object: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyPart {
    Name,
    Namespace,
}

impl Selection {
    /// Parses the selectors of a request.
    pub(crate) fn parse(
        served: &StoredKind,
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
                && served.storage_version() != Some(version),
            signature: LabelSignature::default(),
            labels,
            keyed: Vec::new(),
            deep: Vec::new(),
            searches: Vec::new(),
            found: None,
            sees: None,
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
        served: &StoredKind,
        version: usize,
        term: fields::Term,
    ) -> Result<(), Status> {
        match term.field.as_str() {
            "metadata.name" => self.keyed.push((KeyPart::Name, term)),
            "metadata.namespace"
                if served.kind.namespaced()
                    || served.kind.conventions.field_selectors == FieldSelectors::Typed =>
            {
                self.keyed.push((KeyPart::Namespace, term));
            }
            other => {
                let searches = &served.kind.searches;
                if let Some(search) = searches.iter().find(|search| search.field == other) {
                    if term.negated {
                        let why = format!("field label {other} does not support !=");
                        return Err(Status::bad_request(why));
                    }
                    self.searches.push((search.clone(), term));
                    return Ok(());
                }
                let known = &served.version(version).selectable;
                match known.iter().find(|field| field.name == other) {
                    Some(field) => self.deep.push((field.clone(), term)),
                    None => return Err(unknown_field(served, version, other)),
                }
            }
        }
        Ok(())
    }

    /// Returns whether every object matches.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_none()
            && self.keyed.is_empty()
            && self.deep.is_empty()
            && self.searches.is_empty()
            && self.sees.is_none()
    }

    /// Returns whether matching needs the object, beyond key and stored labels.
    pub(crate) fn needs_object(&self) -> bool {
        !self.deep.is_empty()
            || self.sees.is_some()
            || (self.labels_need_object && self.labels.is_some())
    }

    /// Shows only what the user sees.
    pub(crate) fn limit_to(&mut self, sees: Option<Sees>) {
        self.sees = sees;
    }

    /// Returns the terms that a function of the kind answers.
    pub(crate) fn searches(&self) -> &[(Search, fields::Term)] {
        &self.searches
    }

    /// Limits the selection to the keys that the searches found.
    pub(crate) fn found(&mut self, keys: HashSet<String>) {
        self.found = Some(Arc::new(keys));
    }

    /// Returns the only name that can match.
    pub(crate) fn pinned_name(&self) -> Option<&str> {
        self.pinned(KeyPart::Name)
    }

    /// Returns the only namespace that can match.
    pub(crate) fn pinned_namespace(&self) -> Option<&str> {
        self.pinned(KeyPart::Namespace)
    }

    fn pinned(&self, part: KeyPart) -> Option<&str> {
        self.keyed
            .iter()
            .find(|(of, term)| *of == part && !term.negated)
            .map(|(_, term)| term.value.as_str())
    }

    /// Returns one label with its value that every match has, for the index of watchers.
    pub(crate) fn label_hint(&self) -> Option<(&str, &str)> {
        if self.labels_need_object {
            return None;
        }
        self.labels.as_ref()?.equality_terms().next()
    }

    /// Returns the signature that the stored labels of every match have.
    pub(crate) fn signature(&self) -> LabelSignature {
        self.signature
    }

    /// Returns whether an entry matches by its key and stored labels.
    pub(crate) fn matches_entry(&self, entry: &Entry) -> bool {
        self.keyed.iter().all(|(part, term)| {
            term.matches(match part {
                KeyPart::Name => entry.name(),
                KeyPart::Namespace => entry.namespace().unwrap_or(""),
            })
        }) && self
            .found
            .as_ref()
            .is_none_or(|found| found.contains(entry.key()))
            && match &self.labels {
                Some(selector) if !self.labels_need_object => {
                    let facets = entry.facets();
                    selector.matches(|key| facets.label(key))
                }
                _ => true,
            }
    }

    /// Returns whether an object of the requested version matches the terms that an entry cannot answer.
    pub(crate) fn matches_object(&self, object: &Object) -> bool {
        let labels = match &self.labels {
            Some(selector) if self.labels_need_object => {
                selector.matches_map(object.meta("labels").and_then(|labels| labels.as_object()))
            }
            _ => true,
        };
        labels
            && self.sees.as_ref().is_none_or(|sees| sees(object))
            && self
                .deep
                .iter()
                .all(|(field, term)| term.matches(&(field.read)(object.value())))
    }

    /// Returns whether an object that is not stored matches.
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

fn unknown_field(served: &StoredKind, version: usize, field: &str) -> Status {
    let plain = served.version(version).selectable.is_empty();
    let shown = bareboat_api::field::go_quote(field);
    let kind = &served.kind.names.kind;
    if !plain || served.kind.conventions.field_selectors == FieldSelectors::Declared {
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
