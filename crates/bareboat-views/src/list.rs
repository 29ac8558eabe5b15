//! Lists: one page, or all of them streamed.

use crate::events::Injected;
use crate::items::Items;
use crate::live;
use crate::members::Member;
use crate::render::{Renderer, Versions};
use crate::scope::Scope;
use crate::search::{Search, Start};
use crate::selection;
use crate::stream::{Pipe, pipe};
use crate::views::{Call, Form, Views};
use bareboat_api::{Map, Status, Value, value};
use bareboat_server::reply::{self, Body, Response};
use bareboat_server::request::info::RequestInfo;
use bareboat_server::request::negotiate::{Agreed, Media};
use bareboat_server::request::options::{ListOptions, VersionMatch};
use bareboat_shelf::{Bounds, Cursor, KindId, MemberId, Query, ShelfError};
use bytes::{Bytes, BytesMut};
use http::{HeaderValue, StatusCode, header};
use std::sync::Arc;

/// How many objects are read at once when there is no limit.
const AT_ONCE: usize = 500;
/// The largest limit; more comes in pages.
const LARGEST: usize = 50_000;
/// How much of a list without limit is read before its head is sent. A search that turns out to be too long by then is answered by
/// an error; later it can only break off.
const HELD: usize = 1 << 20;
/// The most bytes of what follows the items.
const TAIL: usize = 2;
/// The most objects of an answer that cannot be streamed.
const LARGEST_WHOLE: usize = 20_000;

/// A page, ready to be sent.
pub(crate) struct Rendered {
    /// The objects, in the form of the answer.
    pub(crate) items: Items,
    pub(crate) rev: i64,
    pub(crate) next: Option<Cursor>,
    /// What the next pages of the same request may cost.
    pub(crate) left: Bounds,
    /// The version of the member, for one-member views.
    pub(crate) member_version: Option<String>,
}

/// What a list is read with.
#[derive(Clone)]
pub(crate) struct Reading {
    pub(crate) views: Arc<Views>,
    pub(crate) renderer: Renderer,
    pub(crate) query: Query,
    pub(crate) events: Injected,
    /// The member and kind of a one-member view.
    pub(crate) single: Option<(MemberId, KindId)>,
}

impl Call {
    /// Answers with a list.
    pub(crate) async fn list(
        &self,
        member: Option<&Arc<Member>>,
        info: &RequestInfo,
    ) -> Result<Response, Status> {
        let parameters = &self.question.query;
        let asked = self.asked(member, info)?;
        let search = Search::parse(parameters, &info.namespace, &self.fleet, Some(&asked))?;
        self.check_token(&search).await?;
        self.warn_about(&search);
        let scope = self.scope(member, "list", &asked, &search).await?;
        let warn = |text| self.warn(text);
        let fleet = selection::freshness(&scope.members, member.is_some(), self.now, &warn);
        if !search.summary.is_empty() {
            if !scope.elsewhere.is_empty() {
                let names = live::names(&scope.elsewhere);
                self.warn(format!(
                    "{names} must convert the objects themselves and are left out"
                ));
            }
            let answer = self.summary(&scope, &search).await?;
            return Ok(self.with_fleet(answer, &fleet));
        }
        let agreed = self.negotiate(Form::List)?;
        let single = self.single(member, &scope);
        let versions = match single.is_some() || member.is_some() {
            true => Versions::Member,
            false => {
                self.check_version().await?;
                Versions::Fleet
            }
        };
        let only_metadata = search.only_metadata;
        let events = self
            .injected(asked.namespaced, &search, &scope.query, &scope.members)
            .await?;
        let renderer = self.renderer(asked, versions, agreed.transform, only_metadata)?;
        let reading = Reading {
            views: self.views.clone(),
            renderer,
            query: paged(&scope.query, &search),
            events,
            single,
        };
        let answer = self
            .send(reading, &search, agreed, &scope.elsewhere)
            .await?;
        Ok(self.with_fleet(answer, &fleet))
    }

    /// Warns about parameters that mean nothing.
    pub(crate) fn warn_about(&self, search: &Search) {
        for name in &search.unknown {
            self.warn(format!("unknown parameter {name:?} is ignored"));
        }
    }

    /// Returns the numbers of the member and the kind of a one-member view.
    pub(crate) fn single(
        &self,
        member: Option<&Arc<Member>>,
        scope: &Scope,
    ) -> Option<(MemberId, KindId)> {
        let member = self.views.shelf.directory().member(&member?.name)?;
        Some((member, *scope.query.kinds.first()?))
    }

    /// Checks the version that a list of all members must have.
    async fn check_version(&self) -> Result<(), Status> {
        let options = ListOptions::parse(&self.question.query, false)?;
        let known = options.resource_version.unwrap_or(0);
        let visible = self.visible_to(known).await?;
        match (options.resource_version, options.version_match) {
            (Some(version), Some(VersionMatch::Exact)) if version != visible => Err(
                Status::expired("the version of the list is not available any more"),
            ),
            (Some(version), _) if version > visible => Err(Status::timeout(format!(
                "Too large resource version: {version}, current: {visible}"
            ))
            .retry_after(1)),
            _ => Ok(()),
        }
    }

