//! A fleet: other API servers, called members, whose objects are synced to a file and can be searched through this server.
//!
//! [`Fleet`] has the kinds and the sync, [`Views`] the paths to search. `bareboat serve --fleet` uses both.

pub use bareboat_fleet::{Fleet, FleetSettings, HubAddress};
pub use bareboat_views::{
    Authorization as ViewAuthorization, Settings as ViewSettings, Views, install as install_views,
};
