//! The types of a collection, and what the user may see of each.

use super::sets::{Set, TypeName};
use crate::rights::read_info;
use crate::scope::too_many_namespaces;
use crate::search::Search;
use crate::types::Asked;
use crate::views::Call;
use bareboat_api::Status;
use bareboat_shelf::{Column, Directory, KindId, Predicate, Query};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How many questions about a type and a namespace are asked for `visible=true`.
const MOST_JUDGED: usize = 50_000;
/// How many names of namespaces a condition may have. Databases limit the parameters of a statement.
const MOST_NAMES: usize = 10_000;
/// How many groups of types a condition may have. Databases limit the depth of a statement.
const MOST_GROUPS: usize = 500;

/// A type of a collection.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) name: TypeName,
    pub(super) asked: Asked,
    /// The namespaces whose objects the user sees; `None` for all that are asked for.
    namespaces: Option<Arc<BTreeSet<String>>>,
}

impl Part {
    /// Returns whether objects of a namespace are shown; the namespace is empty for objects without one.
    pub(super) fn shows(&self, namespace: &str) -> bool {
        let among = self.namespaces.as_ref();
        among.is_none_or(|among| among.contains(namespace))
    }

    /// Returns whether all that another type shows is shown by this one.
    fn covers(&self, other: &Part) -> bool {
        self.name.is_twin_of(&other.name)
            && match (&self.namespaces, &other.namespaces) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(own), Some(others)) => others.is_subset(own),
            }
    }
}

/// Returns the kinds of rows that are shown.
pub(super) fn kinds(parts: &[Part], directory: &Directory) -> Vec<KindId> {
    let kinds = parts.iter().flat_map(|part| part.name.kinds(directory));
    kinds.collect()
}

impl Call {
    /// Returns the types of a collection that members have. Without `visible=true`, those that the user may not list are left out.
    pub(super) async fn parts(&self, set: &Set, search: &Search) -> Result<Vec<Part>, Status> {
        let (mut parts, mut refusal, mut hidden) = (Vec::new(), None, 0_usize);
        for name in set.types(&self.fleet, &self.question.query)? {
            let asked = Asked::find(
                &self.fleet,
                None,
                &name.group,
                &name.version,
                &name.resource,
            );
            let Some(asked) = asked else {
                continue;
            };
            // With `visible=true` this refuses nothing.
            match self.check_namespaces("list", &asked, search).await {
                Ok(()) => parts.push(Part {
                    name,
                    asked,
                    namespaces: None,
                }),
                Err(status) => {
                    hidden += 1;
                    refusal = Some(status);
                }
            }
        }
        if let (true, Some(status)) = (parts.is_empty(), refusal) {
            return Err(status);
        }
        if hidden > 0 {
            self.warn(format!(
                "{hidden} types are left out, because you may not list them"
            ));
        }
        Ok(match search.visible {
            true => parts,
            false => shown_once(parts),
        })
    }

    /// Leaves out what the user may not see, for `visible=true`: types, or their objects in some namespaces.
    pub(super) async fn only_visible(
        &self,
        mut parts: Vec<Part>,
        query: &mut Query,
    ) -> Result<Vec<Part>, Status> {
        let directory = self.views.shelf.directory();
        let info = |part: &Part, namespace: &str| {
            read_info("list", &part.name.group, &part.name.resource, namespace)
        };
        let (mut judged, mut apart) = (0_usize, Vec::new());
        for part in &mut parts {
            if self.rights.may(&info(part, "")).await {
                continue;
            }
            part.namespaces = Some(Arc::default());
            if part.asked.namespaced {
                judged += 1;
                apart.extend(part.name.kinds(&directory));
            }
        }
        // One look at the shelf finds the namespaces of all these types.
        let found = match apart.is_empty() {
            true => Vec::new(),
            false => {
                let apart = Query {
                    kinds: apart,
                    ..query.clone()
                };
                self.found_namespaces(&apart).await?
            }
        };
        if judged.saturating_mul(found.len()) > MOST_JUDGED {
            return Err(too_many_namespaces());
        }
        for part in &mut parts {
            if part.namespaces.is_none() || !part.asked.namespaced {
                continue;
            }
            let mut visible = BTreeSet::new();
            for namespace in &found {
                if self.rights.may(&info(part, namespace)).await {
                    visible.insert(namespace.clone());
                }
            }
            part.namespaces = Some(Arc::new(visible));
        }
        let nothing = |part: &Part| part.namespaces.as_ref().is_some_and(|some| some.is_empty());
        parts.retain(|part| !nothing(part));
        let parts = shown_once(parts);
        query.kinds = kinds(&parts, &directory);
        if let Some(among) = among(&parts, &directory)? {
            query.scope.and(among);
        }
        Ok(parts)
    }
}

/// Leaves out types of which an earlier one shows all objects: objects of a kind in two groups are shown once.
fn shown_once(parts: Vec<Part>) -> Vec<Part> {
    let mut kept: Vec<Part> = Vec::new();
    for part in parts {
        if !kept.iter().any(|earlier| earlier.covers(&part)) {
            kept.push(part);
        }
    }
    kept
}

/// Returns the condition on types and namespaces; `None` if all objects of these types are shown.
fn among(parts: &[Part], directory: &Directory) -> Result<Option<Predicate>, Status> {
    if parts.iter().all(|part| part.namespaces.is_none()) {
        return Ok(None);
    }
    // Types that are seen in the same namespaces share a condition.
    let mut alike: BTreeMap<_, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for part in parts {
        let groups = alike.entry(part.namespaces.clone()).or_default();
        for kind in part.name.kinds(directory) {
            let Some(info) = directory.kind_info(kind.0) else {
                continue;
            };
            let resources = groups.entry(info.group.clone()).or_default();
            resources.push(info.resource.clone());
        }
    }
    let names = alike.keys().flatten().map(|names| names.len());
    if names.sum::<usize>() > MOST_NAMES {
        return Err(too_many_namespaces());
    }
    if alike.values().map(BTreeMap::len).sum::<usize>() > MOST_GROUPS {
        return Err(Status::bad_request(
            "visible=true: there are too many groups of types; name some of them",
        ));
    }
    let any = alike.into_iter().map(|(namespaces, groups)| {
        let types = groups.into_iter().map(|(group, resources)| {
            let mut types = Predicate::one_of(Column::Group, [group]);
            types.and(Predicate::one_of(Column::Resource, resources));
            types
        });
        let mut all = Predicate::Any(types.collect());
        if let Some(namespaces) = namespaces {
            let names = namespaces.iter().cloned();
            all.and(Predicate::one_of(Column::Namespace, names));
        }
        all
    });
    Ok(Some(Predicate::Any(any.collect())))
}