    async fn send(
        &self,
        mut reading: Reading,
        search: &Search,
        agreed: Agreed,
        elsewhere: &[Arc<Member>],
    ) -> Result<Response, Status> {
        let most = match search.limit {
            0 => AT_ONCE,
            limit => limit.min(LARGEST),
        };
        let page = reading.page(reading.query.clone(), most).await?;
        reading.query.bounds = page.left;
        let mut metadata = Map::new();
        let version = match &page.member_version {
            Some(version) => version.clone(),
            None => page.rev.to_string(),
        };
        metadata.insert("resourceVersion", Value::string(version));
        if search.limit > 0 && page.next.is_some() {
            metadata.insert("continue", Value::string(next(search, &page)));
        }
        if search.counts {
            let remaining = reading.remaining(search, page.items.len()).await?;
            if let Some(remaining) = remaining {
                metadata.insert("remainingItemCount", Value::Int(remaining));
            }
        }
        let mut more = page.next.clone().filter(|_| search.limit == 0);
        // Objects that members convert themselves are on the last page.
        let live = match page.next.is_none() || search.limit == 0 {
            true => self
                .live_items(elsewhere, &reading.renderer, search)
                .await
                .into_iter()
                .collect(),
            false => Items::default(),
        };
        let envelope = reading.renderer.envelope(&metadata);
        let mut first = BytesMut::with_capacity(envelope.head.len() + page.items.size() + TAIL);
        first.extend_from_slice(&envelope.head);
        let mut some = false;
        page.items.append_to(&mut first, &mut some);
        if agreed.media == Media::Yaml || agreed.pretty {
            return reading
                .whole(first, some, more, &live, envelope.tail, agreed)
                .await;
        }
        while first.len() < HELD
            && let Some(cursor) = more
        {
            let page = reading.page_after(cursor).await?;
            page.items.append_to(&mut first, &mut some);
            more = page.next;
        }
        let body = match more {
            None => {
                live.append_to(&mut first, &mut some);
                first.extend_from_slice(envelope.tail);
                Body::full(first.freeze())
            }
            Some(cursor) => {
                let (out, body) = pipe();
                let end = (live, envelope.tail);
                let rest = reading.rest(out, first.freeze(), some, cursor, end);
                tokio::spawn(rest);
                body
            }
        };
        Ok(json(body))
    }

    async fn summary(&self, scope: &Scope, search: &Search) -> Result<Response, Status> {
        let (shelf, query) = (self.views.shelf.clone(), scope.query.clone());
        let by: Vec<_> = search.summary.iter().map(|(_, by)| by.clone()).collect();
        let summary = self.views.workers.run(move || shelf.summary(&query, &by));
        let summary = summary.await?;
        let names: Vec<&str> = search
            .summary
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        let groups: Vec<Value> = summary
            .groups
            .into_iter()
            .map(|group| {
                let values = group.values.into_iter();
                let values = values.map(|value| value.map_or(Value::Null, Value::string));
                let pairs = names.iter().map(|name| (*name).into()).zip(values);
                let values = Value::Object(Map::from_unsorted(pairs.collect()));
                value!({"values": (values), "count": (i64::try_from(group.count).unwrap_or(i64::MAX))})
            })
            .collect();
        let fields: Value = names.iter().map(Value::string).collect();
        let document = value!({
            "kind": "Summary", "apiVersion": "clusterpedia.io/v1beta1",
            "metadata": {"resourceVersion": (summary.rev.to_string())},
            "fields": (fields), "groups": (groups),
        });
        let agreed = self.negotiate(Form::Object)?;
        Ok(reply::value(StatusCode::OK, agreed, &document))
    }
}

/// Sets where the page of a search begins.
pub(crate) fn paged(query: &Query, search: &Search) -> Query {
    let mut query = query.clone();
    match &search.start {
        Start::First => {}
        Start::Offset(offset) => query.offset = *offset,
        Start::After(cursor) => query.after = Some(cursor.clone()),
    }
    query
}

/// Returns the token of the next page. Clients that count get a number.
pub(crate) fn next(search: &Search, page: &Rendered) -> String {
    match (&search.start, &page.next) {
        (Start::Offset(offset), _) => (offset + page.items.len()).to_string(),
        (_, Some(cursor)) => cursor.print(),
        (_, None) => String::new(),
    }
}

/// Returns an answer in JSON.
pub(crate) fn json(body: Body) -> Response {
    let mut response = http::Response::new(body);
    let media = HeaderValue::from_static(Media::Json.name());
    response.headers_mut().insert(header::CONTENT_TYPE, media);
    response
}

impl Reading {
    /// Reads a page and prepares it for the client.
    pub(crate) async fn page(&self, query: Query, most: usize) -> Result<Rendered, Status> {
        let reading = self.clone();
        let page = move || reading.page_now(&query, most);
        self.views.workers.run(page).await
    }

