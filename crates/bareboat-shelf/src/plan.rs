//! Translates conditions and orders into SQL, as far as columns and indexes go. All texts of queries are bound parameters.
//!
//! What is translated may select too much, never too little. The predicate itself judges the rest.

use crate::compare::{self, Literal};
use crate::fields::{FieldOperator, FieldRequirement};
use crate::order::{Order, SortColumn};
use crate::path::Path;
use crate::predicate::{Column, Comparison, Predicate, Term};
use crate::row::{Directory, KindId};
use bareboat_api::labels::{Operator, Requirement};
use rusqlite::types::Value;

/// What an index is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Indexed {
    /// A label.
    Label(String),
    /// A declared field.
    Field(String),
}

/// A part of a statement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Condition {
    pub(crate) sql: String,
    pub(crate) parameters: Vec<Value>,
    /// What is left to judge for each row; `None` if SQL says it all.
    pub(crate) residual: Option<Predicate>,
    /// The labels that were asked for, for indexes to be learnt.
    pub(crate) labels: Vec<String>,
}

/// Translates for a state of the shelf.
pub(crate) struct Planner<'p> {
    pub(crate) directory: &'p Directory,
    /// The columns of indexes.
    pub(crate) indexes: &'p dyn Fn(&Indexed) -> Option<i64>,
    pub(crate) kinds: &'p [KindId],
    parameters: Vec<Value>,
    labels: Vec<String>,
}

