//! GET of a collection: reads a snapshot, cuts a page, and streams cached bytes.

mod body;
mod items;
mod protobuf;
mod text_format;
mod token;

use super::freshness;
use super::kind_request::{Arity, KindRequest};
use super::selection::Selection;
use super::visibility;
use crate::flow;
use crate::kinds::stored_kind::damaged_list;
use crate::reply::Response;
use crate::request::negotiate::{Agreed, Media, Transform};
use crate::request::options::{ListOptions, VersionMatch};
use crate::tables::{self, Include};
use crate::work::{self, Pace};
use bareboat_api::{Map, Status, Value};
use bareboat_storage::{Entry, Snapshot, SnapshotError};
use body::ListBody;
use bytes::Bytes;
use items::{Items, Source, Style};
use std::sync::Arc;
use text_format::{Pretty, TextFormat, Yaml};
use token::Token;

/// A list of this many objects counts as large work, unless its bytes are cached.
const LARGE: usize = 1000;

/// The metadata of a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListMeta {
    pub(crate) resource_version: u64,
    pub(crate) continue_token: Option<String>,
    pub(crate) remaining: Option<usize>,
}

impl ListMeta {
    /// Encodes a protobuf list of messages with this metadata.
    pub(crate) fn protobuf(&self, api_version: &str, kind: &str, items: &[Bytes]) -> Bytes {
        self.with(|meta| crate::protobuf::list(api_version, kind, meta, items))
    }

    /// Calls `then` with the metadata as the protobuf encoder takes it.
    fn with<R>(&self, then: impl FnOnce(&bareboat_wire::encode::ListMeta<'_>) -> R) -> R {
        then(&bareboat_wire::encode::ListMeta {
            resource_version: &self.resource_version.to_string(),
            continue_token: self.continue_token.as_deref().unwrap_or(""),
            remaining_item_count: self.remaining.map(|count| count as i64),
        })
    }

    pub(crate) fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert(
            "resourceVersion",
            Value::from(self.resource_version.to_string()),
        );
        if let Some(token) = &self.continue_token {
            map.insert("continue", Value::string(token));
        }
        if let Some(remaining) = self.remaining {
            map.insert("remainingItemCount", Value::Int(remaining as i64));
        }
        Value::Object(map)
    }
}

/// Answers with a collection.
pub(crate) async fn list(call: Arc<KindRequest>) -> Result<Response, Status> {
    let options = ListOptions::parse(&call.ask.query, false)?;
    let agreed = call.negotiate(Arity::Many)?;
    let include = Include::for_transform(&call.ask.query, agreed.transform)?;
    let mut selection = Selection::parse(&call.served, call.version, &options)?;
    visibility::complete(&call, &mut selection).await?;
    let view = View::open(&call, &options).await?;
    let is_large = !agreed.is_plain_json() && view.snapshot.len() > LARGE;
    let _place = match is_large {
        true => flow::large_place(0).await?,
        false => None,
    };
    let (source, meta) = view.page(&call, &options, &selection).await?;
    let style = match agreed.transform {
        Transform::Whole if agreed.media == Media::Protobuf => Style::Message,
        Transform::Whole => Style::Whole {
            type_meta: call.served.kind.conventions.type_meta_in_items,
        },
        Transform::Table { beta } => Style::Row {
            include,
            beta,
            now: call.state.clock.now(),
        },
        Transform::Metadata { beta } => Style::Metadata { beta },
    };
    let items = Items::new(call.clone(), source, selection, style);
    let form = match (agreed.media, agreed.transform) {
        (Media::Protobuf, transform) => {
            return protobuf::list(&call, items, &meta, transform).await;
        }
        (Media::Yaml, _) => TextFormat::Yaml(Yaml::default()),
        _ if agreed.pretty => TextFormat::Pretty(Pretty::default()),
        _ => TextFormat::Compact,
    };
    let media = match agreed.media {
        Media::Yaml => Media::Yaml,
        _ => Media::Json,
    };
    let body = ListBody::of_text(items, head(&call, agreed, &meta), form);
    body.respond(media.name()).await
}

