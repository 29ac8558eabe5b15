//! `format`: text with `%` clauses for values.

use super::no_such_overload;
use crate::budget::Budget;
use crate::error::EvalError;
use crate::value::{List, MapVal, Object, Val, float_text, print};

/// The version of the extension.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Dialect {
    /// Version 2: doubles with English separators, `1,234.5` and `1.2×10⁰³`; strings inside lists
    /// quoted.
    Kubernetes,
    /// The latest version: plain numbers.
    Latest,
}

pub(super) fn format<'a>(
    budget: &mut Budget,
    args: &[Val<'a>],
    dialect: Dialect,
) -> Result<Val<'a>, EvalError> {
    let [Val::String(text), Val::List(list)] = args else {
        return no_such_overload();
    };
    let mut out = String::new();
    let mut rest = text.as_str();
    let mut next = 0;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let value = list
            .get(next)
            .ok_or_else(|| EvalError::new(format!("index {next} out of range")))??;
        next += 1;
        let (clause, length) = parse_clause(rest).map_err(|detail| {
            EvalError::new(format!("could not parse formatting clause: {detail}"))
        })?;
        rest = &rest[length..];
        let mut formatter = Formatter { dialect, budget };
        let piece = formatter
            .clause(&clause, &value)
            .map_err(|refused| match refused {
                Refused::For(detail) => {
                    EvalError::new(format!("error during formatting: {detail}"))
                }
                Refused::Budget => EvalError::OutOfBudget,
            })?;
        budget.allocate(piece.len())?;
        out.push_str(&piece);
    }
    out.push_str(rest);
    budget.allocate(text.as_str().len())?;
    Ok(Val::text(out))
}

/// Checks the literal text of a call to `format` against the number of arguments, and returns its
/// clauses.
pub(crate) fn check_literal(text: &str, arguments: usize) -> Result<Vec<Clause>, String> {
    let mut clauses = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            rest = after;
            continue;
        }
        if clauses.len() >= arguments {
            return Err(format!("index {} out of range", clauses.len()));
        }
        let (clause, length) = parse_clause(rest)
            .map_err(|detail| format!("could not parse formatting clause: {detail}"))?;
        clauses.push(clause);
        rest = &rest[length..];
    }
    if clauses.len() != arguments {
        return Err(format!(
            "too many arguments supplied to string.format (expected {}, got {arguments})",
            clauses.len()
        ));
    }
    Ok(clauses)
}

/// A `%` clause: the verb and the precision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clause {
    pub(crate) verb: char,
    precision: Option<usize>,
}

const DEFAULT_PRECISION: usize = 6;
/// The maximum precision: enough for every double, but bounded in memory.
const MAX_PRECISION: usize = 1000;

fn parse_clause(text: &str) -> Result<(Clause, usize), String> {
    let mut length = 0;
    let mut precision = None;
    if let Some(after) = text.strip_prefix('.') {
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let number: usize = after[..digits].parse().map_err(
            |_| "error while parsing precision: could not find end of precision specifier",
        )?;
        if number > MAX_PRECISION {
            return Err("error while parsing precision: precision is too large".to_owned());
        }
        precision = Some(number);
        length = 1 + digits;
    }
    let verb = text[length..]
        .chars()
        .next()
        .ok_or("unexpected end of string")?;
    if !"sdfebxXo".contains(verb) {
        return Err(format!("unrecognized formatting clause \"{verb}\""));
    }
    length += verb.len_utf8();
    Ok((Clause { verb, precision }, length))
}

/// Returns the message for a value that a clause does not accept.
pub(crate) fn refusal(verb: char, given: &str) -> String {
    let takes = match verb {
        'd' => "decimal clause can only be used on integers",
        'f' => "fixed-point clause can only be used on doubles",
        'e' => "scientific clause can only be used on doubles",
        'b' => "only integers and bools can be formatted as binary",
        'o' => "octal clause can only be used on integers",
        'x' | 'X' => "only integers, byte buffers, and strings can be formatted as hex",
        _ => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
        }
    };
    format!("{takes}, was given {given}")
}

/// The reason why a value was not formatted.
enum Refused {
    For(String),
    Budget,
}

impl From<String> for Refused {
    fn from(detail: String) -> Refused {
        Refused::For(detail)
    }
}

impl From<EvalError> for Refused {
    fn from(error: EvalError) -> Refused {
        match error {
            EvalError::OutOfBudget => Refused::Budget,
            other => Refused::For(other.to_string()),
        }
    }
}

struct Formatter<'b> {
    dialect: Dialect,
    budget: &'b mut Budget,
}

