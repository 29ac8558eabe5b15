//! Results of both servers, the list of quantities with their targets, and the printed table.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

/// The text for a row that failed.
pub(crate) const FAILED: &str = "failed";

/// One measured quantity, or the reason why there is none.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(crate) enum Figure {
    /// A number in the quantity's unit.
    Number(f64),
    /// A text such as `not served`.
    Words(String),
}

/// The results of one server, by quantity id.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Figures(BTreeMap<String, Figure>);

impl Figures {
    /// Records a number.
    pub(crate) fn set(&mut self, id: &str, number: f64) {
        self.0.insert(id.to_owned(), Figure::Number(number));
    }

    /// Records why there is no number.
    pub(crate) fn explain(&mut self, id: &str, words: &str) {
        self.0
            .insert(id.to_owned(), Figure::Words(words.to_owned()));
    }

    pub(crate) fn number(&self, id: &str) -> Option<f64> {
        match self.0.get(id) {
            Some(Figure::Number(number)) => Some(*number),
            _ => None,
        }
    }
}

/// The settings that define the load. Results with different settings must not be compared.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Settings {
    /// Objects in the measured collection.
    pub(crate) objects: usize,
    /// Watchers.
    pub(crate) watchers: usize,
    /// Whether the load was reduced to a tenth.
    pub(crate) quick: bool,
}

/// The content of a --save file.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Saved {
    /// The load settings.
    #[serde(default)]
    pub(crate) settings: Settings,
    /// kube-apiserver and etcd.
    #[serde(default)]
    pub(crate) theirs: Figures,
    /// Bareboat.
    #[serde(default)]
    pub(crate) ours: Figures,
}

impl Saved {
    /// Reads a --save file that was measured with these settings.
    pub(crate) fn read(path: &Path, settings: &Settings) -> Result<Self> {
        let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let saved: Self = serde_json::from_slice(&text)
            .with_context(|| format!("{} is not a saved measurement", path.display()))?;
        if saved.settings != *settings {
            bail!(
                "{} was measured with different settings: {:?} instead of {settings:?}",
                path.display(),
                saved.settings
            );
        }
        Ok(saved)
    }

