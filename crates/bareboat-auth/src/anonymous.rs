//! The section `anonymous` of a configuration: which requests without credentials are accepted.

use crate::strict::Findings;
use bareboat_api::{AnonymousRule, FieldError, FieldPath, Value};

/// Reads the section `anonymous`; nothing if it is absent.
pub(crate) fn read(value: Option<&Value>, findings: &mut Findings) -> Option<AnonymousRule> {
    let root = FieldPath::new("anonymous");
    let fields = findings.object(value, &root, &["enabled", "conditions"]);
    if !fields.is_there() {
        return None;
    }
    let enabled = fields.flag("enabled", findings).unwrap_or(false);
    let mut paths = Vec::new();
    for (path, item) in fields.list("conditions", findings) {
        let condition = findings.object(Some(item), &path, &["path"]);
        paths.push(condition.text("path", findings));
    }
    if !enabled && !paths.is_empty() {
        findings.add(FieldError::invalid(
            root.child("conditions"),
            paths.iter().map(String::as_str).collect::<Value>(),
            "enabled should be set to true when conditions are defined",
        ));
    }
    Some(match (enabled, paths.is_empty()) {
        (false, _) => AnonymousRule::Off,
        (true, true) => AnonymousRule::Everywhere,
        (true, false) => AnonymousRule::Paths(paths),
    })
}