/// Returns everything of a JSON list before its items.
fn head(call: &KindRequest, agreed: Agreed, meta: &ListMeta) -> Vec<u8> {
    let kind = &call.served.kind;
    let (list_kind, api_version) = match agreed.transform {
        Transform::Whole => (
            kind.names.list_kind.as_str(),
            call.served.api_version(call.version).as_str(),
        ),
        Transform::Table { beta } => ("Table", tables::meta_version(beta)),
        Transform::Metadata { beta } => ("PartialObjectMetadataList", tables::meta_version(beta)),
    };
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(b"{\"kind\":");
    bareboat_api::value::write_string(list_kind, &mut out);
    out.extend_from_slice(b",\"apiVersion\":");
    bareboat_api::value::write_string(api_version, &mut out);
    out.extend_from_slice(b",\"metadata\":");
    meta.to_value().write_json(&mut out);
    if matches!(agreed.transform, Transform::Table { .. }) {
        out.extend_from_slice(b",\"columnDefinitions\":");
        tables::definitions(&call.version().columns).write_json(&mut out);
        out.extend_from_slice(b",\"rows\":[");
    } else {
        out.extend_from_slice(b",\"items\":[");
    }
    out
}

/// Returns the objects as they were at a revision, which the store has reached.
pub(super) async fn past(call: &KindRequest, version: u64, verb: &str) -> Result<Snapshot, Status> {
    let found = call.served.resource().snapshot_at(version).await;
    found.map_err(|error| match error {
        SnapshotError::Expired { .. } => Status::expired(format!(
            "The resourceVersion for the provided {verb} is too old."
        )),
        SnapshotError::Busy => busy(),
        other => Status::failed(other),
    })
}

/// The snapshot a list shows, and where in it the page starts.
struct View {
    snapshot: Snapshot,
    after: Option<String>,
    /// How many items are left from here on, if an earlier page counted them.
    left: Option<usize>,
}

impl View {
    async fn open(call: &KindRequest, options: &ListOptions) -> Result<View, Status> {
        if let Some(text) = &options.continue_token {
            return View::resume(call, options, text).await;
        }
        let resource = call.served.resource();
        let Some(version) = options.resource_version.filter(|version| *version > 0) else {
            return Ok(View {
                snapshot: resource.snapshot(),
                after: None,
                left: None,
            });
        };
        freshness::at_least(call, version).await?;
        // For old clients, a resourceVersion with a limit but no match means exactly that version.
        let exact = options.version_match == Some(VersionMatch::Exact)
            || (options.version_match.is_none() && options.limit > 0);
        let snapshot = if exact {
            past(call, version, "list").await?
        } else {
            resource.snapshot()
        };
        Ok(View {
            snapshot,
            after: None,
            left: None,
        })
    }

