//! Search in tables that are text in the program's read-only data: sorted lines, each with a key.

use std::cmp::Ordering;

/// Bisects a sorted table for the line whose key equals `wanted`.
///
/// It reads only the lines it compares, so that the rest of the table need not be in memory.
pub(crate) fn line_of(
    table: &'static str,
    wanted: &str,
    key: impl Fn(&str) -> &str,
) -> Option<&'static str> {
    let is_newline = |byte: &u8| *byte == b'\n';
    let bytes = table.as_bytes();
    let (mut low, mut high) = (0, table.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let before = bytes[..middle].iter().rposition(is_newline);
        let start = before.map_or(0, |newline| newline + 1);
        let after = bytes[middle..].iter().position(is_newline);
        let end = after.map_or(table.len(), |newline| middle + newline);
        let line = &table[start..end];
        match key(line).cmp(wanted) {
            Ordering::Equal => return Some(line),
            Ordering::Less => low = end + 1,
            Ordering::Greater => high = start,
        }
    }
    None
}
