//! A fleet: other API servers, called members, whose objects are synced to a file, or to a database that
//! several servers share, and can be searched through this server.
//!
//! [`Fleet`] has the kinds and the sync, [`Views`] the paths to search. `bareboat serve --fleet` uses both.

pub use bareboat_fleet::{Fleet, FleetSettings, HubAddress, LEADER_SERVES, Peers};
#[cfg(feature = "mysql")]
pub use bareboat_sql::MysqlShelf;
#[cfg(feature = "postgres")]
pub use bareboat_sql::PostgresShelf;
pub use bareboat_views::{
    Authorization as ViewAuthorization, Settings as ViewSettings, Views, install as install_views,
};
