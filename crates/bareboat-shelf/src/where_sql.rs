//! Parses `whereSQL` into a predicate. The text never reaches a database.
//!
//! Supported are the columns of Clusterpedia's table, `object->>'$.a.b'`, `object->'a'->>'b'` and `JSON_EXTRACT(object, '$.a.b')`,
//! compared by `=`, `<>`, `!=`, `<`, `<=`, `>`, `>=`, `[NOT] LIKE`, `[NOT] IN` and `IS [NOT] NULL`, combined by AND, OR, NOT and
//! parentheses. Constants are texts, numbers, booleans and `?`.

mod tokens;

use crate::compare::Literal;
use crate::path::{Path, Step};
use crate::predicate::{Column, Comparison, Predicate, Term};
use tokens::{Token, tokens};

/// The deepest nesting.
const DEEPEST: usize = 64;

/// Why a condition is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("whereSQL: {0}")]
pub struct WhereError(String);

/// Parses a condition. Each `?` takes the next parameter.
pub fn parse_where(text: &str, parameters: &[Literal]) -> Result<Predicate, WhereError> {
    let mut parser = Parser {
        tokens: tokens(text).map_err(WhereError)?,
        at: 0,
        depth: 0,
        parameters: parameters.iter(),
    };
    let predicate = parser.or()?;
    match parser.peek() {
        None if parser.parameters.len() == 0 => Ok(predicate),
        None => Err(WhereError(
            "there are more parameters than question marks".to_owned(),
        )),
        Some(token) => Err(parser.unexpected(token)),
    }
}

/// What is compared.
enum Operand {
    Column(Column),
    Field(Path),
    Constant,
}

struct Parser<'p> {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    parameters: std::slice::Iter<'p, Literal>,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    fn unexpected(&self, token: &Token) -> WhereError {
        WhereError(format!("{token} is not expected here"))
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found =
            matches!(self.peek(), Some(Token::Word(next)) if next.eq_ignore_ascii_case(word));
        self.at += usize::from(found);
        found
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(next)) if *next == sign);
        self.at += usize::from(found);
        found
    }

    fn expect_sign(&mut self, sign: &str) -> Result<(), WhereError> {
        match self.take_sign(sign) {
            true => Ok(()),
            false => Err(WhereError(format!("{sign} is missing"))),
        }
    }

    fn or(&mut self) -> Result<Predicate, WhereError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(WhereError("it is nested too deeply".to_owned()));
        }
        let mut parts = vec![self.and()?];
        while self.take_word("or") {
            parts.push(self.and()?);
        }
        self.depth -= 1;
        Ok(single(parts, Predicate::Any))
    }

    fn and(&mut self) -> Result<Predicate, WhereError> {
        let mut parts = vec![self.not()?];
        while self.take_word("and") {
            parts.push(self.not()?);
        }
        Ok(single(parts, Predicate::All))
    }

    fn not(&mut self) -> Result<Predicate, WhereError> {
        let mut negated = false;
        while self.take_word("not") {
            negated = !negated;
        }
        let inner = match self.take_sign("(") {
            true => {
                let inner = self.or()?;
                self.expect_sign(")")?;
                inner
            }
            false => self.comparison()?,
        };
        Ok(negate(inner, negated))
    }

    fn comparison(&mut self) -> Result<Predicate, WhereError> {
        let left = self.operand()?;
        if self.take_word("is") {
            let negated = self.take_word("not");
            if !self.take_word("null") {
                return Err(WhereError("IS is for NULL only".to_owned()));
            }
            return Ok(negate(condition(left, Comparison::IsNull)?, negated));
        }
        let negated = self.take_word("not");
        if self.take_word("in") {
            self.expect_sign("(")?;
            let mut literals = vec![self.constant()?];
            while self.take_sign(",") {
                literals.push(self.constant()?);
            }
            self.expect_sign(")")?;
            return Ok(negate(condition(left, Comparison::In(literals))?, negated));
        }
        if self.take_word("like") {
            let comparison = match self.constant()? {
                Literal::Text(pattern) => Comparison::Like(pattern),
                _ => return Err(WhereError("LIKE needs a text".to_owned())),
            };
            return Ok(negate(condition(left, comparison)?, negated));
        }
        let sign = match self.next() {
            Some(Token::Sign(sign)) if !negated => sign,
            Some(token) => return Err(self.unexpected(&token)),
            None => return Err(WhereError("it ends too early".to_owned())),
        };
        let right = self.constant()?;
        let (comparison, negated) = match sign {
            "=" => (Comparison::In(vec![right]), false),
            "<>" | "!=" => (Comparison::In(vec![right]), true),
            "<" => (Comparison::Less(right), false),
            "<=" => (Comparison::AtMost(right), false),
            ">" => (Comparison::Greater(right), false),
            ">=" => (Comparison::AtLeast(right), false),
            other => return Err(self.unexpected(&Token::Sign(other))),
        };
        Ok(negate(condition(left, comparison)?, negated))
    }

    fn operand(&mut self) -> Result<Operand, WhereError> {
        match self.peek().cloned() {
            Some(Token::Word(word)) if word.eq_ignore_ascii_case("json_extract") => {
                self.at += 1;
                self.expect_sign("(")?;
                if !self.take_word("object") {
                    return Err(WhereError(
                        "JSON_EXTRACT reads the column object".to_owned(),
                    ));
                }
                self.expect_sign(",")?;
                let path = self.path_text()?;
                self.expect_sign(")")?;
                Ok(Operand::Field(path))
            }
            Some(Token::Word(word) | Token::Name(word)) if word.eq_ignore_ascii_case("object") => {
                self.at += 1;
                self.field()
            }
            Some(Token::Word(word) | Token::Name(word)) => {
                let lower = word.to_ascii_lowercase();
                if matches!(lower.as_str(), "true" | "false" | "null") {
                    self.constant()?;
                    return Ok(Operand::Constant);
                }
                self.at += 1;
                let column = Column::by_name(&lower);
                let column =
                    column.ok_or_else(|| WhereError(format!("there is no column {word}")))?;
                Ok(Operand::Column(column))
            }
            _ => {
                self.constant()?;
                Ok(Operand::Constant)
            }
        }
    }

    /// Reads what follows `object`: one arrow with a JSON path, or several with names.
    fn field(&mut self) -> Result<Operand, WhereError> {
        let mut steps = Vec::new();
        loop {
            let last = match (self.take_sign("->>"), self.take_sign("->")) {
                (true, _) => true,
                (_, true) => false,
                _ => return Err(WhereError("use object->>'$.a.b'".to_owned())),
            };
            match self.next() {
                Some(Token::Text(text)) if steps.is_empty() && last && text.starts_with('$') => {
                    return json_path(&text).map(Operand::Field);
                }
                Some(Token::Text(text)) => steps.push(Step::Key(text)),
                Some(Token::Number(number)) => {
                    let index = number.parse();
                    let index = index.map_err(|_| WhereError(format!("{number} is no index")))?;
                    steps.push(Step::At(index));
                }
                _ => return Err(WhereError("an arrow needs a text or an index".to_owned())),
            }
            if last {
                let path: String = steps.iter().map(spelled).collect();
                return json_path(&format!("${path}")).map(Operand::Field);
            }
        }
    }

    fn path_text(&mut self) -> Result<Path, WhereError> {
        match self.next() {
            Some(Token::Text(text)) => json_path(&text),
            _ => Err(WhereError("a path in quotes is missing".to_owned())),
        }
    }

    fn constant(&mut self) -> Result<Literal, WhereError> {
        match self.next() {
            Some(Token::Text(text)) => Ok(Literal::Text(text)),
            Some(Token::Number(number)) => Ok(Literal::Number(number)),
            Some(Token::Sign("?")) => {
                let parameter = self.parameters.next().cloned();
                parameter.ok_or_else(|| WhereError("a parameter is missing".to_owned()))
            }
            Some(Token::Word(word)) if word.eq_ignore_ascii_case("null") => Ok(Literal::Null),
            Some(Token::Word(word))
                if word.eq_ignore_ascii_case("true") || word.eq_ignore_ascii_case("false") =>
            {
                Ok(Literal::Text(word.to_ascii_lowercase()))
            }
            Some(token) => Err(self.unexpected(&token)),
            None => Err(WhereError("it ends too early".to_owned())),
        }
    }
}