impl<'p> Planner<'p> {
    pub(crate) fn new(
        directory: &'p Directory,
        indexes: &'p dyn Fn(&Indexed) -> Option<i64>,
        kinds: &'p [KindId],
    ) -> Planner<'p> {
        Planner {
            directory,
            indexes,
            kinds,
            parameters: Vec::new(),
            labels: Vec::new(),
        }
    }

    /// Translates what must hold.
    pub(crate) fn condition(mut self, predicates: [&Predicate; 2]) -> Condition {
        let mut sql = format!(
            "o.gone IS NULL AND o.kind IN ({})",
            numbers(self.kinds.iter().map(|kind| kind.0))
        );
        let mut residual = Vec::new();
        for predicate in predicates.into_iter().flat_map(conjuncts) {
            match self.translate(predicate) {
                Some((part, exact)) => {
                    sql.push_str(" AND ");
                    sql.push_str(&part);
                    if !exact {
                        residual.push(predicate.clone());
                    }
                }
                None => residual.push(predicate.clone()),
            }
        }
        Condition {
            sql,
            parameters: self.parameters,
            residual: (!residual.is_empty()).then_some(Predicate::All(residual)),
            labels: self.labels,
        }
    }

    /// Returns SQL that holds at least where the predicate does, and whether it holds exactly there.
    fn translate(&mut self, predicate: &Predicate) -> Option<(String, bool)> {
        let before = self.parameters.len();
        let translated = match predicate {
            Predicate::Term(term) => self.term(term).map(|sql| (sql, true)),
            Predicate::Not(inner) => match self.translate(inner) {
                Some((sql, true)) => Some((format!("NOT ({sql})"), true)),
                _ => None,
            },
            Predicate::Any(parts) => {
                let parts: Option<Vec<_>> = parts.iter().map(|part| self.translate(part)).collect();
                parts.map(|parts| joined(&parts, " OR ", "0"))
            }
            Predicate::All(parts) => {
                let mut all = Vec::new();
                let mut missing = false;
                for part in parts {
                    match self.translate(part) {
                        Some(part) => all.push(part),
                        None => missing = true,
                    }
                }
                let (sql, exact) = joined(&all, " AND ", "1");
                Some((sql, exact && !missing))
            }
        };
        if translated.is_none() {
            self.parameters.truncate(before);
        }
        translated
    }

    fn term(&mut self, term: &Term) -> Option<String> {
        match term {
            Term::Column(column, comparison) => self.column(*column, comparison),
            Term::Label(requirement) => self.label(requirement),
            Term::Field(requirement) => self.field(requirement),
            Term::Json(..) | Term::Test(_) => None,
        }
    }

    fn column(&mut self, column: Column, comparison: &Comparison) -> Option<String> {
        if column == Column::CreatedAt {
            return self.created(comparison);
        }
        let texts = |literals: &[Literal]| -> Option<Vec<String>> {
            let texts = literals.iter().map(|literal| match literal {
                Literal::Text(text) => Some(text.clone()),
                _ => None,
            });
            texts.collect()
        };
        let Comparison::In(literals) = comparison else {
            return match (column, comparison) {
                (Column::Name, Comparison::Contains(part)) => {
                    Some(format!("instr(o.name, {}) > 0", self.bind(part.clone())))
                }
                _ => None,
            };
        };
        let texts = texts(literals)?;
        let directory = self.directory;
        let name = match column {
            Column::Namespace => "o.ns",
            Column::Name => "o.name",
            Column::Uid => "o.uid",
            Column::OwnerUid => "o.owner",
            Column::Version => "o.version",
            Column::Cluster => {
                let ids = texts.iter().filter_map(|name| directory.member(name));
                return Some(format!("o.member IN ({})", numbers(ids.map(|id| id.0))));
            }
            Column::Group | Column::Resource | Column::Kind => {
                let matches = |info: &crate::KindInfo| {
                    let text = match column {
                        Column::Group => &info.group,
                        Column::Resource => &info.resource,
                        _ => &info.kind,
                    };
                    texts.contains(text)
                };
                let ids = directory.kinds().filter(|(_, info)| matches(info));
                return Some(format!("o.kind IN ({})", numbers(ids.map(|(id, _)| id.0))));
            }
            _ => return None,
        };
        Some(self.among(name, texts))
    }

    fn created(&mut self, comparison: &Comparison) -> Option<String> {
        let (sign, literal) = match comparison {
            Comparison::Less(literal) => ("<", literal),
            Comparison::AtLeast(literal) => (">=", literal),
            _ => return None,
        };
        // Creation has whole seconds, so a fraction rounds up for both.
        let (seconds, nanos) = compare::seconds(literal.text()?)?;
        let seconds = seconds + i64::from(nanos > 0);
        self.parameters.push(Value::Integer(seconds));
        Some(format!("o.created {sign} ?"))
    }

    fn label(&mut self, requirement: &Requirement) -> Option<String> {
        let key = requirement.key();
        if self.labels.len() < 16 {
            self.labels.push(key.to_owned());
        }
        let operator = requirement.operator();
        let values = || {
            requirement
                .values()
                .iter()
                .map(ToString::to_string)
                .collect()
        };
        if let Some(column) = (self.indexes)(&Indexed::Label(key.to_owned())) {
            return Some(match operator {
                Operator::Equals | Operator::DoubleEquals | Operator::In => {
                    let among = self.among(&format!("o.x{column}"), values());
                    // Never NULL, so that its opposite is right as well.
                    format!("(o.x{column} IS NOT NULL AND {among})")
                }
                Operator::NotEquals | Operator::NotIn => {
                    let among = self.among(&format!("o.x{column}"), values());
                    format!("(o.x{column} IS NULL OR NOT {among})")
                }
                Operator::Exists => format!("o.x{column} IS NOT NULL"),
                Operator::DoesNotExist => format!("o.x{column} IS NULL"),
                Operator::GreaterThan | Operator::LessThan => return None,
            });
        }
        // Keys and values of labels need no escapes in JSON, so this is exact.
        let values: Vec<String> = values();
        let mut contains = |texts: Vec<String>| {
            let parts = texts
                .into_iter()
                .map(|text| format!("instr(o.labels, {}) > 0", self.bind(text)));
            format!("({})", parts.collect::<Vec<_>>().join(" OR "))
        };
        let pair = |value: &String| format!("\"{key}\":\"{value}\"");
        Some(match operator {
            Operator::Equals | Operator::DoubleEquals | Operator::In => {
                contains(values.iter().map(pair).collect())
            }
            Operator::NotEquals | Operator::NotIn => {
                format!("NOT {}", contains(values.iter().map(pair).collect()))
            }
            Operator::Exists => contains(vec![format!("\"{key}\":")]),
            Operator::DoesNotExist => format!("NOT {}", contains(vec![format!("\"{key}\":")])),
            Operator::GreaterThan | Operator::LessThan => return None,
        })
    }

    fn field(&mut self, requirement: &FieldRequirement) -> Option<String> {
        let column = self.declared(&requirement.path)?;
        Some(match requirement.operator {
            FieldOperator::In => {
                let among = self.among(&column, requirement.values.clone());
                // Never NULL, so that its opposite is right as well.
                format!("({column} IS NOT NULL AND {among})")
            }
            FieldOperator::NotIn => {
                let among = self.among(&column, requirement.values.clone());
                format!("({column} IS NULL OR NOT {among})")
            }
            FieldOperator::Exists => format!("{column} IS NOT NULL"),
            FieldOperator::DoesNotExist => format!("{column} IS NULL"),
            FieldOperator::Greater | FieldOperator::Less => return None,
        })
    }

    /// Returns the expression of a field that is declared for all kinds of the query.
    pub(crate) fn declared(&self, path: &Path) -> Option<String> {
        let all = self
            .kinds
            .iter()
            .all(|kind| self.directory.declares(*kind, path));
        if !all || !path.is_simple() {
            return None;
        }
        let text = path.to_string();
        Some(match (self.indexes)(&Indexed::Field(text.clone())) {
            Some(column) => format!("o.x{column}"),
            // Simple paths have no characters that are special in SQL or JSON paths.
            None => format!("json_extract(o.fields, '$.\"{text}\"')"),
        })
    }

    fn among(&mut self, column: &str, texts: Vec<String>) -> String {
        let marks: Vec<String> = texts.into_iter().map(|text| self.bind(text)).collect();
        match marks.as_slice() {
            [only] => format!("{column} = {only}"),
            several => format!("{column} IN ({})", several.join(", ")),
        }
    }

    fn bind(&mut self, text: String) -> String {
        self.parameters.push(Value::Text(text));
        "?".to_owned()
    }

    /// Returns the keys of an order with their directions; the last ones make every place unique.
    pub(crate) fn order(&self, order: &Order) -> Result<Vec<(String, bool)>, String> {
        let mut keys = Vec::new();
        for key in &order.0 {
            match &key.column {
                SortColumn::Column(column) => {
                    keys.push((sort_expression(*column).to_owned(), key.descending))
                }
                SortColumn::Field(path) => {
                    let column = self.declared(path).ok_or_else(|| {
                        format!("cannot sort by {path}: declare it as an index of the kind first")
                    })?;
                    // Numbers are in order of their values, and other texts after that.
                    keys.push((
                        format!("CAST(coalesce({column}, 0) AS REAL)"),
                        key.descending,
                    ));
                    keys.push((format!("coalesce({column}, '')"), key.descending));
                }
            }
        }
        for column in ["o.kind", "o.ns", "o.name", "o.member"] {
            keys.push((column.to_owned(), false));
        }
        Ok(keys)
    }
}

