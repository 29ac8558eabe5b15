//! One object of one member.

use crate::members::Member;
use crate::render::Versions;
use crate::rights::member_info;
use crate::search::Search;
use crate::selection;
use crate::views::{Call, Form};
use bareboat_api::status::GroupResource;
use bareboat_api::{Status, value};
use bareboat_server::reply::{self, Response};
use bareboat_server::request::info::RequestInfo;
use bareboat_server::request::negotiate::Transform;
use bareboat_server::tables;
use http::StatusCode;
use std::sync::Arc;

impl Call {
    /// Answers with one object.
    pub(crate) async fn get(
        &self,
        member: Option<&Arc<Member>>,
        info: &RequestInfo,
    ) -> Result<Response, Status> {
        let Some(member) = member else {
            return Err(Status::bad_request(
                "please specify the cluster name when using the resource name to get a specific resource.",
            ));
        };
        let asked = self.asked(Some(member), info)?;
        let search = Search::parse(&self.question.query, "", &self.fleet, Some(&asked))?;
        self.warn_about(&search);
        self.rights.check(&member_info(&member.name)).await?;
        match self.rights.is_judge(member) {
            true => self.rights.check_in(&member.name, info).await?,
            // The member may have been one when the server left the decision to it.
            false => self.rights.check(info).await?,
        }
        let members = [member.clone()];
        selection::check_staleness(&members, &search, self.now)?;
        let agreed = self.negotiate(Form::Object)?;
        let (transform, only_metadata) = (agreed.transform, search.only_metadata);
        let renderer = self.renderer(asked, Versions::Member, transform, only_metadata)?;
        let what = GroupResource {
            group: &info.group,
            resource: &info.resource,
        };
        let missing = || Status::not_found(what, &info.name);
        let directory = self.views.shelf.directory();
        let kind = renderer.asked.kind_in(member, &directory);
        let place = directory.member(&member.name).zip(kind);
        let (number, kind) = place.ok_or_else(missing)?;
        // The namespace of a namespace is in the URL only.
        let namespace = match renderer.asked.namespaced {
            true => info.namespace.to_string(),
            false => String::new(),
        };
        let (shelf, name) = (self.views.shelf.clone(), info.name.to_string());
        let injected = self.injected_into(member, &search, &namespace).await;
        let found = self.views.workers.run(move || {
            let Some(item) = shelf.get(number, kind, &namespace, &name)? else {
                return Ok(None);
            };
            let events = injected.of(&shelf, &item.narrow)?;
            Ok(Some((item, events)))
        });
        let (item, events) = found.await?.ok_or_else(missing)?;
        let bytes = renderer.bytes(&item, &directory, events);
        let warn = |text| self.warn(text);
        let fleet = selection::freshness(&members, true, self.now, &warn);
        let whole =
            transform == Transform::Whole || matches!(transform, Transform::Metadata { .. });
        if whole && agreed.is_plain() {
            let response = crate::list::json(reply::Body::full(bytes));
            return Ok(self.with_fleet(response, &fleet));
        }
        let parsed = bareboat_wire::json::parse(&bytes);
        let parsed = parsed.map_err(|_| Status::internal("an object cannot be printed"))?;
        let document = match transform {
            Transform::Table { beta } => {
                let metadata = value!({"resourceVersion": (renderer.version(&item.narrow))});
                tables::table(Some(renderer.columns()), vec![parsed.value], metadata, beta)
            }
            _ => parsed.value,
        };
        let response = reply::value(StatusCode::OK, agreed, &document);
        Ok(self.with_fleet(response, &fleet))
    }
}
