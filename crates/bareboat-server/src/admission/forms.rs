//! The forms of an object: the versions in which it is served, and the groups that have the same objects.

use super::ground::Ground;
use super::matching::Place;
use crate::kinds::catalog::Backing;
use crate::kinds::stored_kind::StoredKind;
use bareboat_api::admission::Review;
use bareboat_api::kind::{Kind, Shape, SubresourceRole};
use bareboat_api::{Object, Status, Str};
use std::sync::Arc;

/// A form of the object under review.
#[derive(Clone)]
pub(crate) struct Form {
    /// Group, version and resource in URLs.
    pub(crate) group: Str,
    pub(crate) version: Str,
    pub(crate) resource: Str,
    /// The type of the object, which may be of another group: a Scale, an Eviction.
    pub(crate) api_version: Str,
    pub(crate) kind: Str,
    /// The kind that converts objects to this form; none if the type is the same in all forms.
    served: Option<(Arc<StoredKind>, usize)>,
}

impl Form {
    /// Returns the form of the request.
    pub(super) fn own(review: &Review<'_>, ground: &Ground<'_>) -> Form {
        let (api_version, kind) = review.object_type();
        Form {
            group: review.kind.group.clone(),
            version: Str::new(review.version),
            resource: review.kind.names.plural.clone(),
            api_version: Str::new(api_version),
            kind: Str::new(kind),
            served: ground
                .served
                .filter(|_| ground.scaled.is_none())
                .map(|(served, version)| (served.clone(), version)),
        }
    }

    pub(crate) fn place(&self) -> Place<'_> {
        Place {
            group: &self.group,
            version: &self.version,
            resource: &self.resource,
        }
    }

    /// Returns group and version of the object's type.
    pub(crate) fn kind_group_version(&self) -> (&str, &str) {
        match self.api_version.split_once('/') {
            Some((group, version)) => (group, version),
            None => ("", &self.api_version),
        }
    }

    /// Converts an object of another form to this one; `None` if it is the same in both.
    pub(super) async fn convert(
        &self,
        from: &Form,
        object: &Object,
    ) -> Result<Option<Object>, Status> {
        let Some((served, version)) = &self.served else {
            return Ok(None);
        };
        if object.api_version() == self.api_version && object.kind() == self.kind {
            return Ok(None);
        }
        let mut object = object.clone();
        if let Some((source, _)) = &from.served
            && source.kind.group != served.kind.group
        {
            // Kinds of two groups share the storage version and nothing else.
            object = source.to_storage_version(object, None).await?.0;
        }
        if object.api_version() == self.api_version && object.kind() == self.kind {
            return Ok(Some(object));
        }
        let mut converted = served
            .convert(vec![object], *version, None)
            .await
            .map_err(|status| Status::internal(status.message))?;
        let mut object = converted
            .pop()
            .ok_or_else(|| Status::internal("a conversion lost an object"))?;
        served.version(*version).shape.trim(object.value_mut());
        Ok(Some(object))
    }

    /// Returns the shape of objects in this form, if it is known.
    pub(crate) fn shape<'f>(&'f self, ground: &'f Ground<'_>) -> Option<&'f dyn Shape> {
        match &self.served {
            Some((served, version)) => Some(&*served.version(*version).shape),
            None => ground.shape,
        }
    }

    /// Makes a changed object fit its type: drops unknown fields and fills in defaults.
    pub(super) fn conform(&self, ground: &Ground<'_>, object: &mut Object) -> Result<(), Status> {
        if object.api_version() != self.api_version || object.kind() != self.kind {
            let (own, kind) = (object.api_version(), object.kind());
            return Err(Status::internal(format!(
                "the type of the object cannot be changed from {}, Kind={} to {own}, Kind={kind}",
                self.api_version, self.kind
            )));
        }
        let metadata = object.get("metadata");
        if metadata.is_some_and(|metadata| metadata.as_object().is_none() && !metadata.is_null()) {
            return Err(Status::internal("metadata of the object must be an object"));
        }
        let Some(shape) = self.shape(ground) else {
            return Ok(());
        };
        let conformed = shape.conform(object.value_mut(), &mut Vec::new());
        conformed.map_err(Status::internal)?;
        shape.default(object.value_mut()).map_err(Status::internal)
    }
}

/// Returns all forms of the object under review, that of the request first.
pub(super) fn forms_of(review: &Review<'_>, ground: &Ground<'_>) -> Vec<Form> {
    let own = Form::own(review, ground);
    let table = ground.state.catalog.table();
    let mut forms = Vec::new();
    let groups = ground.state.admission.stages.groups_of(review.kind);
    let others = groups.iter().filter(|group| **group != review.kind.group);
    let groups = std::iter::once(&review.kind.group).chain(others);
    for group in groups {
        let backing = table.find(group, &review.kind.names.plural);
        // The kind of the request is what the request began with, even if it was replaced since.
        let (kind, served): (&Kind, Option<&Arc<StoredKind>>) = match (ground.served, backing) {
            (Some((served, _)), _) if *group == review.kind.group => (&served.kind, Some(served)),
            (_, Some(Backing::Stored(served))) => (&served.kind, Some(served)),
            (_, Some(Backing::Computed(computed))) => (computed.kind(), None),
            (_, None) => continue,
        };
        for (index, version) in kind.versions.iter().enumerate() {
            let is_own = *group == own.group && version.name == own.version;
            if is_own || !version.served {
                continue;
            }
            let part = match review.subresource {
                "" => None,
                name => match version.subresource(name) {
                    Some(part) => Some(part),
                    None => continue,
                },
            };
            // Objects of a subresource's own type are the same for all versions of the kind.
            let fixed = part.is_some_and(|part| {
                !matches!(part.role, SubresourceRole::Status | SubresourceRole::Part)
            });
            let (api_version, name) = match fixed {
                true => (own.api_version.clone(), own.kind.clone()),
                false => (kind.api_version(&version.name), kind.names.kind.clone()),
            };
            let served = served.filter(|_| !fixed && own.served.is_some());
            forms.push(Form {
                group: group.clone(),
                version: version.name.clone(),
                resource: kind.names.plural.clone(),
                api_version,
                kind: name,
                served: served.map(|served| (served.clone(), index)),
            });
        }
    }
    forms.insert(0, own);
    forms
}