fn sort_expression(column: Column) -> &'static str {
    match column {
        Column::Id => "o.id",
        Column::Group => "(SELECT grp FROM kind WHERE id = o.kind)",
        Column::Version => "o.version",
        Column::Resource => "(SELECT resource FROM kind WHERE id = o.kind)",
        Column::Kind => "(SELECT kind FROM kind WHERE id = o.kind)",
        Column::Cluster => "(SELECT name FROM member WHERE id = o.member)",
        Column::Namespace => "o.ns",
        Column::Name => "o.name",
        Column::OwnerUid => "o.owner",
        Column::Uid => "o.uid",
        Column::ResourceVersion => "CAST(o.rv AS INTEGER)",
        Column::CreatedAt => "o.created",
        Column::SyncedAt => "o.synced",
        Column::DeletedAt => "coalesce(o.deleting, 0)",
    }
}

/// Returns the condition that a row comes after a place, and its parameters.
pub(crate) fn after(keys: &[(String, bool)], place: &[Value]) -> (String, Vec<Value>) {
    let same = keys.iter().all(|(_, descending)| !descending);
    if same {
        let columns: Vec<&str> = keys.iter().map(|(column, _)| column.as_str()).collect();
        let marks = vec!["?"; place.len()];
        let sql = format!("({}) > ({})", columns.join(", "), marks.join(", "));
        return (sql, place.to_vec());
    }
    let mut parts = Vec::new();
    let mut parameters = Vec::new();
    for last in 0..keys.len() {
        let mut part = Vec::new();
        for (index, (column, descending)) in keys.iter().enumerate().take(last + 1) {
            let sign = match (index == last, descending) {
                (false, _) => "=",
                (true, true) => "<",
                (true, false) => ">",
            };
            part.push(format!("{column} {sign} ?"));
            parameters.push(place[index].clone());
        }
        parts.push(format!("({})", part.join(" AND ")));
    }
    (format!("({})", parts.join(" OR ")), parameters)
}

/// Prints the clause of an order.
pub(crate) fn order_by(keys: &[(String, bool)]) -> String {
    let keys = keys.iter().map(|(column, descending)| match descending {
        true => format!("{column} DESC"),
        false => column.clone(),
    });
    keys.collect::<Vec<_>>().join(", ")
}

fn conjuncts(predicate: &Predicate) -> Vec<&Predicate> {
    match predicate {
        Predicate::All(parts) => parts.iter().flat_map(conjuncts).collect(),
        other => vec![other],
    }
}

fn joined(parts: &[(String, bool)], with: &str, empty: &str) -> (String, bool) {
    if parts.is_empty() {
        return (empty.to_owned(), true);
    }
    let sql: Vec<&str> = parts.iter().map(|(sql, _)| sql.as_str()).collect();
    let exact = parts.iter().all(|(_, exact)| *exact);
    (format!("({})", sql.join(with)), exact)
}

fn numbers(ids: impl Iterator<Item = i64>) -> String {
    ids.map(|id| id.to_string()).collect::<Vec<_>>().join(", ")
}
