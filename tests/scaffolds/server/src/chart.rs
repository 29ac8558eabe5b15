//! The kind Chart: its fields, defaults, rules and columns.

use bareboat::prelude::*;

/// The group of the kind.
pub const GROUP: &str = "fleet.example.org";

/// A Chart, as clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Chart {
    /// What it should be.
    pub spec: Spec,
    /// What was observed.
    pub status: Option<Status>,
}

/// What a Chart should be.
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
    TypedKind::new(GROUP, "charts", "Chart")
        .version::<Chart>("v1")
        .column("Title", ".spec.title")
        .column("Priority", ".spec.priority")
        .column("Phase", ".status.phase")
        .build()
}

/// Adds the kind to a server.
pub fn serve(mut builder: ServerBuilder) -> anyhow::Result<ServerBuilder> {
    builder = builder.kind(kind()?);
    Ok(builder)
}
