//! From the parameters of a request to a query of the shelf: rights, members, namespaces, owners.

use crate::members::Member;
use crate::rights::{member_info, read_info};
use crate::search::Search;
use crate::selection;
use crate::types::{Asked, Source, source};
use crate::views::Call;
use bareboat_api::Status;
use bareboat_shelf::{Column, KindId, Order, Predicate, Query, SortColumn};
use std::sync::Arc;

/// How many namespaces are judged one by one for `visible=true`.
const MOST_NAMESPACES: usize = 5_000;

/// What a request reads.
pub(crate) struct Scope {
    /// The members, all of which the user may read.
    pub(crate) members: Vec<Arc<Member>>,
    /// The query with its members and namespaces.
    pub(crate) query: Query,
    /// The same without members and namespaces, for watches, which judge those that come later.
    pub(crate) open: Query,
}

impl Call {
    /// Checks that the user may read the namespaces of a search.
    pub(crate) async fn check_namespaces(
        &self,
        verb: &str,
        asked: &Asked,
        search: &Search,
    ) -> Result<(), Status> {
        let info = |namespace: &str| read_info(verb, &asked.group, &asked.resource, namespace);
        if search.visible {
            return Ok(());
        }
        if search.namespaces.is_empty() || !asked.namespaced {
            return self.rights.check(&info("")).await;
        }
        for namespace in &search.namespaces {
            self.rights.check(&info(namespace)).await?;
        }
        Ok(())
    }

    /// Returns what a search of one type reads.
    pub(crate) async fn scope(
        &self,
        member: Option<&Arc<Member>>,
        verb: &str,
        asked: &Asked,
        search: &Search,
    ) -> Result<Scope, Status> {
        self.check_namespaces(verb, asked, search).await?;
        let mut members = self.readable(member, search).await?;
        let mut elsewhere = Vec::new();
        members.retain(|member| {
            let synced = member.synced(&asked.group, &asked.resource);
            match synced.and_then(|synced| source(synced, &asked.version)) {
                Some(Source::Stored | Source::Rewritten) => true,
                Some(Source::Live) => {
                    elsewhere.push(member.name.clone());
                    false
                }
                None => false,
            }
        });
        if !elsewhere.is_empty() {
            self.warn(format!(
                "{} must convert {} to {} themselves and are left out; ask them one by one",
                elsewhere.join(", "),
                asked.resource,
                asked.version
            ));
        }
        selection::check_staleness(&members, search, self.now)?;
        let directory = self.views.shelf.directory();
        let kind = directory.kind(&asked.group, &asked.resource);
        let kinds: Vec<KindId> = kind.into_iter().collect();
        let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
        let (open, mut query) = self.queries(kinds, search, &names).await?;
        if asked.namespaced && search.visible {
            let namespaces = self.visible_namespaces(verb, asked, &query).await?;
            if let Some(namespaces) = namespaces {
                query
                    .scope
                    .and(Predicate::one_of(Column::Namespace, namespaces));
            }
        } else if !asked.namespaced && search.visible {
            let info = read_info(verb, &asked.group, &asked.resource, "");
            if !self.rights.may(&info).await {
                query.scope.and(Predicate::Any(Vec::new()));
            }
        }
        Ok(Scope {
            members,
            query,
            open,
        })
    }

    /// Returns the members of a request that the user may read.
    pub(crate) async fn readable(
        &self,
        member: Option<&Arc<Member>>,
        search: &Search,
    ) -> Result<Vec<Arc<Member>>, Status> {
        match member {
            Some(member) => {
                self.rights.check(&member_info(&member.name)).await?;
                Ok(vec![member.clone()])
            }
            None => {
                let warn = |text| self.warn(text);
                selection::members(&self.fleet, search, &self.rights, &warn).await
            }
        }
    }

    /// Returns the query of a search, without its members and with them.
    pub(crate) async fn queries(
        &self,
        kinds: Vec<KindId>,
        search: &Search,
        names: &[String],
    ) -> Result<(Query, Query), Status> {
        let mut open = Query {
            kinds,
            scope: search.scope.clone(),
            filter: search.filter.clone(),
            order: search.order.clone(),
            bounds: self.views.settings.bounds,
            ..Query::default()
        };
        if !search.namespaces.is_empty() {
            let among = Predicate::one_of(Column::Namespace, search.namespaces.clone());
            open.scope.and(among);
        }
        let directory = self.views.shelf.directory();
        match search.owner_search(&directory, names) {
            None => {}
            Some(Err(())) => open.filter.and(Predicate::Any(Vec::new())),
            Some(Ok(owners)) => {
                let shelf = self.views.shelf.clone();
                let found = self.views.workers.run(move || shelf.owners(&owners));
                let among = Predicate::one_of(Column::OwnerUid, found.await?);
                open.filter.and(among);
            }
        }
        let mut query = open.clone();
        let all = directory.members().count();
        let every = all == names.len() && names.iter().all(|name| directory.member(name).is_some());
        if !every {
            let among = Predicate::one_of(Column::Cluster, names.to_vec());
            query.scope.and(among);
        }
        Ok((open, query))
    }

    /// Returns the namespaces that the user may read; `None` if those are all.
    async fn visible_namespaces(
        &self,
        verb: &str,
        asked: &Asked,
        query: &Query,
    ) -> Result<Option<Vec<String>>, Status> {
        let info = |namespace: &str| read_info(verb, &asked.group, &asked.resource, namespace);
        if self.rights.may(&info("")).await {
            return Ok(None);
        }
        let (shelf, query) = (self.views.shelf.clone(), namespaces_of(query));
        let by = [SortColumn::Column(Column::Namespace)];
        let found = self.views.workers.run(move || shelf.summary(&query, &by));
        let found = found.await?.groups.into_iter();
        let found = found.filter_map(|group| group.values.into_iter().next().flatten());
        let mut namespaces = Vec::new();
        for (judged, namespace) in found.enumerate() {
            if judged == MOST_NAMESPACES {
                return Err(Status::bad_request(
                    "visible=true: there are too many namespaces; name some of them",
                ));
            }
            if self.rights.may(&info(&namespace)).await {
                namespaces.push(namespace);
            }
        }
        Ok(Some(namespaces))
    }
}

/// Returns the query for the namespaces of a search: its scope alone, which narrow rows can judge.
fn namespaces_of(query: &Query) -> Query {
    Query {
        kinds: query.kinds.clone(),
        scope: query.scope.clone(),
        bounds: query.bounds,
        order: Order::default(),
        ..Query::default()
    }
}
