//! The order of answers: `orderby` of Clusterpedia and `sort` of ours.

use crate::path::Path;
use crate::predicate::Column;

/// The most keys of an order.
const MOST_KEYS: usize = 8;

/// What rows are ordered by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SortColumn {
    /// A column.
    Column(Column),
    /// A declared field.
    Field(Path),
}

impl SortColumn {
    /// Gives a field at the top of objects another name, if there is one.
    pub fn rename(&mut self, other: &dyn Fn(&str) -> Option<&'static str>) {
        if let SortColumn::Field(path) = self {
            path.rename(other);
        }
    }
}

/// One key of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderKey {
    /// What rows are ordered by.
    pub column: SortColumn,
    /// Whether the largest comes first.
    pub descending: bool,
}

/// The order of an answer. Rows that are equal in all keys are in order of kind, namespace, name and member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order(pub Vec<OrderKey>);

impl Order {
    /// Parses keys such as `namespace`, `name desc` or, in labels, `name_desc`.
    pub fn parse_orderby<'t>(keys: impl IntoIterator<Item = &'t str>) -> Result<Order, String> {
        let keys = keys
            .into_iter()
            .map(str::trim)
            .filter(|key| !key.is_empty());
        let parsed = keys.map(|key| {
            let mut words = key.split_whitespace();
            let name = words.next().unwrap_or("");
            let direction = words.next().map(str::to_ascii_lowercase);
            let (name, descending) = match direction.as_deref() {
                Some("desc") => (name, true),
                Some("asc") => (name, false),
                None => match name.strip_suffix("_desc") {
                    Some(name) => (name, true),
                    None => (name, false),
                },
                Some(_) => return Err(format!("cannot order by {key:?}: use asc or desc")),
            };
            let column = Column::by_name(name).filter(|_| words.next().is_none());
            let column =
                column.ok_or_else(|| format!("cannot order by {key:?}: no such column"))?;
            Ok(OrderKey {
                column: SortColumn::Column(column),
                descending,
            })
        });
        Order::bounded(parsed.collect::<Result<_, String>>()?)
    }

    /// Parses keys such as `-metadata.creationTimestamp,cluster`.
    pub fn parse_sort(text: &str) -> Result<Order, String> {
        let keys = text.split(',').map(str::trim).filter(|key| !key.is_empty());
        let parsed = keys.map(|key| {
            let (name, descending) = match key.strip_prefix('-') {
                Some(name) => (name, true),
                None => (key, false),
            };
            let column = match name.strip_prefix('.').unwrap_or(name) {
                "metadata.name" => SortColumn::Column(Column::Name),
                "metadata.namespace" => SortColumn::Column(Column::Namespace),
                "metadata.creationTimestamp" => SortColumn::Column(Column::CreatedAt),
                "metadata.uid" => SortColumn::Column(Column::Uid),
                name => match Column::by_name(name) {
                    Some(column) => SortColumn::Column(column),
                    None => {
                        SortColumn::Field(Path::parse(name).map_err(|error| error.to_string())?)
                    }
                },
            };
            Ok(OrderKey { column, descending })
        });
        Order::bounded(parsed.collect::<Result<_, String>>()?)
    }

    fn bounded(keys: Vec<OrderKey>) -> Result<Order, String> {
        match keys.len() > MOST_KEYS {
            true => Err(format!("an order has at most {MOST_KEYS} keys")),
            false => Ok(Order(keys)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Order, OrderKey, SortColumn};
    use crate::predicate::Column;

    #[test]
    fn both_spellings_are_read() {
        let key = |column, descending| OrderKey {
            column: SortColumn::Column(column),
            descending,
        };
        let expected = Order(vec![key(Column::Namespace, false), key(Column::Name, true)]);
        assert_eq!(
            Order::parse_orderby(["namespace", "name desc"]),
            Ok(expected.clone())
        );
        assert_eq!(
            Order::parse_orderby(["namespace", "name_desc"]),
            Ok(expected.clone())
        );
        assert_eq!(Order::parse_sort("metadata.namespace,-name"), Ok(expected));
    }

    #[test]
    fn other_texts_are_refused() {
        for key in [
            "name);DROP",
            "name desc x",
            "name down",
            "spec.replicas",
            "'name'",
        ] {
            assert!(Order::parse_orderby([key]).is_err(), "{key}");
        }
        assert!(Order::parse_sort("a[0]").is_err());
    }
}
