//! Conditions on rows, evaluated the same way for every engine.
//!
//! Truth has SQL's third value. A condition that needs the body is first judged without it, and again with it only if that
//! decides nothing.

use crate::compare::{self, Literal};
use crate::fields::FieldRequirement;
use crate::path::Path;
use crate::row::Row;
use crate::scan;
use bareboat_api::labels::Requirement;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A column of rows, by the name that queries use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Column {
    /// `id`
    Id,
    /// `group`
    Group,
    /// `version`
    Version,
    /// `resource`
    Resource,
    /// `kind`
    Kind,
    /// `cluster`
    Cluster,
    /// `namespace`
    Namespace,
    /// `name`
    Name,
    /// `owner_uid`
    OwnerUid,
    /// `uid`
    Uid,
    /// `resource_version`, compared as a number.
    ResourceVersion,
    /// `created_at`
    CreatedAt,
    /// `synced_at`
    SyncedAt,
    /// `deleted_at`
    DeletedAt,
}

impl Column {
    /// Returns the column with a name.
    pub fn by_name(name: &str) -> Option<Column> {
        Some(match name {
            "id" => Column::Id,
            "group" => Column::Group,
            "version" => Column::Version,
            "resource" => Column::Resource,
            "kind" => Column::Kind,
            "cluster" => Column::Cluster,
            "namespace" => Column::Namespace,
            "name" => Column::Name,
            "owner_uid" => Column::OwnerUid,
            "uid" => Column::Uid,
            "resource_version" => Column::ResourceVersion,
            "created_at" => Column::CreatedAt,
            "synced_at" => Column::SyncedAt,
            "deleted_at" => Column::DeletedAt,
            _ => return None,
        })
    }

    /// Returns the text of the column in a row. Times are printed as RFC 3339.
    pub fn text(self, row: &Row<'_>) -> Option<String> {
        let narrow = row.narrow;
        let info = || row.directory.kind_info(narrow.kind);
        let time = |seconds: i64, nanos: u32| bareboat_api::time::Timestamp { seconds, nanos };
        Some(match self {
            Column::Id => narrow.id.to_string(),
            Column::Group => info()?.group.clone(),
            Column::Version => narrow.version.clone(),
            Column::Resource => info()?.resource.clone(),
            Column::Kind => info()?.kind.clone(),
            Column::Cluster => row.directory.member_name(narrow.member).to_owned(),
            Column::Namespace => narrow.namespace.clone(),
            Column::Name => narrow.name.clone(),
            Column::OwnerUid => narrow.owner.clone(),
            Column::Uid => narrow.uid.clone(),
            Column::ResourceVersion => narrow.member_version.clone(),
            Column::CreatedAt => time(narrow.created, 0).print_seconds(),
            Column::SyncedAt => {
                let nanos = narrow.synced.rem_euclid(1000) * 1_000_000;
                time(narrow.synced.div_euclid(1000), nanos as u32).print_micros()
            }
            Column::DeletedAt => time(narrow.deleting?, 0).print_seconds(),
        })
    }
}

/// How a column or field is compared with constants.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparison {
    /// `= x` or `IN (x, y)`.
    In(Vec<Literal>),
    /// `< x`
    Less(Literal),
    /// `<= x`
    AtMost(Literal),
    /// `> x`
    Greater(Literal),
    /// `>= x`
    AtLeast(Literal),
    /// `LIKE x`; case counts.
    Like(String),
    /// Contains a text.
    Contains(String),
    /// `IS NULL`
    IsNull,
}

impl Comparison {
    fn test(&self, value: Option<&str>) -> Truth {
        if matches!(self, Comparison::IsNull) {
            return Truth::of(value.is_none());
        }
        let Some(value) = value else {
            return Truth::Null;
        };
        let ordered = |literal: &Literal, wanted: &[Ordering]| match literal.text() {
            Some(text) => Truth::of(wanted.contains(&compare::by_meaning_or_text(value, text))),
            None => Truth::Null,
        };
        match self {
            Comparison::In(literals) => {
                let equal = |literal: &Literal| match literal {
                    Literal::Text(text) => Truth::of(is_equal(value, text)),
                    Literal::Number(text) => {
                        Truth::of(compare::by_meaning_or_text(value, text) == Ordering::Equal)
                    }
                    Literal::Null => Truth::Null,
                };
                literals
                    .iter()
                    .fold(Truth::False, |all, one| all.or(equal(one)))
            }
            Comparison::Less(literal) => ordered(literal, &[Ordering::Less]),
            Comparison::AtMost(literal) => ordered(literal, &[Ordering::Less, Ordering::Equal]),
            Comparison::Greater(literal) => ordered(literal, &[Ordering::Greater]),
            Comparison::AtLeast(literal) => ordered(literal, &[Ordering::Greater, Ordering::Equal]),
            Comparison::Like(pattern) => Truth::of(like(value, pattern)),
            Comparison::Contains(part) => Truth::of(value.contains(part.as_str())),
            Comparison::IsNull => Truth::False,
        }
    }
}

