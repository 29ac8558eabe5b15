//! The events of an object, for `injectEvents`. They are shown to those who may list events, too.

use crate::members::Member;
use crate::rights::read_info;
use crate::search::Search;
use crate::views::Call;
use bareboat_api::{Status, Value};
use bareboat_shelf::{
    Column, FieldOperator, FieldRequirement, Narrow, Path, Predicate, Query, Shelf, ShelfError,
    Term,
};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The group and resource of events.
const EVENTS: (&str, &str) = ("", "events");
/// The most events of one object.
const MOST: usize = 100;

/// The objects whose events are shown.
#[derive(Clone, Debug, Default)]
pub(crate) enum Injected {
    /// None: the request did not ask for them, or the user may not list events.
    #[default]
    None,
    /// Those of all objects.
    All,
    /// Those of objects in these namespaces.
    In(Arc<HashSet<String>>),
    /// Some members decide themselves.
    By(Arc<HashMap<i64, bool>>, Box<Injected>),
}

impl Injected {
    /// Returns the events of an object, if they are shown.
    pub(crate) fn of(&self, shelf: &Shelf, narrow: &Narrow) -> Result<Option<Value>, ShelfError> {
        let shows = match self {
            Injected::By(judges, _) if judges.contains_key(&narrow.member) => {
                judges[&narrow.member]
            }
            Injected::By(_, others) => return others.of(shelf, narrow),
            Injected::None => false,
            Injected::All => true,
            Injected::In(namespaces) => namespaces.contains(&narrow.namespace),
        };
        match shows {
            true => of(shelf, narrow).map(Some),
            false => Ok(None),
        }
    }
}

impl Call {
    /// Returns which objects of a search are shown with their events. A warning says if some are not. `namespaced` says whether any of
    /// the objects may be in namespaces.
    pub(crate) async fn injected(
        &self,
        namespaced: bool,
        search: &Search,
        query: &Query,
        members: &[Arc<Member>],
    ) -> Result<Injected, Status> {
        if !search.injects_events {
            return Ok(Injected::None);
        }
        let judges = members.iter().filter(|member| self.rights.is_judge(member));
        let judges: Vec<&Arc<Member>> = judges.collect();
        if judges.is_empty() {
            return self.injected_here(namespaced, query).await;
        }
        let (info, directory) = (
            read_info("list", EVENTS.0, EVENTS.1, ""),
            self.views.shelf.directory(),
        );
        let mut decided = HashMap::new();
        for member in &judges {
            let allowed = self
                .rights
                .may_in(&member.name, &info)
                .await
                .unwrap_or(false);
            if !allowed {
                let name = &member.name;
                self.warn(format!(
                    "events of {name} are left out, because you may not list events there"
                ));
            }
            decided.extend(
                directory
                    .member(&member.name)
                    .map(|number| (number.0, allowed)),
            );
        }
        let others = match judges.len() == members.len() {
            true => Injected::None,
            false => self.injected_here(namespaced, query).await?,
        };
        Ok(Injected::By(Arc::new(decided), Box::new(others)))
    }

    /// The same for members that this server decides about.
    async fn injected_here(&self, namespaced: bool, query: &Query) -> Result<Injected, Status> {
        // The events of an object without namespace may be in any namespace.
        let allowed = match namespaced {
            true => self.visible_namespaces("list", EVENTS, query).await?,
            false => match self
                .rights
                .may(&read_info("list", EVENTS.0, EVENTS.1, ""))
                .await
            {
                true => None,
                false => Some(Vec::new()),
            },
        };
        Ok(match allowed {
            None => Injected::All,
            Some(namespaces) => {
                self.warn(match namespaces.is_empty() {
                    true => "events are left out, because you may not list events".to_owned(),
                    false => {
                        "events are left out in namespaces where you may not list events".to_owned()
                    }
                });
                Injected::In(Arc::new(namespaces.into_iter().collect()))
            }
        })
    }

    /// Returns whether one object is shown with its events. A warning says if it is not.
    pub(crate) async fn injected_into(
        &self,
        member: &Member,
        search: &Search,
        namespace: &str,
    ) -> Injected {
        if !search.injects_events {
            return Injected::None;
        }
        let info = read_info("list", EVENTS.0, EVENTS.1, namespace);
        let allowed = match self.rights.is_judge(member) {
            true => self
                .rights
                .may_in(&member.name, &info)
                .await
                .unwrap_or(false),
            false => self.rights.may(&info).await,
        };
        if allowed {
            return Injected::All;
        }
        self.warn("events are left out, because you may not list events".to_owned());
        Injected::None
    }
}

/// Returns the events of an object, as far as they are on the shelf.
fn of(shelf: &Shelf, narrow: &Narrow) -> Result<Value, ShelfError> {
    let directory = shelf.directory();
    let Some(kind) = directory.kind(EVENTS.0, EVENTS.1) else {
        return Ok(Value::Array(Vec::new()));
    };
    let path = Path::parse("involvedObject.uid");
    let path = path.map_err(|error| ShelfError::Query(error.to_string()))?;
    let member = directory.member_name(narrow.member);
    let mut scope = Predicate::one_of(Column::Cluster, [member]);
    if !narrow.namespace.is_empty() {
        scope.and(Predicate::one_of(
            Column::Namespace,
            [narrow.namespace.as_str()],
        ));
    }
    let query = Query {
        kinds: vec![kind],
        scope,
        filter: Predicate::Term(Term::Field(FieldRequirement {
            path,
            operator: FieldOperator::In,
            values: vec![narrow.uid.clone()],
        })),
        ..Query::default()
    };
    let page = shelf.page(&query, MOST)?;
    let events = page.items.iter();
    Ok(events
        .map(|event| event.value(&event.narrow.member_version))
        .collect())
}