fn json_path(text: &str) -> Result<Path, WhereError> {
    Path::parse_json(text).map_err(|error| WhereError(error.to_string()))
}

fn spelled(step: &Step) -> String {
    match step {
        Step::Key(key) => format!("['{key}']"),
        Step::Each => "[]".to_owned(),
        Step::At(at) => format!("[{at}]"),
    }
}

fn single(mut parts: Vec<Predicate>, join: fn(Vec<Predicate>) -> Predicate) -> Predicate {
    match (parts.len(), parts.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            parts.extend(last);
            join(parts)
        }
    }
}

fn negate(predicate: Predicate, negated: bool) -> Predicate {
    match negated {
        true => Predicate::Not(Box::new(predicate)),
        false => predicate,
    }
}

fn condition(operand: Operand, comparison: Comparison) -> Result<Predicate, WhereError> {
    Ok(Predicate::Term(match operand {
        Operand::Column(column) => Term::Column(column, comparison),
        Operand::Field(path) => Term::Json(path, comparison),
        Operand::Constant => {
            return Err(WhereError(
                "a comparison begins with a column or a field of object".to_owned(),
            ));
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::parse_where;
    use crate::compare::Literal;

    #[test]
    fn conditions_of_the_documentation_parse() {
        for text in [
            "(cluster='c1') OR (namespace IN ('kube-system','default'))",
            "namespace = 'it''s' AND NOT name LIKE 'web%'",
            "object->>'$.spec.replicas' >= 3",
            "object->'spec'->>'replicas' = '3'",
            "object->'spec'->'containers'->0->>'image' <> 'x'",
            "JSON_EXTRACT(object,'$.status.phase') IS NOT NULL",
            "`group` = 'apps' and \"kind\" != 'x' and created_at > '2020-01-01'",
            "owner_uid NOT IN ('a', 'b') AND resource_version > -1",
        ] {
            assert!(parse_where(text, &[]).is_ok(), "{text}");
        }
        let text = Literal::Text("c1".to_owned());
        assert!(parse_where("cluster = ?", std::slice::from_ref(&text)).is_ok());
        assert!(parse_where("cluster = ?", &[]).is_err());
        assert!(parse_where("cluster = 'a'", &[text]).is_err());
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "",
            "1=1; DELETE FROM resources",
            "1=1",
            "name = 'a' --",
            "name = 'a' UNION SELECT 1",
            "password = 'x'",
            "name = upper('a')",
            "name = name",
            "name = 'a",
            "object = 'x'",
            "exists (select 1)",
            "name in ()",
            "name = $1",
        ] {
            assert!(parse_where(text, &[]).is_err(), "{text}");
        }
        let deep = format!("{}name='a'{}", "(".repeat(5000), ")".repeat(5000));
        assert!(parse_where(&deep, &[]).is_err());
    }
}
