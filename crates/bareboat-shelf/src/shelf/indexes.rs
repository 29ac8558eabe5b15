//! Indexes that are declared or learnt: a generated column over the labels or fields of narrow rows, and an index on it.

use super::{Shelf, ShelfError};
use crate::engine::{NewIndex, Session};
use crate::param::{number, text};
use crate::plan::Indexed;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The most indexes at a time.
const MOST: usize = 48;
/// The most labels whose uses are counted.
const MOST_COUNTED: usize = 1000;

/// The indexes there are.
#[derive(Clone, Debug, Default)]
pub(super) struct Indexes(HashMap<Indexed, i64>);

impl Indexes {
    /// Returns the number of the column.
    pub(super) fn column(&self, indexed: &Indexed) -> Option<i64> {
        self.0.get(indexed).copied()
    }
}

/// How often labels were asked for since the last upkeep.
#[derive(Debug, Default)]
pub(super) struct Uses {
    missing: HashMap<String, u32>,
    used: HashMap<String, ()>,
    /// Declared fields without an index, about which the log has a warning.
    refused: HashSet<String>,
}

impl Uses {
    pub(super) fn count(&mut self, indexes: &Indexes, labels: &[String]) {
        for label in labels {
            if indexes.column(&Indexed::Label(label.clone())).is_some() {
                self.used.insert(label.clone(), ());
            } else if self.missing.len() < MOST_COUNTED || self.missing.contains_key(label) {
                *self.missing.entry(label.clone()).or_default() += 1;
            }
        }
    }
}

/// Reads the list of indexes.
pub(super) fn load(session: &dyn Session) -> Result<Indexes, ShelfError> {
    let mut found = HashMap::new();
    // The name of a column is a keyword of MariaDB. Indexes that are made or dropped at the moment have a negative time.
    let list = "SELECT no, sort, `key` FROM learnt WHERE used >= 0";
    session.rows(list, &[], &mut |row| {
        let key = text(row, 2)?;
        let indexed = match row.text(1)? {
            Some("label") => Indexed::Label(key),
            _ => Indexed::Field(key),
        };
        found.insert(indexed, number(row, 0)?);
        Ok(true)
    })?;
    Ok(Indexes(found))
}

impl Shelf {
    /// Makes indexes for labels that were asked for often, and drops those that were not used for long.
    pub(super) fn learn(&self, now: i64) -> Result<(), ShelfError> {
        if !self.engine.dialect().learns() {
            return Ok(());
        }
        // Declared fields come before labels.
        self.complete_indexes(now)?;
        let (wanted, used) = {
            let mut uses = self.uses.lock();
            let often = self.settings.learn_after;
            let wanted: Vec<String> = uses
                .missing
                .iter()
                .filter(|(_, count)| **count >= often)
                .map(|(key, _)| key.clone())
                .collect();
            for key in &wanted {
                uses.missing.remove(key);
            }
            let used: Vec<String> = uses.used.drain().map(|(key, ())| key).collect();
            (wanted, used)
        };
        if !used.is_empty() {
            self.changing(|session| {
                for key in &used {
                    let sql = "UPDATE learnt SET used = ? WHERE sort = 'label' AND `key` = ? AND used >= 0";
                    session.run(sql, &[now.into(), key.as_str().into()])?;
                }
                Ok(())
            })?;
        }
        for key in wanted {
            self.add_index(&Indexed::Label(key), now)?;
        }
        let old = now - i64::try_from(self.settings.forget_after.as_millis()).unwrap_or(i64::MAX);
        let unused = self.reading(|session| {
            let mut unused = Vec::new();
            let sql = "SELECT no FROM learnt WHERE sort = 'label' AND used >= 0 AND used < ?";
            session.rows(sql, &[old.into()], &mut |row| {
                unused.push(number(row, 0)?);
                Ok(true)
            })?;
            Ok(unused)
        })?;
        for no in unused {
            self.drop_index(no, now)?;
        }
        self.engine.clear_indexes(now)
    }

    /// Makes the indexes of declared fields that were put off, or for which there was no room.
    fn complete_indexes(&self, now: i64) -> Result<(), ShelfError> {
        let directory = self.directory();
        for path in directory.declared.values().flatten() {
            self.add_index(&Indexed::Field(path.to_string()), now)?;
        }
        Ok(())
    }

    /// Makes an index, if there is room for one and the database needs it.
    pub(super) fn add_index(&self, indexed: &Indexed, now: i64) -> Result<(), ShelfError> {
        let (sort, column, key) = match indexed {
            Indexed::Label(key) => ("label", "labels", key),
            Indexed::Field(key) => ("field", "fields", key),
        };
        let common = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        let current = self.indexes.read().clone();
        if !self.engine.dialect().learns()
            || !key.chars().all(common)
            || current.column(indexed).is_some()
        {
            return Ok(());
        }
        if current.0.len() >= MOST {
            self.refuse(indexed);
            return Ok(());
        }
        // A definition has no parameters, so the key is part of the text; its characters were checked.
        let expression = self.engine.dialect().indexed(column, key);
        self.engine.add_index(&NewIndex {
            sort,
            key,
            expression,
            now,
        })?;
        let made = self.reading(load)?;
        if made.column(indexed).is_some() {
            tracing::info!(sort, key, "made an index of the shelf");
        }
        *self.indexes.write() = Arc::new(made);
        Ok(())
    }