    /// Writes the file.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        fs::write(path, serde_json::to_vec_pretty(self)?)
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Unit {
    Micros,
    Millis,
    Mebibytes,
    Kibibytes,
    PerSecond,
    Percent,
    Times,
    Count,
}

#[derive(Clone, Copy)]
enum Target {
    None,
    /// At least this ratio.
    Times(f64),
    /// At most this value, whatever kube-apiserver's is.
    Below(f64),
    /// Both.
    TimesAndBelow(f64, f64),
}

pub(crate) struct Quantity {
    pub(crate) id: &'static str,
    pub(crate) label: &'static str,
    pub(crate) unit: Unit,
    target: Target,
}

const fn quantity(id: &'static str, label: &'static str, unit: Unit, target: Target) -> Quantity {
    Quantity {
        id,
        label,
        unit,
        target,
    }
}

use Target::{Below, None as Free, Times, TimesAndBelow};
use Unit::{Count, Kibibytes, Mebibytes, Micros, Millis, PerSecond, Percent, Times as Multiple};

pub(crate) const QUANTITIES: &[Quantity] = &[
    quantity("start", "start to ready", Millis, TimesAndBelow(50.0, 80.0)),
    quantity("idle", "idle memory", Mebibytes, Times(15.0)),
    quantity("memory", "memory with the objects", Mebibytes, Times(12.0)),
    quantity("get.cpu", "get, 64 clients: CPU", Micros, Times(25.0)),
    quantity("get.rate", "  rate", PerSecond, Free),
    quantity("get.p50", "  p50", Micros, Free),
    quantity("get.p99", "  p99", Micros, Free),
    quantity("token.cpu", "get by token, 64 clients: CPU", Micros, Free),
    quantity("token.rate", "  rate", PerSecond, Free),
    quantity("token.p50", "  p50", Micros, Free),
    quantity("token.p99", "  p99", Micros, Free),
    quantity(
        "list.cpu",
        "list over HTTP/1.1, 4 clients: CPU",
        Micros,
        Times(28.0),
    ),
    quantity("list.rate", "  rate", PerSecond, Free),
    quantity("list.p50", "  p50", Micros, Free),
    quantity("list.p99", "  p99", Micros, Free),
    quantity("list.mib", "  size", Mebibytes, Free),
    quantity(
        "listh2.cpu",
        "list over HTTP/2, 4 clients: CPU",
        Micros,
        Free,
    ),
    quantity("listh2.rate", "  rate", PerSecond, Free),
    quantity("listh2.p50", "  p50", Micros, Free),
    quantity("listh2.p99", "  p99", Micros, Free),
    quantity(
        "page.cpu",
        "page of 500, 4 clients: CPU",
        Micros,
        Times(40.0),
    ),
    quantity("page.rate", "  rate", PerSecond, Free),
    quantity("page.p50", "  p50", Micros, Free),
    quantity("page.p99", "  p99", Micros, Free),
    quantity(
        "label.cpu",
        "a tenth by label, 4 clients: CPU",
        Micros,
        Times(40.0),
    ),
    quantity("label.rate", "  rate", PerSecond, Free),
    quantity("label.p50", "  p50", Micros, Free),
    quantity("label.p99", "  p99", Micros, Free),
    quantity("create1.cpu", "create, 1 client: CPU", Micros, Free),
    quantity("create1.rate", "  rate", PerSecond, Free),
    quantity("create1.p50", "  p50", Micros, Free),
    quantity("create1.p99", "  p99", Micros, Free),
    quantity("create.cpu", "create, 64 clients: CPU", Micros, Times(15.0)),
    quantity("create.rate", "  rate", PerSecond, Times(8.0)),
    quantity("create.p50", "  p50", Micros, Free),
    quantity("create.p99", "  p99", Micros, Free),
    quantity(
        "patch.cpu",
        "merge patch, 64 clients: CPU",
        Micros,
        Times(30.0),
    ),
    quantity("patch.rate", "  rate", PerSecond, Free),
    quantity("patch.p50", "  p50", Micros, Free),
    quantity("patch.p99", "  p99", Micros, Free),
    quantity(
        "apply.cpu",
        "server-side apply, 64 clients: CPU",
        Micros,
        Times(20.0),
    ),
    quantity("apply.rate", "  rate", PerSecond, Free),
    quantity("apply.p50", "  p50", Micros, Free),
    quantity("apply.p99", "  p99", Micros, Free),
    quantity("delete.cpu", "delete, 64 clients: CPU", Micros, Times(25.0)),
    quantity("delete.rate", "  rate", PerSecond, Free),
    quantity("delete.p50", "  p50", Micros, Free),
    quantity("delete.p99", "  p99", Micros, Free),
    quantity(
        "watch.one",
        "event to a watcher, one by one: CPU",
        Micros,
        Times(4.0),
    ),
    quantity("watch.one.net", "  without the write", Micros, Free),
    quantity("watch.one.all", "  until all have it, p50", Micros, Free),
    quantity(
        "watch.eight",
        "event to a watcher, in eights: CPU",
        Micros,
        Times(4.0),
    ),
    quantity("watch.eight.net", "  without the writes", Micros, Free),
    quantity("watch.eight.all", "  until all have it, p50", Micros, Free),
    quantity("watcher", "memory per idle watcher", Kibibytes, Below(32.0)),
    quantity(
        "cel.cpu",
        "create, 100 fields, ten CEL rules: CPU",
        Micros,
        Times(10.0),
    ),
    quantity("cel.rate", "  rate", PerSecond, Free),
    quantity("cel.p50", "  p50", Micros, Free),
    quantity("cel.p99", "  p99", Micros, Free),
    quantity(
        "protobuf.cpu",
        "create a Deployment in protobuf: CPU",
        Micros,
        Times(8.0),
    ),
    quantity("protobuf.rate", "  rate", PerSecond, Free),
    quantity("protobuf.p50", "  p50", Micros, Free),
    quantity("protobuf.p99", "  p99", Micros, Free),
    quantity(
        "aggregated.cpu",
        "get from an aggregated server: CPU",
        Micros,
        Times(4.0),
    ),
    quantity("aggregated.rate", "  rate", PerSecond, Free),
    quantity("aggregated.p50", "  p50", Micros, Free),
    quantity("aggregated.p99", "  p99", Micros, Free),
    quantity(
        "webhooks.cpu",
        "create under two webhooks: CPU",
        Micros,
        Times(3.0),
    ),
    quantity("webhooks.rate", "  rate", PerSecond, Free),
    quantity("webhooks.p50", "  p50", Micros, Free),
    quantity("webhooks.p99", "  p99", Micros, Free),
    quantity(
        "policies.cpu",
        "create under ten policies: CPU",
        Micros,
        Times(15.0),
    ),
    quantity("policies.rate", "  rate", PerSecond, Free),
    quantity("policies.p50", "  p50", Micros, Free),
    quantity("policies.p99", "  p99", Micros, Free),
    quantity(
        "unmatched",
        "more CPU of a create, 200 rules for others",
        Percent,
        Below(2.0),
    ),
    quantity("unmatched.cpu", "  without them", Micros, Free),
    quantity(
        "apiservices",
        "500 APIServices, idle: CPU",
        Percent,
        Below(0.5),
    ),
    quantity(
        "apiservices.probes",
        "  probes of each in 30 s",
        Count,
        Below(1.1),
    ),
    quantity(
        "apiservices.connections",
        "  new connections",
        Count,
        Below(1.0),
    ),
    quantity(
        "quiet",
        "1,000 objects, 100 watchers, quiet: CPU",
        Percent,
        Below(0.2),
    ),
    quantity(
        "namespace",
        "delete a namespace of 10,000 objects",
        Millis,
        Times(10.0),
    ),
    quantity("namespace.cpu", "  CPU per object", Micros, Free),
    quantity(
        "crd.cpu",
        "install a CRD of 31 KiB: CPU",
        Micros,
        Times(50.0),
    ),
    quantity("crd.rate", "  rate", PerSecond, Free),
    quantity("crd.memory", "  memory", Kibibytes, Times(60.0)),
    quantity("crd.last", "  CPU, the last of 2,000", Micros, Free),
    quantity(
        "neighbour.p99",
        "another user's p99 beside 200 lists",
        Multiple,
        Below(3.0),
    ),
    quantity("neighbour.health", "  slowest health", Millis, Free),
    quantity(
        "storm.p99",
        "another user's p99 beside a storm",
        Millis,
        Below(50.0),
    ),
    quantity("storm.health", "  slowest health", Millis, Below(100.0)),
    quantity(
        "attack.p99",
        "another client's p99 under attack",
        Multiple,
        Below(5.0),
    ),
    quantity("attack.health", "  slowest health", Millis, Below(100.0)),
    quantity(
        "attack.memory",
        "  memory at the peak",
        Mebibytes,
        Below(256.0),
    ),
];

/// Prints the table and returns the number of missed targets.
pub(crate) fn print(saved: &Saved) -> usize {
    let mut missed = 0;
    println!(
        "{:<42}{:>16}{:>16}{:>9}  {:<18} ",
        "quantity", "theirs", "ours", "ratio", "target"
    );
    for quantity in QUANTITIES {
        let (theirs, ours) = (
            saved.theirs.0.get(quantity.id),
            saved.ours.0.get(quantity.id),
        );
        if theirs.is_none() && ours.is_none() {
            continue;
        }
        let ratio = ratio(quantity, saved);
        let verdict = verdict(quantity, ratio, ours);
        missed += usize::from(verdict == Some(false));
        println!(
            "{:<42}{:>16}{:>16}{:>9}  {:<18} {}",
            quantity.label,
            show(theirs, quantity.unit),
            show(ours, quantity.unit),
            ratio
                .map(|ratio| format!("{ratio:.1}×"))
                .unwrap_or_default(),
            target(quantity),
            match verdict {
                Some(true) => "met",
                Some(false) => "MISSED",
                None => "",
            }
        );
    }
    missed
}

/// Returns how many times better Bareboat is, if both have a number.
fn ratio(quantity: &Quantity, saved: &Saved) -> Option<f64> {
    let (theirs, ours) = (
        saved.theirs.number(quantity.id)?,
        saved.ours.number(quantity.id)?,
    );
    let (more, less) = match quantity.unit {
        PerSecond => (ours, theirs),
        Micros | Millis | Mebibytes | Kibibytes | Percent | Multiple | Count => (theirs, ours),
    };
    (more > 0.0 && less > 0.0).then(|| more / less)
}

fn verdict(quantity: &Quantity, ratio: Option<f64>, ours: Option<&Figure>) -> Option<bool> {
    let ours = match ours {
        Some(Figure::Words(words)) if words == FAILED => return Some(false),
        Some(Figure::Number(number)) => Some(*number),
        _ => None,
    };
    match quantity.target {
        Free => None,
        Times(times) => ratio.map(|ratio| ratio >= times),
        Below(limit) => ours.map(|ours| ours < limit),
        TimesAndBelow(times, limit) => Some(ratio? >= times && ours? < limit),
    }
}

fn target(quantity: &Quantity) -> String {
    match quantity.target {
        Free => String::new(),
        Times(times) => format!("≥ {times}×"),
        Below(limit) => format!("< {}", measure(limit, quantity.unit)),
        TimesAndBelow(times, limit) => format!("≥ {times}×, < {}", measure(limit, quantity.unit)),
    }
}

fn show(figure: Option<&Figure>, unit: Unit) -> String {
    match figure {
        Some(Figure::Number(number)) => measure(*number, unit),
        Some(Figure::Words(words)) => words.clone(),
        None => "—".to_owned(),
    }
}

pub(crate) fn measure(number: f64, unit: Unit) -> String {
    let name = match unit {
        Micros => " µs",
        Millis => " ms",
        Mebibytes => " MiB",
        Kibibytes => " KiB",
        PerSecond => "/s",
        Percent => " %",
        Multiple => "×",
        Count => "",
    };
    let digits = if number.abs() >= 100.0 {
        grouped(number)
    } else if number.abs() < 1.0 && matches!(unit, Percent) {
        format!("{number:.2}")
    } else {
        format!("{number:.1}")
    };
    format!("{digits}{name}")
}

fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 && digit.is_ascii_digit() && !out.ends_with('-') {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_how_many_times_better_bareboat_is() {
        let mut saved = Saved::default();
        saved.theirs.set("get.cpu", 880.0);
        saved.ours.set("get.cpu", 22.0);
        saved.theirs.set("get.rate", 1_000.0);
        saved.ours.set("get.rate", 20_000.0);
        let ratio_of = |id| {
            ratio(
                QUANTITIES
                    .iter()
                    .find(|quantity| quantity.id == id)
                    .expect("listed"),
                &saved,
            )
        };
        assert_eq!(ratio_of("get.cpu"), Some(40.0));
        assert_eq!(ratio_of("get.rate"), Some(20.0));
        assert_eq!(ratio_of("list.cpu"), None);
    }

    #[test]
    fn large_numbers_are_grouped() {
        assert_eq!(measure(1_234_567.0, Micros), "1,234,567 µs");
        assert_eq!(measure(3.25, Mebibytes), "3.2 MiB");
    }
}
