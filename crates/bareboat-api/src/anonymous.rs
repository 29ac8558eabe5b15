//! Requests without credentials: refused, accepted, or accepted on chosen paths.

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
