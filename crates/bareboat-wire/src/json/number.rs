//! Numbers: integers where they fit 64 bits, floats otherwise.

use super::{Fault, Reader};
use bareboat_api::Value;

impl Reader<'_> {
    /// Parses a number; the cursor is at its sign or first digit.
    pub(super) fn number(&mut self) -> Result<Value, Fault> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let digits = self.at;
        self.digits()?;
        if self.bytes[digits] == b'0' && self.at > digits + 1 {
            self.at = digits + 1;
            return Err(self.fault("a number may not start with 0"));
        }
        let mut whole = true;
        if self.peek() == Some(b'.') {
            whole = false;
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            whole = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        let text = &self.text[start..self.at];
        if whole && let Ok(number) = text.parse() {
            return Ok(Value::Int(number));
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Value::Float(number)),
            _ => {
                self.at = start;
                Err(self.fault("the number is too large"))
            }
        }
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let first = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == first {
            return Err(self.expected("a digit"));
        }
        Ok(())
    }
}
