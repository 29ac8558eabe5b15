//! The events of an object, for `injectEvents`.

use bareboat_api::Value;
use bareboat_shelf::{
    Column, FieldOperator, FieldRequirement, Narrow, Path, Predicate, Query, Shelf, ShelfError,
    Term,
};

/// The most events of one object.
const MOST: usize = 100;

/// Returns the events of an object, as far as they are on the shelf.
pub(crate) fn of(shelf: &Shelf, narrow: &Narrow) -> Result<Value, ShelfError> {
    let directory = shelf.directory();
    let Some(kind) = directory.kind("", "events") else {
        return Ok(Value::Array(Vec::new()));
    };
    let path = Path::parse("involvedObject.uid");
    let path = path.map_err(|error| ShelfError::Query(error.to_string()))?;
    let member = directory.member_name(narrow.member);
    let mut scope = Predicate::one_of(Column::Cluster, [member]);
    if !narrow.namespace.is_empty() {
        scope.and(Predicate::one_of(
            Column::Namespace,
            [narrow.namespace.as_str()],
        ));
    }
    let query = Query {
        kinds: vec![kind],
        scope,
        filter: Predicate::Term(Term::Field(FieldRequirement {
            path,
            operator: FieldOperator::In,
            values: vec![narrow.uid.clone()],
        })),
        ..Query::default()
    };
    let page = shelf.page(&query, MOST)?;
    let events = page.items.iter();
    Ok(events
        .map(|event| event.value(&event.narrow.member_version))
        .collect())
}