/// Texts are equal as they are; times also if they are spelled differently.
fn is_equal(value: &str, text: &str) -> bool {
    value == text
        || compare::seconds(value).is_some_and(|time| compare::seconds(text) == Some(time))
}

/// SQL's LIKE: `%` is any text, `_` any character, `\` takes the next character as it is.
fn like(value: &str, pattern: &str) -> bool {
    let (value, pattern): (Vec<char>, Vec<char>) =
        (value.chars().collect(), pattern.chars().collect());
    let (mut at, mut of, mut star) = (0, 0, None);
    loop {
        let (wanted, width) = match pattern.get(of) {
            Some('\\') if of + 1 < pattern.len() => (pattern.get(of + 1), 2),
            other => (other, 1),
        };
        let wild = width == 1;
        if wild && wanted == Some(&'%') {
            star = Some((of + 1, at));
            of += 1;
        } else if at < value.len() && (wanted == value.get(at) || wild && wanted == Some(&'_')) {
            at += 1;
            of += width;
        } else if at == value.len() && of == pattern.len() {
            return true;
        } else if let Some((after, from)) = star.filter(|(_, from)| *from < value.len()) {
            (of, at) = (after, from + 1);
            star = Some((after, from + 1));
        } else {
            return false;
        }
    }
}

/// A condition that only a function can judge.
///
/// ```
/// use bareboat_shelf::{Predicate, Query, Row, Term, Test};
/// use std::sync::Arc;
///
/// /// Objects whose bodies are at least so large.
/// #[derive(Debug)]
/// struct Large(usize);
///
/// impl Test for Large {
///     fn test(&self, row: &Row<'_>) -> Result<bool, String> {
///         Ok(row.body.is_some_and(|body| body.len() >= self.0))
///     }
/// }
///
/// let query = Query {
///     filter: Predicate::Term(Term::Test(Arc::new(Large(1 << 20)))),
///     ..Query::default()
/// };
/// # let _ = query;
/// ```
pub trait Test: Send + Sync + fmt::Debug {
    /// Judges a row whose body was read. The error is for the client.
    fn test(&self, row: &Row<'_>) -> Result<bool, String>;
}

/// A condition without parts.
#[derive(Clone, Debug)]
pub enum Term {
    /// On a column.
    Column(Column, Comparison),
    /// On a label.
    Label(Requirement),
    /// On a field, with the semantics of selectors.
    Field(FieldRequirement),
    /// On a field, with the semantics of SQL.
    Json(Path, Comparison),
    /// Anything else.
    Test(Arc<dyn Test>),
}

/// A condition.
#[derive(Clone, Debug)]
pub enum Predicate {
    /// All of them; without parts, always true.
    All(Vec<Predicate>),
    /// Any of them; without parts, never true.
    Any(Vec<Predicate>),
    /// The opposite.
    Not(Box<Predicate>),
    /// A condition without parts.
    Term(Term),
}

impl Default for Predicate {
    fn default() -> Predicate {
        Predicate::All(Vec::new())
    }
}

/// The truth of a condition about a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// SQL's unknown: it does not hold, and its opposite does not either.
    Null,
    /// The body is needed.
    Later,
}

impl Truth {
    fn of(holds: bool) -> Truth {
        if holds { Truth::True } else { Truth::False }
    }

    fn or(self, other: Truth) -> Truth {
        self.not().and(other.not()).not()
    }

    fn and(self, other: Truth) -> Truth {
        use Truth::{False, Later, Null, True};
        match (self, other) {
            (False, _) | (_, False) => False,
            (Later, _) | (_, Later) => Later,
            (Null, _) | (_, Null) => Null,
            (True, True) => True,
        }
    }

    fn not(self) -> Truth {
        match self {
            Truth::True => Truth::False,
            Truth::False => Truth::True,
            other => other,
        }
    }
}

impl Predicate {
    /// Returns a condition without parts.
    pub fn column(column: Column, comparison: Comparison) -> Predicate {
        Predicate::Term(Term::Column(column, comparison))
    }

    /// Returns the condition that a column has one of these texts.
    pub fn one_of<T: Into<String>>(
        column: Column,
        texts: impl IntoIterator<Item = T>,
    ) -> Predicate {
        let texts = texts.into_iter().map(|text| Literal::Text(text.into()));
        Predicate::column(column, Comparison::In(texts.collect()))
    }

    /// Adds a condition that must hold as well.
    pub fn and(&mut self, other: Predicate) {
        match self {
            Predicate::All(parts) => parts.push(other),
            single => {
                let first = std::mem::take(single);
                *single = Predicate::All(vec![first, other]);
            }
        }
    }

