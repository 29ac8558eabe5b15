//! Gauges that are read at each scrape: the store, the limits on requests, the process.

use super::process::Process;
use super::storage::Storage;
use bareboat_storage::StoreStats;
use prometheus::{Counter, Gauge, IntGauge, IntGaugeVec, Opts, Registry};

/// Values that the server reads for a scrape.
pub(crate) struct Readings {
    /// The sizes of the store, and what it did.
    pub(crate) store: StoreStats,
    /// Requests being answered.
    pub(crate) under_way: usize,
    /// Open connections, and those without an authenticated request.
    pub(crate) connections: (usize, usize),
    /// Bytes of answers that clients have not read.
    pub(crate) unread_bytes: usize,
    /// Reads and writes that hold a seat of flow control.
    pub(crate) in_flight: (usize, usize),
    /// Group, resource, and number of stored objects.
    pub(crate) objects: Vec<(String, String, usize)>,
}

/// The gauges that a scrape sets.
pub(super) struct Gauges {
    revision: IntGauge,
    compacted: IntGauge,
    queued: IntGauge,
    variant_bytes: IntGauge,
    under_way: IntGauge,
    connections: IntGauge,
    unauthenticated: IntGauge,
    unread_bytes: IntGauge,
    storage_bytes: IntGaugeVec,
    in_flight: IntGaugeVec,
    storage: Storage,
    objects: IntGaugeVec,
    resource_objects: IntGaugeVec,
    cpu_seconds: Counter,
    resident_bytes: IntGauge,
    virtual_bytes: IntGauge,
    open_files: IntGauge,
    most_files: IntGauge,
    start_time: Gauge,
    /// Without labels. Absent while there is no certificate.
    expiry: IntGaugeVec,
}

impl Gauges {
    pub(super) fn new(registry: &Registry) -> Result<Gauges, prometheus::Error> {
        let plain = |name: &str, help: &str| {
            let gauge = IntGauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok::<_, prometheus::Error>(gauge)
        };
        let labelled = |name: &str, help: &str, labels: &[&str]| {
            let gauge = IntGaugeVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok::<_, prometheus::Error>(gauge)
        };
        let cpu_seconds = Counter::new(
            "process_cpu_seconds_total",
            "User and system CPU time spent, in seconds.",
        )?;
        let start_time = Gauge::new(
            "process_start_time_seconds",
            "When the process started, in seconds since 1970.",
        )?;
        if Process::is_known() {
            registry.register(Box::new(cpu_seconds.clone()))?;
            registry.register(Box::new(start_time.clone()))?;
        }
        let of_process = |name: &str, help: &str| match Process::is_known() {
            true => plain(name, help),
            false => IntGauge::new(name, help),
        };
        Ok(Gauges {
            revision: plain("bareboat_store_revision", "The newest revision.")?,
            compacted: plain(
                "bareboat_store_compacted_revision",
                "The revision that history reaches back to.",
            )?,
            queued: plain(
                "bareboat_store_queued_writes",
                "Writes that wait for the next commit.",
            )?,
            variant_bytes: plain(
                "bareboat_cache_variant_bytes",
                "Bytes of encodings kept beside objects.",
            )?,
            under_way: plain("bareboat_requests_under_way", "Requests being answered.")?,
            connections: plain("bareboat_connections_open", "Connections of clients.")?,
            unauthenticated: plain(
                "bareboat_connections_unauthenticated",
                "Connections that have brought no request with credentials yet.",
            )?,
            unread_bytes: plain(
                "bareboat_unread_bytes",
                "Bytes of answers that clients have not read, beyond the first 64 KiB of each connection.",
            )?,
            storage_bytes: labelled(
                "apiserver_storage_size_bytes",
                "Size of the database where it is kept, in bytes.",
                &["storage_cluster_id"],
            )?,
            in_flight: labelled(
                "apiserver_current_inflight_requests",
                "Requests that count against the limits on concurrent requests.",
                &["request_kind"],
            )?,
            objects: labelled(
                "apiserver_storage_objects",
                "Stored objects by resource and group.",
                &["resource"],
            )?,
            resource_objects: labelled(
                "apiserver_resource_objects",
                "Stored objects by group and resource.",
                &["group", "resource"],
            )?,
            storage: Storage::new(registry)?,
            expiry: labelled(
                "bareboat_serving_certificate_expiration_timestamp_seconds",
                "When the serving certificate expires, in seconds since 1970.",
                &[],
            )?,
            cpu_seconds,
            start_time,
            resident_bytes: of_process(
                "process_resident_memory_bytes",
                "Resident memory size in bytes.",
            )?,
            virtual_bytes: of_process(
                "process_virtual_memory_bytes",
                "Virtual memory size in bytes.",
            )?,
            open_files: of_process("process_open_fds", "Open file descriptors.")?,
            most_files: of_process("process_max_fds", "How many file descriptors may be open.")?,
        })
    }

    pub(super) fn set(&self, readings: &Readings) {
        let store = &readings.store;
        self.storage.set(store);
        self.revision.set(signed(store.visible));
        self.compacted.set(signed(store.floor));
        self.queued.set(signed(store.queued as u64));
        self.variant_bytes.set(signed(store.variant_bytes as u64));
        self.under_way.set(signed(readings.under_way as u64));
        let (open, unauthenticated) = readings.connections;
        self.connections.set(signed(open as u64));
        self.unauthenticated.set(signed(unauthenticated as u64));
        self.unread_bytes.set(signed(readings.unread_bytes as u64));
        self.storage_bytes
            .with_label_values(&["bareboat-0"])
            .set(signed(store.backend.bytes));
        let (reads, writes) = readings.in_flight;
        for (kind, count) in [("readOnly", reads), ("mutating", writes)] {
            self.in_flight
                .with_label_values(&[kind])
                .set(signed(count as u64));
        }
        // Kinds are added and removed, so every scrape starts empty.
        self.objects.reset();
        self.resource_objects.reset();
        for (group, resource, count) in &readings.objects {
            let count = signed(*count as u64);
            let full = match group.is_empty() {
                true => resource.clone(),
                false => format!("{resource}.{group}"),
            };
            self.objects.with_label_values(&[&full]).set(count);
            self.resource_objects
                .with_label_values(&[group, resource])
                .set(count);
        }
    }

    pub(super) fn set_expiry(&self, expires: Option<i64>) {
        self.expiry.reset();
        if let Some(expires) = expires {
            self.expiry.with_label_values::<&str>(&[]).set(expires);
        }
    }

    pub(super) fn set_process(&self, process: &Process) {
        self.cpu_seconds.reset();
        self.cpu_seconds.inc_by(process.cpu_seconds);
        self.start_time.set(process.start_time);
        self.resident_bytes.set(signed(process.resident_bytes));
        self.virtual_bytes.set(signed(process.virtual_bytes));
        self.open_files.set(signed(process.open_files));
        self.most_files.set(signed(process.most_files));
    }
}

/// The value of a gauge.
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
