//! The views: what they are made of, and what every request to them needs.

use crate::members::{Fleet, Member, Members};
use crate::render::{Renderer, Versions};
use crate::reviews::Reviews;
use crate::rights::Rights;
use crate::types::Asked;
use crate::versions::Marks;
use crate::workers::Workers;
use bareboat_api::Status;
use bareboat_api::kind::Now;
use bareboat_server::Calls;
use bareboat_server::kinds::computed::Question;
use bareboat_server::reply::Response;
use bareboat_server::request::info::RequestInfo;
use bareboat_server::request::negotiate::{Agreed, Offer, Transform, negotiate};
use bareboat_server::tables::Include;
use bareboat_shelf::{Bounds, Shelf, ShelfError};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::watch;

/// The header with the number of members, and of those that are fresh.
const FLEET_CLUSTERS: HeaderName = HeaderName::from_static("fleet-clusters");

/// How requests are authorized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authorization {
    /// By rights on what is read: the member, and the real group, resource and namespace.
    #[default]
    Hub,
    /// By the path alone, as in Clusterpedia: who may get `resources/NAME` reads everything below it.
    Path,
}

/// Settings of the views.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How requests are authorized.
    pub authorization: Authorization,
    /// What one page of a search may cost.
    pub bounds: Bounds,
    /// How many calls of the shelf run at once.
    pub at_once: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            authorization: Authorization::Hub,
            bounds: Bounds::default(),
            at_once: 4,
        }
    }
}

/// The views of a fleet.
pub struct Views {
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) members: Arc<dyn Members>,
    pub(crate) settings: Settings,
    pub(crate) workers: Workers,
    /// The version of the last commit, for watches.
    pub(crate) commits: watch::Receiver<i64>,
    /// For the hashes of values of Secrets.
    pub(crate) salt: Arc<[u8]>,
    pub(crate) marks: Marks,
    /// What members said about rights.
    pub(crate) reviews: Reviews,
}

bareboat_api::opaque_debug!(Views);

impl Views {
    /// Makes the views of a shelf. It reads the file, so it blocks for a moment.
    pub fn new(
        shelf: Arc<Shelf>,
        members: Arc<dyn Members>,
        settings: Settings,
    ) -> Result<Arc<Views>, ShelfError> {
        let salt: Arc<[u8]> = shelf.salt()?.into();
        let (sender, commits) = watch::channel(shelf.visible());
        shelf.on_commit(move |rev| {
            sender.send_replace(rev);
        });
        Ok(Arc::new(Views {
            workers: Workers::new(settings.at_once),
            shelf,
            members,
            settings,
            commits,
            salt,
            marks: Marks::default(),
            reviews: Reviews::default(),
        }))
    }
}

/// A request to a view.
pub(crate) struct Call {
    pub(crate) views: Arc<Views>,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) question: Question,
    pub(crate) headers: HeaderMap,
    pub(crate) calls: Calls,
    pub(crate) rights: Rights,
    /// Milliseconds since 1970.
    pub(crate) now: i64,
}

impl Call {
    pub(crate) fn warn(&self, text: String) {
        self.question.warn(text);
    }

    /// Finds the type of a request, or answers that there is none.
    pub(crate) fn asked(
        &self,
        member: Option<&Arc<Member>>,
        info: &RequestInfo,
    ) -> Result<Asked, Status> {
        let found = Asked::find(
            &self.fleet,
            member,
            &info.group,
            &info.version,
            &info.resource,
        );
        let fits = |asked: &Asked| {
            let is_namespace = info.resource == "namespaces" && info.group.is_empty();
            asked.namespaced || info.namespace.is_empty() || is_namespace
        };
        found.filter(fits).ok_or_else(Status::no_such_route)
    }

    /// Negotiates the form of an answer.
    pub(crate) fn negotiate(&self, form: Form) -> Result<Agreed, Status> {
        let offer = Offer {
            protobuf: false,
            protobuf_metadata: false,
            yaml: form != Form::Stream,
            table: true,
            metadata: Some(match form {
                Form::List => "PartialObjectMetadataList",
                _ => "PartialObjectMetadata",
            }),
        };
        let pretty = self.question.query.get("pretty");
        negotiate(&self.headers, pretty, &offer)
            .ok_or_else(|| Status::not_acceptable(&offer.names()))
    }

    /// Returns how objects are shown.
    pub(crate) fn renderer(
        &self,
        asked: Asked,
        versions: Versions,
        transform: Transform,
        only_metadata: bool,
    ) -> Result<Renderer, Status> {
        let open: HashSet<String> = match asked.resource.as_str() {
            "secrets" => {
                let members = self.fleet.members.values();
                let members = members.filter(|member| member.shows_secrets);
                members.map(|member| member.name.clone()).collect()
            }
            _ => HashSet::new(),
        };
        Ok(Renderer {
            asked,
            versions,
            include: Include::for_transform(&self.question.query, transform)?,
            transform,
            only_metadata,
            shows_secrets: Arc::new(open),
            salt: self.views.salt.clone(),
            now: Now(self.now.div_euclid(1000)),
        })
    }

    /// Adds the header about members.
    pub(crate) fn with_fleet(&self, mut response: Response, fleet: &str) -> Response {
        if let Ok(value) = HeaderValue::from_str(fleet) {
            response.headers_mut().insert(FLEET_CLUSTERS, value);
        }
        response
    }
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// One object.
    Object,
    /// A list.
    List,
    /// A stream of events.
    Stream,
}
