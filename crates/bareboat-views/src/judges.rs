//! Members that decide themselves who may read their objects: what a search sees of them.

use crate::members::Member;
use crate::rights::read_info;
use crate::search::Search;
use crate::types::Asked;
use crate::views::Call;
use bareboat_api::Status;
use bareboat_shelf::{Column, Predicate, Query, SortColumn};
use futures_util::{StreamExt as _, stream};
use std::sync::Arc;

/// How many members are asked at once.
const AT_ONCE: usize = 8;
/// How many namespaces of a member are judged one by one for `visible=true`. Each is a question to the member.
const MOST_NAMESPACES: usize = 100;

/// What a user may read of a member that judges itself.
pub(crate) struct Judged {
    pub(crate) member: Arc<Member>,
    /// The namespaces; `None` for all that are asked for.
    namespaces: Option<Vec<String>>,
}

impl Judged {
    /// Returns the condition on rows of the member.
    pub(crate) fn predicate(&self) -> Predicate {
        let name = self.member.name.clone();
        let mut predicate = Predicate::one_of(Column::Cluster, [name]);
        if let Some(namespaces) = &self.namespaces {
            let among = Predicate::one_of(Column::Namespace, namespaces.clone());
            predicate.and(among);
        }
        predicate
    }
}

impl Call {
    /// Asks members that judge themselves. Those that refuse, or do not answer, are left out with a warning; in the view of one
    /// member that is the answer.
    pub(crate) async fn judged(
        &self,
        single: bool,
        verb: &str,
        asked: &Asked,
        search: &Search,
        members: Vec<Arc<Member>>,
    ) -> Result<Vec<Judged>, Status> {
        let asking = members.into_iter().map(async |member| {
            let answer = self.judged_one(&member, verb, asked, search).await;
            (member, answer)
        });
        let mut asking = stream::iter(asking).buffered(AT_ONCE);
        let mut judged = Vec::new();
        while let Some((member, answer)) = asking.next().await {
            match answer {
                Ok(namespaces) => judged.push(Judged { member, namespaces }),
                Err(status) if single => return Err(status),
                Err(_) if search.visible => {}
                Err(status) => {
                    self.warn(format!("{} is left out: {}", member.name, status.message))
                }
            }
        }
        Ok(judged)
    }

    async fn judged_one(
        &self,
        member: &Arc<Member>,
        verb: &str,
        asked: &Asked,
        search: &Search,
    ) -> Result<Option<Vec<String>>, Status> {
        let info = |namespace: &str| read_info(verb, &asked.group, &asked.resource, namespace);
        let whole = search.namespaces.is_empty() || !asked.namespaced;
        if !search.visible {
            if whole {
                self.rights.check_in(&member.name, &info("")).await?;
                return Ok(None);
            }
            for namespace in &search.namespaces {
                self.rights.check_in(&member.name, &info(namespace)).await?;
            }
            return Ok(None);
        }
        if self.rights.may_in(&member.name, &info("")).await? {
            return Ok(None);
        }
        let mut allowed = Vec::new();
        if asked.namespaced {
            for namespace in self.namespaces_of(member, asked, search).await? {
                if self.rights.may_in(&member.name, &info(&namespace)).await? {
                    allowed.push(namespace);
                }
            }
        }
        Ok(Some(allowed))
    }

    /// Returns the namespaces of a member that a search is about.
    async fn namespaces_of(
        &self,
        member: &Arc<Member>,
        asked: &Asked,
        search: &Search,
    ) -> Result<Vec<String>, Status> {
        let names = match search.namespaces.is_empty() {
            false => search.namespaces.clone(),
            true => {
                let shelf = self.views.shelf.clone();
                let query = Query {
                    kinds: asked.kinds(&shelf.directory()),
                    scope: Predicate::one_of(Column::Cluster, [member.name.clone()]),
                    bounds: self.views.settings.bounds,
                    ..Query::default()
                };
                let by = [SortColumn::Column(Column::Namespace)];
                let found = self.views.workers.run(move || shelf.summary(&query, &by));
                let groups = found.await?.groups.into_iter();
                groups
                    .filter_map(|group| group.values.into_iter().next().flatten())
                    .collect()
            }
        };
        if names.len() > MOST_NAMESPACES {
            return Err(Status::bad_request(format!(
                "visible=true: {} has too many namespaces; name some of them",
                member.name
            )));
        }
        Ok(names)
    }
}
