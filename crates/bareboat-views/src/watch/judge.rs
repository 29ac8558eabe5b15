//! Which members and namespaces a watch shows, by the rights of its user.

use crate::members::Members;
use crate::rights::{Rights, read_info};
use crate::search::Search;
use crate::selection::is_asked_for;
use crate::types::{Asked, Source, source};
use std::collections::{HashMap, HashSet};

/// Decides which members and namespaces a watch shows. Those that come later are judged when they are first seen.
pub(super) struct Judge {
    pub(super) rights: Rights,
    pub(super) asked: Asked,
    /// The member of a one-member view.
    pub(super) single: Option<String>,
    pub(super) search: Search,
    pub(super) members: HashMap<String, bool>,
    /// Whether this server allows what is asked for, as far as members do not decide themselves.
    pub(super) allowed: bool,
    /// The members that judge themselves. One that left the fleet still counts: its last objects are its own.
    pub(super) judging: HashSet<String>,
    /// What members that judge themselves decided, by member and namespace.
    pub(super) judged: HashMap<(String, String), bool>,
    /// With `visible=true`, whether the user may read all namespaces.
    pub(super) sees_all: bool,
    pub(super) namespaces: HashMap<String, bool>,
}

/// How much of an object a watch shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Nothing,
    /// Its name alone, for deletions.
    Name,
    Whole,
}

impl From<bool> for Shown {
    fn from(shows: bool) -> Shown {
        match shows {
            true => Shown::Whole,
            false => Shown::Nothing,
        }
    }
}

impl Judge {
    /// Returns how much of the objects of a member and namespace is shown.
    pub(super) async fn shows(
        &mut self,
        members: &dyn Members,
        member: &str,
        namespace: &str,
    ) -> Shown {
        if let Some(single) = &self.single
            && single != member
        {
            return Shown::Nothing;
        }
        let is_new = !self.members.contains_key(member);
        let by_member = match self.members.get(member) {
            Some(known) => *known,
            None => {
                let shows = self.shows_member(members, member).await;
                self.members.insert(member.to_owned(), shows);
                shows
            }
        };
        if !by_member {
            return Shown::Nothing;
        }
        let fleet = members.fleet();
        let present = fleet.members.get(member);
        if present.is_some_and(|member| self.rights.is_judge(member)) {
            self.judging.insert(member.to_owned());
            return self.shows_judged(member, namespace).await.into();
        }
        if present.is_none() && self.judging.contains(member) {
            let key = (member.to_owned(), namespace.to_owned());
            return self.judged.get(&key).copied().unwrap_or(false).into();
        }
        let allowed = match self.search.visible {
            true => self.shows_namespace(namespace).await,
            false => self.allowed,
        };
        match allowed && present.is_none() && is_new {
            // It left before this watch knew who decides about its objects. A client that resumed may have them.
            true => {
                self.members.remove(member);
                Shown::Name
            }
            false => allowed.into(),
        }
    }

    /// Returns what a member that judges itself decides.
    async fn shows_judged(&mut self, member: &str, namespace: &str) -> bool {
        let key = (member.to_owned(), namespace.to_owned());
        if let Some(known) = self.judged.get(&key) {
            return *known;
        }
        let shows = self.asks(member, namespace).await;
        self.judged.insert(key, shows);
        shows
    }

    async fn asks(&self, member: &str, namespace: &str) -> bool {
        let info = |namespace: &str| {
            read_info("watch", &self.asked.group, &self.asked.resource, namespace)
        };
        let may = async |namespace: &str| {
            let asked = self.rights.may_in(member, &info(namespace)).await;
            asked.unwrap_or(false)
        };
        if self.search.visible || self.search.namespaces.is_empty() {
            let all = may("").await;
            return all || self.search.visible && !namespace.is_empty() && may(namespace).await;
        }
        may(namespace).await
    }

    /// Returns whether this server allows what is asked for.
    async fn is_allowed(&self) -> bool {
        let info = |namespace: &str| {
            read_info("watch", &self.asked.group, &self.asked.resource, namespace)
        };
        if self.search.visible {
            return true;
        }
        if self.search.namespaces.is_empty() || !self.asked.namespaced {
            return self.rights.may(&info("")).await;
        }
        for namespace in &self.search.namespaces {
            if !self.rights.may(&info(namespace)).await {
                return false;
            }
        }
        true
    }

    async fn shows_member(&self, members: &dyn Members, name: &str) -> bool {
        let fleet = members.fleet();
        let asked_for = match fleet.members.get(name) {
            Some(member) => {
                let synced = member.synced(&self.asked.group, &self.asked.resource);
                let (group, version) = (&self.asked.group, &self.asked.version);
                let source = synced.and_then(|synced| source(synced, group, version));
                // A type that was removed has only deletions left.
                source != Some(Source::Live) && is_asked_for(&self.search, member)
            }
            // A member that was removed has only deletions left, and clients ignore those of objects they do not know.
            None => {
                self.search.clusters.is_empty()
                    || self.search.clusters.iter().any(|one| one == name)
            }
        };
        asked_for && self.rights.may_read_member(name).await
    }

    async fn shows_namespace(&mut self, namespace: &str) -> bool {
        if let Some(known) = self.namespaces.get(namespace) {
            return *known;
        }
        let shows = self.may_see(namespace).await;
        self.namespaces.insert(namespace.to_owned(), shows);
        shows
    }

    async fn may_see(&self, namespace: &str) -> bool {
        let info =
            |namespace| read_info("watch", &self.asked.group, &self.asked.resource, namespace);
        self.rights.may(&info("")).await
            || !namespace.is_empty() && self.rights.may(&info(namespace)).await
    }

    /// Returns whether rights changed since they were asked for.
    pub(super) async fn changed(&mut self, members: &dyn Members) -> bool {
        for (name, known) in &self.members {
            if self.shows_member(members, name).await != *known {
                return true;
            }
        }
        // Without a member that this server decides about, its decision does not count.
        if self.allowed && !self.is_allowed().await {
            return true;
        }
        for ((member, namespace), known) in &self.judged {
            if self.asks(member, namespace).await != *known {
                return true;
            }
        }
        if self.search.visible {
            let all = read_info("watch", &self.asked.group, &self.asked.resource, "");
            if self.rights.may(&all).await != self.sees_all {
                return true;
            }
        }
        for (namespace, known) in &self.namespaces {
            if self.may_see(namespace).await != *known {
                return true;
            }
        }
        false
    }
}