    /// Judges a row.
    pub fn test(&self, row: &Row<'_>) -> Result<Truth, String> {
        Ok(match self {
            Predicate::All(parts) => {
                let mut truth = Truth::True;
                for part in parts {
                    truth = truth.and(part.test(row)?);
                    if truth == Truth::False {
                        break;
                    }
                }
                truth
            }
            Predicate::Any(parts) => {
                let mut truth = Truth::False;
                for part in parts {
                    truth = truth.or(part.test(row)?);
                    if truth == Truth::True {
                        break;
                    }
                }
                truth
            }
            Predicate::Not(inner) => inner.test(row)?.not(),
            Predicate::Term(term) => term.test(row)?,
        })
    }

    /// Gives fields at the top of objects other names, where there are some. Tests are left as they are.
    pub fn rename(&mut self, other: &dyn Fn(&str) -> Option<&'static str>) {
        match self {
            Predicate::All(parts) | Predicate::Any(parts) => {
                parts.iter_mut().for_each(|part| part.rename(other));
            }
            Predicate::Not(inner) => inner.rename(other),
            Predicate::Term(Term::Field(FieldRequirement { path, .. }) | Term::Json(path, _)) => {
                path.rename(other);
            }
            Predicate::Term(_) => {}
        }
    }

    /// Returns whether the body, the cluster, the namespace and the name are enough to judge this condition. Declared fields are not read
    /// from the body but from the column `fields`, so they are not enough.
    pub(crate) fn is_of_body(&self, declared: &dyn Fn(&Path) -> bool) -> bool {
        match self {
            Predicate::All(parts) | Predicate::Any(parts) => {
                parts.iter().all(|part| part.is_of_body(declared))
            }
            Predicate::Not(inner) => inner.is_of_body(declared),
            Predicate::Term(Term::Field(FieldRequirement { path, .. })) => !declared(path),
            Predicate::Term(Term::Json(..)) => true,
            Predicate::Term(Term::Column(column, _)) => {
                matches!(column, Column::Cluster | Column::Namespace | Column::Name)
            }
            Predicate::Term(Term::Label(_) | Term::Test(_)) => false,
        }
    }

    /// Returns the paths of fields that are read from bodies for this kind, for messages about slow queries.
    pub fn undeclared(&self, declared: &dyn Fn(&Path) -> bool) -> Vec<String> {
        match self {
            Predicate::All(parts) | Predicate::Any(parts) => parts
                .iter()
                .flat_map(|part| part.undeclared(declared))
                .collect(),
            Predicate::Not(inner) => inner.undeclared(declared),
            Predicate::Term(Term::Field(FieldRequirement { path, .. }) | Term::Json(path, _))
                if !declared(path) =>
            {
                vec![path.to_string()]
            }
            Predicate::Term(_) => Vec::new(),
        }
    }
}

impl Term {
    fn test(&self, row: &Row<'_>) -> Result<Truth, String> {
        Ok(match self {
            Term::Column(column, comparison) => comparison.test(column.text(row).as_deref()),
            Term::Label(requirement) => {
                let value = row.narrow.label(requirement.key());
                Truth::of(requirement.matches(value.as_deref()))
            }
            Term::Field(requirement) => {
                if row
                    .directory
                    .declares(crate::KindId(row.narrow.kind), &requirement.path)
                {
                    let text = row.narrow.field(&requirement.path.to_string());
                    return Ok(Truth::of(requirement.matches_text(text.as_deref())));
                }
                match row.body {
                    Some(body) => Truth::of(requirement.matches_body(body)),
                    None => Truth::Later,
                }
            }
            Term::Json(path, comparison) => {
                let Some(body) = row.body else {
                    return Ok(Truth::Later);
                };
                let mut found = None;
                scan::leaves(body, path.steps(), &mut |leaf| {
                    found = leaf.text().map(str::to_owned);
                    false
                });
                comparison.test(found.as_deref())
            }
            Term::Test(test) => match row.body {
                Some(_) => Truth::of(test.test(row)?),
                None => Truth::Later,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Truth, like};

    #[test]
    fn patterns_match_as_in_sql() {
        assert!(like("web-1", "web%"));
        assert!(like("web-1", "%-_"));
        assert!(like("a%b", r"a\%b"));
        assert!(!like("axb", r"a\%b"));
        assert!(like("", "%"));
        assert!(!like("", "_"));
        assert!(like("abcabc", "%abc"));
        assert!(!like("abcab", "%abc"));
    }

    #[test]
    fn truth_has_the_tables_of_sql() {
        use Truth::{False, Null, True};
        assert_eq!(Null.and(False), False);
        assert_eq!(Null.and(True), Null);
        assert_eq!(Null.or(True), True);
        assert_eq!(Null.or(False), Null);
        assert_eq!(Null.not(), Null);
    }
}
