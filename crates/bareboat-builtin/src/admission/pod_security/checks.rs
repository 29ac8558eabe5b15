//! The checks of pods. Each looks at one concern and returns what it forbids; a name that ends in a version is the
//! revision since that version.

pub(super) mod capabilities;
pub(super) mod host;
pub(super) mod profiles;
pub(super) mod users;
pub(super) mod volumes;
