//! A request to a stored kind: the request, the kind and version, and the server.

mod present;

pub(crate) use present::{Shown, reread, reread_object};

use crate::authz::Authorized;
use crate::diagnostics;
use crate::flow;
use crate::kinds::stored_kind::StoredKind;
use crate::protobuf::MetaMessages;
use crate::reply::{Response, status_response};
use crate::request::ask::Ask;
use crate::request::negotiate::{Agreed, Media, Offer, clauses, negotiate};
use crate::server::Error;
use crate::server::state::State;
use crate::work;
use bareboat_api::kind::{Action, Kind, MediaErrors, ScalePaths, SubresourceRole, Verb, Version};
use bareboat_api::{Object, Status};
use bareboat_schema::MAX_DEFAULTS;
use bareboat_storage::Entry;
use bytes::Bytes;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A Status with more causes than this is encoded as large work.
const MANY_CAUSES: usize = 100;
/// More bytes of defaults than this are not filled in on a worker.
const MANY_DEFAULTS: usize = 1 << 20;

/// A request to a stored kind.
#[derive(Clone)]
pub(crate) struct KindRequest {
    pub(crate) state: Arc<State>,
    pub(crate) ask: Arc<Authorized<Ask>>,
    pub(crate) served: Arc<StoredKind>,
    pub(crate) version: usize,
}

/// An object in the storage version, encoded.
pub(crate) struct Encoded {
    pub(crate) object: Object,
    pub(crate) bytes: Bytes,
    /// The fingerprint of its shape.
    pub(crate) shape: u64,
}

/// Whether the answer is one object or many.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arity {
    One,
    Many,
    Stream,
}

impl KindRequest {
    pub(crate) fn version(&self) -> &Version {
        self.served.version(self.version)
    }

    /// Returns the key of the object the URL names.
    pub(crate) fn key(&self) -> String {
        self.served
            .key(&self.ask.info.namespace, &self.ask.info.name)
    }

    /// Returns the replicas paths, if the request is for the scale subresource.
    pub(crate) fn scale_paths(&self) -> Option<&ScalePaths> {
        match &self.version().subresource(&self.ask.info.subresource)?.role {
            SubresourceRole::Scale(paths) => Some(paths),
            _ => None,
        }
    }

    /// Returns the action, if the request posts one.
    pub(crate) fn action(&self) -> Option<&Arc<dyn Action>> {
        let part = &self.ask.info.subresource;
        match part.is_empty() {
            true => self.served.kind.action.as_ref(),
            false => self.version().subresource(part)?.action.as_ref(),
        }
    }

    pub(crate) fn messages(&self) -> &MetaMessages {
        &self.state.messages
    }

    /// Returns the object a write starts from, in the version of the request.
    pub(crate) async fn live(&self, entry: &Entry) -> Result<Object, Status> {
        if self.ask.raw {
            return self.served.parse(entry);
        }
        self.served.object(entry, self.version).await
    }

    /// Converts an object to the storage version and encodes it. `entry` is the entry it replaces.
    pub(crate) async fn encode_for_storage(
        &self,
        entry: &Entry,
        object: Object,
    ) -> Result<Encoded, Status> {
        let served = &self.served;
        let (stored, shape) = if self.ask.raw {
            (object, entry.shape())
        } else if served.metadata_is_shared() {
            served.to_storage_version(object, None).await?
        } else {
            // A converter that merges into the stored object gets it.
            let live = served.parse(entry)?;
            served.to_storage_version(object, Some(&live)).await?
        };
        Ok(Encoded {
            shape,
            bytes: bareboat_wire::encode::persisted(stored.value()),
            object: stored,
        })
    }

    /// Returns a 404 for the object the URL names.
    pub(crate) fn not_found(&self) -> Status {
        Status::not_found(self.served.kind.group_resource(), &self.ask.info.name)
    }

    /// Returns the time left until the deadline of this request.
    pub(crate) fn time_left(&self) -> Duration {
        self.ask.deadline.saturating_duration_since(Instant::now())
    }

    /// Returns whether a write may be large work, judged by its body and kind. The stored object is not read yet.
    pub(crate) fn may_be_large(&self, verb: Verb, body: &[u8]) -> bool {
        if body.len() > work::LARGE {
            return true;
        }
        let checks = matches!(verb, Verb::Create | Verb::Update | Verb::Patch);
        checks
            && (self.served.defines_kinds()
                || self.version().shape.may_take_long()
                || self.may_have_many_defaults(body))
    }

