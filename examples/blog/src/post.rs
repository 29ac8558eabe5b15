//! The kind Post.

use crate::readers::Published;
use crate::search::Index;
use bareboat::TypedKindError;
use bareboat::api::kind::Column;
use bareboat::prelude::*;

/// A post of the blog.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Post {
    spec: PostSpec,
}
#[derive(Serialize, Deserialize, JsonSchema)]
struct PostSpec {
    /// The headline.
    #[schemars(length(min = 1, max = 200))]
    title: String,
    /// The text of the post.
    #[serde(default)]
    body: String,
    /// Drafts are shown to users with the right to get posts/drafts.
    #[serde(default = "yes")]
    draft: bool,
}

fn yes() -> bool {
    true
}

/// Returns the kind. Field selectors may have `text=WORD`, which the index answers.
pub(crate) fn kind(index: Index) -> Result<Kind, TypedKindError> {
    let state = Column::string("State", |post, _| match is_draft(post) {
        true => Value::string("draft"),
        false => Value::string("published"),
    });
    TypedKind::new("blog.example.com", "posts", "Post")
        .version::<Post>("v1")
        .column("Title", ".spec.title")
        .with_column(state)
        .validate(|new: &Post, old: Option<&Post>, _: &WriteContext<'_>| {
            let draft = FieldPath::new("spec").child("draft");
            match old.is_some_and(|old| !old.spec.draft && new.spec.draft) {
                true => vec![FieldError::forbidden(
                    draft,
                    "a published post stays published",
                )],
                false => Vec::new(),
            }
        })
        .reader(Published)
        .search(index.search("text"))
        .build()
}

/// Returns whether a post is a draft.
pub(crate) fn is_draft(post: &Value) -> bool {
    post.at(&["spec", "draft"]).and_then(Value::as_bool) == Some(true)
}
