//! The `Table` answers that `kubectl get` prints.
//!
//! Tables are never cached, because ages change.

use crate::request::negotiate::Transform;
use crate::request::query::Query;
use bareboat_api::interrupt;
use bareboat_api::kind::{Column, Kind, Now};
use bareboat_api::time::Timestamp;
use bareboat_api::{FieldError, FieldPath, Map, Object, Status, Value};
use std::time::SystemTime;

/// What a row contains beside its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Include {
    /// Nothing.
    Nothing,
    /// The object's metadata.
    Metadata,
    /// The whole object.
    Object,
}

impl Include {
    /// Parses `includeObject`, which only applies to tables.
    pub fn of(query: &Query) -> Result<Include, Status> {
        match query.get("includeObject") {
            None | Some("" | "Metadata") => Ok(Include::Metadata),
            Some("None") => Ok(Include::Nothing),
            Some("Object") => Ok(Include::Object),
            Some(other) => {
                let why = "must be 'Metadata', 'Object', 'None', or empty";
                let error = FieldError::invalid(FieldPath::new("includeObject"), other, why);
                Err(Status::bad_request(format!(
                    "Unable to convert to Table as requested: {error}"
                )))
            }
        }
    }

    /// Reads `includeObject` only if the answer is a table; other answers get the default.
    pub fn for_transform(query: &Query, transform: Transform) -> Result<Include, Status> {
        match transform {
            Transform::Table { .. } => Include::of(query),
            _ => Ok(Include::Metadata),
        }
    }
}

/// Returns the definitions of all columns: the name, then the columns of the kind.
pub fn definitions(columns: &[Column]) -> Value {
    let name = definition(
        "Name",
        "string",
        "name",
        "Name must be unique within a namespace, and cannot be changed.",
        0,
    );
    std::iter::once(name)
        .filter(|_| !names_itself(columns))
        .chain(columns.iter().map(|column| {
            let Column {
                name,
                ty,
                format,
                description,
                priority,
                ..
            } = column;
            definition(name, ty, format, description, *priority)
        }))
        .collect()
}

/// Returns whether a kind defines its own name column.
fn names_itself(columns: &[Column]) -> bool {
    columns.iter().any(|column| column.name == "Name")
}

fn definition(name: &str, ty: &str, format: &str, description: &str, priority: i32) -> Value {
    bareboat_api::value!({
        "name": name,
        "type": ty,
        "format": format,
        "description": description,
        "priority": priority,
    })
}

/// Maximum bytes of text in all cells of a row; later cells are empty.
const MAX_CELLS: usize = 4 << 20;

/// Returns the row of an object.
pub fn row(
    kind: &Kind,
    columns: &[Column],
    object: Object,
    include: Include,
    beta: bool,
    now: Now,
) -> Value {
    let mut cells = Vec::with_capacity(columns.len() + 1);
    if !names_itself(columns) {
        cells.push(Value::string(object.name()));
    }
    // Bounded, because a column may show the whole object, and a definition may have any number of columns.
    let mut room = MAX_CELLS;
    for column in columns {
        let cell = match room > 0 && !interrupt::requested() {
            true => (column.cell)(object.value(), now),
            false => Value::Null,
        };
        room = room.saturating_sub(cell.as_str().map_or(1, str::len));
        cells.push(cell);
    }
    let mut row = Map::new();
    row.insert("cells", Value::Array(cells));
    let conditions = kind.policy.row_conditions;
    if let Some(conditions) = conditions.and_then(|tell| tell(object.value())) {
        row.insert("conditions", conditions);
    }
    let shown = match include {
        Include::Nothing => Value::Null,
        Include::Metadata => partial(&object, beta),
        Include::Object => object.into(),
    };
    row.insert("object", shown);
    Value::Object(row)
}

/// Reduces an object to its metadata.
pub fn partial(object: &Object, beta: bool) -> Value {
    let mut map = Map::new();
    map.insert("kind", Value::string("PartialObjectMetadata"));
    map.insert("apiVersion", Value::string(meta_version(beta)));
    map.insert(
        "metadata",
        object
            .get("metadata")
            .cloned()
            .unwrap_or_else(Value::object),
    );
    Value::Object(map)
}

/// Returns the apiVersion of tables and partial metadata.
pub fn meta_version(beta: bool) -> &'static str {
    if beta {
        "meta.k8s.io/v1beta1"
    } else {
        "meta.k8s.io/v1"
    }
}

/// Returns a table of the given rows.
pub fn table(columns: Option<Value>, rows: Vec<Value>, metadata: Value, beta: bool) -> Value {
    let mut map = Map::new();
    map.insert("kind", Value::string("Table"));
    map.insert("apiVersion", Value::string(meta_version(beta)));
    map.insert("metadata", metadata);
    map.insert(
        "columnDefinitions",
        // A watch sends the columns once, in its first event.
        columns.unwrap_or(Value::Null),
    );
    map.insert("rows", Value::Array(rows));
    Value::Object(map)
}

/// Returns the table of one object.
pub fn of_one(
    kind: &Kind,
    columns: &[Column],
    object: Object,
    include: Include,
    beta: bool,
    now: Now,
) -> Value {
    let metadata = bareboat_api::value!({"resourceVersion": (object.resource_version())});
    let row = row(kind, columns, object, include, beta, now);
    table(Some(definitions(columns)), vec![row], metadata, beta)
}

/// Returns the current time, for ages.
pub fn now() -> Now {
    Now(Timestamp::from(SystemTime::now()).seconds)
}
