//! Version v2 of Note, and how it is converted. Fields that `From` does not convert are kept.

use super::{Spec, Status};
use bareboat::prelude::{Deserialize, JsonSchema, Serialize};

/// A Note in version v2.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// What it should be.
    pub spec: Spec,
    /// What was observed.
    pub status: Option<Status>,
}

impl From<super::Note> for Note {
    fn from(other: super::Note) -> Note {
        let (spec, status) = (other.spec, other.status);
        Note { spec, status }
    }
}

impl From<Note> for super::Note {
    fn from(other: Note) -> super::Note {
        let (spec, status) = (other.spec, other.status);
        super::Note { spec, status }
    }
}