    async fn resume(call: &KindRequest, options: &ListOptions, text: &str) -> Result<View, Status> {
        if options.resource_version.is_some_and(|version| version > 0) {
            return Err(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let prefix = call.served.prefix(&call.ask.info.namespace);
        let token = Token::parse(text, &prefix)?;
        let resource = call.served.resource();
        let snapshot = match token.revision {
            None => resource.snapshot(),
            Some(revision) => match resource.snapshot_at(revision).await {
                Ok(snapshot) => snapshot,
                Err(SnapshotError::Expired { .. }) => return Err(expired(&token, &prefix)),
                Err(SnapshotError::Future { .. }) => {
                    return Err(Status::bad_request(
                        "the provided continue token is not of this server",
                    ));
                }
                Err(SnapshotError::Busy) => return Err(busy()),
                Err(error) => return Err(Status::failed(error)),
            },
        };
        Ok(View {
            snapshot,
            after: Some(token.after),
            left: token.left,
        })
    }

    /// Cuts the page: returns its entries and the list's metadata.
    async fn page(
        self,
        call: &KindRequest,
        options: &ListOptions,
        selection: &Selection,
    ) -> Result<(Source, ListMeta), Status> {
        let mut meta = ListMeta {
            resource_version: self.snapshot.revision(),
            ..ListMeta::default()
        };
        let namespace = selection
            .pinned_namespace()
            .filter(|_| call.ask.info.namespace.is_empty() && call.served.kind.namespaced())
            .unwrap_or(&call.ask.info.namespace);
        let prefix = call.served.prefix(namespace);
        if call.served.store().has_damaged() {
            let resource = &call.served.kind.names.plural;
            damaged_list(resource, self.snapshot.range(&prefix, None))?;
        }
        let one_place = !call.served.kind.namespaced() || !namespace.is_empty();
        if let Some(name) = selection.pinned_name().filter(|_| one_place) {
            let key = call.served.key(namespace, name);
            let found = self
                .snapshot
                .get(&key)
                .filter(|entry| selection.matches_entry(entry));
            return Ok((Source::Page(found.cloned().into_iter().collect()), meta));
        }
        // "Any version" with a limit returns everything, as upstream's watch cache did.
        let unlimited = options.limit == 0
            || (options.resource_version == Some(0) && options.continue_token.is_none());
        if unlimited {
            let source = Source::Range {
                snapshot: self.snapshot,
                prefix,
                after: self.after,
            };
            return Ok((source, meta));
        }
        let (entries, more) = self.cut(call, &prefix, options.limit, selection).await?;
        if more {
            let left = selection.is_everything().then(|| {
                let counted = self
                    .left
                    .unwrap_or_else(|| self.snapshot.count(&prefix, self.after.as_deref()));
                counted.saturating_sub(entries.len())
            });
            let after = entries.last().map_or("", |entry| entry.key());
            // Also after a token of a list that expired: the remaining pages agree with this one.
            let token = Token {
                revision: Some(self.snapshot.revision()),
                after: after.to_owned(),
                left,
            };
            call.served.resource().pin(&self.snapshot);
            meta.continue_token = Some(token.print(&prefix));
            meta.remaining = left;
        }
        Ok((Source::Page(entries), meta))
    }

    /// Returns the entries of a page, and whether more would match.
    async fn cut(
        &self,
        call: &KindRequest,
        prefix: &str,
        limit: usize,
        selection: &Selection,
    ) -> Result<(Vec<Arc<Entry>>, bool), Status> {
        let mut entries = Vec::with_capacity(limit.min(1000));
        let after = self.after.as_deref();
        let mut pace = Pace::new();
        for step in (self.snapshot).walk_with(prefix, after, selection.signature()) {
            if pace.spend(work::STEP) {
                work::turn().await;
            }
            let Some(entry) = step.filter(|entry| selection.matches_entry(entry)) else {
                continue;
            };
            if selection.needs_object() {
                if pace.spend(entry.json().len()) {
                    work::turn().await;
                }
                let object = call.served.object(entry, call.version).await?;
                if !selection.matches_object(&object) {
                    continue;
                }
            }
            if entries.len() == limit {
                return Ok((entries, true));
            }
            entries.push(entry.clone());
        }
        Ok((entries, false))
    }
}

/// Returns a 429 for a list of a past state while too many of them are in memory.
fn busy() -> Status {
    Status::too_many_requests(
        "too many old states are being listed, please try again later",
        1,
    )
}

/// Returns a 410 with a token that continues at the newest state.
fn expired(token: &Token, prefix: &str) -> Status {
    let onward = Token {
        revision: None,
        after: token.after.clone(),
        left: None,
    };
    let mut status = Status::expired(
        "The provided continue parameter is too old to display a consistent list result. You can \
         start a new list without the continue parameter, or use the continue token in this \
         response to retrieve the remainder of the results. Continuing with the provided token \
         results in an inconsistent list - objects that were created, modified, or deleted \
         between the time the first chunk was returned and now may show up in the list.",
    );
    status.continue_token = onward.print(prefix);
    status
}