    /// Says once about each declared field that there is no room for its index.
    fn refuse(&self, indexed: &Indexed) {
        if let Indexed::Field(field) = indexed
            && self.uses.lock().refused.insert(field.clone())
        {
            tracing::warn!(
                field,
                most = MOST,
                "no index of the shelf for a declared field: there are too many; searches for it read all rows of its kind"
            );
        }
    }

    fn drop_index(&self, no: i64, now: i64) -> Result<(), ShelfError> {
        // Searches stop to use it first.
        let mut left = Indexes::clone(&self.indexes.read());
        left.0.retain(|_, column| *column != no);
        *self.indexes.write() = Arc::new(left);
        self.engine.drop_index(no, now)
    }

    /// Returns the labels and fields that have an index.
    pub fn indexed(&self) -> Vec<String> {
        let indexes = self.indexes.read();
        let name = |indexed: &Indexed| match indexed {
            Indexed::Label(key) => format!("label {key}"),
            Indexed::Field(key) => format!("field {key}"),
        };
        let mut names: Vec<String> = indexes.0.keys().map(name).collect();
        names.sort();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::MOST;
    use crate::{
        KindId, KindInfo, Path, Predicate, Query, Settings, Shelf, Term, parse_field_selector,
    };
    use bareboat_api::labels::{Operator, Requirement};
    use parking_lot::Mutex;
    use std::sync::Arc;

    /// The warnings of a thread.
    #[derive(Clone, Default)]
    struct Heard(Arc<Mutex<Vec<String>>>);

    impl tracing::Subscriber for Heard {
        fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
            *metadata.level() == tracing::Level::WARN
        }

        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }

        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

        fn event(&self, event: &tracing::Event<'_>) {
            struct Text(String);
            impl tracing::field::Visit for Text {
                fn record_debug(
                    &mut self,
                    field: &tracing::field::Field,
                    value: &dyn std::fmt::Debug,
                ) {
                    self.0.push_str(&format!("{field}={value:?} "));
                }
            }
            let mut text = Text(String::new());
            event.record(&mut text);
            self.0.lock().push(text.0);
        }

        fn enter(&self, _: &tracing::span::Id) {}

        fn exit(&self, _: &tracing::span::Id) {}
    }

    fn search(shelf: &Shelf, pods: KindId, filter: Term) {
        let query = Query {
            kinds: vec![pods],
            filter: Predicate::Term(filter),
            ..Query::default()
        };
        shelf.page(&query, 10).expect("a search works");
    }

    #[test]
    fn a_field_without_room_for_its_index_is_named_once_and_waits() {
        let dir = tempfile::tempdir().expect("a directory can be made");
        let settings = Settings {
            learn_after: 1,
            ..Settings::default()
        };
        let shelf = Shelf::open(dir.path().join("fleet.db"), settings).expect("it opens");
        let pods = KindInfo {
            group: String::new(),
            resource: "pods".to_owned(),
            kind: "Pod".to_owned(),
            namespaced: true,
        };
        let pods = shelf.add_kind(&pods).expect("a kind can be added");
        let label = Requirement::new("app", Operator::Equals, vec!["web".into()]);
        search(&shelf, pods, Term::Label(label.expect("it is valid")));
        shelf.upkeep(1).expect("upkeep works");
        assert_eq!(shelf.indexed(), ["label app"]);
        let paths = (0..MOST).map(|number| Path::parse(&format!("spec.f{number:02}")));
        let paths: Vec<Path> = paths.map(|path| path.expect("it parses")).collect();
        let heard = Heard::default();
        tracing::subscriber::with_default(heard.clone(), || {
            shelf.declare(pods, &paths, 1).expect("it is declared");
            shelf.upkeep(2).expect("upkeep works");
        });
        let warnings = heard.0.lock().clone();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        let last = format!("spec.f{:02}", MOST - 1);
        assert!(warnings[0].contains(&last), "{warnings:?}");
        assert_eq!(shelf.indexed().len(), MOST);
        // The field is searched without an index.
        let field = parse_field_selector(&format!("{last}=x")).expect("it parses");
        for one in field {
            search(&shelf, pods, Term::Field(one));
        }
        // The index of an unused label makes room.
        shelf.upkeep(1_000_000_000_000).expect("upkeep works");
        shelf.upkeep(1_000_000_000_001).expect("upkeep works");
        let indexed = shelf.indexed();
        assert_eq!(indexed.len(), MOST);
        assert!(indexed.contains(&format!("field {last}")), "{indexed:?}");
    }
}
