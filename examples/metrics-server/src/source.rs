//! Where measurements come from: a file, or this machine. Add your own with [`Source`].

use crate::Usage;
use anyhow::Context as _;
use bareboat::api::value::to_value;
use bareboat::prelude::*;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Measures nodes and pods.
pub(crate) trait Source: Send + Sync {
    /// The newest measurements.
    fn measure(&self) -> anyhow::Result<Metrics>;
}

/// What was measured.
#[derive(Serialize, Deserialize)]
pub(crate) struct Metrics {
    nodes: Vec<NodeUsage>,
    pods: Vec<PodUsage>,
}
#[derive(Serialize, Deserialize)]
struct NodeUsage {
    name: String,
    usage: Usage,
}
#[derive(Serialize, Deserialize)]
struct PodUsage {
    namespace: String,
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// By the name of the container.
    containers: BTreeMap<String, Usage>,
}

impl Metrics {
    /// Returns the objects of kind NodeMetrics.
    pub(crate) fn nodes(&self) -> Vec<Object> {
        let object = |node: &NodeUsage| {
            let metadata = value!({"name": (node.name.as_str())});
            let usage = to_value(&node.usage).unwrap_or_default();
            measured(metadata, "usage", usage)
        };
        self.nodes.iter().filter_map(object).collect()
    }

    /// Returns the objects of kind PodMetrics.
    pub(crate) fn pods(&self) -> Vec<Object> {
        let container = |(name, usage): (&String, &Usage)| value!({"name": (name.as_str()), "usage": (to_value(usage).unwrap_or_default())});
        let object = |pod: &PodUsage| {
            let labels = to_value(&pod.labels).unwrap_or_default();
            let metadata = value!({
                "name": (pod.name.as_str()), "namespace": (pod.namespace.as_str()), "labels": labels,
            });
            let containers: Value = pod.containers.iter().map(container).collect();
            measured(metadata, "containers", containers)
        };
        self.pods.iter().filter_map(object).collect()
    }
}

fn measured(mut metadata: Value, member: &str, usage: Value) -> Option<Object> {
    let now = format!("{:.0}", jiff::Timestamp::now());
    metadata
        .make_object()
        .insert("creationTimestamp", Value::string(now.as_str()));
    let mut object = value!({"metadata": metadata, "timestamp": now, "window": "10s"});
    object.make_object().insert(member, usage);
    Object::try_from(object).ok()
}

/// A JSON file, read at each request.
pub(crate) struct Samples(pub(crate) PathBuf);

impl Source for Samples {
    fn measure(&self) -> anyhow::Result<Metrics> {
        let text = fs::read(&self.0).with_context(|| format!("{}", self.0.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{}", self.0.display()))
    }
}

/// This machine as a node, and this process as a pod on it, from /proc. It has the times from which usage is counted.
pub(crate) struct Machine(Mutex<Ticks>);

/// Processor time that was used until an instant, in hundredths of a second, as Linux counts.
#[derive(Clone, Copy)]
pub(crate) struct Ticks {
    at: Instant,
    machine: f64,
    process: f64,
}

/// Usage is counted over this time at least, once the program runs so long.
const WINDOW: Duration = Duration::from_secs(10);

/// Returns the numbers of a file or a line.
fn numbers(text: &str) -> Vec<f64> {
    let words = text.split_whitespace();
    words.filter_map(|word| word.parse().ok()).collect()
}

impl Ticks {
    fn now() -> anyhow::Result<Ticks> {
        let machine = fs::read_to_string("/proc/stat")?;
        let machine = numbers(machine.lines().next().unwrap_or(""));
        // The fourth and fifth of eight are idle time.
        let busy = machine.iter().take(3).chain(machine.iter().skip(5).take(3));
        let process = fs::read_to_string("/proc/self/stat")?;
        let process = numbers(process.rsplit(')').next().unwrap_or(""));
        Ok(Ticks {
            at: Instant::now(),
            machine: busy.sum(),
            process: process.iter().skip(10).take(2).sum(),
        })
    }
}

impl Machine {
    pub(crate) fn new() -> anyhow::Result<Machine> {
        Ok(Machine(Mutex::new(Ticks::now()?)))
    }
}

impl Source for Machine {
    fn measure(&self) -> anyhow::Result<Metrics> {
        let now = Ticks::now()?;
        let mut since = self.0.lock();
        let before = *since;
        let time = now.at.duration_since(before.at);
        if time > WINDOW {
            *since = now;
        }
        let usage = |ticks: f64, memory: f64| Usage {
            cpu: format!("{:.0}m", ticks * 10.0 / time.as_secs_f64().max(0.001)),
            memory: format!("{memory:.0}Ki"),
        };
        let memory = fs::read_to_string("/proc/meminfo")?;
        let memory = |name| {
            let line = memory.lines().find(|line| line.starts_with(name));
            line.map_or(0.0, |line| numbers(line).iter().sum())
        };
        let node = memory("MemTotal:") - memory("MemAvailable:");
        let node = usage(now.machine - before.machine, node);
        let pages: f64 = numbers(&fs::read_to_string("/proc/self/statm")?)
            .iter()
            .skip(1)
            .take(1)
            .sum();
        let server = usage(now.process - before.process, pages * 4.0);
        let name = fs::read_to_string("/proc/sys/kernel/hostname")?;
        let name = name.trim().to_lowercase();
        Ok(Metrics {
            nodes: vec![NodeUsage { name, usage: node }],
            pods: vec![PodUsage {
                namespace: "kube-system".to_owned(),
                name: "metrics-server".to_owned(),
                labels: BTreeMap::new(),
                containers: BTreeMap::from([("metrics-server".to_owned(), server)]),
            }],
        })
    }
}
