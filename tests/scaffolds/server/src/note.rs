//! The kind Note: its fields, defaults, rules and columns.

pub mod admission;
pub mod preview;
pub mod v2;

use bareboat::prelude::*;

/// The group of the kind.
pub const GROUP: &str = "fleet.example.org";

/// A Note, as clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// What it should be.
    pub spec: Spec,
    /// What was observed.
    pub status: Option<Status>,
}

/// What a Note should be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// What it is called.
    #[schemars(length(min = 1, max = 200))]
    pub title: String,
    /// How important it is.
    #[serde(default = "usual")]
    #[schemars(range(min = 0, max = 10))]
    pub priority: i32,
}

/// What was observed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The present phase.
    pub phase: String,
}

fn usual() -> i32 {
    5
}

/// The kind with all its versions; clients prefer the highest one.
pub fn kind() -> Result<Kind, bareboat::TypedKindError> {
    TypedKind::new(GROUP, "notes", "Note")
        .version::<Note>("v1")
        .column("Title", ".spec.title")
        .column("Priority", ".spec.priority")
        .column("Phase", ".status.phase")
        .version::<v2::Note>("v2")
        .column("Title", ".spec.title")
        .column("Priority", ".spec.priority")
        .column("Phase", ".status.phase")
        .convert::<Note, v2::Note>("v1", "v2")
        .build()
}

/// Adds the kind to a server.
pub fn serve(mut builder: ServerBuilder) -> anyhow::Result<ServerBuilder> {
    builder = builder.kind(kind()?);
    builder = preview::serve(builder);
    builder = admission::serve(builder);
    Ok(builder)
}
