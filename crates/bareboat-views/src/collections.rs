//! Collection resources: objects of several types in one answer.

mod parts;
mod rows;
mod sets;

pub(crate) use sets::{TypeName, definition};

use crate::events::Injected;
use crate::items::Items;
use crate::list::{Rendered, json, next, paged};
use crate::members::{Fleet, Member};
use crate::render::Versions;
use crate::rights::read_info;
use crate::search::{Search, Start};
use crate::selection;
use crate::types::source;
use crate::views::{Call, Form};
use bareboat_api::{Map, Status, Value, value};
use bareboat_server::reply::{self, Body, Response};
use bareboat_server::request::negotiate::Transform;
use bareboat_server::tables;
use bareboat_shelf::Query;
use bytes::BytesMut;
use http::StatusCode;
use parts::Part;
use rows::Rows;
use sets::Set;
use std::collections::HashMap;
use std::sync::Arc;

/// The size of a page if the client sets none.
const PAGE: usize = 500;
/// The largest page.
const LARGEST: usize = 10_000;

impl Call {
    /// Answers with the list of collections.
    pub(crate) async fn collections(&self) -> Result<Response, Status> {
        self.rights
            .check(&read_info("list", crate::GROUP, crate::COLLECTIONS, ""))
            .await?;
        let agreed = self.negotiate(Form::List)?;
        let sets = sets::all(&self.question);
        let document = match agreed.transform {
            Transform::Table { beta } => {
                let rows = sets.iter().map(|set| set.row(beta)).collect();
                let columns = sets::columns();
                tables::table(Some(columns), rows, Value::object(), beta)
            }
            _ => {
                let items: Vec<Value> = sets.iter().map(Set::document).collect();
                value!({
                    "kind": "CollectionResourceList", "apiVersion": "clusterpedia.io/v1beta1",
                    "metadata": {}, "items": (items),
                })
            }
        };
        Ok(reply::value(StatusCode::OK, agreed, &document))
    }

    /// Answers with the objects of a collection.
    pub(crate) async fn collection(&self, name: &str) -> Result<Response, Status> {
        self.rights
            .check(&bareboat_server::request::info::RequestInfo {
                name: name.into(),
                ..read_info("get", crate::GROUP, crate::COLLECTIONS, "")
            })
            .await?;
        let set = sets::find(&self.question, name)?;
        let search = Search::parse(&self.question.query, "", &self.fleet, None)?;
        self.check_token(&search).await?;
        self.warn_about(&search);
        if search.owner.is_some() {
            return Err(Status::bad_request(
                "collection resources cannot be searched by owner",
            ));
        }
        let agreed = self.negotiate(Form::Object)?;
        let mut members = self.readable(None, &search).await?;
        let all = members.len();
        members.retain(|member| !self.rights.is_judge(member));
        if members.len() < all {
            self.warn(format!(
                "{} clusters are left out, because they decide themselves who reads their objects",
                all - members.len()
            ));
        }
        selection::check_staleness(&members, &search, self.now)?;
        let mut parts = self.parts(&set, &search).await?;
        let warn = |text| self.warn(text);
        let fleet = selection::freshness(&members, false, self.now, &warn);
        let kinds = parts::kinds(&parts, &self.views.shelf.directory());
        let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
        let (_, mut query) = self.queries(kinds, &search, &names).await?;
        if search.visible {
            parts = self.only_visible(parts, &mut query).await?;
        }
        let events = match agreed.transform {
            // Tables show no events.
            Transform::Table { .. } => Injected::None,
            _ => {
                let namespaced = parts.iter().any(|part| part.asked.namespaced);
                self.injected(namespaced, &search, &query, &members).await?
            }
        };
        let page = self
            .collected(&parts, &query, &search, events, agreed.transform)
            .await?;
        if page.next.is_some() && !(1..=LARGEST).contains(&search.limit) {
            self.warn(format!(
                "only {} objects are shown, and there are more: set limit to at most {LARGEST} (in label selectors search.clusterpedia.io/limit), or go on with continue",
                page.items.len()
            ));
        }
        let continues = page.next.is_some().then(|| next(&search, &page));
        let remaining = match search.counts {
            true => self.uncounted(&query, &search, page.items.len()).await?,
            false => None,
        };
        let mut out = BytesMut::new();
        let mut metadata = Map::new();
        if let Transform::Table { beta } = agreed.transform {
            if let Some(token) = continues {
                metadata.insert("continue", Value::string(token));
            }
            if let Some(remaining) = remaining {
                metadata.insert("remainingItemCount", Value::Int(remaining));
            }
            let table = tables::table(
                Some(rows::columns()),
                Vec::new(),
                Value::Object(metadata),
                beta,
            );
            // The rows are the last member of a table.
            let head = table.to_json();
            let at = memchr_rows(&head);
            out.extend_from_slice(&head[..at]);
            page.items.append_to(&mut out, &mut false);
            out.extend_from_slice(&head[at..]);
        } else {
            metadata.insert("name", Value::string(name));
            let types: Vec<Value> = parts.iter().map(|part| part.name.document()).collect();
            let mut head = value!({
                "kind": "CollectionResource", "apiVersion": "clusterpedia.io/v1beta1",
                "metadata": (Value::Object(metadata)), "resourceTypes": (types),
            });
            if let Some(token) = continues {
                head.make_object().insert("continue", Value::string(token));
            }
            if let Some(remaining) = remaining {
                head.make_object()
                    .insert("remainingItemCount", Value::Int(remaining));
            }
            let mut bytes = head.to_json();
            bytes.pop();
            out.extend_from_slice(&bytes);
            out.extend_from_slice(b",\"items\":[");
            page.items.append_to(&mut out, &mut false);
            out.extend_from_slice(b"]}");
        }
        if agreed.is_plain() {
            let response = json(Body::full(out.freeze()));
            return Ok(self.with_fleet(response, &fleet));
        }
        let parsed = bareboat_wire::json::parse(&out);
        let parsed = parsed.map_err(|_| Status::internal("a collection cannot be printed"))?;
        let response = reply::value(StatusCode::OK, agreed, &parsed.value);
        Ok(self.with_fleet(response, &fleet))
    }