    /// Returns whether many bytes of defaults may be filled into a body.
    fn may_have_many_defaults(&self, body: &[u8]) -> bool {
        // A body has fewer values than bytes. Mostly that is enough to know, without counting them.
        let each = self.version().shape.defaults_per_value();
        each.saturating_mul(body.len() + 1) > MANY_DEFAULTS
            && self.most_defaults(body) > MANY_DEFAULTS
    }

    /// Returns how many bytes of defaults a body can cause, at most. Compiles the schema.
    pub(crate) fn most_defaults(&self, body: &[u8]) -> usize {
        match self.version().shape.defaults_per_value() {
            0 => 0,
            each => MAX_DEFAULTS.min(each.saturating_mul(flow::values(body))),
        }
    }

    /// Returns the answer to a refused write: encoded here if it is long, otherwise with all other answers.
    pub(crate) fn refuse(&self, status: Status) -> Result<Response, Status> {
        let causes = status.details.as_ref().map_or(0, |it| it.causes.len());
        if causes <= MANY_CAUSES && status.message.len() <= work::LARGE {
            return Err(status);
        }
        let error = Error::from(status);
        diagnostics::refused(&self.ask.trace, &error);
        let (headers, pretty) = (&self.ask.headers, self.ask.query.get("pretty"));
        let response = status_response(headers, pretty, self.messages(), error.status());
        Ok(response)
    }

    /// Negotiates the encoding of the answer.
    pub(crate) fn negotiate(&self, arity: Arity) -> Result<Agreed, Status> {
        let offer = Offer {
            protobuf: self.version().shape.message().is_some()
                && self.served.kind.conventions.protobuf,
            protobuf_metadata: self.state.messages.available(),
            yaml: true,
            table: true,
            metadata: Some(match arity {
                Arity::Many => LIST,
                Arity::One | Arity::Stream => OBJECT,
            }),
        };
        let headers = &self.ask.headers;
        let agreed = negotiate(headers, self.ask.query.get("pretty"), &offer);
        let agreed = agreed.ok_or_else(|| {
            let wrong = self.wrong_metadata(arity);
            wrong.unwrap_or_else(|| not_acceptable(&self.ask, &offer, &self.served.kind))
        })?;
        if arity == Arity::Stream && agreed.media == Media::Yaml {
            return Err(Status::not_acceptable(&STREAMS));
        }
        Ok(agreed)
    }

    /// Returns a 406 if the client asked for an object's metadata where the answer is a list, or the reverse.
    fn wrong_metadata(&self, arity: Arity) -> Option<Status> {
        let (other, what) = match arity {
            Arity::Many => (OBJECT, "is a list"),
            Arity::One => (LIST, "is not a list"),
            Arity::Stream => return None,
        };
        clauses(&self.ask.headers).iter().find(|clause| {
            clause.parameter("as") == Some(other)
                && clause.parameter("g") == Some("meta.k8s.io")
                && matches!(clause.parameter("v"), Some("v1" | "v1beta1"))
        })?;
        let ty = go_type(&self.served.kind, arity == Arity::Many);
        let message = format!("you requested {other}, but the requested object {what} ({ty})");
        Some(Status::new(406, "NotAcceptable", message))
    }
}

const OBJECT: &str = "PartialObjectMetadata";
const LIST: &str = "PartialObjectMetadataList";
const STREAMS: [&str; 2] = [
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];

/// Returns the name of Go's type for a kind, or for its list, for error messages.
fn go_type(kind: &Kind, list: bool) -> String {
    let suffix = if list { "List" } else { "" };
    if kind.conventions.media_errors == MediaErrors::Unstructured {
        return format!("*unstructured.Unstructured{suffix}");
    }
    let package = match (kind.policy.go_package, kind.group.as_str()) {
        (Some(package), _) => package,
        (None, "") => "core",
        (None, group) => group.split('.').next().unwrap_or(group),
    };
    format!("*{package}.{}{suffix}", kind.names.kind)
}

/// Returns a 406 with the message of the kind's API style.
pub(crate) fn not_acceptable(ask: &Ask, offer: &Offer, kind: &Kind) -> Status {
    let listed = Offer {
        protobuf: offer.protobuf || offer.protobuf_metadata,
        ..*offer
    };
    let mut names = listed.names();
    let unstructured = kind.conventions.media_errors == MediaErrors::Unstructured;
    if unstructured || offer.is_named(&ask.headers) {
        return Status::not_acceptable(&names);
    }
    if matches!(ask.info.verb.as_str(), "list" | "watch") {
        names.push(STREAMS[0]);
        if offer.protobuf {
            names.push(STREAMS[1]);
        }
    }
    let message = format!(
        "406: Not Acceptable\n\nAvailable representations: {}",
        names.join(", ")
    );
    Status::new(406, "NotAcceptable", message).with_details(Default::default())
}
