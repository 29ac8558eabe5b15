//! Paths of webhooks, cleaned as Go's clients do: no empty segments, no dots, no slash at the end.

use crate::request::query::percent_decode;
use std::fmt::Write as _;

/// Returns the clean form of a path; it always begins with a slash.
pub(super) fn clean(path: &str) -> String {
    let decoded = percent_decode(path);
    let decoded = decoded.as_deref().unwrap_or(path);
    let mut segments: Vec<&str> = Vec::new();
    for segment in decoded.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    let mut out = String::with_capacity(path.len() + 1);
    for segment in &segments {
        out.push('/');
        escape(segment, &mut out);
    }
    if segments.is_empty() {
        out.push('/');
    }
    out
}

fn escape(segment: &str, out: &mut String) {
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~$&+,:;=@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::clean;

    #[test]
    fn paths_are_cleaned() {
        for (path, cleaned) in [
            ("", "/"),
            ("/", "/"),
            ("hook", "/hook"),
            ("/hook/", "/hook"),
            ("//a///b", "/a/b"),
            ("/a/./b/../c", "/a/c"),
            ("/../..", "/"),
            ("/a%2Fb", "/a/b"),
            ("/a b", "/a%20b"),
            ("/ü", "/%C3%BC"),
        ] {
            assert_eq!(clean(path), cleaned, "{path}");
        }
    }
}
