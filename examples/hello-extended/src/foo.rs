//! The kind Foo: two versions, a computed column and two subresources.

use crate::rules::{OnlyConfig, encode};
use bareboat::TypedKindError;
use bareboat::api::kind::{Column, SubresourceRole};
use bareboat::prelude::*;

/// `v1`: two messages.
#[derive(Serialize, Deserialize, JsonSchema)]
struct FooV1 {
    spec: Messages,
}
#[derive(Serialize, Deserialize, JsonSchema)]
struct Messages {
    /// The first message.
    msg: String,
    /// The second message.
    #[serde(default = "and_then")]
    msg1: String,
}

/// `v2`: the messages moved, and there are an image and a status.
#[derive(Serialize, Deserialize, JsonSchema)]
struct FooV2 {
    spec: SpecV2,
    status: Option<FooStatus>,
}
#[derive(Serialize, Deserialize, JsonSchema)]
struct SpecV2 {
    /// The image to run.
    #[serde(default = "image")]
    image: String,
    config: Messages,
}
#[derive(Serialize, Deserialize, JsonSchema)]
struct FooStatus {
    /// The present phase.
    phase: String,
}

/// What clients post to `/base64`: the messages to encode.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Base64 {
    pub(crate) spec: Base64Spec,
}
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Base64Spec {
    /// `msg`, `msg1` or both.
    pub(crate) field_names: Vec<String>,
}

fn and_then() -> String {
    "and then?".to_owned()
}
fn image() -> String {
    "busybox:1.37".to_owned()
}

impl From<FooV1> for FooV2 {
    fn from(v1: FooV1) -> FooV2 {
        let (image, config) = (image(), v1.spec);
        FooV2 {
            spec: SpecV2 { image, config },
            status: None,
        }
    }
}
impl From<FooV2> for FooV1 {
    fn from(v2: FooV2) -> FooV1 {
        FooV1 {
            spec: v2.spec.config,
        }
    }
}

/// Returns the kind.
pub(crate) fn kind() -> Result<Kind, TypedKindError> {
    let both = Column::string("Messages", |object, _| {
        let text = |name| object.at(&["spec", "config", name]).and_then(Value::as_str);
        let texts = ["msg", "msg1"].map(|name| text(name).unwrap_or_default());
        Value::from(texts.join(" / "))
    });
    TypedKind::new("hello.zeng.dev", "foos", "Foo")
        .short_name("fo")
        .version::<FooV2>("v2")
        .column("Image", ".spec.image")
        .with_column(both)
        .rule("self.spec.image.contains(':')", "the image needs a tag")
        .subresource(Subresource::part("config", SubresourceRole::Part))
        .action::<Base64>("base64", "Base64", |call| Box::pin(encode(call)))
        .version::<FooV1>("v1")
        .column("Message", ".spec.msg")
        .convert::<FooV1, FooV2>("v1", "v2")
        .strategy(OnlyConfig)
        .build()
}
