//! Who may do what, and who sees drafts.

use crate::post::is_draft;
use bareboat::api::kind::{BoxFuture, ReadFilter, Reader, Visibility};
use bareboat::prelude::*;
use bareboat::server::authz::{Attributes, Authorizer, Decision};

/// Members of the group `authors` may do everything with posts; other users may read them. Administrators need no rule.
pub(crate) struct Authors;

impl Authorizer for Authors {
    fn authorize<'a>(&'a self, attributes: Attributes<'a>) -> BoxFuture<'a, Decision> {
        let (user, info) = (attributes.user, attributes.info);
        let reads = matches!(info.verb.as_str(), "get" | "list" | "watch");
        let posts = info.group == "blog.example.com" && info.resource == "posts";
        let allowed = match info.is_resource {
            false => reads,
            true => posts && (user.is_in("authors") || reads && info.subresource.is_empty()),
        };
        Box::pin(std::future::ready(Decision::from_bool(allowed)))
    }
}

/// Hides drafts from users without the right to get `posts/drafts`.
pub(crate) struct Published;

impl ReadFilter for Published {
    fn visibility<'a>(&'a self, reader: &'a Reader<'a>) -> BoxFuture<'a, Visibility> {
        Box::pin(async move {
            match reader.may("get", "drafts").await {
                true => Visibility::All,
                false => Visibility::only(|post: &Object| !is_draft(post.value())),
            }
        })
    }
}
