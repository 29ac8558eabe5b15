//! Scalars: checks types and produces canonical text.

use bareboat_api::facts::Type;
use bareboat_api::quantity::Quantity;
use bareboat_api::time::{Timestamp, parse_duration, print_duration};
use bareboat_api::{Str, Value};
use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Decodes base64 as Go does: any trailing bits, padding required.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// Checks a scalar and makes it canonical; the error is the expected type.
pub(super) fn conform(ty: Type, value: &mut Value) -> Result<(), &'static str> {
    match (ty, &mut *value) {
        (Type::Bool, Value::Bool(_))
        | (Type::Int64, Value::Int(_))
        | (Type::Double, Value::Int(_) | Value::Float(_))
        | (Type::String, Value::String(_)) => Ok(()),
        (Type::Int32, Value::Int(number)) => i32::try_from(*number)
            .map(|_| ())
            .map_err(|_| "an integer of 32 bits"),
        (Type::IntOrString, Value::String(_)) => Ok(()),
        (Type::IntOrString, Value::Int(number)) => i32::try_from(*number)
            .map(|_| ())
            .map_err(|_| "an integer of 32 bits or a string"),
        (Type::Bytes, Value::String(text)) => bytes(text),
        (Type::Quantity, Value::String(text)) => {
            let quantity = Quantity::parse(text.trim()).map_err(|_| expectation(ty))?;
            *text = Str::new(quantity.to_string());
            Ok(())
        }
        (Type::Quantity, Value::Int(_) | Value::Float(_)) => {
            let quantity = Quantity::parse(&value.to_string()).map_err(|_| expectation(ty))?;
            *value = Value::String(Str::new(quantity.to_string()));
            Ok(())
        }
        (Type::Time, Value::String(text)) => {
            let stamp = Timestamp::parse(text).map_err(|_| expectation(ty))?;
            // Most times already are in canonical form.
            if text.len() != "2006-01-02T15:04:05Z".len() || !text.ends_with('Z') {
                *text = Str::new(stamp.print_seconds());
            }
            Ok(())
        }
        (Type::MicroTime, Value::String(text)) => {
            let stamp = Timestamp::parse(text).map_err(|_| expectation(ty))?;
            if !has_micros(text) {
                return Err(expectation(ty));
            }
            if !text.ends_with('Z') {
                *text = Str::new(stamp.print_micros());
            }
            Ok(())
        }
        (Type::Duration, Value::String(text)) => {
            let parsed = parse_duration(text).map_err(|_| expectation(ty))?;
            *text = Str::new(print_duration(parsed));
            Ok(())
        }
        _ => Err(expectation(ty)),
    }?;
    // The zero time is printed as `null` in any notation.
    if matches!(ty, Type::Time | Type::MicroTime)
        && value
            .as_str()
            .is_some_and(|text| text.starts_with("0001-01-01T00:00:00"))
    {
        *value = Value::Null;
    }
    Ok(())
}

/// Returns whether exactly six digits follow the seconds, as upstream requires.
fn has_micros(text: &str) -> bool {
    let fraction = text
        .get("2006-01-02T15:04:05".len()..)
        .and_then(|rest| rest.strip_prefix('.'));
    fraction.is_some_and(|rest| rest.bytes().take_while(u8::is_ascii_digit).count() == 6)
}

fn bytes(text: &mut Str) -> Result<(), &'static str> {
    let expected = expectation(Type::Bytes);
    if base64::engine::general_purpose::STANDARD
        .decode(text.as_bytes())
        .is_ok()
    {
        return Ok(());
    }
    // Go ignores line breaks and trailing bits; its output has neither.
    let joined: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let decoded = LENIENT.decode(joined).map_err(|_| expected)?;
    *text = Str::new(base64::engine::general_purpose::STANDARD.encode(decoded));
    Ok(())
}

fn expectation(ty: Type) -> &'static str {
    match ty {
        Type::Bool => "a boolean",
        Type::Int32 | Type::Int64 => "an integer",
        Type::Double => "a number",
        Type::String => "a string",
        Type::Bytes => "base64 text",
        Type::Time => "a time such as \"2006-01-02T15:04:05Z\"",
        Type::MicroTime => "a time such as \"2006-01-02T15:04:05.000000Z\"",
        Type::Duration => "a duration such as \"1m30s\"",
        Type::Quantity => "a quantity such as \"500m\" or \"1Gi\"",
        Type::IntOrString => "an integer or a string",
        _ => "another type",
    }
}
