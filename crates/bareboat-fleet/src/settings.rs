//! Settings of the fleet.

use std::path::PathBuf;
use std::time::Duration;

/// Settings of the fleet.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FleetSettings {
    /// The file of the shelf.
    pub file: PathBuf,
    /// The namespace of Secrets with credentials, and of ClusterProfiles.
    pub namespace: String,
    /// The name of this server among those that sync; members with another `spec.shardingName` are left to others.
    pub sharding_name: String,
    /// The settings of the shelf.
    pub shelf: bareboat_shelf::Settings,
    /// How often the health of a member is asked for.
    pub probe_interval: Duration,
    /// How long an answer about health may take.
    pub probe_timeout: Duration,
    /// How often a member is asked what it serves, apart from changes of its definitions.
    pub discovery_interval: Duration,
    /// How long a type must be absent before its rows are removed.
    pub absent_for: Duration,
    /// How many types are listed at the same time.
    pub refills: usize,
    /// How many objects one page of a list has.
    pub page: usize,
    /// The largest page of a list in bytes.
    pub page_bytes: usize,
    /// How long a request may take.
    pub request_timeout: Duration,
    /// How long a page of a list may take.
    pub list_timeout: Duration,
    /// After which silence a watch is opened again.
    pub silence: Duration,
    /// How often a version without changes is saved.
    pub bookmark_interval: Duration,
    /// The wait after a first failure; it doubles with each one.
    pub first_wait: Duration,
    /// The longest wait after failures.
    pub longest_wait: Duration,
    /// How long one refill more is saved up, if several were needed in a row.
    pub refill_interval: Duration,
}

impl Default for FleetSettings {
    fn default() -> FleetSettings {
        FleetSettings {
            file: PathBuf::from("fleet.db"),
            namespace: "clusterpedia-system".to_owned(),
            sharding_name: String::new(),
            shelf: bareboat_shelf::Settings::default(),
            probe_interval: Duration::from_secs(5),
            probe_timeout: Duration::from_secs(5),
            discovery_interval: Duration::from_secs(300),
            absent_for: Duration::from_secs(30),
            refills: 4,
            page: 500,
            page_bytes: 64 << 20,
            request_timeout: Duration::from_secs(30),
            list_timeout: Duration::from_secs(60),
            silence: Duration::from_secs(180),
            bookmark_interval: Duration::from_secs(60),
            first_wait: Duration::from_millis(200),
            longest_wait: Duration::from_secs(60),
            refill_interval: Duration::from_secs(300),
        }
    }
}
