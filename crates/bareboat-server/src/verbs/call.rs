//! A verb being carried out on a kind: the request, the kind and version, and the server around it.

use crate::authz::Authorized;
use crate::kinds::served::Served;
use crate::protobuf::MetaMessages;
use crate::reply::{Response, status_response};
use crate::request::ask::Ask;
use crate::request::negotiate::{Agreed, Media, Offer, clauses, negotiate};
use crate::server::state::State;
use crate::work;
use bareboat_api::kind::{Action, Kind, ScalePaths, SubresourceRole, Verb, Version};
use bareboat_api::{Object, Status};
use bareboat_storage::Entry;
use bytes::Bytes;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// So many causes make a refusal long.
const MANY_CAUSES: usize = 100;

/// A verb being carried out on a kind.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) state: Arc<State>,
    pub(crate) ask: Arc<Authorized<Ask>>,
    pub(crate) served: Arc<Served>,
    pub(crate) version: usize,
}

/// An object as it is to be stored.
pub(crate) struct Stored {
    pub(crate) object: Object,
    pub(crate) bytes: Bytes,
    /// The form it is in, as entries remember it.
    pub(crate) shape: u64,
}

/// Whether the answer is one object or many.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arity {
    One,
    Many,
    Stream,
}

impl Call {
    pub(crate) fn version(&self) -> &Version {
        self.served.version(self.version)
    }

    /// The key of the object the URL names.
    pub(crate) fn key(&self) -> String {
        self.served
            .key(&self.ask.info.namespace, &self.ask.info.name)
    }

    /// Where the replicas are, if the request is about the scale of the object.
    pub(crate) fn scale_paths(&self) -> Option<&ScalePaths> {
        match &self.version().subresource(&self.ask.info.subresource)?.role {
            SubresourceRole::Scale(paths) => Some(paths),
            _ => None,
        }
    }

    /// What acts upon the body, if the request is a post to something that is not stored.
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

    /// The object a write starts from, in the version the request speaks.
    pub(crate) async fn live(&self, entry: &Entry) -> Result<Object, Status> {
        if self.ask.as_stored {
            return self.served.parse(entry);
        }
        self.served.object(entry, self.version).await
    }

    /// An object as it is to be stored in the place of an entry.
    pub(crate) async fn stored(&self, entry: &Entry, object: Object) -> Result<Stored, Status> {
        let served = &self.served;
        let (stored, shape) = if self.ask.as_stored {
            (object, entry.shape())
        } else if served.metadata_is_shared() {
            served.to_stored(object, None).await?
        } else {
            // A converter that merges into what is stored is given it.
            let live = served.parse(entry)?;
            served.to_stored(object, Some(&live)).await?
        };
        Ok(Stored {
            shape,
            bytes: bareboat_wire::encode::stored(stored.value()),
            object: stored,
        })
    }

    /// 404 for the object the URL names.
    pub(crate) fn not_found(&self) -> Status {
        Status::not_found(self.served.kind.group_resource(), &self.ask.info.name)
    }

    /// What is left of the time for this request.
    pub(crate) fn time_left(&self) -> Duration {
        self.ask.deadline.saturating_duration_since(Instant::now())
    }

    /// Whether a write may take long, as far as can be told before the object it is about is looked at.
    pub(crate) fn may_be_large(&self, verb: Verb, body: &[u8]) -> bool {
        if body.len() > work::LARGE {
            return true;
        }
        let checks = matches!(verb, Verb::Create | Verb::Update | Verb::Patch);
        checks && (self.served.defines_kinds() || self.version().shape.may_take_long())
    }

    /// The answer to a write that is refused: here if it is long, with all other answers if not.
    pub(crate) fn refuse(&self, status: Status) -> Result<Response, Status> {
        let causes = status.details.as_ref().map_or(0, |it| it.causes.len());
        if causes <= MANY_CAUSES && status.message.len() <= work::LARGE {
            return Err(status);
        }
        let (headers, pretty) = (&self.ask.headers, self.ask.query.get("pretty"));
        let response = status_response(headers, pretty, self.messages(), &status);
        Ok(response)
    }

    /// Agrees with the client on the form of the answer.
    pub(crate) fn negotiate(&self, arity: Arity) -> Result<Agreed, Status> {
        let custom = self.served.kind.custom;
        let offer = Offer {
            protobuf: self.version().shape.message().is_some() && !custom,
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
            wrong.unwrap_or_else(|| not_acceptable(&self.ask, &offer, custom))
        })?;
        if arity == Arity::Stream && agreed.media == Media::Yaml {
            return Err(Status::not_acceptable(&STREAMS));
        }
        Ok(agreed)
    }

    /// 406 where the client asked for the metadata of a list that is an object, or of an object that is a list.
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

/// The name that Go's type for a kind, or for its list, has in messages.
fn go_type(kind: &Kind, list: bool) -> String {
    let suffix = if list { "List" } else { "" };
    if kind.custom {
        return format!("*unstructured.Unstructured{suffix}");
    }
    let package = match kind.group.as_str() {
        "" | "events.k8s.io" => "core",
        "internal.apiserver.k8s.io" => "apiserverinternal",
        group => group.split('.').next().unwrap_or(group),
    };
    format!("*{package}.{}{suffix}", kind.names.kind)
}

/// 406 in the words of the two kinds of endpoints.
pub(crate) fn not_acceptable(ask: &Ask, offer: &Offer, custom: bool) -> Status {
    let listed = Offer {
        protobuf: offer.protobuf || offer.protobuf_metadata,
        ..*offer
    };
    let mut names = listed.names();
    if custom || offer.is_named(&ask.headers) {
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