    /// Reads the next page of a list without limit. What it costs is not there for the pages after it.
    async fn page_after(&mut self, cursor: Cursor) -> Result<Rendered, Status> {
        let mut query = self.query.clone();
        (query.after, query.offset) = (Some(cursor), 0);
        let page = self.page(query, AT_ONCE).await?;
        self.query.bounds = page.left;
        Ok(page)
    }

    fn page_now(&self, query: &Query, most: usize) -> Result<Rendered, ShelfError> {
        let shelf = &self.views.shelf;
        let member_version = match self.single {
            Some(single) => self.member_version(single, query)?,
            None if self.renderer.versions == Versions::Member => Some(String::new()),
            None => None,
        };
        let page = shelf.page(query, most)?;
        let directory = shelf.directory();
        let mut items = Items::with_capacity(page.items.len());
        for item in &page.items {
            let events = self.events.of(shelf, &item.narrow)?;
            self.renderer.write(item, &directory, events, items.add());
        }
        Ok(Rendered {
            items,
            rev: page.rev,
            next: page.next,
            left: page.left,
            member_version,
        })
    }

    /// Returns the version of the member that a list has, and notes which version of the fleet belongs to it.
    fn member_version(
        &self,
        (member, kind): (MemberId, KindId),
        query: &Query,
    ) -> Result<Option<String>, ShelfError> {
        let (shelf, marks) = (&self.views.shelf, &self.views.marks);
        if let Some(after) = &query.after
            && let Some(version) = marks.at(member, kind, after.rev)
        {
            return Ok(Some(version.to_string()));
        }
        // The order counts: what the member changes after its version is read has a later version of the fleet.
        let rev = shelf.visible();
        let version = version_of(shelf, member, kind)?;
        if let Ok(number) = version.parse() {
            marks.note(member, kind, number, rev);
        }
        Ok(Some(version))
    }

    /// Counts what comes after a page. It is not known for a page that begins at a token.
    async fn remaining(&self, search: &Search, shown: usize) -> Result<Option<i64>, Status> {
        let offset = match search.start {
            Start::First => 0,
            Start::Offset(offset) => offset,
            Start::After(_) => return Ok(None),
        };
        let (shelf, query) = (self.views.shelf.clone(), self.query.clone());
        let count = self.views.workers.run(move || shelf.count(&query)).await?;
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        Ok(Some(count - number(offset) - number(shown)))
    }

    /// Sends the pages after the first one.
    async fn rest(
        mut self,
        out: Pipe,
        first: Bytes,
        mut some: bool,
        cursor: Cursor,
        (live, tail): (Items, &'static [u8]),
    ) {
        if out.send(Ok(first)).await.is_err() {
            return;
        }
        let mut after = Some(cursor);
        while let Some(cursor) = after {
            let page = tokio::select! {
                page = self.page_after(cursor) => page,
                () = out.closed() => return,
            };
            let page = match page {
                Ok(page) => page,
                Err(status) => {
                    tracing::debug!(%status, "a list ends early");
                    // A body that breaks off is not taken for a complete list.
                    let _ = out.send(Err(status.message.into())).await;
                    return;
                }
            };
            let mut bytes = BytesMut::with_capacity(page.items.size() + 1);
            page.items.append_to(&mut bytes, &mut some);
            if out.send(Ok(bytes.freeze())).await.is_err() {
                return;
            }
            after = page.next;
        }
        let mut bytes = BytesMut::new();
        live.append_to(&mut bytes, &mut some);
        bytes.extend_from_slice(tail);
        let _ = out.send(Ok(bytes.freeze())).await;
    }

    /// Reads all pages for an answer that is printed in one piece.
    async fn whole(
        &mut self,
        mut bytes: BytesMut,
        mut some: bool,
        mut after: Option<Cursor>,
        live: &Items,
        tail: &'static [u8],
        agreed: Agreed,
    ) -> Result<Response, Status> {
        let mut count = 0;
        while let Some(cursor) = after {
            let page = self.page_after(cursor).await?;
            page.items.append_to(&mut bytes, &mut some);
            count += page.items.len();
            after = page.next;
            if count > LARGEST_WHOLE {
                return Err(Status::bad_request(
                    "the list is too long for this format; use limit, or compact JSON",
                ));
            }
        }
        live.append_to(&mut bytes, &mut some);
        bytes.extend_from_slice(tail);
        let parsed = bareboat_wire::json::parse(&bytes);
        let parsed = parsed.map_err(|_| Status::internal("a list cannot be printed"))?;
        Ok(reply::value(StatusCode::OK, agreed, &parsed.value))
    }
}

/// Returns how far a kind of a member is synced.
pub(crate) fn version_of(
    shelf: &bareboat_shelf::Shelf,
    member: MemberId,
    kind: KindId,
) -> Result<String, ShelfError> {
    let progress = shelf.progress(member)?.into_iter();
    let mut progress = progress.filter(|(known, _)| *known == kind);
    let found = progress
        .next()
        .map(|(_, progress)| progress.resource_version);
    Ok(found.unwrap_or_default())
}
