//! Watches: the state if it is asked for, then what changed since, then every change as it happens.

mod catch_up;
mod follow;
mod judge;

use crate::list::{Reading, json, version_of};
use crate::live;
use crate::members::Member;
use crate::render::Versions;
use crate::search::Search;
use crate::selection;
use crate::stream::pipe;
use crate::views::{Call, Form};
use bareboat_api::Status;
use bareboat_server::reply::Response;
use bareboat_server::request::info::RequestInfo;
use bareboat_server::request::options::ListOptions;
use bareboat_shelf::{KindId, MemberId};
use follow::Watching;
use judge::Judge;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a watch lasts if the client does not say.
const LIFETIME: Duration = Duration::from_secs(1800);

/// Where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// With the present state.
    State,
    /// After a version of the fleet. In one-member views, without changes up to a version of the member.
    After { rev: i64, beyond: Option<u64> },
    /// At a version that is not known.
    Expired,
}

impl Call {
    /// Answers with a stream of changes.
    pub(crate) async fn watch(
        &self,
        member: Option<&Arc<Member>>,
        info: &RequestInfo,
    ) -> Result<Response, Status> {
        let parameters = &self.question.query;
        let options = ListOptions::parse(parameters, true)?;
        let asked = self.asked(member, info)?;
        let search = Search::parse(parameters, &info.namespace, &self.fleet, Some(&asked))?;
        self.warn_about(&search);
        let scope = self.scope(member, "watch", &asked, &search).await?;
        if !scope.elsewhere.is_empty() {
            let names = live::names(&scope.elsewhere);
            let (resource, version) = (&asked.resource, &asked.version);
            return Err(Status::bad_request(format!(
                "{names} must convert {resource} to {version} themselves, so they cannot be watched together with others; \
                 leave them out by the parameter clusters, or watch them one by one"
            )));
        }
        let warn = |text| self.warn(text);
        let fleet = selection::freshness(&scope.members, member.is_some(), self.now, &warn);
        let agreed = self.negotiate(Form::Stream)?;
        let single = self.single(member, &scope);
        let versions = match member.is_some() {
            true => Versions::Member,
            false => Versions::Fleet,
        };
        let (transform, only_metadata) = (agreed.transform, search.only_metadata);
        let events = self
            .injected(asked.namespaced, &search, &scope.query, &scope.members)
            .await?;
        let renderer = self.renderer(asked.clone(), versions, transform, only_metadata)?;
        // The ring keeps changes from here on, so that none is lost between the state and the first look.
        let following = self.views.shelf.follow();
        let begin = match single {
            Some(single) => self.begin_in_member(single, &options).await?,
            None => begin(&options, self.views.shelf.visible()),
        };
        let lifetime = options.timeout.unwrap_or(LIFETIME);
        let readable = scope.members.iter();
        let readable = readable.map(|member| (member.name.clone(), true)).collect();
        let visible = scope.visible.iter().flatten();
        let visible = visible.map(|namespace| (namespace.clone(), true)).collect();
        let judging = self.fleet.members.values();
        let judging = judging.filter(|member| self.rights.is_judge(member));
        let judging = judging.map(|member| member.name.clone());
        let (out, body) = pipe();
        let watching = Watching {
            reading: Reading {
                views: self.views.clone(),
                renderer,
                query: scope.query,
                events,
                single,
            },
            judge: Judge {
                rights: self.rights.clone(),
                asked,
                single: member.map(|member| member.name.clone()),
                search,
                members: readable,
                allowed: scope.allowed,
                judging: judging.collect(),
                judged: HashMap::new(),
                sees_all: scope.visible.is_none(),
                namespaces: visible,
            },
            open: scope.open,
            begin,
            marks_end: options.send_initial_events == Some(true),
            bookmarks: options.bookmarks,
            until: Instant::now() + lifetime,
            life: self.calls.life(),
            commits: self.views.commits.clone(),
            out,
            has_columns: false,
            _following: following,
        };
        tokio::spawn(watching.run());
        Ok(self.with_fleet(json(body), &fleet))
    }

    /// Finds where a watch of a one-member view begins.
    async fn begin_in_member(
        &self,
        (member, kind): (MemberId, KindId),
        options: &ListOptions,
    ) -> Result<Begin, Status> {
        let visible = self.views.shelf.visible();
        let Some(version) = options.resource_version.filter(|version| *version > 0) else {
            return Ok(begin(options, visible));
        };
        if options.send_initial_events == Some(true) {
            return Ok(Begin::State);
        }
        if let Some(rev) = self.views.marks.before(member, kind, version) {
            return Ok(Begin::After {
                rev,
                beyond: Some(version),
            });
        }
        let shelf = self.views.shelf.clone();
        let known = self
            .views
            .workers
            .run(move || version_of(&shelf, member, kind));
        let known = known.await?.parse::<u64>().ok();
        Ok(match known {
            // The client is as far as the shelf, or further: nothing that it lacks is there yet.
            Some(known) if version >= known => Begin::After {
                rev: visible,
                beyond: Some(version),
            },
            _ => Begin::Expired,
        })
    }
}

/// Finds where a watch of all members begins.
fn begin(options: &ListOptions, visible: i64) -> Begin {
    let version = options.resource_version.unwrap_or(0);
    match (options.send_initial_events, version) {
        (Some(true), _) | (None, 0) => Begin::State,
        (Some(false), 0) => Begin::After {
            rev: visible,
            beyond: None,
        },
        (_, version) => match i64::try_from(version) {
            Ok(rev) => Begin::After { rev, beyond: None },
            Err(_) => Begin::Expired,
        },
    }
}
