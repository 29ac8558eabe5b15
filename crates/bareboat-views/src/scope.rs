//! From the parameters of a request to a query of the shelf: rights, members, namespaces, owners.

use crate::judges::Judged;
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
    /// Whether this server allows to read what is asked for, as far as members do not decide themselves.
    pub(crate) allowed: bool,
    /// Members that must convert the objects themselves, which the user may read as well.
    pub(crate) elsewhere: Vec<Arc<Member>>,
    /// With `visible=true`, the namespaces that the user may read; `None` if those are all.
    pub(crate) visible: Option<Vec<String>>,
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
        let allowed = self.check_namespaces(verb, asked, search).await;
        let is_judge = |member: &Arc<Member>| self.rights.is_judge(member);
        let judges = match member {
            Some(member) => is_judge(member),
            None => self.fleet.members.values().any(is_judge),
        };
        if !judges {
            allowed.clone()?;
        }
        let mut members = self.readable(member, search).await?;
        let mut elsewhere = Vec::new();
        members.retain(|member| {
            let synced = member.synced(&asked.group, &asked.resource);
            match synced.and_then(|synced| source(synced, &asked.group, &asked.version)) {
                Some(Source::Stored | Source::Rewritten | Source::Converted) => true,
                Some(Source::Live) => {
                    elsewhere.push(member.clone());
                    false
                }
                None => false,
            }
        });
        let (judging, here): (Vec<_>, Vec<_>) = members.into_iter().partition(is_judge);
        let judged = self.judged(member.is_some(), verb, asked, search, judging);
        let judged = judged.await?;
        let here = match &allowed {
            Ok(()) => here,
            Err(status) if judged.is_empty() => return Err(status.clone()),
            Err(_) => {
                if !here.is_empty() {
                    self.warn(format!(
                        "{} clusters are left out, because you may not read {}",
                        here.len(),
                        asked.resource
                    ));
                }
                Vec::new()
            }
        };
        let mut members = here.clone();
        members.extend(judged.iter().map(|one| one.member.clone()));
        members.sort_by(|a, b| a.name.cmp(&b.name));
        selection::check_staleness(&members, search, self.now)?;
        let directory = self.views.shelf.directory();
        let kinds = match member {
            Some(member) => asked.kind_in(member, &directory).into_iter().collect(),
            None => asked.kinds(&directory),
        };
        let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
        let (open, mut query) = self.queries(kinds, search, &names).await?;
        // What this server allows; members that judge themselves are apart.
        let (mut visible, mut own) = (None, Predicate::default());
        if asked.namespaced && search.visible {
            let what = (asked.group.as_str(), asked.resource.as_str());
            let namespaces = self.visible_namespaces(verb, what, &query).await?;
            if let Some(namespaces) = &namespaces {
                own.and(Predicate::one_of(Column::Namespace, namespaces.clone()));
            }
            visible = namespaces;
        } else if !asked.namespaced && search.visible {
            let info = read_info(verb, &asked.group, &asked.resource, "");
            if !self.rights.may(&info).await {
                own.and(Predicate::Any(Vec::new()));
                visible = Some(Vec::new());
            }
        }
        if judged.is_empty() {
            query.scope.and(own);
        } else {
            let names = here.iter().map(|member| member.name.clone());
            own.and(Predicate::one_of(
                Column::Cluster,
                names.collect::<Vec<_>>(),
            ));
            let mut any = vec![own];
            any.extend(judged.iter().map(Judged::predicate));
            query.scope.and(Predicate::Any(any));
        }
        Ok(Scope {
            members,
            query,
            open,
            elsewhere,
            visible,
            allowed: allowed.is_ok(),
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
        // Pages are read one after the other, and a member may join in between.
        if !every || !self.rights.may(&member_info("")).await {
            let among = Predicate::one_of(Column::Cluster, names.to_vec());
            query.scope.and(among);
        }
        Ok((open, query))
    }

    /// Returns the namespaces of a query in which the user may read a group and resource; `None` if those are all.
    pub(crate) async fn visible_namespaces(
        &self,
        verb: &str,
        (group, resource): (&str, &str),
        query: &Query,
    ) -> Result<Option<Vec<String>>, Status> {
        let info = |namespace: &str| read_info(verb, group, resource, namespace);
        if self.rights.may(&info("")).await {
            return Ok(None);
        }
        let mut namespaces = Vec::new();
        for namespace in self.found_namespaces(query).await? {
            if self.rights.may(&info(&namespace)).await {
                namespaces.push(namespace);
            }
        }
        Ok(Some(namespaces))
    }

    /// Returns the namespaces in which a query finds objects, as far as its scope goes.
    pub(crate) async fn found_namespaces(&self, query: &Query) -> Result<Vec<String>, Status> {
        let (shelf, query) = (self.views.shelf.clone(), namespaces_of(query));
        let by = [SortColumn::Column(Column::Namespace)];
        let found = self.views.workers.run(move || shelf.summary(&query, &by));
        let found = found.await?.groups.into_iter();
        let found = found.filter_map(|group| group.values.into_iter().next().flatten());
        let found: Vec<String> = found.collect();
        match found.len() > MOST_NAMESPACES {
            true => Err(too_many_namespaces()),
            false => Ok(found),
        }
    }
}

/// Returns that there are too many namespaces to judge them one by one.
pub(crate) fn too_many_namespaces() -> Status {
    Status::bad_request("visible=true: there are too many namespaces; name some of them")
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