impl Formatter<'_> {
    fn clause(&mut self, clause: &Clause, value: &Val<'_>) -> Result<String, Refused> {
        let refused = || refusal(clause.verb, value.type_of().name());
        let precision = clause.precision.unwrap_or(DEFAULT_PRECISION);
        Ok(match (clause.verb, value) {
            ('s', value) => self.string(value, true)?,
            ('d', Val::Int(_) | Val::Uint(_)) => print(value),
            ('d', Val::Double(value)) if self.dialect == Dialect::Latest && !value.is_finite() => {
                infinite(*value)
            }
            ('f', value) => match self.number(value) {
                Some(number) if number.is_finite() => self.fixed(number, precision),
                Some(number) => infinite(number),
                None => return Err(refused().into()),
            },
            ('e', value) => match self.number(value) {
                Some(number) if number.is_finite() => self.scientific(number, precision),
                Some(number) => infinite(number),
                None => return Err(refused().into()),
            },
            ('b', Val::Int(value)) => signed(*value, |magnitude| format!("{magnitude:b}")),
            ('b', Val::Uint(value)) => format!("{value:b}"),
            ('b', Val::Bool(value)) => u8::from(*value).to_string(),
            ('o', Val::Int(value)) => signed(*value, |magnitude| format!("{magnitude:o}")),
            ('o', Val::Uint(value)) => format!("{value:o}"),
            ('x' | 'X', value) => {
                let text = match value {
                    Val::Int(value) => signed(*value, |magnitude| format!("{magnitude:x}")),
                    Val::Uint(value) => format!("{value:x}"),
                    Val::String(text) => hex(text.as_str().as_bytes()),
                    Val::Bytes(bytes) => hex(bytes),
                    _ => return Err(refused().into()),
                };
                if clause.verb == 'X' {
                    text.to_uppercase()
                } else {
                    text
                }
            }
            _ => return Err(refused().into()),
        })
    }

    /// Converts a value for a clause for doubles.
    fn number(&self, value: &Val<'_>) -> Option<f64> {
        match value {
            Val::Double(value) => Some(*value),
            Val::Int(value) if self.dialect == Dialect::Latest => Some(*value as f64),
            Val::Uint(value) if self.dialect == Dialect::Latest => Some(*value as f64),
            Val::String(text) => match text.as_str() {
                "NaN" => Some(f64::NAN),
                "Infinity" => Some(f64::INFINITY),
                "-Infinity" => Some(f64::NEG_INFINITY),
                _ => None,
            },
            _ => None,
        }
    }

    fn fixed(&self, value: f64, precision: usize) -> String {
        let plain = format!("{value:.precision$}");
        if self.dialect == Dialect::Latest {
            return plain;
        }
        let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
        let (sign, digits) = match whole.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", whole),
        };
        let mut grouped = String::from(sign);
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index) % 3 == 0 {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        if !fraction.is_empty() {
            grouped.push('.');
            grouped.push_str(fraction);
        }
        grouped
    }

    fn scientific(&self, value: f64, precision: usize) -> String {
        let text = format!("{value:.precision$e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = match exponent.strip_prefix('-') {
            Some(digits) => ('-', digits),
            None => ('+', exponent),
        };
        if self.dialect == Dialect::Latest {
            return format!("{mantissa}e{sign}{digits:0>2}");
        }
        let raised: String = format!("{digits:0>2}")
            .chars()
            .map(|digit| match digit {
                '1' => '¹',
                '2' => '²',
                '3' => '³',
                '0' => '⁰',
                other => char::from_u32(0x2070 + (other as u32 - '0' as u32)).unwrap_or(other),
            })
            .collect();
        let minus = if sign == '-' { "⁻" } else { "" };
        format!("{mantissa}×10{minus}{raised}")
    }

    fn string(&mut self, value: &Val<'_>, top: bool) -> Result<String, Refused> {
        let text = self.write(value, top)?;
        // One extra for the work of an empty text.
        self.budget.allocate(1 + text.len())?;
        Ok(text)
    }

    fn write(&mut self, value: &Val<'_>, top: bool) -> Result<String, Refused> {
        let quoted = !top && self.dialect == Dialect::Kubernetes;
        Ok(match value {
            Val::List(list) => self.list(list)?,
            Val::Map(map) => self.map(map)?,
            Val::Object(object) => self.object(object)?,
            Val::Double(value) if !value.is_finite() => infinite(*value),
            Val::Double(value) if quoted => self.fixed(*value, DEFAULT_PRECISION),
            Val::Double(value) => float_text(*value),
            Val::String(text) if quoted => format!("\"{}\"", text.as_str()),
            Val::Duration(_) | Val::Timestamp(_) if quoted => match value {
                Val::Duration(_) => format!("duration(\"{}\")", print(value)),
                _ => format!("timestamp(\"{}\")", print(value)),
            },
            Val::Null
            | Val::Bool(_)
            | Val::Int(_)
            | Val::Uint(_)
            | Val::String(_)
            | Val::Bytes(_)
            | Val::Duration(_)
            | Val::Timestamp(_)
            | Val::Type(_) => print(value),
            Val::Optional(_) | Val::Special(_) => {
                return Err(refusal('s', value.type_of().name()).into());
            }
        })
    }

    fn list(&mut self, list: &List<'_>) -> Result<String, Refused> {
        let mut items = Vec::with_capacity(list.len());
        for item in list.iter() {
            items.push(self.string(&item?, false)?);
        }
        Ok(format!("[{}]", items.join(", ")))
    }

    fn entries(&mut self, mut entries: Vec<(String, Val<'_>)>) -> Result<String, Refused> {
        // The order of maps is undefined; sorting makes it stable.
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        let colon = if self.dialect == Dialect::Latest {
            ": "
        } else {
            ":"
        };
        let mut texts = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            texts.push(format!("{key}{colon}{}", self.string(&value, false)?));
        }
        Ok(format!("{{{}}}", texts.join(", ")))
    }

    fn map(&mut self, map: &MapVal<'_>) -> Result<String, Refused> {
        let mut entries = Vec::with_capacity(map.len());
        for key in map.keys() {
            if let Some(value) = map.get(&key) {
                let value = value?;
                entries.push((self.string(&key, false)?, value));
            }
        }
        self.entries(entries)
    }

    fn object(&mut self, object: &Object<'_>) -> Result<String, Refused> {
        let mut entries = Vec::new();
        for name in object.names() {
            if let Some(value) = object.field(&name) {
                let value = value?;
                entries.push((self.string(&Val::str(&name), false)?, value));
            }
        }
        self.entries(entries)
    }
}

fn infinite(value: f64) -> String {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
    .to_owned()
}

fn signed(value: i64, digits: impl Fn(u64) -> String) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", digits(value.unsigned_abs()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
