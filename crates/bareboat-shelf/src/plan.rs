//! Translates conditions and orders into SQL, as far as columns and indexes go. All texts of queries are bound parameters.
//!
//! What is translated may select too much, never too little. The predicate itself judges the rest.

use crate::compare::{self, Literal};
use crate::dialect::Dialect;
use crate::fields::{FieldOperator, FieldRequirement};
use crate::order::{Order, SortColumn};
use crate::param::Param;
use crate::path::Path;
use crate::predicate::{Column, Comparison, Predicate, Term};
use crate::row::{Directory, KindId};
use bareboat_api::labels::{Operator, Requirement};
use bareboat_api::{Map, Value};

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
    pub(crate) parameters: Vec<Param>,
    /// What is left to judge for each row; `None` if SQL says it all.
    pub(crate) residual: Option<Predicate>,
    /// The labels that were asked for, for indexes to be learnt.
    pub(crate) labels: Vec<String>,
}

/// Translates for a state of the shelf.
pub(crate) struct Planner<'p> {
    dialect: Dialect,
    pub(crate) directory: &'p Directory,
    /// The columns of indexes.
    pub(crate) indexes: &'p dyn Fn(&Indexed) -> Option<i64>,
    pub(crate) kinds: &'p [KindId],
    parameters: Vec<Param>,
    labels: Vec<String>,
}