    /// Reads a page of a collection.
    async fn collected(
        &self,
        parts: &[Part],
        query: &Query,
        search: &Search,
        events: Injected,
        transform: Transform,
    ) -> Result<Rendered, Status> {
        let directory = self.views.shelf.directory();
        let mut renderers: HashMap<i64, Vec<_>> = HashMap::new();
        for part in parts {
            let form = match transform {
                Transform::Table { .. } => Transform::Whole,
                other => other,
            };
            let only_metadata = search.only_metadata;
            let asked = part.asked.clone();
            let renderer = self.renderer(asked, Versions::Fleet, form, only_metadata)?;
            for number in part.name.kinds(&directory) {
                let all = renderers.entry(number.0).or_default();
                all.push((part.clone(), renderer.clone()));
            }
        }
        let rows = match transform {
            Transform::Table { beta } => Some(Rows {
                beta,
                include: tables::Include::of(&self.question.query)?,
                now: bareboat_api::kind::Now(self.now.div_euclid(1000)),
            }),
            _ => None,
        };
        let query = paged(query, search);
        let most = match search.limit {
            0 => PAGE,
            limit => limit.min(LARGEST),
        };
        let shelf = self.views.shelf.clone();
        let read = move || {
            let page = shelf.page(&query, most)?;
            let directory = shelf.directory();
            let mut items = Items::default();
            for item in &page.items {
                // Objects of a kind in two groups are shown in the first one that shows their namespace.
                let mut all = renderers.get(&item.narrow.kind).into_iter().flatten();
                let shown = all.find(|(part, _)| part.shows(&item.narrow.namespace));
                let Some((_, renderer)) = shown else {
                    continue;
                };
                match &rows {
                    Some(rows) => {
                        let row = rows.row(renderer, item, &directory).to_json();
                        items.add().extend_from_slice(&row);
                    }
                    None => {
                        let events = events.of(&shelf, &item.narrow)?;
                        renderer.write(item, &directory, events, items.add());
                    }
                }
            }
            Ok(Rendered {
                items,
                rev: page.rev,
                next: page.next,
                left: page.left,
                member_version: None,
            })
        };
        self.views.workers.run(read).await
    }

    /// Counts what comes after a page.
    async fn uncounted(
        &self,
        query: &Query,
        search: &Search,
        shown: usize,
    ) -> Result<Option<i64>, Status> {
        let offset = match search.start {
            Start::First => 0,
            Start::Offset(offset) => offset,
            Start::After(_) => return Ok(None),
        };
        let (shelf, query) = (self.views.shelf.clone(), query.clone());
        let count = self.views.workers.run(move || shelf.count(&query)).await?;
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        Ok(Some(count - number(offset) - number(shown)))
    }
}

/// Returns where the rows of an empty table belong.
fn memchr_rows(table: &[u8]) -> usize {
    const EMPTY: &[u8] = b"\"rows\":[";
    let found = table.windows(EMPTY.len()).rposition(|part| part == EMPTY);
    found.map_or(table.len(), |at| at + EMPTY.len())
}

/// Returns whether a member of the fleet has a type in a version.
fn is_served(fleet: &Fleet, one: &TypeName) -> bool {
    let has = |member: &Arc<Member>| {
        let synced = member.synced(&one.group, &one.resource);
        synced.is_some_and(|synced| source(synced, &one.group, &one.version).is_some())
    };
    fleet.members.values().any(has)
}
