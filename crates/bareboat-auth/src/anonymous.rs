//! Requests without credentials: refused, accepted, or accepted on chosen paths.

use crate::strict::Findings;
use bareboat_api::{FieldError, FieldPath, Value};

/// Which requests without credentials count as those of `system:anonymous`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AnonymousRule {
    /// Requests for health and version. This is the rule if nothing is configured.
    #[default]
    PublicPaths,
    /// No request.
    Off,
    /// All requests.
    Everywhere,
    /// Requests for exactly these paths.
    Paths(Vec<String>),
}

impl AnonymousRule {
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

    /// Whether a request without credentials for this path is accepted. `is_public` says whether the path is one for
    /// health or version.
    pub fn accepts(&self, path: &str, is_public: impl FnOnce(&str) -> bool) -> bool {
        match self {
            AnonymousRule::PublicPaths => is_public(path),
            AnonymousRule::Off => false,
            AnonymousRule::Everywhere => true,
            AnonymousRule::Paths(paths) => paths.iter().any(|known| known == path),
        }
    }
}