impl<'p> Planner<'p> {
    pub(crate) fn new(
        dialect: Dialect,
        directory: &'p Directory,
        indexes: &'p dyn Fn(&Indexed) -> Option<i64>,
        kinds: &'p [KindId],
    ) -> Planner<'p> {
        Planner {
            dialect,
            directory,
            indexes,
            kinds,
            parameters: Vec::new(),
            labels: Vec::new(),
        }
    }

    /// Translates what must hold.
    pub(crate) fn condition(mut self, predicates: [&Predicate; 2]) -> Condition {
        // Without statistics SQLite prefers the index that has the order of the answer, and reads all rows of the kind.
        let owned = predicates.into_iter().flat_map(conjuncts).any(is_owned);
        let (owner, kind) = match owned {
            true => ("o.owner <> '' AND ", self.dialect.unindexed("o.kind")),
            false => ("", "o.kind".to_owned()),
        };
        let kinds = among_numbers(&kind, self.kinds.iter().map(|kind| kind.0));
        let mut sql = format!("o.gone IS NULL AND {owner}{kinds}");
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
                parts.map(|parts| joined(&parts, " OR ", "FALSE"))
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
                let (sql, exact) = joined(&all, " AND ", "TRUE");
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
                    self.bind(part.clone());
                    Some(self.dialect.contains("o.name"))
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
                return Some(among_numbers("o.member", ids.map(|id| id.0)));
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
                return Some(among_numbers("o.kind", ids.map(|(id, _)| id.0)));
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
        self.parameters.push(Param::Int(seconds));
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
        if self.dialect == Dialect::Postgres {
            return self.tag(key, operator, &values);
        }
        let mut contains = |texts: Vec<String>| {
            let parts = texts.into_iter().map(|text| {
                self.bind(text);
                self.dialect.contains("o.labels")
            });
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

    /// Translates a condition on a label for PostgreSQL, where one index has all labels.
    fn tag(&mut self, key: &str, operator: Operator, values: &[String]) -> Option<String> {
        Some(match operator {
            Operator::Equals | Operator::DoubleEquals | Operator::In => {
                self.has_pair("o.labels", key, values)
            }
            Operator::NotEquals | Operator::NotIn => {
                format!("NOT {}", self.has_pair("o.labels", key, values))
            }
            Operator::Exists => self.has_key("o.labels", key),
            Operator::DoesNotExist => format!("NOT {}", self.has_key("o.labels", key)),
            Operator::GreaterThan | Operator::LessThan => return None,
        })
    }

    /// Returns the condition that a JSON object has one of some texts at a key.
    fn has_pair(&mut self, column: &str, key: &str, values: &[String]) -> String {
        if values.is_empty() {
            return "FALSE".to_owned();
        }
        let parts = values.iter().map(|value| {
            let mut pair = Map::new();
            pair.insert(key, Value::string(value.replace('\0', "\u{fffd}")));
            let text = String::from_utf8(Value::Object(pair).to_json()).unwrap_or_default();
            self.bind(text);
            format!("{column} @> {}", self.dialect.json_mark())
        });
        let parts: Vec<String> = parts.collect();
        format!("({})", parts.join(" OR "))
    }

    /// Returns the condition that a JSON object has a key.
    fn has_key(&mut self, column: &str, key: &str) -> String {
        let mark = self.bind(key.to_owned());
        format!("jsonb_exists({column}, {mark})")
    }

    fn field(&mut self, requirement: &FieldRequirement) -> Option<String> {
        let whole = self.declared(&requirement.path)?;
        let key = requirement.path.to_string();
        if self.dialect == Dialect::Postgres {
            return Some(match requirement.operator {
                FieldOperator::In => self.has_pair("o.fields", &key, &requirement.values),
                FieldOperator::NotIn => {
                    format!(
                        "NOT {}",
                        self.has_pair("o.fields", &key, &requirement.values)
                    )
                }
                FieldOperator::Exists => self.has_key("o.fields", &key),
                FieldOperator::DoesNotExist => format!("NOT {}", self.has_key("o.fields", &key)),
                FieldOperator::Greater | FieldOperator::Less => return None,
            });
        }
        let column = match (self.indexes)(&Indexed::Field(key)) {
            Some(no) => format!("o.x{no}"),
            None => whole.clone(),
        };
        Some(match requirement.operator {
            FieldOperator::In => {
                let among = self.among_starts(&column, &whole, &requirement.values);
                // Never NULL, so that its opposite is right as well.
                format!("({column} IS NOT NULL AND {among})")
            }
            FieldOperator::NotIn => {
                let among = self.among_starts(&column, &whole, &requirement.values);
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
            Some(column) if self.dialect.indexed_bytes().is_none() => format!("o.x{column}"),
            // Simple paths have no characters that are special in SQL or JSON paths.
            _ => self.dialect.member("o.fields", &text),
        })
    }

    /// Returns the condition that a field has one of some texts. If `column` is not the `whole` field, it may have only the start of
    /// a long text.
    fn among_starts(&mut self, column: &str, whole: &str, texts: &[String]) -> String {
        let most = self.dialect.indexed_bytes().filter(|_| column != whole);
        let Some(most) = most else {
            return self.among(column, texts.to_vec());
        };
        let (short, long): (Vec<String>, Vec<String>) =
            texts.iter().cloned().partition(|text| text.len() < most);
        let mut parts = vec![self.among(column, short)];
        for text in long {
            let (start, all) = (self.bind(text.clone()), self.bind(text));
            parts.push(format!(
                "({column} = LEFT(CAST({start} AS BINARY), {most}) AND {whole} = {all})"
            ));
        }
        format!("({})", parts.join(" OR "))
    }

    fn among(&mut self, column: &str, texts: Vec<String>) -> String {
        let marks: Vec<String> = texts.into_iter().map(|text| self.bind(text)).collect();
        match marks.as_slice() {
            [] => "FALSE".to_owned(),
            [only] => format!("{column} = {only}"),
            several => format!("{column} IN ({})", several.join(", ")),
        }
    }

    fn bind(&mut self, text: String) -> String {
        self.parameters.push(Param::Text(text));
        "?".to_owned()
    }

    /// Returns the keys of an order with their directions; the last ones make every place unique.
    pub(crate) fn order(&self, order: &Order) -> Result<Vec<(String, bool)>, String> {
        let mut keys = Vec::new();
        for key in &order.0 {
            match &key.column {
                SortColumn::Column(column) => {
                    keys.push((self.sort_expression(*column), key.descending));
                }
                SortColumn::Field(path) => {
                    let column = self.declared(path).ok_or_else(|| {
                        format!("cannot sort by {path}: declare it as an index of the kind first")
                    })?;
                    // Numbers are in order of their values, and other texts after that.
                    keys.push((self.dialect.real(&column), key.descending));
                    keys.push((format!("coalesce({column}, '')"), key.descending));
                }
            }
        }
        keys.extend(usual_keys());
        Ok(keys)
    }

    fn sort_expression(&self, column: Column) -> String {
        let expression = match column {
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
            Column::ResourceVersion => return self.dialect.integer("o.rv"),
            Column::CreatedAt => "o.created",
            Column::SyncedAt => "o.synced",
            Column::DeletedAt => "coalesce(o.deleting, 0)",
        };
        expression.to_owned()
    }
}

/// Returns the keys of the usual order.
pub(crate) fn usual_keys() -> Vec<(String, bool)> {
    let columns = ["o.kind", "o.ns", "o.name", "o.member"];
    columns.map(|column| (column.to_owned(), false)).to_vec()
}

/// Returns the condition that a row comes after a place, and its parameters.
pub(crate) fn after(
    dialect: Dialect,
    keys: &[(String, bool)],
    place: &[Param],
) -> (String, Vec<Param>) {
    let same = keys.iter().all(|(_, descending)| !descending);
    if same && dialect.compares_lists() {
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

/// Returns whether only objects of certain owners match.
fn is_owned(predicate: &Predicate) -> bool {
    let Predicate::Term(Term::Column(Column::OwnerUid, Comparison::In(owners))) = predicate else {
        return false;
    };
    let is_uid = |owner: &Literal| owner.text().is_some_and(|text| !text.is_empty());
    owners.iter().all(is_uid)
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

/// Returns the condition that a column has one of some numbers.
pub(crate) fn among_numbers(column: &str, ids: impl Iterator<Item = i64>) -> String {
    let ids: Vec<String> = ids.map(|id| id.to_string()).collect();
    match ids.is_empty() {
        true => "FALSE".to_owned(),
        false => format!("{column} IN ({})", ids.join(", ")),
    }
}
