//! A kubectl plug-in for one kind: `kubectl create post hello --title Hello`.
//!
//! kubectl runs an executable `kubectl-create-post` when it has no subcommand `post` of its own. The flags come from the
//! schema of the kind. The plug-in is a shell script that needs kubectl and the tools of POSIX: it makes the object and
//! gives it to `kubectl create -f -`, so that kubectl's own flags work and its credentials are used.

mod flags;
mod script;
mod words;

pub use flags::{Flag, Shape, flags};
pub use script::script;

/// A kind for which no plug-in can be written.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a name of Kubernetes")]
pub struct OddName(String);

/// The kind that a plug-in creates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The plural name.
    pub plural: String,
    /// What follows `kubectl create`.
    pub name: String,
    /// Whether objects are in namespaces.
    pub namespaced: bool,
}

impl Target {
    /// Returns `apiVersion` of its objects.
    pub fn api_version(&self) -> String {
        match self.group.is_empty() {
            true => self.version.clone(),
            false => format!("{}/{}", self.group, self.version),
        }
    }

    /// Returns a part that is not a plain name. Such a name could not be written into a script.
    fn odd_name(&self) -> Option<&str> {
        let parts = [
            &self.group,
            &self.version,
            &self.kind,
            &self.plural,
            &self.name,
        ];
        let plain = |part: &str| {
            let mut letters = part.chars();
            letters.all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.'))
        };
        let group_may_be_empty = |index: usize| index == 0;
        parts.iter().enumerate().find_map(|(index, part)| {
            let empty = part.is_empty() && !group_may_be_empty(index);
            (empty || !plain(part)).then_some(part.as_str())
        })
    }

    /// Returns the file name that kubectl looks for.
    pub fn file_name(&self) -> String {
        format!("kubectl-create-{}", self.name.replace('-', "_"))
    }
}

#[cfg(test)]
mod tests;
